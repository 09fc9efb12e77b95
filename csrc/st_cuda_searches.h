/* Searches in sorted coordinates, by one thread or a warp; searches in tables, sorting, and sets of keys, by one thread. */
#ifndef ST_CUDA_SEARCHES_H
#define ST_CUDA_SEARCHES_H

/* Searches count from `low` on in 32 bits, whose arithmetic takes one instruction where that of 64 bits takes two or three; longer
   ranges are searched in parts, one after another. */
enum : uint32_t { ST_COUNTED = 0x7fffffff };
ST_DEVICE uint32_t st_counted(int64_t low, int64_t high) {
  const int64_t left = high - low;
  return left > (int64_t)ST_COUNTED ? (uint32_t)ST_COUNTED : left > 0 ? (uint32_t)left : 0;
}
template <class F> ST_DEVICE int64_t st_found(int64_t low, int64_t high, F find) {
  for (;;) {
    const uint32_t count = st_counted(low, high), found = find(low, count);
    low += found;
    if (found < count || count < ST_COUNTED) return low;
  }
}
/* The element so many places behind another one. */
#ifdef ST_EXECUTOR
template <class A> ST_DEVICE auto st_item(A items, int64_t base, uint32_t at) { return items[base + at]; }
#else
template <class T> ST_DEVICE T st_item(const T *items, int64_t base, uint32_t at) { return (items + base)[at]; }
#endif
/* What coordinates of at most 4 bytes are compared as, and others. */
template <bool wide> struct st_key { typedef int type; };
template <> struct st_key<true> { typedef int64_t type; };
template <class A> struct st_key_of;
template <class T> struct st_key_of<st_array<T>> : st_key<(sizeof(T) > 4)> {};
/* The last number that comes before a key, or with it. Distances from a parent's number may be negative; none is the least number. */
template <class K> ST_DEVICE K st_last_before(int64_t key, bool equal) {
  const int64_t last = equal ? key : key - 1, most = 0x7fffffff;
  return (K)(sizeof(K) == sizeof last ? last : last > most ? most : last < -most ? -most - 1 : last);
}
/* Whether elements come before a key. */
template <class A> struct st_before {
  typedef typename st_key_of<A>::type K;
  A crd;
  K last;
  ST_DEVICE st_before(A crd, int64_t key, bool equal) : crd(crd), last(st_last_before<K>(key, equal)) {}
  ST_DEVICE bool operator()(int64_t base, uint32_t at) const { return (K)st_item(crd, base, at) <= last; }
};
/* The same of fibres on the merge path, where the end of fibre f has number pos[f + 1] + f. */
template <class A> struct st_path_before {
  A pos;
  int64_t item;
  ST_DEVICE bool operator()(int64_t base, uint32_t at) const { return (int64_t)st_item(pos, base + 1, at) + base + at < item; }
};
/* The first of so many elements that does not come before what is looked for. */
template <class F> ST_DEVICE uint32_t st_bisected(int64_t base, uint32_t count, F before) {
  uint32_t low = 0;
  while (count > 0) {
    const uint32_t half = count >> 1;
    const bool right = before(base, low + half);
    low = right ? low + half + 1 : low;
    count = right ? count - half - 1 : half;
  }
  return low;
}
/* Searches in sorted coordinates crd[low .. high): the first position whose coordinate is at least, or above, `key`. */
template <class F> ST_DEVICE int64_t st_first(int64_t low, int64_t high, F before) {
  return st_found(low, high, [=](int64_t base, uint32_t count) { return st_bisected(base, count, before); });
}
template <class A> ST_DEVICE int64_t st_search(A crd, int64_t low, int64_t high, int64_t key, bool equal) {
  return st_first(low, high, st_before<A>(crd, key, equal));
}
/* The same by all lanes of a warp: each looks at the last place of its part of the remaining range. */
template <int L, class F> ST_DEVICE int64_t st_first_of_lanes(int64_t low, int64_t high, F before) {
  for (;;) {
    const uint32_t count = st_counted(low, high), lane = (uint32_t)st_lane<L>() + 1;
    uint32_t at = 0, end = count;
    while (at < end) {
      const uint32_t part = (end - at + L - 1) / L, last = at + part * lane - 1;
      const bool right = last < end && before(low, last);
      at += part * (uint32_t)st_count_of_lanes<L>(right);
      end = at + part - 1 < end ? at + part - 1 : end;
    }
    low += at;
    if (at < count || count < ST_COUNTED) return low;
  }
}
template <int L, class A> ST_DEVICE int64_t st_search_of_warp(A crd, int64_t low, int64_t high, int64_t key, bool equal) {
  return st_first_of_lanes<L>(low, high, st_before<A>(crd, key, equal));
}
/* Most often it is the first or the second element, for example if the next row has entries. */
template <class A> ST_DEVICE int64_t st_gallop(A crd, int64_t low, int64_t high, int64_t key, int64_t stride) {
  if (low >= high || (int64_t)crd[low] >= key) return low;
  if (++low >= high || (stride == 1 && (int64_t)crd[low] >= key)) return low;
  const st_before<A> before(crd, key, false);
  return st_found(low, high, [=](int64_t base, uint32_t count) -> uint32_t {
    uint32_t begin = 0, step = stride < (int64_t)ST_COUNTED ? (uint32_t)stride : (uint32_t)ST_COUNTED;
    while (step <= count - begin && before(base, begin + step - 1)) {
      begin += step;
      step <<= 1;
    }
    return begin + st_bisected(base + begin, step <= count - begin ? step - 1 : count - begin, before);
  });
}
/* The first fibre whose end is not before an item of the merge path. */
template <class A> ST_DEVICE int64_t st_path_fibre(A pos, int64_t low, int64_t high, int64_t item) {
  return st_first(low, high, st_path_before<A>{pos, item});
}
template <int L, class A> ST_DEVICE int64_t st_path_fibre_of_warp(A pos, int64_t low, int64_t high, int64_t item) {
  return st_first_of_lanes<L>(low, high, st_path_before<A>{pos, item});
}
/* Where the search for a key begins in a table, whose number of slots is a power of two. */
ST_DEVICE int64_t st_hash_home(int64_t key, int64_t size) {
  const int bits = st_last_bit(size);
  return bits ? (int64_t)(((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - bits)) : 0;
}
/* The place of a key, or a free place for it, in a table of a power of two slots, not all of which are taken (csrc/st_hash.h). */
template <class A> ST_DEVICE int64_t st_hash_vacant(A crd, int64_t low, int64_t high, int64_t key) {
  const int64_t size = high - low;
  int64_t slot = st_hash_home(key, size);
  for (int64_t found; (found = (int64_t)crd[low + slot]) >= 0 && found != key;) slot = (slot + 1) & (size - 1);
  return low + slot;
}
/* The same, -1 where the key is not. */
template <class A> ST_DEVICE int64_t st_hash_find(A crd, int64_t low, int64_t high, int64_t key) {
  if (high <= low) return -1;
  const int64_t place = st_hash_vacant(crd, low, high, key);
  return (int64_t)crd[place] == key ? place : -1;
}
/* As st_lower_bound, among low, low + stride ... up to `high`, which is as far from `low` (st_runtime.h). */
template <class A> ST_DEVICE int64_t st_lower_bound_apart(A crd, int64_t low, int64_t high, int64_t key, int64_t stride) {
  int64_t count = (high - low) / stride;
  while (count > 0) {
    const int64_t half = count >> 1, middle = low + half * stride;
    const bool right = (int64_t)crd[middle] < key;
    low = right ? middle + stride : low;
    count = right ? count - half - 1 : half;
  }
  return low;
}
#define ST_SEARCHES(S)                                                                                                       \
  template <class A> ST_DEVICE int64_t st_lower_bound_##S(A crd, int64_t low, int64_t high, int64_t key) {                   \
    return st_search(crd, low, high, key, false);                                                                            \
  }                                                                                                                          \
  template <class A> ST_DEVICE int64_t st_lower_bound_apart_##S(A crd, int64_t low, int64_t high, int64_t key, int64_t stride) { \
    return st_lower_bound_apart(crd, low, high, key, stride);                                                                \
  }                                                                                                                          \
  template <class A> ST_DEVICE int64_t st_upper_bound_##S(A crd, int64_t low, int64_t high, int64_t key) {                   \
    return st_search(crd, low, high, key, true);                                                                             \
  }                                                                                                                          \
  template <int L = ST_LANES, class A>                                                                                       \
  ST_DEVICE int64_t st_lower_bound_of_warp_##S(A crd, int64_t low, int64_t high, int64_t key) {                              \
    return st_search_of_warp<L>(crd, low, high, key, false);                                                                 \
  }                                                                                                                          \
  template <int L = ST_LANES, class A>                                                                                       \
  ST_DEVICE int64_t st_upper_bound_of_warp_##S(A crd, int64_t low, int64_t high, int64_t key) {                              \
    return st_search_of_warp<L>(crd, low, high, key, true);                                                                  \
  }                                                                                                                          \
  template <class A> ST_DEVICE int64_t st_path_fibre_##S(A pos, int64_t low, int64_t high, int64_t item) {                   \
    return st_path_fibre(pos, low, high, item);                                                                              \
  }                                                                                                                          \
  template <int L = ST_LANES, class A>                                                                                       \
  ST_DEVICE int64_t st_path_fibre_of_warp_##S(A pos, int64_t low, int64_t high, int64_t item) {                              \
    return st_path_fibre_of_warp<L>(pos, low, high, item);                                                                   \
  }                                                                                                                          \
  template <class A> ST_DEVICE int64_t st_gallop_##S(A crd, int64_t low, int64_t high, int64_t key, int64_t stride) {        \
    return st_gallop(crd, low, high, key, stride);                                                                           \
  }                                                                                                                          \
  template <class A> ST_DEVICE int64_t st_far_gallop_##S(A crd, int64_t low, int64_t high, int64_t key, int64_t stride) {    \
    return st_gallop(crd, low, high, key, stride);                                                                           \
  }                                                                                                                          \
  template <class A> ST_DEVICE int64_t st_hash_find_##S(A crd, int64_t low, int64_t high, int64_t key) {                     \
    return st_hash_find(crd, low, high, key);                                                                                \
  }                                                                                                                          \
  template <class A> ST_DEVICE int64_t st_hash_vacant_##S(A crd, int64_t low, int64_t high, int64_t key) {                   \
    return st_hash_vacant(crd, low, high, key);                                                                              \
  }                                                                                                                          \
  template <class A> ST_DEVICE void st_sort_range_##S(A keys, int64_t low, int64_t high) { st_sort(keys, low, high); }       \
  template <class A> ST_DEVICE void st_sort_##S(A keys, int64_t count) { st_sort(keys, 0, count); }                          \
  template <class A> ST_DEVICE void st_scan_##S(A array, int64_t count) {                                                    \
    for (int64_t k = 1; k < count; k++) array[k] += array[k - 1];                                                            \
  }                                                                                                                          \
  template <class A, class B> ST_DEVICE int64_t st_bits_drain_##S(A keys, B bits, int64_t n) {                               \
    return st_drain(keys, bits, n);                                                                                          \
  }                                                                                                                          \
  template <class A, class B> ST_DEVICE int64_t st_few_drain_##S(A keys, B bits, int64_t n, int64_t) {                       \
    return st_drain(keys, bits, n);                                                                                          \
  }

/* The first step of galloping through `length` coordinates when `shortest` others are looked for in them (st_runtime.h). */
ST_DEVICE int64_t st_gallop_stride(int64_t length, int64_t shortest) {
  int shift = 0;
  for (uint64_t left = (uint64_t)length | 1; left >>= 1;) shift++;
  for (uint64_t left = (uint64_t)shortest | 1; left >>= 1;) shift--;
  return INT64_C(1) << (shift > 0 ? shift : 0);
}

/* Heap sort of keys[low .. high): in place, and never slow. */
template <class A> ST_DEVICE void st_sink(A keys, int64_t low, int64_t root, int64_t count) {
  const int64_t sunk = keys[low + root];
  for (int64_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && (int64_t)keys[low + child] < (int64_t)keys[low + child + 1]) child++;
    if ((int64_t)keys[low + child] <= sunk) break;
    keys[low + root] = (int64_t)keys[low + child];
  }
  keys[low + root] = sunk;
}
template <class A> ST_DEVICE void st_sort(A keys, int64_t low, int64_t high) {
  const int64_t count = high - low;
  for (int64_t root = count / 2 - 1; root >= 0; root--) st_sink(keys, low, root, count);
  for (int64_t last = count - 1; last > 0; last--) {
    const int64_t first = keys[low], moved = keys[low + last];
    keys[low + last] = first;
    keys[low] = moved;
    st_sink(keys, low, 0, last);
  }
}

/* A bit for each of 32 numbers from `begin` on: whether it is one of low .. high. These lie among the 32 numbers, or there are none. */
ST_DEVICE int64_t st_places(int64_t begin, int64_t low, int64_t high) {
  const uint32_t past = 32 - (uint32_t)(high - begin), first = (uint32_t)(low - begin);
  return low < high ? (ST_ALL_LANES >> past % 32) & (ST_ALL_LANES << first % 32) : 0;
}
ST_DEVICE bool st_has_place(int64_t places, int64_t place) { return (uint32_t)places >> place % 32 & 1; }

/* A set of keys below n, a bit each. */
template <class B> ST_DEVICE bool st_bits_insert(B bits, int64_t, int64_t key) {
  const uint64_t word = bits[key >> 6], mask = UINT64_C(1) << (key & 63);
  bits[key >> 6] = word | mask;
  return !(word & mask);
}
template <class B> ST_DEVICE bool st_bits_have(B bits, int64_t key) {
  const uint64_t word = bits[key >> 6];
  return word >> (key & 63) & 1;
}
/* Sets a bit of an array of words. */
struct st_marked {
  uint64_t mask;
  ST_DEVICE uint64_t operator()(uint64_t old) const { return old | mask; }
};
template <class B> ST_DEVICE void st_atomic_mark(B bits, int64_t place) {
  st_atomically(&bits[place >> 6], st_marked{UINT64_C(1) << (place & 63)});
}
template <class B> ST_DEVICE bool st_few_insert(B bits, int64_t n, int64_t key) { return st_bits_insert(bits, n, key); }
template <class A, class B> ST_DEVICE int64_t st_drain(A keys, B bits, int64_t n) {
  int64_t count = 0;
  for (int64_t word = 0; word < (n + 63) / 64; word++) {
    uint64_t left = bits[word];
    if (!left) continue;
    bits[word] = UINT64_C(0);
    for (int64_t bit = 0; left; bit++, left >>= 1)
      if (left & 1) keys[count++] = word * 64 + bit;
  }
  return count;
}
ST_SEARCHES(u16)
ST_SEARCHES(i32)
ST_SEARCHES(i64)
#undef ST_SEARCHES

#endif
