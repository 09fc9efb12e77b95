"""From loop IR to source text: C with GNU vectors, whose parallel loops the team of threads runs, and CUDA C++."""
