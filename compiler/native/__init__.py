"""C at run time: find a compiler, compile a source into a cached shared object, load it; and what the machine has of cores and memory.

Of the compiler it imports only errors, messages and the base of frozen classes. ``storage`` (its helpers in csrc/) and ``targets``
(generated kernels) both stand on it::

    library = load_source(source, declarations, files=("st_pack.c",))      # a cffi library; raises BuildError
"""
