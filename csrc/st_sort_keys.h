/* The sorts of st_sort.h for one type: ST_KEY, ST_UNSIGNED of the same width, ST_NAME(name). */

static inline void ST_NAME(sort_short)(ST_KEY *keys, int64_t count) {
  for (int64_t k = 1; k < count; k++) {
    const ST_KEY key = keys[k];
    int64_t place = k;
    for (; place > 0 && keys[place - 1] > key; place--) keys[place] = keys[place - 1];
    keys[place] = key;
  }
}

static inline void ST_NAME(sort_sift)(ST_KEY *keys, int64_t root, int64_t count) {
  const ST_KEY key = keys[root];
  for (int64_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && keys[child + 1] > keys[child]) child++;
    if (keys[child] <= key) break;
    keys[root] = keys[child];
  }
  keys[root] = key;
}

static inline void ST_NAME(sort_heap)(ST_KEY *keys, int64_t count) {
  for (int64_t root = count / 2 - 1; root >= 0; root--) ST_NAME(sort_sift)(keys, root, count);
  for (int64_t last = count - 1; last > 0; last--) {
    const ST_KEY key = keys[last];
    keys[last] = keys[0];
    keys[0] = key;
    ST_NAME(sort_sift)(keys, 0, last);
  }
}

/* Quicksort with the median of three; after `depth` bad splits the rest is sorted by heap (Musser, introsort). */
static inline void ST_NAME(sort_quick)(ST_KEY *keys, int64_t count, int depth) {
  while (count > ST_SORT_SHORT) {
    if (depth-- == 0) {
      ST_NAME(sort_heap)(keys, count);
      return;
    }
    const ST_KEY a = keys[0], b = keys[count / 2], c = keys[count - 1];
    const ST_KEY pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
    int64_t left = -1, right = count;
    for (;;) {
      do left++; while (keys[left] < pivot);
      do right--; while (keys[right] > pivot);
      if (left >= right) break;
      const ST_KEY key = keys[left];
      keys[left] = keys[right];
      keys[right] = key;
    }
    const int64_t middle = right + 1;
    if (middle < count - middle) {
      ST_NAME(sort_quick)(keys, middle, depth);
      keys += middle;
      count -= middle;
    } else {
      ST_NAME(sort_quick)(keys + middle, count - middle, depth);
      count = middle;
    }
  }
  ST_NAME(sort_short)(keys, count);
}

/* Least significant digit first, 8 bits a pass; digits that all keys share cost no pass. */
static inline void ST_NAME(sort_radix)(ST_KEY *keys, ST_KEY *other, int64_t count) {
  const ST_UNSIGNED sign = (ST_UNSIGNED)1 << (8 * sizeof(ST_KEY) - 1);
  ST_UNSIGNED differing = 0;
  for (int64_t k = 1; k < count; k++) differing |= (ST_UNSIGNED)keys[k] ^ (ST_UNSIGNED)keys[0];
  ST_KEY *from = keys, *to = other;
  for (int shift = 0; shift < (int)(8 * sizeof(ST_KEY)); shift += 8) {
    if (!((differing >> shift) & 255)) continue;
    int64_t place[256] = {0};
    for (int64_t k = 0; k < count; k++) place[(((ST_UNSIGNED)from[k] ^ sign) >> shift) & 255]++;
    int64_t sum = 0;
    for (int digit = 0; digit < 256; digit++) {
      const int64_t here = place[digit];
      place[digit] = sum;
      sum += here;
    }
    for (int64_t k = 0; k < count; k++) to[place[(((ST_UNSIGNED)from[k] ^ sign) >> shift) & 255]++] = from[k];
    ST_KEY *swap = from;
    from = to;
    to = swap;
  }
  if (from != keys) memcpy(keys, from, (size_t)count * sizeof(ST_KEY));
}

static inline bool ST_NAME(is_sorted)(const ST_KEY *keys, int64_t count) {
  for (int64_t k = 1; k < count; k++)
    if (keys[k - 1] > keys[k]) return false;
  return true;
}

static void ST_NAME(sort)(ST_KEY *keys, int64_t count) {
  if (count <= ST_SORT_SHORT) {
    ST_NAME(sort_short)(keys, count);
  } else if (!ST_NAME(is_sorted)(keys, count)) {
    if (count <= ST_SORT_MEDIUM) {
      ST_NAME(sort_quick)(keys, count, 64);
    } else if (count <= ST_SORT_STACK) {
      ST_KEY other[ST_SORT_STACK];
      ST_NAME(sort_radix)(keys, other, count);
    } else {
      ST_KEY *other = st_allocate(count, sizeof(ST_KEY));
      if (other)
        ST_NAME(sort_radix)(keys, other, count);
      else
        ST_NAME(sort_quick)(keys, count, 64);
      free(other);
    }
  }
}

static inline void ST_NAME(sort_range)(ST_KEY *keys, int64_t low, int64_t high) {
  if (low < high) ST_NAME(sort)(keys + low, high - low);
}
