/* What generated CUDA C++ stands on: names of blocks, warps and threads, sums over them, barriers, atomics, searches, and the host's
   part: memory, launches, scalars that kernels give back. All names begin with st_ or ST_. nvcc compiles it for a GPU, or NVRTC the
   kernels and, with -DST_DRIVER, a C++ compiler the host's part (st_driver.h); with -DST_EXECUTOR any C++17 compiler compiles it, and
   st_executor.h runs kernels on the processor and checks what they do. */
#ifndef ST_CUDA_H
#define ST_CUDA_H

#ifdef __CUDACC_RTC__ /* has no headers, nor host code */
#define ST_KERNELS 1
#define ST_HOST 0
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t, uintptr_t;
#define INT64_C(number) number##LL
#define UINT64_C(number) number##ULL
#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000LL)
#define __builtin_nanf(text) __int_as_float(0x7fc00000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000LL)
#define __builtin_inff() __int_as_float(0x7f800000)
#else
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#define ST_HOST 1
#ifdef ST_DRIVER
#define ST_KERNELS 0
#else
#define ST_KERNELS 1
#endif
#endif

#define ST_UNROLL(times) ST_PRAGMA(unroll times)
#define ST_PRAGMA(text) _Pragma(#text)
#ifdef __GNUC__ /* everything else is hidden, as each kernel has a state of its own */
#define ST_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define ST_EXPORT extern "C"
#endif
#define ST_LANES 32
#define ST_ALL_LANES 0xffffffffu

#ifdef ST_EXECUTOR
#include "st_executor.h"
#undef ST_UNROLL
#define ST_UNROLL(times)
#elif defined(ST_DRIVER)
#include "st_driver.h"
#else

#define ST_BOTH __host__ __device__ __forceinline__
#define ST_DEVICE __device__ __forceinline__
#ifdef __CUDACC_RTC__ /* kernels are found by their names; those of all files get one for each type, below */
#define ST_KERNEL(threads) extern "C" __global__ __launch_bounds__(threads) void
#define ST_KERNEL_OF_TYPES(threads) ST_DEVICE void
#define ST_NAMED(name, threads, parameters, arguments) \
  extern "C" __global__ __launch_bounds__(threads) void name parameters { arguments; }
#else
#define ST_KERNEL(threads) static __global__ __launch_bounds__(threads) void
#define ST_KERNEL_OF_TYPES(threads) ST_KERNEL(threads)
#endif
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

#if ST_HOST
template <class... P> using st_entry = void (*)(P...);

/* Memory of the device, and what went wrong there. Everything happens in the order of one stream. */
struct st_runtime {
  static inline thread_local cudaStream_t stream = nullptr;
  static inline const int processors = [] {
    int found = 1;
    cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, 0);
    return found;
  }();
  static int32_t open(const void *) { return 0; }
  static void use(void *wanted) { stream = (cudaStream_t)wanted; }
  static void adopt(void *, size_t, bool) {}
  static void disown(void *) {}
  static int32_t code() { return 0; }
  static void *get(size_t bytes) {
    void *made = nullptr;
    return cudaMalloc(&made, bytes) == cudaSuccess ? made : (cudaGetLastError(), nullptr);
  }
  static void put(void *memory) {
    if (cudaDeviceSynchronize() == cudaSuccess) cudaFree(memory);
  }
  /* Memory for what the stream does until it is given back there, which nothing waits for. */
  static void *take(size_t bytes) {
    void *made = nullptr;
    return cudaMallocAsync(&made, bytes, stream) == cudaSuccess ? made : (cudaGetLastError(), nullptr);
  }
  static void give_back(void *memory) { cudaFreeAsync(memory, stream); }
  static bool zero(void *memory, size_t bytes) { return cudaMemsetAsync(memory, 0, bytes, stream) == cudaSuccess; }
  static bool moved(void *to, const void *from, size_t bytes, cudaMemcpyKind how) {
    return cudaMemcpyAsync(to, from, bytes, how, stream) == cudaSuccess;
  }
  static bool read(void *to, const void *from, size_t bytes) { return moved(to, from, bytes, cudaMemcpyDeviceToHost) && finish(); }
  static bool write(void *to, const void *from, size_t bytes) { return moved(to, from, bytes, cudaMemcpyHostToDevice) && finish(); }
  static bool finish() { return cudaStreamSynchronize(stream) == cudaSuccess; }
  static bool copy(void *to, const void *from, size_t bytes) { return moved(to, from, bytes, cudaMemcpyDeviceToDevice); }
  /* A moment in the device's work, and the seconds from one moment to a later one, which ends both. */
  static void *moment() {
    cudaEvent_t made = nullptr;
    if (cudaEventCreate(&made) == cudaSuccess) cudaEventRecord(made, stream);
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
    kernel<<<(unsigned)blocks, threads, 0, stream>>>(given...);
    return cudaGetLastError() == cudaSuccess;
  }
};
#endif
#endif

#ifndef ST_NAMED /* where a kernel is passed as a value, it needs no name */
#define ST_NAMED(name, threads, parameters, arguments)
#endif
#ifndef ST_ENTRY
#define ST_ENTRY(name, ...)
#endif

#if ST_KERNELS
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
#endif

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

/* How many slots the table of so many keys has (csrc/st_hash.h). */
ST_BOTH int64_t st_table_size(int64_t count) {
  int64_t size = count > 0;
  while (size < 2 * count) size *= 2;
  return size;
}
enum { ST_STRETCH = 2048 }; /* elements whose prefix sums a block makes at a time */
ST_BOTH int64_t st_carry_groups(int64_t slots) { return (slots + 255) / 256; }

#if ST_KERNELS
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
/* The first fibre whose end is not before an item of the merge path, on which the end of fibre f has number pos[f + 1] + f. */
template <class A> ST_DEVICE int64_t st_path_fibre(A pos, int64_t low, int64_t high, int64_t item) {
  int64_t count = high - low;
  while (count > 0) {
    const int64_t half = count >> 1;
    const bool right = (int64_t)pos[low + half + 1] + low + half < item;
    low = right ? low + half + 1 : low;
    count = right ? count - half - 1 : half;
  }
  return low;
}
/* The place of a key in a table of a power of two slots, not all of which are taken, or where it may be put (csrc/st_hash.h). */
template <class A> ST_DEVICE int64_t st_hash_vacant(A crd, int64_t low, int64_t high, int64_t key) {
  const int64_t size = high - low;
  int bits = 0;
  while ((INT64_C(1) << bits) < size) bits++;
  int64_t slot = bits ? (int64_t)(((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - bits)) : 0;
  for (int64_t found; (found = (int64_t)crd[low + slot]) >= 0 && found != key;) slot = (slot + 1) & (size - 1);
  return low + slot;
}
/* The same, -1 where the key is not. */
template <class A> ST_DEVICE int64_t st_hash_find(A crd, int64_t low, int64_t high, int64_t key) {
  if (high <= low) return -1;
  const int64_t place = st_hash_vacant(crd, low, high, key);
  return (int64_t)crd[place] == key ? place : -1;
}
#define ST_SEARCHES(S)                                                                                                       \
  template <class A> ST_DEVICE int64_t st_lower_bound_##S(A crd, int64_t low, int64_t high, int64_t key) {                   \
    return st_search(crd, low, high, key, false);                                                                            \
  }                                                                                                                          \
  template <class A> ST_DEVICE int64_t st_upper_bound_##S(A crd, int64_t low, int64_t high, int64_t key) {                   \
    return st_search(crd, low, high, key, true);                                                                             \
  }                                                                                                                          \
  template <class A> ST_DEVICE int64_t st_path_fibre_##S(A pos, int64_t low, int64_t high, int64_t item) {                   \
    return st_path_fibre(pos, low, high, item);                                                                              \
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

/* Scalars that a kernel gives back to host code. */
template <class A, class T> ST_DEVICE void st_give(A given, int64_t place, T value) {
  int64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  given[place] = bits;
}

/* Kernels that host code runs between others, of each type that it needs them for. */

template <class T> ST_KERNEL_OF_TYPES(256) st_fill_part(ST_ARRAY(T) array, const int64_t low, const int64_t high, const T value) {
  for (int64_t k = low + st_thread_of_grid(); k < high; k += st_threads_of_grid()) array[k] = value;
}

/* Inclusive prefix sums: blocks sum up stretches of ST_STRETCH elements and say how much each comes to; once these are summed up in turn,
   every stretch gets what comes before it. */
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

/* What threads kept for elements of a result (``passes.carries``): slots of `width` elements side by side, to[..] of which says to which
   element kept[..] is to be added, -1 where nothing was kept; for one place in the slots these do not fall. A block adds up 256 slots at
   one place in order. What it has for the element that the slots before end with goes to its own slot of the next level; the rest nobody
   else adds to. */
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
    for (int64_t apart = 1; apart < 256; apart *= 2) { /* what was kept nowhere counts as kept where the slot before has it */
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

/* A step of a sorting network (Batcher, "Sorting networks and their applications", 1968): the lesser of two elements goes to the lower
   place. Pairs are `apart` places apart, or, mirrored, as far from either end of 2 * apart places; who has no partner below `count` has one
   that is larger. */
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

#if ST_HOST
/* As many blocks of so many threads as the device runs at once, twice, so that none waits long for the last ones: for loops that go
   on over what is left, where only the device knows how much there is. */
inline int64_t st_resident_blocks(int64_t threads) { return INT64_C(2) * st_runtime::processors * (2048 / threads); }

/* What host code holds: memory of the device, which is given back at the end unless it was published, and the state of the device. */
class st_host {
  enum { MOST_BLOCKS = 0x7fffffff, GIVEN = 64, HELD = 256 };
  void *held_[HELD] = {nullptr};
  int64_t *given_ = nullptr;
  int32_t status_ = 0;

 public:
  static inline thread_local bool waits = true; /* whether host code waits for the device at its end */
  ~st_host() {
    for (void *memory : held_)
      if (memory) st_runtime::give_back(memory);
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
  template <class... P, class... A> void launch(int64_t wanted, int threads, st_entry<P...> kernel, A... given) {
    if (!status_ && !st_runtime::run(blocks(wanted), threads, kernel, static_cast<P>(given)...)) status_ = 2;
  }
  template <class T> T *allocate(int64_t length, bool zero) {
    const uint64_t count = length > 0 ? (uint64_t)length : 1;
    void *memory = status_ || count > (UINT64_C(1) << 60) / sizeof(T) ? nullptr : st_runtime::take(count * sizeof(T));
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
    st_runtime::give_back(memory);
    status_ = 1;
    return nullptr;
  }
  void *publish(void *memory) {
    for (void *&place : held_)
      if (place == memory) place = nullptr;
    return memory;
  }
  template <class T> void release(T *&memory) {
    if (memory) st_runtime::give_back(publish(memory));
    memory = nullptr;
  }
  template <class T> void fill(T *array, int64_t low, int64_t high, T value) {
    if (high > low) launch((high - low + 1023) / 1024, 256, st_fill_part<T>, array, low, high, value);
  }
  template <class T> void scan(T *array, int64_t count) {
    const int64_t stretches = (count + ST_STRETCH - 1) / ST_STRETCH;
    T *wholes = count > 0 ? allocate<T>(stretches, false) : nullptr;
    if (!wholes) return;
    launch(stretches, 256, st_scan_part<T>, array, count, wholes);
    if (stretches > 1) {
      scan(wholes, stretches);
      launch(stretches, 256, st_scan_add<T>, array, count, wholes);
    }
    release(wholes);
  }
  template <class T> void carry(int64_t *to, T *kept, T *result, int64_t slots, int64_t width, int64_t op) {
    int64_t *next_to = nullptr, *old_to = nullptr;
    T *next_kept = nullptr, *old_kept = nullptr;
    for (int64_t groups = st_carry_groups(slots); slots > 0 && !status_; slots = groups > 1 ? groups : 0, groups = st_carry_groups(slots)) {
      next_to = allocate<int64_t>(groups * width, false);
      next_kept = allocate<T>(groups * width, false);
      fill(next_to, 0, groups * width, (int64_t)-1);
      launch(groups * width, 256, st_carry<T>, to, kept, result, slots, width, op, next_to, next_kept);
      release(old_to);
      release(old_kept);
      to = old_to = next_to;
      kept = old_kept = next_kept;
    }
    release(old_to);
    release(old_kept);
  }
  template <class T> void sort(T *keys, int64_t count) { sort_range(keys, (int64_t)0, count); }
  template <class T> void sort_range(T *keys, int64_t low, int64_t high) {
    const int64_t count = high - low, blocks = (count + 511) / 512;
    for (int64_t most = 1; most < count; most *= 2)
      for (int64_t apart = most; apart > 0; apart /= 2)
        launch(blocks, 256, st_sort_part<T>, keys, low, count, apart, (int64_t)(apart == most));
  }
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
ST_EXPORT int32_t st_zero(void *memory, int64_t bytes) { return bytes <= 0 || st_runtime::zero(memory, bytes) ? 0 : 2; }
/* Fills memory with an element, which is transferred once and copied there, each time as often as it is there already. */
ST_EXPORT int32_t st_repeat(void *memory, const void *element, int64_t size, int64_t bytes) {
  if (bytes <= 0) return 0;
  bool right = st_runtime::write(memory, element, (size_t)size);
  for (int64_t done = size; right && done < bytes; done *= 2)
    right = st_runtime::copy((char *)memory + done, memory, (size_t)(done < bytes - done ? done : bytes - done));
  return right ? 0 : 2;
}
ST_EXPORT const char *st_trouble() { return st_runtime::trouble(); }
/* Loads kernels that were compiled apart from the host's part; 0, or the driver's number for what is wrong, -1 where there is none. */
ST_EXPORT int32_t st_open(const void *image) { return st_runtime::open(image); }
/* The driver's number for the last error. */
ST_EXPORT int32_t st_code() { return st_runtime::code(); }
/* Everything from now on happens in a stream, null being the default one, and host code waits for its end or not. */
ST_EXPORT void st_use_stream(void *stream, int32_t waits) {
  st_runtime::use(stream);
  st_host::waits = waits;
}
/* Memory of the device that somebody else owns is used from now on, or no more. */
ST_EXPORT void st_adopt(void *memory, int64_t bytes, int32_t writable) { st_runtime::adopt(memory, bytes, writable); }
ST_EXPORT void st_disown(void *memory) { st_runtime::disown(memory); }

/* Weak: a file with kernels of other names has none to time. */
ST_EXPORT __attribute__((weak)) int32_t st_kernel(void **arrays, int64_t *sizes, int64_t threads);

/* Seconds of each of some runs on the device. Before a run memory of `flushed` bytes is written, so that no operand is in a cache;
   zeroed: bytes of each array that are set to 0 as a part of the run; made: whether the kernel publishes the array. */
ST_EXPORT int32_t st_time(void **arrays, int64_t *sizes, int64_t threads, const int64_t *zeroed, const int64_t *made, int64_t count,
                          int64_t flushed, int64_t runs, double *seconds) {
  void *const other = flushed > 0 ? st_runtime::get((size_t)flushed) : nullptr;
  int32_t status = flushed > 0 && !other;
  const bool waited = st_host::waits;
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
  st_host::waits = waited;
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
#endif
