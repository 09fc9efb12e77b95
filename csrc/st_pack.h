#ifndef ST_PACK_H
#define ST_PACK_H

#include <stdint.h>

/* cdef */
/* 0: each entry is lexicographically greater than the one before; 1: some are equal; 2: some are smaller. */
int32_t st_order_state(int64_t count, int32_t levels, const void *const *columns, const int8_t *wide, int32_t threads);

/* first[e]: the first level at which entry e differs from the one before, `levels` for an equal one, 0 for entry 0;
   histogram (zeros, levels + 1) counts them. */
void st_first_differences(int64_t count, int32_t levels, const void *const *columns, const int8_t *wide, int8_t *first,
                          int64_t *histogram, int32_t threads);

/* pos[p]: the first entry whose parent is p or greater; parents do not decrease. */
void st_segments(int64_t count, const void *parent, int32_t parent_wide, int64_t parents, void *pos, int32_t pos_wide, int32_t threads);

/* Copy so many bytes; the threads also have the system provide the pages of new memory. */
void st_copy(int64_t bytes, const void *from, void *to, int32_t threads);

/* out[k] = column[p] (p itself where column is NULL) for every k in pos[p] .. pos[p + 1]. */
void st_expand(int64_t parents, const void *pos, int32_t pos_wide, const void *column, int32_t column_wide, void *out, int32_t out_wide,
               int32_t threads);
/* Narrow coordinates: the base of each parent (0 for one without coordinates), and the distances from it; returns how many
   coordinates the widest fibre spans, the first and the last included. */
int64_t st_distances(int64_t parents, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide, void *base, int32_t base_wide,
                     uint16_t *out, int32_t threads);

/* Fibres as distances of their coordinates from the parent's number, equal fibres stored once: those of parent p begin at start[p] (0
   for one without). Room for all fibres is needed. Returns how many there are; -1 when there is no memory. */
int64_t st_patterns(int64_t parents, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide, void *start, int32_t start_wide,
                    void *distances, int32_t distances_wide);

/* Fibres side by side, `rows` parents to a slice. starts[s] (slices + 1): the first column of slice s, which has as many as the longest of
   its fibres has coordinates. */
void st_slices(int64_t parents, const void *pos, int32_t pos_wide, int64_t rows, int64_t *starts, int32_t threads);

/* Then: out (rows * starts[slices], as wide as crd) has a slot for each parent of a slice in each of its columns. slots[k]: where
   coordinate k has gone; ends[p]: the column behind the last of parent p. The slots of a parent behind that repeat its last
   coordinate, or hold 0 if it has none. */
void st_place_beside(int64_t parents, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide, int64_t rows,
                     const int64_t *starts, void *ends, int32_t ends_wide, void *out, void *slots, int32_t slots_wide, int32_t threads);

/* out[e] = (position[e] or 0) * extent + column[e]. */
void st_below_dense(int64_t count, const void *position, int32_t position_wide, int64_t extent, const void *column, int32_t column_wide,
                    int64_t *out, int32_t threads);

/* A compressed level over parents in increasing order: entry e begins a child where first[e] <= last_level. parent: position of each
   entry in the level above (NULL: 0). crd, child (position of each entry): NULL if not wanted. */
void st_compress(int64_t count, const int8_t *first, int32_t last_level, const void *parent, int32_t parent_wide, int64_t parents,
                 const void *column, int32_t column_wide, void *crd, int32_t crd_wide, void *pos, int32_t pos_wide, void *child,
                 int32_t child_wide, int32_t threads);

/* counts[p] (zeros) += children of parent p; entries of one parent stand together. */
void st_count_children(int64_t count, const int8_t *first, int32_t level, const int64_t *parent, int64_t *counts, int32_t threads);

/* The children of parents in any order, entries of one parent together: written one after the other from starts[p] on, or
   inserted into the table crd[starts[p] .. starts[p + 1]) of free slots (-1) where `hashed`. */
void st_place_children(int64_t count, const int8_t *first, int32_t level, const int64_t *parent, const int64_t *starts, const void *column,
                       int32_t column_wide, void *crd, int32_t crd_wide, int32_t hashed, int64_t *child, int32_t threads);

/* out[position[e]] = values[e], and out[e] = values[position[e]]; items of 1, 2, 4, 8 or 16 bytes. */
void st_scatter(int64_t count, const void *values, int64_t itemsize, const void *position, int32_t position_wide, void *out,
                int32_t threads);
void st_gather(int64_t count, const void *values, int64_t itemsize, const void *position, int32_t position_wide, void *out,
               int32_t threads);

/* How many bytes of room help to transpose: for coordinates that are scattered over so many columns that a cache of so many bytes has not
   the lines of all of them. 0: none; also if any index array is `wide`, or there are fewer than ST_SCATTERED_LEAST. */
enum { ST_SCATTERED_LEAST = 16384 };
int64_t st_transpose_room(int64_t count, int64_t columns, const void *crd, int32_t wide, int64_t itemsize, int64_t cache);

/* A dense level above a compressed one, transposed: out_pos (columns + 1), out_crd, out_values. `room` is NULL, or as large as
   st_transpose_room wants it. `places` are for each thread (at most 255) as many as there are columns, of 32 bits where the count is less
   than 2^32 - 1, else of 64; a single thread needs none (NULL) if out_pos is as wide. 1 when there is no memory. */
int32_t st_transpose(int64_t rows, int64_t columns, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide,
                     const void *values, int64_t itemsize, void *out_pos, int32_t out_pos_wide, void *out_crd, int32_t out_crd_wide,
                     void *out_values, void *room, void *places, int32_t threads);

/* The same from entries in order of their rows, `row_of` each; out_crd is as wide as these are. */
int32_t st_transpose_entries(int64_t count, int64_t columns, const void *row_of, int32_t row_wide, const void *crd, int32_t crd_wide,
                             const void *values, int64_t itemsize, void *out_pos, int32_t out_pos_wide, void *out_crd,
                             void *out_values, void *room, void *places, int32_t threads);

/* Integers in 32 bits, -1 for each that does not fit. */
void st_shorten(int64_t count, const int64_t *from, int32_t *to, int32_t threads);

/* Whether pos delimits `rows` segments of strictly increasing coordinates in 0 .. extent: 0 yes; 1 coordinates unsorted or
   repeated; 2 a coordinate out of range; 3 positions that decrease, do not begin at 0 or end behind `stored`. */
int32_t st_check_segments(int64_t rows, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide, int64_t stored,
                          int64_t extent, int32_t threads);
/* end */

#endif
