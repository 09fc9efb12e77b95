/* The iterations of a parallel loop, cut into numbered pieces (st_team.h). Where a loop keeps something for each share of its work,
   piece k belongs to share k modulo their number, whichever thread does it. */
#ifndef ST_LOOP_H
#define ST_LOOP_H

#include "st_called.h"
#include "st_team.h"

/* Pieces of `chunk` iterations, the last one may be shorter; where `guided` is not 0, that many pieces at a time share half of what is
   left, as long as they are larger than a chunk (factoring; Hummel, Schonberg and Flynn 1992). */
typedef struct {
  int64_t low, high, chunk, pieces, guided;
} st_loop;

static inline int64_t st_ceiling(int64_t count, int64_t size) { return count / size + (count % size != 0); }

static inline st_loop st_chunks(int64_t low, int64_t high, int64_t chunk, int64_t threads) {
  const int64_t count = high > low ? high - low : 0, size = threads == 1 && chunk < count ? count : chunk;
  return (st_loop){low, high, size, st_ceiling(count, size), 0};
}

/* Equal pieces, several for each thread, so that a thread that loses its core delays only a small part. */
static inline st_loop st_even(int64_t low, int64_t high, int64_t threads) {
  enum { FOR_EACH = 8 };
  const int64_t count = high > low ? high - low : 1;
  return st_chunks(low, high, st_ceiling(count, FOR_EACH * threads), threads);
}

/* One piece for each share. */
static inline st_loop st_even_shares(int64_t low, int64_t high, int64_t shares) {
  return st_chunks(low, high, st_ceiling(high > low ? high - low : 1, shares), shares);
}

/* How large the next pieces are where `left` iterations are left. */
static inline int64_t st_guided_size(const st_loop *loop, int64_t left) { return left / (2 * loop->guided) + 1; }

static inline st_loop st_guided(int64_t low, int64_t high, int64_t least, int64_t threads) {
  st_loop loop = st_chunks(low, high, least, threads);
  int64_t left = high > low ? high - low : 0, pieces = 0;
  loop.guided = threads;
  for (int64_t size; threads > 1 && (size = st_guided_size(&loop, left)) > loop.chunk; pieces += threads) left -= threads * size;
  loop.pieces = pieces + st_ceiling(left, loop.chunk);
  return loop;
}

/* Where a piece of a guided loop begins. */
ST_CALLED int64_t st_begin_guided(const st_loop *loop, int64_t piece);

static inline int64_t st_begin(const st_loop *loop, int64_t piece) {
  return loop->guided > 1 ? st_begin_guided(loop, piece) : loop->low + piece * loop->chunk;
}

static inline int64_t st_end(const st_loop *loop, int64_t piece) {
  const int64_t end = st_begin(loop, piece + 1);
  return end < loop->high ? end : loop->high;
}

#ifndef ST_LINKED

ST_CALLED int64_t st_begin_guided(const st_loop *loop, int64_t piece) {
  int64_t at = loop->low;
  for (int64_t size; (size = st_guided_size(loop, loop->high - at)) > loop->chunk; at += loop->guided * size) {
    if (piece < loop->guided) return at + piece * size;
    piece -= loop->guided;
  }
  return at + piece * loop->chunk;
}

#endif

#endif
