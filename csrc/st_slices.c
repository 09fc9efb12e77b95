/* Fibres side by side: slices of as many parents, in each column of which every parent has a slot (SELL-C). */
#include "st_columns.h"
#include "st_pack.h"

typedef struct {
  int64_t parents, rows, slices, shares;
  const void *pos, *crd;
  const int64_t *starts; /* the first column of each slice */
  void *out, *ends, *slots;
  int32_t pos_wide, crd_wide, ends_wide, slots_wide;
  int64_t *widths; /* by slice */
} sliced;

/* The first slice of a share: shares have nearly equal work. */
static int64_t slice_of_share(const sliced *in, int64_t share) {
  return (st_balanced_row(in->parents, in->pos, in->pos_wide, share, in->shares) + in->rows - 1) / in->rows;
}

static void measure(const void *context, st_claims *claims, int64_t share) {
  const sliced in = *(const sliced *)context;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t stop = st_share(in.slices, share + 1, in.shares);
    for (int64_t s = st_share(in.slices, share, in.shares); s < stop; s++) {
      const int64_t past = (s + 1) * in.rows < in.parents ? (s + 1) * in.rows : in.parents;
      int64_t widest = 0, begin = st_get(in.pos, in.pos_wide, s * in.rows);
      for (int64_t p = s * in.rows; p < past; p++) {
        const int64_t end = st_get(in.pos, in.pos_wide, p + 1);
        widest = end - begin > widest ? end - begin : widest;
        begin = end;
      }
      in.widths[s] = widest;
    }
  }
}

void st_slices(int64_t parents, const void *pos, int32_t pos_wide, int64_t rows, int64_t *starts, int32_t threads) {
  const int64_t slices = (parents + rows - 1) / rows;
  const sliced in = {.parents = parents, .rows = rows, .slices = slices, .shares = st_fine_shares(threads), .pos = pos,
                     .pos_wide = pos_wide, .widths = starts + 1};
  st_run(threads, in.shares, true, measure, &in);
  starts[0] = 0;
  for (int64_t s = 0; s < slices; s++) starts[s + 1] += starts[s];
}

/* The coordinates of a parent, and the last of them again up to where its slice ends. */
#define PLACE_BESIDE(CRD, SLOT)                                                             \
  for (int64_t s = first; s < past; s++) {                                                  \
    const int64_t begin = in.starts[s] * in.rows, end = in.starts[s + 1] * in.rows;         \
    for (int64_t lane = 0; lane < in.rows; lane++) {                                        \
      const int64_t p = s * in.rows + lane;                                                 \
      const int64_t low = st_get(in.pos, in.pos_wide, p < in.parents ? p : in.parents);     \
      const int64_t high = st_get(in.pos, in.pos_wide, p < in.parents ? p + 1 : in.parents);\
      const CRD *from = in.crd;                                                             \
      CRD *to = in.out, last = 0;                                                           \
      int64_t slot = begin + lane;                                                          \
      for (int64_t k = low; k < high; k++, slot += in.rows) {                               \
        to[slot] = last = from[k];                                                          \
        ((SLOT *)in.slots)[k] = (SLOT)slot;                                                 \
      }                                                                                     \
      for (; slot < end; slot += in.rows) to[slot] = last;                                  \
      if (p < in.parents) st_put(in.ends, in.ends_wide, p, in.starts[s] + high - low);      \
    }                                                                                       \
  }

static void place_beside(const void *context, st_claims *claims, int64_t share) {
  const sliced in = *(const sliced *)context;
  for (; share >= 0; share = st_next(claims)) {
    const int64_t first = slice_of_share(&in, share), past = slice_of_share(&in, share + 1);
    if (in.crd_wide && in.slots_wide)
      PLACE_BESIDE(int64_t, int64_t)
    else if (in.crd_wide)
      PLACE_BESIDE(int64_t, int32_t)
    else if (in.slots_wide)
      PLACE_BESIDE(int32_t, int64_t)
    else
      PLACE_BESIDE(int32_t, int32_t)
  }
}

void st_place_beside(int64_t parents, const void *pos, int32_t pos_wide, const void *crd, int32_t crd_wide, int64_t rows,
                     const int64_t *starts, void *ends, int32_t ends_wide, void *out, void *slots, int32_t slots_wide, int32_t threads) {
  const sliced in = {.parents = parents, .rows = rows, .slices = (parents + rows - 1) / rows, .shares = st_fine_shares(threads), .pos = pos,
                     .crd = crd, .starts = starts, .out = out, .ends = ends, .slots = slots, .pos_wide = pos_wide, .crd_wide = crd_wide,
                     .ends_wide = ends_wide, .slots_wide = slots_wide};
  st_run(threads, in.shares, true, place_beside, &in);
}
