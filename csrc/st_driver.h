/* The host's part of generated CUDA C++ on the driver's interface, which is loaded when it is first needed: kernels are a cubin from
   NVRTC, and the toolkit is not needed. $SPARSETUNE_LIBCUDA names another driver than libcuda.so.1. */
#ifndef ST_DRIVER_H
#define ST_DRIVER_H

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "st_cuda_shape.h"

#define ST_BOTH inline

/* A kernel by its name, and the types of its arguments. */
struct st_handle {
  std::string name;
  void *function = nullptr;
};
template <class... P> struct st_entry {
  st_handle *handle;
};
#define ST_ENTRY(name, ...)                   \
  static st_handle name##_handle{#name};     \
  static const st_entry<__VA_ARGS__> name{&name##_handle};

template <class T> struct st_suffix;
#define ST_SUFFIX(T, S) \
  template <> struct st_suffix<T> { static constexpr const char *text = "_" #S; };
ST_SUFFIX(float, f32)
ST_SUFFIX(double, f64)
ST_SUFFIX(int8_t, i8)
ST_SUFFIX(int16_t, i16)
ST_SUFFIX(int32_t, i32)
ST_SUFFIX(int64_t, i64)
ST_SUFFIX(uint8_t, u8)
ST_SUFFIX(uint16_t, u16)
ST_SUFFIX(uint32_t, u32)
ST_SUFFIX(uint64_t, u64)
ST_SUFFIX(bool, bool)
#undef ST_SUFFIX
#define ST_ENTRY_OF_TYPES(NAME, ...)                                                                        \
  template <class T> static st_handle NAME##_handle{std::string(#NAME) + st_suffix<T>::text};              \
  template <class T> static const st_entry<__VA_ARGS__> NAME{&NAME##_handle<T>};
ST_ENTRY_OF_TYPES(st_fill_part, T *, int64_t, int64_t, T)
ST_ENTRY_OF_TYPES(st_scan_part, T *, int64_t, T *)
ST_ENTRY_OF_TYPES(st_scan_add, T *, int64_t, const T *)
ST_ENTRY_OF_TYPES(st_sort_part, T *, int64_t, int64_t, int64_t, int64_t)
ST_ENTRY_OF_TYPES(st_carry, const int64_t *, const T *, T *, int64_t, int64_t, int64_t, int64_t *, T *)
#undef ST_ENTRY_OF_TYPES

typedef unsigned long long st_address; /* of the device */

/* The functions of the driver that are called, by their names in libcuda. */
#define ST_DRIVER_FUNCTIONS(F)                                                                                              \
  F(cuInit, (unsigned))                                                                                                     \
  F(cuDeviceGet, (int *, int))                                                                                              \
  F(cuDeviceGetAttribute, (int *, int, int))                                                                                \
  F(cuDeviceGetDefaultMemPool, (void **, int))                                                                              \
  F(cuMemPoolGetAttribute, (void *, int, void *))                                                                           \
  F(cuMemPoolSetAttribute, (void *, int, void *))                                                                           \
  F(cuDevicePrimaryCtxRetain, (void **, int))                                                                               \
  F(cuCtxGetCurrent, (void **))                                                                                             \
  F(cuCtxSetCurrent, (void *))                                                                                              \
  F(cuModuleLoadData, (void **, const void *))                                                                              \
  F(cuModuleGetFunction, (void **, void *, const char *))                                                                   \
  F(cuMemAlloc_v2, (st_address *, size_t))                                                                                  \
  F(cuMemFree_v2, (st_address))                                                                                             \
  F(cuMemAllocAsync, (st_address *, size_t, void *))                                                                        \
  F(cuMemFreeAsync, (st_address, void *))                                                                                   \
  F(cuCtxSynchronize, ())                                                                                                   \
  F(cuMemsetD8Async, (st_address, unsigned char, size_t, void *))                                                           \
  F(cuMemcpyHtoDAsync_v2, (st_address, const void *, size_t, void *))                                                       \
  F(cuMemcpyDtoHAsync_v2, (void *, st_address, size_t, void *))                                                             \
  F(cuMemcpyDtoDAsync_v2, (st_address, st_address, size_t, void *))                                                         \
  F(cuFuncSetAttribute, (void *, int, int))                                                                                 \
  F(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **)) \
  F(cuStreamSynchronize, (void *))                                                                                          \
  F(cuEventCreate, (void **, unsigned))                                                                                     \
  F(cuEventRecord, (void *, void *))                                                                                        \
  F(cuEventSynchronize, (void *))                                                                                           \
  F(cuEventElapsedTime, (float *, void *, void *))                                                                          \
  F(cuEventDestroy_v2, (void *))                                                                                            \
  F(cuGetErrorString, (int, const char **))

struct st_runtime {
  enum { PROCESSORS = 16, POOLS_SUPPORTED = 115, POOL_KEEPS = 4, MOST_SHARED = 8 }; /* the driver's numbers for attributes */
#define ST_DRIVER_FUNCTION(name, parameters) static inline int(*name) parameters = nullptr;
  ST_DRIVER_FUNCTIONS(ST_DRIVER_FUNCTION)
#undef ST_DRIVER_FUNCTION
  static inline thread_local void *stream = nullptr;
  static inline void *primary = nullptr, *module = nullptr;
  static inline int32_t last = 0;
  static inline int processors = 1;
  static inline bool is_linked = false, has_pool = false;
  static inline char text[300] = "";

  static bool right(int found) {
    const char *words = nullptr;
    if (!found) return true;
    last = found;
    if (cuGetErrorString) cuGetErrorString(found, &words);
    snprintf(text, sizeof text, "%s (error %d)", words ? words : "unknown error", found);
    return false;
  }
  static bool linked() {
    const char *wanted = getenv("SPARSETUNE_LIBCUDA");
    void *const driver = dlopen(wanted && *wanted ? wanted : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    const char *missing = driver ? nullptr : "libcuda.so.1";
#define ST_DRIVER_FUNCTION(name, parameters) \
  if (!missing && !(name = (int(*) parameters)dlsym(driver, #name))) missing = #name;
    ST_DRIVER_FUNCTIONS(ST_DRIVER_FUNCTION)
#undef ST_DRIVER_FUNCTION
    if (!missing) return true;
    last = -1;
    snprintf(text, sizeof text, "the driver has no %s", missing);
    return false;
  }
  /* The context that other libraries use too; one that the thread has already is left as it is. */
  static bool ready() {
    void *current = nullptr;
    if (!right(cuCtxGetCurrent(&current))) return false;
    return current || right(cuCtxSetCurrent(primary));
  }
  static int32_t open(const void *image) {
    int device = 0;
    if (!is_linked && !(is_linked = linked())) return last;
    if (!right(cuInit(0)) || !right(cuDeviceGet(&device, 0)) || !right(cuDevicePrimaryCtxRetain(&primary, device))) return last;
    if (!right(cuDeviceGetAttribute(&processors, PROCESSORS, device))) return last;
    return ready() && pooled(device) && right(cuModuleLoadData(&module, image)) ? 0 : last;
  }
  /* Lets the driver keep at least a GiB of freed memory for the next kernels; not all devices can. */
  static bool pooled(int device) {
    int supported = 0;
    void *pool = nullptr;
    uint64_t kept = 0, wanted = UINT64_C(1) << 30;
    if (!right(cuDeviceGetAttribute(&supported, POOLS_SUPPORTED, device))) return false;
    if (!supported) return true;
    if (!right(cuDeviceGetDefaultMemPool(&pool, device)) || !right(cuMemPoolGetAttribute(pool, POOL_KEEPS, &kept))) return false;
    has_pool = kept >= wanted || right(cuMemPoolSetAttribute(pool, POOL_KEEPS, &wanted));
    return has_pool;
  }
  static void use(void *wanted) { stream = wanted; }
  static void begin() {}
  static void adopt(void *, size_t, bool) {}
  static void disown(void *) {}
  static int32_t code() { return last; }
  static void *get(size_t bytes) {
    st_address made = 0;
    return ready() && right(cuMemAlloc_v2(&made, bytes)) ? (void *)made : nullptr;
  }
  static void put(void *memory) {
    if (ready() && right(cuCtxSynchronize())) cuMemFree_v2((st_address)memory);
  }
  /* Memory that is allocated and freed in the order of the stream, so that nothing waits. */
  static void *take(size_t bytes) {
    st_address made = 0;
    if (!has_pool) return get(bytes);
    return ready() && right(cuMemAllocAsync(&made, bytes, stream)) ? (void *)made : nullptr;
  }
  static void give_back(void *memory) {
    if (!has_pool) put(memory);
    else if (ready()) cuMemFreeAsync((st_address)memory, stream);
  }
  static bool zero(void *memory, size_t bytes) { return ready() && right(cuMemsetD8Async((st_address)memory, 0, bytes, stream)); }
  static bool read(void *to, const void *from, size_t bytes) {
    return !bytes || (ready() && right(cuMemcpyDtoHAsync_v2(to, (st_address)from, bytes, stream)) && finish());
  }
  static bool write(void *to, const void *from, size_t bytes) {
    return !bytes || (ready() && right(cuMemcpyHtoDAsync_v2((st_address)to, from, bytes, stream)) && finish());
  }
  static bool copy(void *to, const void *from, size_t bytes) {
    return ready() && right(cuMemcpyDtoDAsync_v2((st_address)to, (st_address)from, bytes, stream));
  }
  static bool finish() { return ready() && right(cuStreamSynchronize(stream)); }
  /* A moment in the device's work, and the seconds from one moment to a later one, which ends both. */
  static void *moment() {
    void *made = nullptr;
    if (ready() && right(cuEventCreate(&made, 0))) right(cuEventRecord(made, stream));
    return made;
  }
  static double between(void *first, void *last_moment) {
    float milliseconds = -1e3f;
    right(cuEventSynchronize(last_moment));
    right(cuEventElapsedTime(&milliseconds, first, last_moment));
    cuEventDestroy_v2(first);
    cuEventDestroy_v2(last_moment);
    return milliseconds * 1e-3;
  }
  static const char *trouble() { return text; }
  template <class... P> static bool run(int64_t blocks, st_shape shape, st_entry<P...> kernel, P... given) {
    void *parameters[] = {(void *)&given..., nullptr};
    void *&function = kernel.handle->function;
    if (!ready() || (!function && !right(cuModuleGetFunction(&function, module, kernel.handle->name.c_str())))) return false;
    if (shape.shared && !right(cuFuncSetAttribute(function, MOST_SHARED, shape.shared))) return false;
    const unsigned threads = (unsigned)shape.threads, shared = (unsigned)shape.shared;
    return right(cuLaunchKernel(function, (unsigned)blocks, 1, 1, threads, 1, 1, shared, stream, parameters, nullptr));
  }
};

#endif
