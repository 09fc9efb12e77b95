/* Updates of shared elements that OpenMP's atomic construct does not know: a new value until nobody came between. */
#ifndef ST_ATOMIC_H
#define ST_ATOMIC_H

#include "st_runtime.h"

#define ST_ATOMIC(T, NAME, UPDATED)                                                                              \
  static inline void st_atomic_##NAME(T *place, T value) {                                                       \
    T old, updated;                                                                                              \
    __atomic_load(place, &old, __ATOMIC_RELAXED);                                                                \
    do                                                                                                           \
      updated = UPDATED;                                                                                         \
    while (!__atomic_compare_exchange(place, &old, &updated, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));         \
  }
ST_ATOMIC(float, min_f32, st_min_f32(old, value))
ST_ATOMIC(float, max_f32, st_max_f32(old, value))
ST_ATOMIC(double, min_f64, st_min_f64(old, value))
ST_ATOMIC(double, max_f64, st_max_f64(old, value))
ST_ATOMIC(int32_t, min_i32, st_min_i32(old, value))
ST_ATOMIC(int32_t, max_i32, st_max_i32(old, value))
ST_ATOMIC(int64_t, min_i64, st_min_i64(old, value))
ST_ATOMIC(int64_t, max_i64, st_max_i64(old, value))
ST_ATOMIC(int8_t, min_i8, st_min_i8(old, value))
ST_ATOMIC(int8_t, max_i8, st_max_i8(old, value))
ST_ATOMIC(int16_t, min_i16, st_min_i16(old, value))
ST_ATOMIC(int16_t, max_i16, st_max_i16(old, value))
ST_ATOMIC(uint8_t, min_u8, st_min_u8(old, value))
ST_ATOMIC(uint8_t, max_u8, st_max_u8(old, value))
ST_ATOMIC(uint16_t, min_u16, st_min_u16(old, value))
ST_ATOMIC(uint16_t, max_u16, st_max_u16(old, value))
ST_ATOMIC(uint32_t, min_u32, st_min_u32(old, value))
ST_ATOMIC(uint32_t, max_u32, st_max_u32(old, value))
ST_ATOMIC(uint64_t, min_u64, st_min_u64(old, value))
ST_ATOMIC(uint64_t, max_u64, st_max_u64(old, value))
ST_ATOMIC(bool, min_bool, st_min_bool(old, value))
ST_ATOMIC(bool, max_bool, st_max_bool(old, value))
ST_ATOMIC(bool, or_bool, old || value)
ST_ATOMIC(bool, and_bool, old && value)
#undef ST_ATOMIC

#endif
