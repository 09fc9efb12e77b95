#ifndef ST_STRIDED_H
#define ST_STRIDED_H

#include <stdint.h>

/* cdef */
/* Copy a matrix of items, whose rows and columns lie so many bytes apart in memory (also backwards, or none), row after row. */
void st_copy_strided(int64_t rows, int64_t columns, int64_t row_step, int64_t column_step, const void *from, int32_t itemsize, void *to,
                     int32_t threads);
/* end */

#endif
