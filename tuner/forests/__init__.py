"""Pipelines over loop nest forests: those of Dias et al. ("SparseAuto") and of Kanakagiri and Solomonik ("SpTTN-Cyclops")."""
