"""How tensors are stored: level arrays, packing, conversion between formats, and construction from other libraries' arrays."""
