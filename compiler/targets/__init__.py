"""What kernels run on: the contract that a target keeps (``target``), those that there are (``registry``), one file each."""
