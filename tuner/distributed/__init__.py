"""Kernels with one sparse operand on many machines: cyclic distribution over processor grids (Kanakagiri, Solomonik, section 5.2)."""
