/* Blocks, warps and threads: their numbers, sums and other combinations of their values, atomic updates. */
#ifndef ST_CUDA_MEMBERS_H
#define ST_CUDA_MEMBERS_H

/* A warp has as many lanes as a schedule says, 32 or fewer: then other warps of the schedule use the rest of the processor's warp. */
template <int L = ST_LANES> ST_DEVICE int64_t st_lane() { return st_thread_of_block() % L; }
template <int L = ST_LANES> ST_DEVICE int64_t st_thread_of_warp() { return st_lane<L>(); }
template <int L = ST_LANES> ST_DEVICE int64_t st_threads_of_warp() { return L; }
template <int L = ST_LANES> ST_DEVICE int64_t st_warp_of_block() { return st_thread_of_block() / L; }
template <int L = ST_LANES> ST_DEVICE int64_t st_warps_of_block() { return st_threads_of_block() / L; }
template <int L = ST_LANES> ST_DEVICE int64_t st_warp_of_grid() { return st_block_of_grid() * st_warps_of_block<L>() + st_warp_of_block<L>(); }
template <int L = ST_LANES> ST_DEVICE int64_t st_warps_of_grid() { return st_blocks_of_grid() * st_warps_of_block<L>(); }
ST_DEVICE int64_t st_thread_of_grid() { return st_block_of_grid() * st_threads_of_block() + st_thread_of_block(); }
ST_DEVICE int64_t st_threads_of_grid() { return st_blocks_of_grid() * st_threads_of_block(); }
ST_DEVICE bool st_first_of_block() { return st_thread_of_block() == 0; }
template <int L = ST_LANES> ST_DEVICE bool st_first_of_warp() { return st_lane<L>() == 0; }

/* An element of a row that begins behind the first `base` elements of an array. Addresses inside a row are computed from where `base`
   ends, once for all rows that a loop goes through, and not each from the begin of the array: the compiler does not see the sum. */
#ifdef ST_EXECUTOR
template <class A> ST_DEVICE auto st_load_from(A array, int64_t base, int64_t place) { return array[base + place]; }
#else
template <class T> ST_DEVICE const T *st_behind(const T *array, int64_t base) {
  const T *from = array + base;
  asm("" : "+l"(from));
  return from;
}
template <class T> ST_DEVICE T st_load_from(const T *array, int64_t base, int64_t place) { return __ldg(st_behind(array, base) + place); }
#endif

/* Neighbouring elements into registers and out of them, 16 bytes at once: they begin at a multiple of 16 bytes, since arrays do
   (targets.cuda) and passes.wide_loads shows it of their places. */
#ifdef ST_EXECUTOR
template <class T, size_t N> ST_DEVICE void st_load_wide(T (&row)[N], st_array<const T> array, int64_t first, int count) {
  st_check_wide(array.plain.at(first), first, count * sizeof(T), sizeof row);
  for (int k = 0; k < count; k++) row[k] = array[first + k];
}
template <class T, size_t N>
ST_DEVICE void st_load_wide_from(T (&row)[N], st_array<const T> array, int64_t base, int64_t first, int count) {
  st_load_wide(row, array, base + first, count);
}
template <class T, size_t N> ST_DEVICE void st_store_wide(st_array<T> array, int64_t first, const T (&row)[N], int count) {
  st_check_wide(array.at(first), first, count * sizeof(T), sizeof row);
  for (int k = 0; k < count; k++) array[first + k] = row[k];
}
#else
template <class T> ST_DEVICE void st_load_wide(T *row, const T *array, int64_t first, int count) {
#pragma unroll
  for (int k = 0; k < count; k += 16 / (int)sizeof(T)) {
    const int4 wide = __ldg((const int4 *)(array + first + k));
    memcpy(row + k, &wide, sizeof wide);
  }
}
template <class T> ST_DEVICE void st_load_wide_from(T *row, const T *array, int64_t base, int64_t first, int count) {
  st_load_wide(row, st_behind(array, base), first, count);
}
template <class T> ST_DEVICE void st_store_wide(T *array, int64_t first, const T *row, int count) {
#pragma unroll
  for (int k = 0; k < count; k += 16 / (int)sizeof(T)) {
    int4 wide;
    memcpy(&wide, row + k, sizeof wide);
    *(int4 *)(array + first + k) = wide;
  }
}
#endif

/* Combinations of the values of all members, for all of them. Lanes exchange values pairwise, so that all have the same sum to the
   bit; warps store theirs side by side, and every thread adds them in one order. */
template <class O, int L = ST_LANES, class T> ST_DEVICE T st_of_lanes(T value) {
  for (int apart = L / 2; apart > 0; apart /= 2) value = O::of(value, st_shuffle<L>(value, apart));
  return value;
}
template <class O, int L = ST_LANES, class T> ST_DEVICE T st_of_warps(T value) {
  ST_SHARED(T, parts, 1024 / L);
  st_barrier_of_block();
  if (st_first_of_warp<L>()) parts[st_warp_of_block<L>()] = value;
  st_barrier_of_block();
  T whole = parts[0];
  for (int64_t warp = 1; warp < st_warps_of_block<L>(); warp++) whole = O::of(whole, (T)parts[warp]);
  return whole;
}
#define ST_COMBINE(NAME)                                                                                                          \
  template <int L = ST_LANES, class T> ST_DEVICE T st_##NAME##_of_threads_of_warp(T value) { return st_of_lanes<st_op_##NAME, L>(value); } \
  template <int L = ST_LANES, class T> ST_DEVICE T st_##NAME##_of_warps_of_block(T value) { return st_of_warps<st_op_##NAME, L>(value); }  \
  template <class T> ST_DEVICE T st_##NAME##_of_threads_of_block(T value) {                                                       \
    return st_of_warps<st_op_##NAME>(st_of_lanes<st_op_##NAME>(value));                                                           \
  }
ST_COMBINE(add)
ST_COMBINE(multiply)
ST_COMBINE(min)
ST_COMBINE(max)
ST_COMBINE(and)
ST_COMBINE(or)
#undef ST_COMBINE

/* Running sums of the first elements of an array that a block or warp shares: as many at once as there are threads. */
template <int L = ST_LANES, class T> ST_DEVICE T st_running_of_lanes(T value) {
  T whole = value;
  for (int apart = 1; apart < L; apart *= 2) {
    const T other = st_shuffle<L>(whole, apart);
    if (st_lane<L>() & apart) value += other;
    whole += other;
  }
  return value;
}
template <int L = ST_LANES, class T> ST_DEVICE void st_scan_of_warp(st_array<T> array, int64_t count) {
  T before = 0;
  st_barrier_of_warp<L>();
  for (int64_t first = 0; first < count; first += L) {
    const int64_t place = first + st_lane<L>();
    const T own = place < count ? (T)array[place] : (T)0;
    const T running = before + st_running_of_lanes<L>(own);
    before += st_of_lanes<st_op_add, L>(own);
    if (place < count) array[place] = running;
  }
  st_barrier_of_warp<L>();
}
template <class T> ST_DEVICE void st_scan_of_block(st_array<T> array, int64_t count) {
  ST_SHARED(T, parts, ST_LANES);
  T before = 0;
  for (int64_t first = 0; first < count; first += st_threads_of_block()) {
    const int64_t place = first + st_thread_of_block();
    st_barrier_of_block();
    const T own = place < count ? (T)array[place] : (T)0;
    const T whole = st_of_lanes<st_op_add>(own);
    T running = before + st_running_of_lanes(own);
    if (st_first_of_warp()) parts[st_warp_of_block()] = whole;
    st_barrier_of_block();
    for (int64_t warp = 0; warp < st_warps_of_block(); warp++) {
      if (warp < st_warp_of_block()) running += parts[warp];
      before += parts[warp];
    }
    if (place < count) array[place] = running;
  }
  st_barrier_of_block();
}

template <class O, class T> struct st_update {
  T value;
  ST_DEVICE T operator()(T old) const { return O::of(old, value); }
};
/* Where all lanes of a warp add to one element, as in the middle of a long row, they first sum up their values, and one lane adds the
   sum in memory. */
template <class P, class T> ST_DEVICE void st_atomic_add_of_warp(P place, uintptr_t address, T value) {
  const bool same = st_lanes_here() == ST_ALL_LANES && st_same_of_lanes(address);
  if (same)
    for (int apart = ST_LANES / 2; apart > 0; apart /= 2) value += st_shown(value, apart);
  if (!same || st_first_of_warp()) st_add_at(place, value);
}
#define ST_ADD_OF_WARP(T)                                                                      \
  ST_DEVICE void st_atomic_add(st_array<T> array, int64_t index, T value) {                    \
    st_atomic_add_of_warp(&array[index], st_address(&array[index]), value);                    \
  }
ST_ADD_OF_WARP(double)
ST_ADD_OF_WARP(float)
#undef ST_ADD_OF_WARP
#define ST_ATOMIC(NAME)                                                                               \
  template <class T> ST_DEVICE void st_atomic_##NAME(st_array<T> array, int64_t index, T value) {     \
    st_atomically(&array[index], st_update<st_op_##NAME, T>{value});                                  \
  }
ST_ATOMIC(add)
ST_ATOMIC(subtract)
ST_ATOMIC(multiply)
ST_ATOMIC(divide)
ST_ATOMIC(min)
ST_ATOMIC(max)
ST_ATOMIC(and)
ST_ATOMIC(or)
ST_ATOMIC(write)
#undef ST_ATOMIC

#endif
