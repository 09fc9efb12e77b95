"""Loop nest forests: one product computed in several nests that share their outer loops.

Contraction trees, index orders of their terms, and which loops neighbouring terms share (Kanakagiri and Solomonik, "Minimum
Cost Loop Nests for Contraction of a Sparse Tensor with a Tensor Network"; Dias et al., "SparseAuto").
"""
