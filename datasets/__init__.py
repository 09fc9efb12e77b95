"""Matrices and tensors to work on: files, the SuiteSparse and FROSTT catalogues, synthetic inputs."""

from .inputs import announced_shape, describe, fetch, list_catalogue, load
from .write import write

__all__ = ["announced_shape", "describe", "fetch", "list_catalogue", "load", "write"]
