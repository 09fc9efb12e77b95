"""From loop IR to source text: C with GNU vectors and a team of threads, and CUDA C++."""
