/* The macros and names of generated CUDA C++ for nvcc and NVRTC, and the device as the host's part uses it (st_executor.h and
   st_driver.h are the same for other compilers). */
#ifndef ST_CUDA_DEVICE_H
#define ST_CUDA_DEVICE_H

#define ST_BOTH __host__ __device__ __forceinline__
#define ST_DEVICE __device__ __forceinline__
/* A kernel: threads of a block and, if given, the most registers of a thread. The compiler is told how many blocks must fit on a
   multiprocessor, and uses the registers that these leave. Otherwise it uses few registers and may delay loads one after another. */
/* Threads that a multiprocessor has at once. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ != 800 && __CUDA_ARCH__ / 100 != 9 && __CUDA_ARCH__ / 100 != 10
constexpr int st_threads_at_once = __CUDA_ARCH__ < 800 ? 1024 : 1536;
#else
constexpr int st_threads_at_once = 2048;
#endif
ST_BOTH constexpr int st_room_for(int threads, int registers) {
  const int held = 65536 / (threads * registers), most = st_threads_at_once / threads, found = held < most ? held : most;
  return found < 1 ? 1 : found < 16 ? found : 16;
}
#define ST_KERNEL_WITH(threads, registers) ST_KERNEL(threads, st_room_for(threads, registers))
#ifdef __CUDACC_RTC__ /* kernels are found by their names; kernels of st_cuda_kernels.h get one for each type */
#define ST_KERNEL(...) extern "C" __global__ __launch_bounds__(__VA_ARGS__) void
#define ST_KERNEL_OF_TYPES(threads) ST_DEVICE void
#define ST_NAMED(name, threads, parameters, arguments) \
  extern "C" __global__ __launch_bounds__(threads) void name parameters { arguments; }
#else
#define ST_KERNEL(...) static __global__ __launch_bounds__(__VA_ARGS__) void
#define ST_KERNEL_OF_TYPES(threads) ST_KERNEL(threads)
#endif
#define ST_WARPS_OF(lanes) /* how many lanes the warps of a kernel have; the executor tells races by it */
#define ST_ARRAY(T) T *__restrict__
#define ST_SHARED(T, name, length) __shared__ T name[length]
#define ST_SHARED_OF_WARP(T, name, length, warps, lanes) \
  __shared__ T st_all_##name[(length) * (warps)]; \
  T *const name = st_all_##name + st_warp_of_block<lanes>() * (length)
/* The same of memory that a kernel is launched with, from a place of it on: more than every GPU lets a kernel declare. */
#define ST_LAUNCHED(T, name, length, place) T *const name = (T *)(st_launched + (place))
#define ST_LAUNCHED_OF_WARP(T, name, length, warps, lanes, place) \
  T *const name = (T *)(st_launched + (place)) + st_warp_of_block<lanes>() * (length)
#if ST_KERNELS
extern __shared__ __align__(16) unsigned char st_launched[];
#endif

template <class T> using st_array = T *;

ST_DEVICE int64_t st_thread_of_block() { return threadIdx.x; }
ST_DEVICE int64_t st_threads_of_block() { return blockDim.x; }
ST_DEVICE int64_t st_block_of_grid() { return blockIdx.x; }
ST_DEVICE int64_t st_blocks_of_grid() { return gridDim.x; }
ST_DEVICE void st_barrier_of_block() { __syncthreads(); }
/* The lanes of the processor's warp that are a warp of L lanes with this one. */
template <int L> ST_DEVICE unsigned st_lanes_of_warp() {
  return L == ST_LANES ? ST_ALL_LANES : ((1u << L % ST_LANES) - 1) << (threadIdx.x % ST_LANES / L * L);
}
/* How many lanes of a warp something holds for. */
template <int L = ST_LANES> ST_DEVICE int st_count_of_lanes(bool holds) {
  return __popc(__ballot_sync(st_lanes_of_warp<L>(), holds) & st_lanes_of_warp<L>());
}
template <int L = ST_LANES> ST_DEVICE void st_barrier_of_warp() { __syncwarp(st_lanes_of_warp<L>()); }
template <int L = ST_LANES, class T> ST_DEVICE T st_shuffle(T value, int lanes_apart) {
  return __shfl_xor_sync(st_lanes_of_warp<L>(), value, lanes_apart);
}
template <class T> ST_DEVICE T *st_part(T *array, int64_t begin, int64_t) { return array + begin; }
template <class T> ST_DEVICE T st_load(const T *place) { return *(const volatile T *)place; }
ST_DEVICE bool st_swap(unsigned *place, unsigned old, unsigned wanted) { return atomicCAS(place, old, wanted) == old; }
ST_DEVICE bool st_swap(unsigned long long *place, unsigned long long old, unsigned long long wanted) {
  return atomicCAS(place, old, wanted) == old;
}
/* Replaces an element by a function of it, repeated while another thread changes it in between. Elements of less than 4 bytes are
   replaced inside the word that holds them. */
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
/* Puts a key into a free place (-1) and returns what was there; a key that is already there stays. */
ST_DEVICE int64_t st_claim(int32_t *place, int64_t key) {
  const int32_t before = st_load(place);
  return before != -1 ? before : atomicCAS(place, -1, (int32_t)key);
}
ST_DEVICE int64_t st_claim(int64_t *place, int64_t key) {
  const int64_t before = st_load(place);
  return before != -1 ? before : (int64_t)atomicCAS((unsigned long long *)place, ~0ULL, (unsigned long long)key);
}
/* The number of the highest bit that is set. */
ST_DEVICE int st_last_bit(int64_t number) { return 63 - __clzll(number | 1); }
/* The lanes of the processor's warp that are here together; whether all of them have the same number; values that they exchange. */
template <class T> ST_DEVICE uintptr_t st_address(T *place) { return (uintptr_t)place; }
ST_DEVICE unsigned st_lanes_here() { return __activemask(); }
ST_DEVICE bool st_same_of_lanes(uintptr_t number) {
  int same;
  __match_all_sync(ST_ALL_LANES, (unsigned long long)number, &same);
  return same;
}
template <class T> ST_DEVICE T st_shown(T value, int lanes_apart) { return st_shuffle(value, lanes_apart); }
ST_DEVICE void st_add_at(double *place, double value) { atomicAdd(place, value); }
ST_DEVICE void st_add_at(float *place, float value) { atomicAdd(place, value); }
ST_DEVICE void st_atomic_add(int32_t *array, int64_t index, int32_t value) { atomicAdd(array + index, value); }
ST_DEVICE void st_atomic_add(int64_t *array, int64_t index, int64_t value) {
  atomicAdd((unsigned long long *)array + index, (unsigned long long)value);
}
/* Of many threads that look for one maximum, few have a larger value than is there already; the others only read. */
ST_DEVICE void st_atomic_max(int64_t *array, int64_t index, int64_t value) {
  if (st_load(array + index) < value) atomicMax((long long *)array + index, (long long)value);
}

#if ST_HOST
#include "st_cuda_shape.h"

template <class... P> using st_entry = void (*)(P...);

/* Memory of the device, and its errors. Everything happens in the order of one stream. */
struct st_runtime {
  static inline thread_local cudaStream_t stream = nullptr;
  static inline const int processors = [] {
    int found = 1;
    cudaDeviceGetAttribute(&found, cudaDevAttrMultiProcessorCount, 0);
    return found;
  }();
  static int32_t open(const void *) { return 0; }
  static void use(void *wanted) { stream = (cudaStream_t)wanted; }
  static void begin() {}
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
  /* Memory that is allocated and freed in the order of the stream, so that nothing waits. */
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
  template <class... P, class... A> static bool run(int64_t blocks, st_shape shape, void (*kernel)(P...), A... given) {
    const auto most = cudaFuncAttributeMaxDynamicSharedMemorySize;
    if (shape.shared && cudaFuncSetAttribute(kernel, most, shape.shared) != cudaSuccess) return false;
    kernel<<<(unsigned)blocks, shape.threads, shape.shared, stream>>>(given...);
    return cudaGetLastError() == cudaSuccess;
  }
};
#endif

#endif
