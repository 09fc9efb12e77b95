#ifndef ST_TEXT_H
#define ST_TEXT_H

#include <stdint.h>

/* cdef */
enum { ST_PATTERN, ST_REAL, ST_COMPLEX, ST_INTEGER, ST_UNSIGNED };
enum {
  ST_FINE,
  ST_BAD_COORDINATE,  /* no whole number */
  ST_BELOW_BASE,      /* less than the first coordinate */
  ST_BEYOND_EXTENT,
  ST_BAD_VALUE,
  ST_TOO_LARGE,       /* an integer of more than 64 bits, or a coordinate of more than its column holds */
  ST_TOO_FEW,         /* fields on a line */
  ST_TOO_MANY,
  ST_MANY_UNDECIDED   /* more numbers than `undecided` has room for */
};

/* The entries of a text, one per line: `order` coordinates, then the parts of a value. */
typedef struct {
  int32_t order, kind;   /* kind of values */
  int64_t base;          /* the first coordinate: 1, or 0 */
  const int64_t *extents; /* by mode; -1 where not known */
  void *const *columns;  /* by mode: coordinates from 0 on */
  const int8_t *wide;
  void *values;          /* doubles (two for complex ones), int64 or uint64 */
  const uint64_t *fives; /* see st_decimal.h */
} st_entry_layout;

/* The first error: its place in the text, and the mode of a coordinate. */
typedef struct {
  int64_t place;
  int32_t kind, mode;
} st_mistake;

/* Count the entries (lines that are neither empty nor comments) of each chunk of a text, moving bounds[1 .. chunks - 1] on
   to where a line begins. text[bounds[chunks]] is a 0. */
void st_count_entries(const char *text, int64_t chunks, int64_t *bounds, int64_t *counts, int32_t threads);

/* Read the entries of all chunks; those of chunk c begin at entry firsts[c]. greatest[mode] (in: -1) becomes the largest
   coordinate. undecided: pairs (number of the double in values, place) of numbers that are left to the caller; `room` pairs;
   undecided_count counts them. */
st_mistake st_read_entries(const char *text, int64_t chunks, const int64_t *bounds, const int64_t *firsts,
                           const st_entry_layout *layout, int64_t *greatest, int64_t *undecided, int64_t room,
                           int64_t *undecided_count, int32_t threads);
/* end */

#endif
