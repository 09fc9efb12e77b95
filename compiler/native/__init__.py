"""C at run time: find a compiler, compile a source into a cached shared object, load it. Imports nothing but errors.

``storage`` (its helpers in csrc/) and ``build`` (generated kernels) both stand on it::

    library = load_source(source, declarations, files=("st_pack.c",))      # a cffi library; raises BuildError
"""
