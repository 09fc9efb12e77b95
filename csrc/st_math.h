/* Functions of values. They depend only on their arguments and have no other effect, so that compilers may apply them to several
   values at once: where the C library has vector forms (glibc's libmvec, within 4 units in the last place), loops call these. */
#ifndef ST_MATH_H
#define ST_MATH_H

#include <stdint.h>

#define ST_VALUES __attribute__((const))
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
#undef ST_VALUES
#define ST_VALUES __attribute__((const, simd("notinbranch")))
#endif
#endif

ST_VALUES extern double st_exp_f64(double value) __asm__("exp");
ST_VALUES extern double st_log_f64(double value) __asm__("log");
ST_VALUES extern double st_tanh_f64(double value) __asm__("tanh");
ST_VALUES extern double st_pow_f64(double base, double exponent) __asm__("pow");
ST_VALUES extern float st_exp_f32(float value) __asm__("expf");
ST_VALUES extern float st_log_f32(float value) __asm__("logf");
ST_VALUES extern float st_tanh_f32(float value) __asm__("tanhf");
ST_VALUES extern float st_pow_f32(float base, float exponent) __asm__("powf");

static inline double st_sqrt_f64(double value) { return __builtin_sqrt(value); }
static inline float st_sqrt_f32(float value) { return __builtin_sqrtf(value); }
static inline double st_abs_f64(double value) { return __builtin_fabs(value); }
static inline float st_abs_f32(float value) { return __builtin_fabsf(value); }

#endif
