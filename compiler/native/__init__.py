"""C at run time: find a compiler, compile a source into a cached shared object, load it. Imports nothing but errors.

``storage`` (its helpers in csrc/) and ``build`` (generated kernels) both stand on it::

    library = load_source(source_text, declarations)      # cffi library; raises BuildError
    library = load_helper("st_pack.c", declarations)      # a file of csrc/
"""
