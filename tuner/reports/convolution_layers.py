"""Layers of networks whose convolutions the report times."""

from __future__ import annotations

from ...compiler.frozen import frozen


@frozen
class Layer:
    """A layer of a network: square images of so many channels, padded, and so many square filters."""

    side: int
    channels: int
    width: int
    filters: int
    stride: int = 1

    def __str__(self) -> str:
        stride = f", stride {self.stride}" if self.stride > 1 else ""
        return f"{self.side}x{self.side}x{self.channels}, {self.width}x{self.width}x{self.filters}{stride}"

    @property
    def notation(self) -> str:
        """The convolution in index notation. The image I is padded already."""
        step = f"{self.stride}*" if self.stride > 1 else ""
        return f"O(n,h,w,f) = I(n,{step}h+p,{step}w+q,c) * F(p,q,c,f)"


FIRST = (Layer(256, 64, 1, 64), Layer(256, 64, 3, 64))
"""The first layer of a ResNet as in Figure 16, which does not give the width of its filters."""

RESNET50 = (
    Layer(230, 3, 7, 64, 2),
    Layer(56, 64, 1, 64), Layer(58, 64, 3, 64), Layer(56, 64, 1, 256), Layer(56, 256, 1, 64),
    Layer(56, 256, 1, 128), Layer(57, 128, 3, 128, 2), Layer(28, 128, 1, 512), Layer(56, 256, 1, 512, 2), Layer(28, 512, 1, 128),
    Layer(30, 128, 3, 128),
    Layer(28, 512, 1, 256), Layer(29, 256, 3, 256, 2), Layer(14, 256, 1, 1024), Layer(28, 512, 1, 1024, 2), Layer(14, 1024, 1, 256),
    Layer(16, 256, 3, 256),
    Layer(14, 1024, 1, 512), Layer(15, 512, 3, 512, 2), Layer(7, 512, 1, 2048), Layer(14, 1024, 1, 2048, 2), Layer(7, 2048, 1, 512),
    Layer(9, 512, 3, 512),
)  # fmt: skip
"""The different convolutions of ResNet50 (He et al., 2016, Table 1) on an image of 224 x 224; sides with their padding."""
