/* Ascending sorts of coordinates, in place; they never fail. */
#ifndef ST_SORT_H
#define ST_SORT_H

#include "st_runtime.h"

enum {
  ST_SORT_SHORT = 24,   /* up to here by insertion */
  ST_SORT_MEDIUM = 40,  /* up to here by quicksort, beyond by radix (measured) */
  ST_SORT_STACK = 2048, /* up to here the radix sort's second array lives on the stack */
};

#define ST_KEY int32_t
#define ST_UNSIGNED uint32_t
#define ST_NAME(name) st_##name##_i32
#include "st_sort_keys.h"
#undef ST_KEY
#undef ST_UNSIGNED
#undef ST_NAME

#define ST_KEY int64_t
#define ST_UNSIGNED uint64_t
#define ST_NAME(name) st_##name##_i64
#include "st_sort_keys.h"
#undef ST_KEY
#undef ST_UNSIGNED
#undef ST_NAME

#endif
