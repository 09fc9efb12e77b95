/* Values: what generated CUDA C++ computes on the host and on the device. */
#ifndef ST_CUDA_VALUES_H
#define ST_CUDA_VALUES_H

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
ST_BOTH bool st_harmless(bool condition) { return condition; }
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

/* How many slots the table of a number of keys has (csrc/st_hash.h). */
ST_BOTH int64_t st_table_size(int64_t count) {
  int64_t size = count > 0;
  while (size < 2 * count) size *= 2;
  return size;
}
enum { ST_STRETCH = 2048 }; /* elements whose prefix sums a block makes at a time */
ST_BOTH int64_t st_carry_groups(int64_t slots) { return (slots + 255) / 256; }

#endif
