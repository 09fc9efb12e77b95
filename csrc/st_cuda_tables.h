/* Tables of keys that the threads of a block or warp fill together, or one thread alone, and what all of them do together: listing
   keys, and sorting them. Linear probing in a power of two of slots, as csrc/st_hash.h has it; -1 stands in free ones. */
#ifndef ST_CUDA_TABLES_H
#define ST_CUDA_TABLES_H

/* The slot of a key, which is claimed where it is new. */
template <class A> ST_DEVICE int64_t st_table_insert(A table, int64_t size, int64_t key) {
  int64_t slot = st_hash_home(key, size);
  for (int64_t found; (found = st_claim(&table[slot], key)) >= 0 && found != key;) slot = (slot + 1) & (size - 1);
  return slot;
}

/* Lists the keys of a table, in any order, and returns how many there are. */
template <class A, class B> ST_DEVICE int64_t st_table_keys(A keys, B table, int64_t size) {
  int64_t count = 0;
  for (int64_t slot = 0; slot < size; slot++)
    if ((int64_t)table[slot] >= 0) keys[count++] = (int64_t)table[slot];
  return count;
}
/* The number of keys that one of several members counts, and where it begins to write them. */
template <class B> ST_DEVICE int64_t st_taken(B table, int64_t size, int64_t member, int64_t members) {
  int64_t count = 0;
  for (int64_t slot = member; slot < size; slot += members) count += (int64_t)table[slot] >= 0;
  return count;
}
template <class B> ST_DEVICE int64_t st_table_count(B table, int64_t size) { return st_taken(table, size, 0, 1); }
template <class B> ST_DEVICE int64_t st_table_count_of_warp(B table, int64_t size) {
  st_barrier_of_warp();
  return st_add_of_threads_of_warp(st_taken(table, size, st_lane(), ST_LANES));
}
template <class B> ST_DEVICE int64_t st_table_count_of_block(B table, int64_t size) {
  st_barrier_of_block();
  return st_add_of_threads_of_block(st_taken(table, size, st_thread_of_block(), st_threads_of_block()));
}
template <class A, class B> ST_DEVICE void st_list_taken(A keys, B table, int64_t size, int64_t member, int64_t members, int64_t place) {
  for (int64_t slot = member; slot < size; slot += members)
    if ((int64_t)table[slot] >= 0) keys[place++] = (int64_t)table[slot];
}
/* The sum over the lanes before, and over all lanes. */
ST_DEVICE int64_t st_before_of_lanes(int64_t own, int64_t *whole) {
  int64_t before = 0;
  *whole = own;
  for (int apart = 1; apart < ST_LANES; apart *= 2) {
    const int64_t other = st_shuffle(*whole, apart);
    if (st_lane() & apart) before += other;
    *whole += other;
  }
  return before;
}
template <class A, class B> ST_DEVICE int64_t st_table_keys_of_warp(A keys, B table, int64_t size) {
  int64_t whole;
  st_barrier_of_warp();
  const int64_t before = st_before_of_lanes(st_taken(table, size, st_lane(), ST_LANES), &whole);
  st_list_taken(keys, table, size, st_lane(), ST_LANES, before);
  st_barrier_of_warp();
  return whole;
}
template <class A, class B> ST_DEVICE int64_t st_table_keys_of_block(A keys, B table, int64_t size) {
  ST_SHARED(int64_t, parts, ST_LANES);
  const int64_t thread = st_thread_of_block(), threads = st_threads_of_block();
  int64_t whole;
  st_barrier_of_block();
  int64_t before = st_before_of_lanes(st_taken(table, size, thread, threads), &whole);
  if (st_first_of_warp()) parts[st_warp_of_block()] = whole;
  st_barrier_of_block();
  whole = 0;
  for (int64_t warp = 0; warp < st_warps_of_block(); warp++) {
    if (warp == st_warp_of_block()) before += whole;
    whole += parts[warp];
  }
  st_list_taken(keys, table, size, thread, threads, before);
  st_barrier_of_block();
  return whole;
}

/* A step of a sorting network, as st_sort_part does it on all of the device; one row has fewer than 2^31 keys. */
template <class A> ST_DEVICE void st_sort_step(A keys, int64_t low, int count, int apart, bool mirrored, int member, int members) {
  const int pairs = (count + 2 * apart - 1) / (2 * apart) * apart;
  for (int pair = member; pair < pairs; pair += members) {
    const int place = pair & (apart - 1), first = 2 * (pair - place);
    const int lower = first + place, upper = first + (mirrored ? 2 * apart - 1 - place : apart + place);
    if (upper >= count) continue;
    const int64_t one = keys[low + lower], other = keys[low + upper];
    if (other >= one) continue;
    keys[low + lower] = other;
    keys[low + upper] = one;
  }
}
/* The same between lanes, which hold an element each: the lesser of two to the lower lane. */
template <class T> ST_DEVICE T st_sorted_lane(T own, int lanes_apart, bool upper) {
  const T other = st_shuffle(own, lanes_apart);
  return (other < own) != upper ? other : own;
}
/* The steps within 32 places that begin at a multiple of 32: all of them, or those that follow steps of larger distance. */
template <class T> ST_DEVICE void st_sort_lanes(st_array<T> keys, int64_t low, int count, bool all, int warp, int warps) {
  const int lane = (int)st_lane();
  const T largest = (T)-1 > 0 ? (T)-1 : (T)((UINT64_C(1) << (8 * sizeof(T) - 1)) - 1);
  for (int first = warp * ST_LANES; first < count; first += warps * ST_LANES) {
    T own = first + lane < count ? (T)keys[low + first + lane] : largest;
    for (int most = all ? 1 : ST_LANES; most < ST_LANES; most *= 2) {
      own = st_sorted_lane(own, 2 * most - 1, lane & most);
      for (int apart = most / 2; apart > 0; apart /= 2) own = st_sorted_lane(own, apart, lane & apart);
    }
    for (int apart = all ? 0 : ST_LANES / 2; apart > 0; apart /= 2) own = st_sorted_lane(own, apart, lane & apart);
    if (first + lane < count) keys[low + first + lane] = own;
  }
}
template <class T> ST_DEVICE void st_sort_range_of_warp(st_array<T> keys, int64_t low, int64_t high) {
  const int count = (int)(high - low), lane = (int)st_lane();
  st_barrier_of_warp();
  st_sort_lanes<T>(keys, low, count, true, 0, 1);
  st_barrier_of_warp();
  for (int most = ST_LANES; most < count; most *= 2) {
    for (int apart = most; apart >= ST_LANES; apart /= 2) {
      st_sort_step(keys, low, count, apart, apart == most, lane, ST_LANES);
      st_barrier_of_warp();
    }
    st_sort_lanes<T>(keys, low, count, false, 0, 1);
    st_barrier_of_warp();
  }
}
template <class T> ST_DEVICE void st_sort_range_of_block(st_array<T> keys, int64_t low, int64_t high) {
  const int count = (int)(high - low), thread = (int)st_thread_of_block(), threads = (int)st_threads_of_block();
  const int warp = (int)st_warp_of_block(), warps = (int)st_warps_of_block();
  st_barrier_of_block();
  st_sort_lanes<T>(keys, low, count, true, warp, warps);
  st_barrier_of_block();
  for (int most = ST_LANES; most < count; most *= 2) {
    for (int apart = most; apart >= ST_LANES; apart /= 2) {
      st_sort_step(keys, low, count, apart, apart == most, thread, threads);
      st_barrier_of_block();
    }
    st_sort_lanes<T>(keys, low, count, false, warp, warps);
    st_barrier_of_block();
  }
}
template <class T> ST_DEVICE void st_sort_of_warp(st_array<T> keys, int64_t count) { st_sort_range_of_warp<T>(keys, 0, count); }
template <class T> ST_DEVICE void st_sort_of_block(st_array<T> keys, int64_t count) { st_sort_range_of_block<T>(keys, 0, count); }

#endif
