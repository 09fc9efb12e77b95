"""From loop IR to source text: C with OpenMP and GNU vectors."""
