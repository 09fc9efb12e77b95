/* Blocks, warps and threads: their numbers, what all of them get of the values that each has, atomic updates. */
#ifndef ST_CUDA_MEMBERS_H
#define ST_CUDA_MEMBERS_H

/* A warp has as many lanes as a schedule says, 32 or a part of these: then others beside it have the rest of the processor's warp. */
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

/* Neighbouring elements into registers, 16 bytes at once where the array begins at a multiple of 16, as all of ours do. */
template <class T, class A> ST_DEVICE void st_load_wide(T *row, A array, int64_t first, int count) {
#ifndef ST_EXECUTOR
  if ((uintptr_t)array % 16 == 0) {
#pragma unroll
    for (int k = 0; k < count; k += 16 / (int)sizeof(T)) {
      const int4 wide = __ldg((const int4 *)(array + first + k));
      memcpy(row + k, &wide, sizeof wide);
    }
    return;
  }
#pragma unroll
#endif
  for (int k = 0; k < count; k++) row[k] = array[first + k];
}

/* What all members get of the values that each has. Lanes exchange them pairwise, so that all have the same sum to the bit; warps put
   theirs down side by side, and every thread adds them in one order. */
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

template <class O, class T> struct st_update {
  T value;
  ST_DEVICE T operator()(T old) const { return O::of(old, value); }
};
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
