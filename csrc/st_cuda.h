/* The base of generated CUDA C++: names of blocks, warps and threads, sums over them, barriers, atomics, searches, and the host's
   part: memory, launches, scalars that kernels return. All names begin with st_ or ST_. nvcc compiles it for a GPU, or NVRTC the
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
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
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
#include "st_cuda_device.h"
#endif

#ifndef ST_NAMED /* where a kernel is passed as a value, it needs no name */
#define ST_NAMED(name, threads, parameters, arguments)
#endif
#ifndef ST_ENTRY
#define ST_ENTRY(name, ...)
#endif

#include "st_cuda_values.h"
#if ST_KERNELS
#include "st_cuda_members.h"
#include "st_cuda_searches.h"
#include "st_cuda_tables.h"
#endif
#include "st_cuda_kernels.h"
#if ST_HOST
#include "st_cuda_host.h"
#endif
#endif
