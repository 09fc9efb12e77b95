"""How tensors are stored: level arrays, packing, conversion between formats, and construction from the arrays of other libraries."""
