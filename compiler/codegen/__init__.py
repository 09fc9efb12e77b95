"""From loop IR to source text: C with GNU vectors, and parallel loops for the team of threads."""
