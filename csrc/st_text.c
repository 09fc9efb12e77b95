/* Reading the lines of .mtx and .tns files, in parallel chunks that end with a line. */
#include "st_text.h"

#include "st_columns.h"
#include "st_decimal.h"

static inline const char *skip_blanks(const char *p) {
  while (*p == ' ' || *p == '\t' || *p == '\r') p++;
  return p;
}

static inline const char *next_line(const char *p, const char *end) {
  const char *line_end = memchr(p, '\n', (size_t)(end - p));
  return line_end ? line_end + 1 : end;
}

static inline bool is_comment(char c) { return c == '%' || c == '#'; }

static inline bool ends_field(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0'; }

typedef struct {
  const char *text;
  const int64_t *bounds;
  int64_t *counts;
} counted_text;

static void count_entries(const void *context, st_claims *claims, int64_t chunk) {
  const counted_text in = *(const counted_text *)context;
  for (; chunk >= 0; chunk = st_next(claims)) {
    const char *end = in.text + in.bounds[chunk + 1];
    int64_t entries = 0;
    for (const char *p = in.text + in.bounds[chunk]; p < end; p = next_line(p, end)) {
      const char *field = skip_blanks(p);
      entries += field < end && *field != '\n' && !is_comment(*field);
    }
    in.counts[chunk] = entries;
  }
}

void st_count_entries(const char *text, int64_t chunks, int64_t *bounds, int64_t *counts, int32_t threads) {
  const char *whole_end = text + bounds[chunks];
  for (int64_t chunk = 1; chunk < chunks; chunk++) {
    const char *at = text + bounds[chunk];
    if (at > text + bounds[0] && at[-1] != '\n') bounds[chunk] = next_line(at, whole_end) - text;
    if (bounds[chunk] < bounds[chunk - 1]) bounds[chunk] = bounds[chunk - 1];
  }
  const counted_text in = {text, bounds, counts};
  st_run(threads, chunks, true, count_entries, &in);
}

typedef struct {
  const char *text, *end;
  const st_entry_layout *layout;
  int64_t *undecided, room, *undecided_count;
} reader;

/* A 0 ends the text, but is no part of a line. */
static inline bool line_ends(const reader *in, const char *p) { return *p == '\n' || (*p == '\0' && p >= in->end); }

/* A whole number of at most 18 digits at *p, which is moved behind it. */
static inline bool read_coordinate(const char **p, int64_t *coordinate) {
  const char *at = *p;
  int64_t number = 0;
  while (st_is_digit(*at) && at - *p < 18) number = 10 * number + (*at++ - '0');
  if (at == *p || !ends_field(*at)) return false;
  *coordinate = number;
  *p = at;
  return true;
}

static int read_double(reader *in, const char **p, int64_t slot) {
  double value;
  const char *begin = *p;
  const st_decimal_state state = st_decimal(p, in->layout->fives, &value);
  if (state == ST_NO_NUMBER || !ends_field(**p)) return ST_BAD_VALUE;
  ((double *)in->layout->values)[slot] = value;
  if (state == ST_UNDECIDED) {
    const int64_t number = __atomic_fetch_add(in->undecided_count, 1, __ATOMIC_RELAXED);
    if (number >= in->room) return ST_MANY_UNDECIDED;
    in->undecided[2 * number] = slot;
    in->undecided[2 * number + 1] = begin - in->text;
  }
  return ST_FINE;
}

static int read_integer(const char **p, bool is_signed, uint64_t *slot) {
  const char *at = *p;
  const bool negative = *at == '-';
  if (*at == '-' || *at == '+') at++;
  if (!st_is_digit(*at)) return ST_BAD_VALUE;
  uint64_t number = 0;
  bool large = false;
  for (; st_is_digit(*at); at++) {
    const uint64_t digit = (uint64_t)(*at - '0');
    large |= number > (UINT64_MAX - digit) / 10;
    number = 10 * number + digit;
  }
  if (!ends_field(*at)) return ST_BAD_VALUE;
  if (is_signed) large |= number > (uint64_t)INT64_MAX + negative;
  if (large || (negative && !is_signed && number)) return ST_TOO_LARGE;
  *slot = negative ? 0 - number : number;
  *p = at;
  return ST_FINE;
}

static int read_value(reader *in, const char **p, int64_t entry) {
  const int kind = in->layout->kind;
  if (kind >= ST_INTEGER) return read_integer(p, kind == ST_INTEGER, (uint64_t *)in->layout->values + entry);
  const int parts = kind == ST_COMPLEX ? 2 : 1;
  for (int part = 0; part < parts; part++) {
    if (part) *p = skip_blanks(*p);
    if (line_ends(in, *p)) return ST_TOO_FEW;
    const int state = read_double(in, p, entry * parts + part);
    if (state) return state;
  }
  return ST_FINE;
}

/* One line, whose first field is at *p; moved to its end. */
static int read_line(reader *in, const char **p, int64_t entry, int64_t *greatest, int32_t *mode) {
  const st_entry_layout *layout = in->layout;
  for (*mode = 0; *mode < layout->order; ++*mode) {
    int64_t coordinate = 0;
    if (*mode) *p = skip_blanks(*p);
    if (line_ends(in, *p)) return ST_TOO_FEW;
    if (!read_coordinate(p, &coordinate)) return **p == '-' && st_is_digit((*p)[1]) ? ST_BELOW_BASE : ST_BAD_COORDINATE;
    coordinate -= layout->base;
    if (coordinate < 0) return ST_BELOW_BASE;
    if (layout->extents[*mode] >= 0 && coordinate >= layout->extents[*mode]) return ST_BEYOND_EXTENT;
    if (!layout->wide[*mode] && coordinate >= INT32_MAX) return ST_TOO_LARGE;
    st_put(layout->columns[*mode], layout->wide[*mode], entry, coordinate);
    if (coordinate > greatest[*mode]) greatest[*mode] = coordinate;
  }
  if (layout->kind == ST_PATTERN) return ST_FINE; /* whatever follows */
  *p = skip_blanks(*p);
  if (line_ends(in, *p)) return ST_TOO_FEW;
  const int state = read_value(in, p, entry);
  if (state) return state;
  *p = skip_blanks(*p);
  return line_ends(in, *p) ? ST_FINE : ST_TOO_MANY;
}

enum { MOST_MODES = 64, KINDS = 16 };

typedef struct {
  reader in;
  const int64_t *bounds, *firsts;
  int64_t *greatest, *mistake;
} read_text;

/* An error as a number: the first one in the text is the least. */
static int64_t number_of(int64_t place, int kind, int32_t mode) { return (place * KINDS + kind) * MOST_MODES + mode; }

static void read_entries(const void *context, st_claims *claims, int64_t chunk) {
  const read_text whole = *(const read_text *)context;
  const int32_t order = whole.in.layout->order;
  reader in = whole.in;
  int64_t seen[MOST_MODES];
  for (int32_t mode = 0; mode < order; mode++) seen[mode] = -1;
  for (; chunk >= 0; chunk = st_next(claims)) {
    const char *end = in.text + whole.bounds[chunk + 1];
    int64_t entry = whole.firsts[chunk];
    for (const char *p = in.text + whole.bounds[chunk]; p < end; p = next_line(p, end)) {
      int32_t mode = 0;
      p = skip_blanks(p);
      if (p >= end || *p == '\n' || is_comment(*p)) continue;
      const int kind = read_line(&in, &p, entry++, seen, &mode);
      if (kind) {
        st_raise(whole.mistake, INT64_MAX - number_of(p - in.text, kind, mode < MOST_MODES ? mode : 0));
        break;
      }
    }
  }
  for (int32_t mode = 0; mode < order; mode++) st_raise(&whole.greatest[mode], seen[mode]);
}

st_mistake st_read_entries(const char *text, int64_t chunks, const int64_t *bounds, const int64_t *firsts,
                           const st_entry_layout *layout, int64_t *greatest, int64_t *undecided, int64_t room,
                           int64_t *undecided_count, int32_t threads) {
  int64_t found = 0; /* the greatest, so that the first mistake counts */
  const read_text whole = {{text, text + bounds[chunks], layout, undecided, room, undecided_count}, bounds, firsts, greatest, &found};
  st_run(threads, chunks, true, read_entries, &whole);
  if (!found) return (st_mistake){INT64_MAX, ST_FINE, 0};
  const int64_t first = INT64_MAX - found;
  return (st_mistake){first / MOST_MODES / KINDS, (int32_t)(first / MOST_MODES % KINDS), (int32_t)(first % MOST_MODES)};
}
