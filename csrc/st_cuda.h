/* What generated CUDA C++ stands on: names of blocks, warps and threads, sums over them, barriers, atomics, searches, and the host's
   part: memory, launches, scalars that kernels give back. All names begin with st_ or ST_. nvcc compiles it for a GPU; with
   -DST_EXECUTOR any C++17 compiler does, and st_executor.h runs kernels on the processor and checks what they do. */
#ifndef ST_CUDA_H
#define ST_CUDA_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>

#define ST_UNROLL(times) ST_PRAGMA(unroll times)
#define ST_PRAGMA(text) _Pragma(#text)
#define ST_EXPORT extern "C"
#define ST_LANES 32
#define ST_ALL_LANES 0xffffffffu

#ifdef ST_EXECUTOR
#include "st_executor.h"
#undef ST_UNROLL
#define ST_UNROLL(times)
#else

#define ST_BOTH __host__ __device__ __forceinline__
#define ST_DEVICE __device__ __forceinline__
#define ST_KERNEL(threads) static __global__ __launch_bounds__(threads) void
#define ST_ARRAY(T) T *__restrict__
#define ST_SHARED(T, name, length) __shared__ T name[length]
#define ST_SHARED_OF_WARP(T, name, length, warps) \
  __shared__ T st_all_##name[(length) * (warps)]; \
  T *const name = st_all_##name + st_warp_of_block() * (length)

template <class T> using st_array = T *;

ST_DEVICE int64_t st_thread_of_block() { return threadIdx.x; }
ST_DEVICE int64_t st_threads_of_block() { return blockDim.x; }
ST_DEVICE int64_t st_block_of_grid() { return blockIdx.x; }
ST_DEVICE int64_t st_blocks_of_grid() { return gridDim.x; }
ST_DEVICE void st_barrier_of_block() { __syncthreads(); }
ST_DEVICE void st_barrier_of_warp() { __syncwarp(); }
template <class T> ST_DEVICE T st_shuffle(T value, int lanes_apart) { return __shfl_xor_sync(ST_ALL_LANES, value, lanes_apart); }
template <class T> ST_DEVICE T *st_part(T *array, int64_t begin, int64_t) { return array + begin; }
template <class T> ST_DEVICE T st_load(const T *place) { return *(const volatile T *)place; }
ST_DEVICE bool st_swap(unsigned *place, unsigned old, unsigned wanted) { return atomicCAS(place, old, wanted) == old; }
ST_DEVICE bool st_swap(unsigned long long *place, unsigned long long old, unsigned long long wanted) {
  return atomicCAS(place, old, wanted) == old;
}
/* Replaces an element by a function of it until nobody came between; those of less than 4 bytes inside the word that holds them. */
template <class T, class F> ST_DEVICE void st_atomically(T *place, F updated) {
  if (sizeof(T) == 8) {
    unsigned long long old, wanted;
    do {
      const T before = st_load(place), after = updated(before);
      memcpy(&old, &before, sizeof(T));
      memcpy(&wanted, &after, sizeof(T));
    } while (!st_swap((unsigned long long *)place, old, wanted));
  } else {
    const uintptr_t address = (uintptr_t)place, shift = address & 3;
    unsigned *word = (unsigned *)(address - shift), old, wanted;
    do {
      old = wanted = st_load(word);
      T before;
      memcpy(&before, (const char *)&old + shift, sizeof(T));
      const T after = updated(before);
      memcpy((char *)&wanted + shift, &after, sizeof(T));
    } while (!st_swap(word, old, wanted));
  }
}
ST_DEVICE void st_atomic_add(double *array, int64_t index, double value) { atomicAdd(array + index, value); }
ST_DEVICE void st_atomic_add(float *array, int64_t index, float value) { atomicAdd(array + index, value); }
ST_DEVICE void st_atomic_add(int32_t *array, int64_t index, int32_t value) { atomicAdd(array + index, value); }
ST_DEVICE void st_atomic_add(int64_t *array, int64_t index, int64_t value) {
  atomicAdd((unsigned long long *)array + index, (unsigned long long)value);
}

/* Memory of the device, and what went wrong there. */
struct st_runtime {
  static void *get(size_t bytes) {
    void *made = nullptr;
    return cudaMalloc(&made, bytes) == cudaSuccess ? made : (cudaGetLastError(), nullptr);
  }
  static void put(void *memory) { cudaFree(memory); }
  static bool zero(void *memory, size_t bytes) { return cudaMemset(memory, 0, bytes) == cudaSuccess; }
  static bool read(void *to, const void *from, size_t bytes) { return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost) == cudaSuccess; }
  static bool write(void *to, const void *from, size_t bytes) {
    return cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice) == cudaSuccess;
  }
  static bool finish() { return cudaDeviceSynchronize() == cudaSuccess; }
  static bool copy(void *to, const void *from, size_t bytes) { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice) == cudaSuccess; }
  /* A moment in the device's work, and the seconds from one moment to a later one, which ends both. */
  static void *moment() {
    cudaEvent_t made = nullptr;
    if (cudaEventCreate(&made) == cudaSuccess) cudaEventRecord(made);
    return made;
  }
  static double between(void *first, void *last) {
    float milliseconds = -1e3f;
    cudaEventSynchronize((cudaEvent_t)last);
    cudaEventElapsedTime(&milliseconds, (cudaEvent_t)first, (cudaEvent_t)last);
    cudaEventDestroy((cudaEvent_t)first);
    cudaEventDestroy((cudaEvent_t)last);
    return milliseconds * 1e-3;
  }
  static const char *trouble() { return cudaGetErrorString(cudaGetLastError()); }
  template <class... P, class... A> static bool run(int64_t blocks, int threads, void (*kernel)(P...), A... given) {
    kernel<<<(unsigned)blocks, threads>>>(given...);
    return cudaGetLastError() == cudaSuccess;
  }
};
#endif

ST_DEVICE int64_t st_lane() { return st_thread_of_block() % ST_LANES; }
ST_DEVICE int64_t st_thread_of_warp() { return st_lane(); }
ST_DEVICE int64_t st_threads_of_warp() { return ST_LANES; }
ST_DEVICE int64_t st_warp_of_block() { return st_thread_of_block() / ST_LANES; }
ST_DEVICE int64_t st_warps_of_block() { return st_threads_of_block() / ST_LANES; }
ST_DEVICE int64_t st_warp_of_grid() { return st_block_of_grid() * st_warps_of_block() + st_warp_of_block(); }
ST_DEVICE int64_t st_warps_of_grid() { return st_blocks_of_grid() * st_warps_of_block(); }
ST_DEVICE int64_t st_thread_of_grid() { return st_block_of_grid() * st_threads_of_block() + st_thread_of_block(); }
ST_DEVICE int64_t st_threads_of_grid() { return st_blocks_of_grid() * st_threads_of_block(); }
ST_DEVICE bool st_first_of_block() { return st_thread_of_block() == 0; }
ST_DEVICE bool st_first_of_warp() { return st_lane() == 0; }

/* Values. Minimum and maximum are NaN if either is, as NumPy has them. */

ST_BOTH double st_nan_f64() { return __builtin_nan(""); }
ST_BOTH float st_nan_f32() { return __builtin_nanf(""); }
ST_BOTH double st_infinity_f64(bool above) { return above ? __builtin_inf() : -__builtin_inf(); }
ST_BOTH float st_infinity_f32(bool above) { return above ? __builtin_inff() : -__builtin_inff(); }

#define ST_MIN_MAX(T, S)                                                  \
  ST_BOTH T st_min_##S(T a, T b) { return a < b || a != a ? a : b; }      \
  ST_BOTH T st_max_##S(T a, T b) { return a > b || a != a ? a : b; }
ST_MIN_MAX(float, f32)
ST_MIN_MAX(double, f64)
ST_MIN_MAX(int8_t, i8)
ST_MIN_MAX(int16_t, i16)
ST_MIN_MAX(int32_t, i32)
ST_MIN_MAX(int64_t, i64)
ST_MIN_MAX(uint8_t, u8)
ST_MIN_MAX(uint16_t, u16)
ST_MIN_MAX(uint32_t, u32)
ST_MIN_MAX(uint64_t, u64)
ST_MIN_MAX(bool, bool)
#undef ST_MIN_MAX

/* Functions of expressions (st_math.h); whole numbers wrap around, as NumPy has them. */
#define ST_FLOAT_VALUES(T, S, F)                                    \
  ST_BOTH T st_exp_##S(T value) { return exp##F(value); }           \
  ST_BOTH T st_log_##S(T value) { return log##F(value); }           \
  ST_BOTH T st_tanh_##S(T value) { return tanh##F(value); }         \
  ST_BOTH T st_sqrt_##S(T value) { return sqrt##F(value); }         \
  ST_BOTH T st_abs_##S(T value) { return fabs##F(value); }          \
  ST_BOTH T st_pow_##S(T value, T power) { return pow##F(value, power); }
ST_FLOAT_VALUES(double, f64, )
ST_FLOAT_VALUES(float, f32, f)
#undef ST_FLOAT_VALUES

ST_BOTH bool st_seldom(bool condition) { return condition; }
ST_BOTH void st_drain_stores() {}

#define ST_OPERATOR(NAME, RESULT)                                                       \
  struct st_op_##NAME {                                                                 \
    template <class T> static ST_BOTH T of(T a, T b) { return (T)(RESULT); }            \
  };
ST_OPERATOR(add, a + b)
ST_OPERATOR(subtract, a - b)
ST_OPERATOR(multiply, a * b)
ST_OPERATOR(divide, a / b)
ST_OPERATOR(min, a < b || a != a ? a : b)
ST_OPERATOR(max, a > b || a != a ? a : b)
ST_OPERATOR(and, a && b)
ST_OPERATOR(or, a || b)
ST_OPERATOR(write, b)
#undef ST_OPERATOR

/* What all members get of the values that each has. Lanes exchange them pairwise, so that all have the same sum to the bit; warps put
   theirs down side by side, and every thread adds them in one order. */
template <class O, class T> ST_DEVICE T st_of_lanes(T value) {
  for (int apart = ST_LANES / 2; apart > 0; apart /= 2) value = O::of(value, st_shuffle(value, apart));
  return value;
}
template <class O, class T> ST_DEVICE T st_of_warps(T value) {
  ST_SHARED(T, parts, ST_LANES);
  st_barrier_of_block();
  if (st_first_of_warp()) parts[st_warp_of_block()] = value;
  st_barrier_of_block();
  T whole = parts[0];
  for (int64_t warp = 1; warp < st_warps_of_block(); warp++) whole = O::of(whole, (T)parts[warp]);
  return whole;
}
#define ST_COMBINE(NAME)                                                                                             \
  template <class T> ST_DEVICE T st_##NAME##_of_threads_of_warp(T value) { return st_of_lanes<st_op_##NAME>(value); } \
  template <class T> ST_DEVICE T st_##NAME##_of_warps_of_block(T value) { return st_of_warps<st_op_##NAME>(value); } \
  template <class T> ST_DEVICE T st_##NAME##_of_threads_of_block(T value) {                                          \
    return st_of_warps<st_op_##NAME>(st_of_lanes<st_op_##NAME>(value));                                              \
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

/* Searches in sorted coordinates crd[low .. high): the first position whose coordinate is at least, or above, `key`. */
template <class A> ST_DEVICE int64_t st_search(A crd, int64_t low, int64_t high, int64_t key, bool equal) {
  int64_t count = high - low;
  while (count > 0) {
    const int64_t half = count >> 1, found = (int64_t)crd[low + half];
    const bool right = found < key || (equal && found == key);
    low = right ? low + half + 1 : low;
    count = right ? count - half - 1 : half;
  }
  return low;
}
template <class A> ST_DEVICE int64_t st_gallop(A crd, int64_t low, int64_t high, int64_t key, int64_t stride) {
  int64_t step = stride, begin = low;
  if (low >= high || (int64_t)crd[low] >= key) return low;
  while (step < high - begin && (int64_t)crd[begin + step] < key) {
    begin += step;
    step <<= 1;
  }
  return st_search(crd, begin + 1, step < high - begin ? begin + step : high, key, false);
}
/* The place of a key in a table of a power of two slots, -1 where it is not (csrc/st_hash.h). */
template <class A> ST_DEVICE int64_t st_hash_find(A crd, int64_t low, int64_t high, int64_t key) {
  const int64_t size = high - low;
  if (size <= 0) return -1;
  int bits = 0;
  while ((INT64_C(1) << bits) < size) bits++;
  int64_t slot = bits ? (int64_t)(((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - bits)) : 0;
  for (int64_t found; (found = (int64_t)crd[low + slot]) >= 0; slot = (slot + 1) & (size - 1))
    if (found == key) return low + slot;
  return -1;
}
#define ST_SEARCHES(S)                                                                                                       \
  template <class A> ST_DEVICE int64_t st_lower_bound_##S(A crd, int64_t low, int64_t high, int64_t key) {                   \
    return st_search(crd, low, high, key, false);                                                                            \
  }                                                                                                                          \
  template <class A> ST_DEVICE int64_t st_upper_bound_##S(A crd, int64_t low, int64_t high, int64_t key) {                   \
    return st_search(crd, low, high, key, true);                                                                             \
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

/* Scalars that a kernel gives back to host code. */
template <class A, class T> ST_DEVICE void st_give(A given, int64_t place, T value) {
  int64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  given[place] = bits;
}

/* The host's part. */

template <class T> ST_KERNEL(256) st_fill_part(ST_ARRAY(T) array, const int64_t low, const int64_t high, const T value) {
  for (int64_t k = low + st_thread_of_grid(); k < high; k += st_threads_of_grid()) array[k] = value;
}

/* Inclusive prefix sums by one block: every thread sums a stretch, the stretches are added up, and each is gone through again. */
template <class T> ST_KERNEL(1024) st_scan_part(ST_ARRAY(T) array, const int64_t count) {
  ST_SHARED(T, sums, 1024);
  const int64_t threads = st_threads_of_block(), each = (count + threads - 1) / threads, low = each * st_thread_of_block();
  const int64_t high = low + each < count ? low + each : count;
  T sum = 0;
  for (int64_t k = low; k < high; k++) sum += array[k];
  sums[st_thread_of_block()] = sum;
  st_barrier_of_block();
  if (st_first_of_block())
    for (int64_t k = 1; k < threads; k++) sums[k] += sums[k - 1];
  st_barrier_of_block();
  sum = st_thread_of_block() ? (T)sums[st_thread_of_block() - 1] : (T)0;
  for (int64_t k = low; k < high; k++) array[k] = sum += array[k];
}

template <class T> ST_KERNEL(1) st_sort_part(ST_ARRAY(T) keys, const int64_t low, const int64_t high) { st_sort(keys, low, high); }

/* What host code holds: memory of the device, which is given back at the end unless it was published, and the state of the device. */
class st_host {
  enum { MOST_BLOCKS = 0x7fffffff, GIVEN = 64, HELD = 256 };
  void *held_[HELD] = {nullptr};
  int64_t *given_ = nullptr;
  int32_t status_ = 0;

 public:
  static inline bool waits = true; /* whether host code waits for the device at its end */
  ~st_host() {
    for (void *memory : held_)
      if (memory) st_runtime::put(memory);
  }
  /* 0, 1 where there was no memory, 2 where the device reports an error. */
  int32_t status() {
    if (!status_ && waits && !st_runtime::finish()) status_ = 2;
    return status_;
  }
  static int64_t blocks(int64_t wanted) { return wanted < 1 ? 1 : wanted > MOST_BLOCKS ? (int64_t)MOST_BLOCKS : wanted; }
  /* As many blocks as have room together for what each has for itself. */
  static int64_t blocks(int64_t wanted, int64_t bytes_each) {
    const int64_t most = (INT64_C(1) << 30) / (bytes_each > 0 ? bytes_each : 1);
    return blocks(wanted < most ? wanted : most);
  }
  template <class... P, class... A> void launch(int64_t wanted, int threads, void (*kernel)(P...), A... given) {
    if (!status_ && !st_runtime::run(blocks(wanted), threads, kernel, static_cast<P>(given)...)) status_ = 2;
  }
  template <class T> T *allocate(int64_t length, bool zero) {
    const uint64_t count = length > 0 ? (uint64_t)length : 1;
    void *memory = status_ || count > (UINT64_C(1) << 60) / sizeof(T) ? nullptr : st_runtime::get(count * sizeof(T));
    if (!memory) {
      if (!status_) status_ = 1;
      return nullptr;
    }
    for (void *&place : held_) {
      if (place) continue;
      place = memory;
      if (zero && !st_runtime::zero(memory, count * sizeof(T))) status_ = 2;
      return (T *)memory;
    }
    st_runtime::put(memory);
    status_ = 1;
    return nullptr;
  }
  void *publish(void *memory) {
    for (void *&place : held_)
      if (place == memory) place = nullptr;
    return memory;
  }
  template <class T> void release(T *&memory) {
    if (memory) st_runtime::put(publish(memory));
    memory = nullptr;
  }
  template <class T> void fill(T *array, int64_t low, int64_t high, T value) {
    if (high > low) launch((high - low + 1023) / 1024, 256, st_fill_part<T>, array, low, high, value);
  }
  template <class T> void scan(T *array, int64_t count) { launch(1, 1024, st_scan_part<T>, array, count); }
  template <class T> void sort(T *keys, int64_t count) { launch(1, 1, st_sort_part<T>, keys, (int64_t)0, count); }
  template <class T> void sort_range(T *keys, int64_t low, int64_t high) { launch(1, 1, st_sort_part<T>, keys, low, high); }
  int64_t *given() {
    if (!given_) given_ = allocate<int64_t>(GIVEN, false);
    return given_;
  }
  template <class T> void take(int64_t place, T &value) {
    int64_t bits = 0;
    if (status_ || !given_) return;
    if (!st_runtime::read(&bits, given_ + place, sizeof bits)) {
      status_ = 2;
      return;
    }
    memcpy(&value, &bits, sizeof(T));
  }
};

/* For the caller: memory of the device, given back by st_release as what a kernel published is, and transfers; 0, or 2 for an error. */
ST_EXPORT void *st_get(int64_t bytes) { return st_runtime::get(bytes > 0 ? bytes : 1); }
ST_EXPORT void st_release(void *memory) {
  if (memory) st_runtime::put(memory);
}
ST_EXPORT int32_t st_upload(void *to, const void *from, int64_t bytes) { return st_runtime::write(to, from, bytes) ? 0 : 2; }
ST_EXPORT int32_t st_download(void *to, const void *from, int64_t bytes) { return st_runtime::read(to, from, bytes) ? 0 : 2; }
ST_EXPORT const char *st_trouble() { return st_runtime::trouble(); }

/* Weak: a file with kernels of other names has none to time. */
ST_EXPORT __attribute__((weak)) int32_t st_kernel(void **arrays, int64_t *sizes, int64_t threads);

/* Seconds of each of some runs on the device. Before a run memory of `flushed` bytes is written, so that no operand is in a cache;
   zeroed: bytes of each array that are set to 0 as a part of the run; made: whether the kernel publishes the array. */
ST_EXPORT int32_t st_time(void **arrays, int64_t *sizes, int64_t threads, const int64_t *zeroed, const int64_t *made, int64_t count,
                          int64_t flushed, int64_t runs, double *seconds) {
  void *const other = flushed > 0 ? st_runtime::get((size_t)flushed) : nullptr;
  int32_t status = flushed > 0 && !other;
  st_host::waits = false;
  for (int64_t run = 0; run < runs && !status; run++) {
    if (other && !st_runtime::zero(other, (size_t)flushed)) status = 2;
    void *const begin = st_runtime::moment();
    for (int64_t k = 0; k < count; k++)
      if (zeroed[k] > 0 && !st_runtime::zero(arrays[k], (size_t)zeroed[k])) status = 2;
    if (!status) status = st_kernel(arrays, sizes, threads);
    seconds[run] = st_runtime::between(begin, st_runtime::moment());
    if (!st_runtime::finish()) status = 2;
    for (int64_t k = 0; k < count && !status; k++)
      if (made[k]) st_release(arrays[k]);
  }
  st_host::waits = true;
  if (other) st_runtime::put(other);
  return status;
}

/* Seconds of each of some copies from memory of the device to memory of the device: what bandwidths are compared with. */
ST_EXPORT int32_t st_copy_time(int64_t bytes, int64_t runs, double *seconds) {
  void *const from = st_runtime::get((size_t)bytes), *const to = st_runtime::get((size_t)bytes);
  int32_t status = !from || !to ? 1 : st_runtime::zero(from, (size_t)bytes) && st_runtime::zero(to, (size_t)bytes) ? 0 : 2;
  for (int64_t run = 0; run < runs && !status; run++) {
    void *const begin = st_runtime::moment();
    if (!st_runtime::copy(to, from, (size_t)bytes)) status = 2;
    seconds[run] = st_runtime::between(begin, st_runtime::moment());
  }
  if (!status && !st_runtime::finish()) status = 2;
  if (from) st_runtime::put(from);
  if (to) st_runtime::put(to);
  return status;
}

#endif
