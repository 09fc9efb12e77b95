"""C at run time: find a compiler, compile a source into a cached shared object, load it; and the cores and memory of the machine.

From the rest of ``compiler`` it imports only errors, messages and the base of frozen classes. ``storage`` (for its helpers in csrc/) and
``targets`` (for generated kernels) use it::

    library = load_source(source, declarations, files=("st_pack.c",))      # a cffi library; raises BuildError
"""
