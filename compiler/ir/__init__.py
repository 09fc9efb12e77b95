"""The loop IR: a small imperative language with typed scalars, arrays and tagged loops; its printer, parser, verifier and interpreter."""
