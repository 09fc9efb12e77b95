/* How a kernel is launched: threads of a block, and bytes that they share beside what the kernel declares. */
#ifndef ST_CUDA_SHAPE_H
#define ST_CUDA_SHAPE_H

struct st_shape {
  int threads, shared;
  st_shape(int threads, int shared = 0) : threads(threads), shared(shared) {}
};

#endif
