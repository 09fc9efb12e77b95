"""What kernels run on: the interface of a target (``target``), the registry of all targets (``registry``), and one file for each."""
