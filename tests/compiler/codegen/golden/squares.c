/* squares, 32-byte vectors */
#include "st_runtime.h"

int32_t st_kernel(void **st_arrays, int64_t *st_sizes, int64_t st_threads) {
  const int64_t i_size = st_sizes[0];
  int32_t st_status = 0;
  int64_t *restrict squares = NULL;
  int64_t capacity = 2;
  squares = st_allocate(2, sizeof *squares);
  if (!squares) { st_fail(&st_status); goto st_end; }
  for (int64_t i = 0; i < i_size; i++) {
    if (capacity < i + 1) {
      void *st_room = st_grow(squares, &capacity, i + 1, sizeof *squares);
      if (!st_room) { st_fail(&st_status); goto st_end; }
      squares = st_room;
    }
    squares[i] = i * i;
  }
  st_arrays[0] = st_trim(squares, i_size, sizeof *squares);
  st_sizes[1] = i_size;
  squares = NULL;
st_end:;
  st_release(squares);
  return st_status;
}
