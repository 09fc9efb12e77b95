/* Kernels that host code runs between others, of each type that it needs them for. */
#ifndef ST_CUDA_KERNELS_H
#define ST_CUDA_KERNELS_H

#if ST_KERNELS
/* Scalars that a kernel returns to host code. */
template <class A, class T> ST_DEVICE void st_give(A given, int64_t place, T value) {
  int64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  given[place] = bits;
}

template <class T> ST_KERNEL_OF_TYPES(256) st_fill_part(ST_ARRAY(T) array, const int64_t low, const int64_t high, const T value) {
  for (int64_t k = low + st_thread_of_grid(); k < high; k += st_threads_of_grid()) array[k] = value;
}

/* Inclusive prefix sums: blocks sum up stretches of ST_STRETCH elements and store the sum of each; once these sums are summed up in
   turn, every stretch adds the sum of those before it. */
template <class T> ST_KERNEL_OF_TYPES(256) st_scan_part(ST_ARRAY(T) array, const int64_t count, ST_ARRAY(T) wholes) {
  ST_SHARED(T, items, ST_STRETCH);
  ST_SHARED(T, sums, 256);
  const int64_t thread = st_thread_of_block(), each = ST_STRETCH / 256;
  for (int64_t low = st_block_of_grid() * ST_STRETCH; low < count; low += st_blocks_of_grid() * ST_STRETCH) {
    const int64_t length = count - low < ST_STRETCH ? count - low : (int64_t)ST_STRETCH;
    for (int64_t k = thread; k < ST_STRETCH; k += 256) items[k] = k < length ? (T)array[low + k] : (T)0;
    st_barrier_of_block();
    T own = 0, before = 0;
    for (int64_t k = thread * each; k < (thread + 1) * each; k++) own += items[k];
    T sum = own;
    for (int64_t apart = 1; apart < 256; apart *= 2) {
      sums[thread] = sum;
      st_barrier_of_block();
      if (thread >= apart) sum += sums[thread - apart];
      st_barrier_of_block();
    }
    before = sum - own;
    for (int64_t k = thread * each; k < (thread + 1) * each; k++) items[k] = before += items[k];
    st_barrier_of_block();
    for (int64_t k = thread; k < length; k += 256) array[low + k] = (T)items[k];
    if (thread == 255) wholes[low / ST_STRETCH] = sum;
    st_barrier_of_block();
  }
}
template <class T> ST_KERNEL_OF_TYPES(256) st_scan_add(ST_ARRAY(T) array, const int64_t count, ST_ARRAY(const T) wholes) {
  for (int64_t k = ST_STRETCH + st_thread_of_grid(); k < count; k += st_threads_of_grid()) array[k] += wholes[k / ST_STRETCH - 1];
}

/* Adds what threads kept for elements of a result (``passes.carries``), in slots of `width` elements side by side: to[..] says to
   which element kept[..] is to be added, -1 where nothing was kept. From slot to slot, to[..] of one place never decreases. A block
   adds up 256 slots at one place in order. Its sum for the element with which the slots before it end goes to a slot of the next
   level. No other block adds to the other elements. */
template <class T> ST_DEVICE T st_carried(int64_t op, T a, T b) {
  switch (op) {
    case 0: return st_op_add::of(a, b);
    case 1: return st_op_multiply::of(a, b);
    case 2: return st_op_min::of(a, b);
    case 3: return st_op_max::of(a, b);
    case 4: return st_op_and::of(a, b);
    default: return st_op_or::of(a, b);
  }
}
template <class T> ST_KERNEL_OF_TYPES(256) st_carry(ST_ARRAY(const int64_t) to, ST_ARRAY(const T) kept, ST_ARRAY(T) result, const int64_t slots,
                                           const int64_t width, const int64_t op, ST_ARRAY(int64_t) next_to, ST_ARRAY(T) next_kept) {
  ST_SHARED(int64_t, places, 256);
  ST_SHARED(int64_t, counts, 256);
  ST_SHARED(T, sums, 256);
  const int64_t thread = st_thread_of_block();
  for (int64_t item = st_block_of_grid(); item < st_carry_groups(slots) * width; item += st_blocks_of_grid()) {
    const int64_t group = item / width, beside = item % width, slot = group * 256 + thread;
    int64_t place = slot < slots ? (int64_t)to[slot * width + beside] : (int64_t)-1, count = place >= 0;
    T sum = count ? (T)kept[slot * width + beside] : T();
    for (int64_t apart = 1; apart < 256; apart *= 2) { /* an empty slot counts as one for the element of the slot before */
      st_barrier_of_block();
      places[thread] = place;
      counts[thread] = count;
      sums[thread] = sum;
      st_barrier_of_block();
      if (thread < apart) continue;
      const int64_t before = places[thread - apart], some = counts[thread - apart];
      if (place < 0) place = before;
      if (before < 0 || before != place || !some) continue;
      const T other = sums[thread - apart];
      sum = count ? st_carried<T>(op, other, sum) : other;
      count = 1;
    }
    st_barrier_of_block();
    places[thread] = place;
    st_barrier_of_block();
    const bool last = place >= 0 && (thread == 255 || (int64_t)places[thread + 1] != place);
    int64_t before = group * 256 - 1;
    if (last) {
      int64_t first = 0;
      while ((int64_t)places[first] < 0) first++;
      if ((int64_t)places[first] != place) before = -1;
    }
    if (!last) continue;
    while (before >= 0 && (int64_t)to[before * width + beside] < 0) before--;
    if (before >= 0 && (int64_t)to[before * width + beside] == place) {
      next_to[group * width + beside] = place;
      next_kept[group * width + beside] = sum;
    } else {
      const T old = result[place];
      result[place] = st_carried<T>(op, old, sum);
    }
  }
}

/* A step of a sorting network (Batcher, "Sorting networks and their applications", 1968): the lesser of two elements goes to the
   lower place. Pairs are `apart` places apart or, mirrored, at equal distances from both ends of 2 * apart places; a missing partner
   (at `count` or beyond) counts as larger. */
template <class T> ST_KERNEL_OF_TYPES(256) st_sort_part(ST_ARRAY(T) keys, const int64_t low, const int64_t count, const int64_t apart,
                                               const int64_t mirrored) {
  for (int64_t pair = st_thread_of_grid(); pair < count; pair += st_threads_of_grid()) {
    const int64_t first = pair / apart * 2 * apart, place = pair % apart;
    const int64_t lower = low + first + place, upper = low + first + (mirrored ? 2 * apart - 1 - place : apart + place);
    if (upper >= low + count) continue;
    const T one = keys[lower], other = keys[upper];
    if (!(other < one)) continue;
    keys[lower] = other;
    keys[upper] = one;
  }
}
#endif

#define ST_FILL(T, S) \
  ST_NAMED(st_fill_part_##S, 256, (T *array, const int64_t low, const int64_t high, const T value), st_fill_part<T>(array, low, high, value))
#define ST_SCAN(T, S)                                                                                                              \
  ST_NAMED(st_scan_part_##S, 256, (T *array, const int64_t count, T *wholes), st_scan_part<T>(array, count, wholes))               \
  ST_NAMED(st_scan_add_##S, 256, (T *array, const int64_t count, const T *wholes), st_scan_add<T>(array, count, wholes))
#define ST_SORT(T, S)                                                                                                              \
  ST_NAMED(st_sort_part_##S, 256, (T *keys, const int64_t low, const int64_t count, const int64_t apart, const int64_t mirrored), \
           st_sort_part<T>(keys, low, count, apart, mirrored))
#define ST_CARRY(T, S)                                                                                                             \
  ST_NAMED(st_carry_##S, 256,                                                                                                      \
           (const int64_t *to, const T *kept, T *result, const int64_t slots, const int64_t width, const int64_t op,               \
            int64_t *next_to, T *next_kept),                                                                                       \
           st_carry<T>(to, kept, result, slots, width, op, next_to, next_kept))

#endif
