/* Updates of elements that threads share: compare and swap, repeated while another thread changes the element in between. */
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
#define ST_ATOMIC_ARITHMETIC(T, S)                                                                               \
  static inline void st_atomic_write_##S(T *place, T value) { __atomic_store(place, &value, __ATOMIC_RELAXED); } \
  ST_ATOMIC(T, multiply_##S, (T)(old * value))                                                                   \
  ST_ATOMIC(T, divide_##S, (T)(old / value))
#define ST_ATOMIC_FLOAT(T, S)              \
  ST_ATOMIC_ARITHMETIC(T, S)               \
  ST_ATOMIC(T, add_##S, old + value)       \
  ST_ATOMIC(T, subtract_##S, old - value)
#define ST_ATOMIC_INTEGER(T, S)                                                                                          \
  ST_ATOMIC_ARITHMETIC(T, S)                                                                                             \
  static inline void st_atomic_add_##S(T *place, T value) { __atomic_fetch_add(place, value, __ATOMIC_RELAXED); }        \
  static inline void st_atomic_subtract_##S(T *place, T value) { __atomic_fetch_sub(place, value, __ATOMIC_RELAXED); }
ST_ATOMIC_FLOAT(float, f32)
ST_ATOMIC_FLOAT(double, f64)
ST_ATOMIC_FLOAT(bool, bool)
ST_ATOMIC_INTEGER(int8_t, i8)
ST_ATOMIC_INTEGER(int16_t, i16)
ST_ATOMIC_INTEGER(int32_t, i32)
ST_ATOMIC_INTEGER(int64_t, i64)
ST_ATOMIC_INTEGER(uint8_t, u8)
ST_ATOMIC_INTEGER(uint16_t, u16)
ST_ATOMIC_INTEGER(uint32_t, u32)
ST_ATOMIC_INTEGER(uint64_t, u64)
#undef ST_ATOMIC_INTEGER
#undef ST_ATOMIC_FLOAT
#undef ST_ATOMIC_ARITHMETIC
#undef ST_ATOMIC

/* Set a bit of an array of words. */
static inline void st_atomic_mark(uint64_t *bits, int64_t place) {
  uint64_t *word = bits + (place >> 6);
  const uint64_t mask = UINT64_C(1) << (place & 63);
  if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & mask)) __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
}

#endif
