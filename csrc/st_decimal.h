/* Decimal text to the nearest double: exact powers of ten for short numbers (Clinger 1990), one or two 64 x 64 bit products for the
   others (Lemire, "Number parsing at a gigabyte per second", 2021). Numbers that neither decides are left to the caller. */
#ifndef ST_DECIMAL_H
#define ST_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { ST_LEAST_POWER = -342, ST_GREATEST_POWER = 308 };

static inline void st_multiply(uint64_t a, uint64_t b, uint64_t *high, uint64_t *low) {
#ifdef __SIZEOF_INT128__
  const unsigned __int128 product = (unsigned __int128)a * b;
  *high = (uint64_t)(product >> 64);
  *low = (uint64_t)product;
#else
  const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
  *high = a1 * b1 + (middle >> 32) + (other >> 32);
  *low = a * b;
#endif
}

static inline double st_double_of_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* mantissa * 10^power. `fives` holds the 128 most significant bits of the powers of five, high word first, from
   ST_LEAST_POWER to ST_GREATEST_POWER: truncated, those below 1 rounded up. */
static inline double st_scaled(uint64_t mantissa, int64_t power, const uint64_t *fives) {
  static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (mantissa <= UINT64_C(1) << 53 && power >= -22 && power <= 22)
    return power < 0 ? (double)mantissa / tens[-power] : (double)mantissa * tens[power];
  if (mantissa == 0 || power < ST_LEAST_POWER) return 0.0;
  if (power > ST_GREATEST_POWER) return st_double_of_bits(UINT64_C(0x7FF) << 52);
  const int zeros = __builtin_clzll(mantissa);
  const uint64_t *five = fives + 2 * (power - ST_LEAST_POWER);
  uint64_t high, low;
  mantissa <<= zeros;
  st_multiply(mantissa, five[0], &high, &low);
  if ((high & 0x1FF) == 0x1FF) { /* the bits below decide */
    uint64_t more, rest;
    st_multiply(mantissa, five[1], &more, &rest);
    low += more;
    high += low < more;
  }
  const int top = (int)(high >> 63), shift = top + 64 - 52 - 3;
  uint64_t digits = high >> shift; /* 53 bits and one to round by */
  int64_t exponent = ((217706 * power) >> 16) + 63 + top - zeros + 1023;
  if (exponent <= 0) { /* subnormal */
    if (exponent <= -63) return 0.0;
    digits >>= 1 - exponent;
    digits = (digits + (digits & 1)) >> 1;
    return st_double_of_bits(digits);
  }
  /* exactly between two doubles: the even one */
  if (low <= 1 && power >= -4 && power <= 23 && (digits & 3) == 1 && digits << shift == high) digits &= ~UINT64_C(1);
  digits = (digits + (digits & 1)) >> 1;
  if (digits >> 53) {
    digits >>= 1;
    exponent++;
  }
  if (exponent >= 0x7FF) return st_double_of_bits(UINT64_C(0x7FF) << 52);
  return st_double_of_bits((digits & ~(UINT64_C(1) << 52)) | (uint64_t)exponent << 52);
}

typedef enum { ST_NUMBER, ST_NO_NUMBER, ST_UNDECIDED } st_decimal_state;

static inline bool st_is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* A word in any case; text ends with a character that is no letter. */
static inline const char *st_word(const char *text, const char *word) {
  for (; *word; word++, text++)
    if ((*text | 32) != *word) return NULL;
  return text;
}

/* The number at *text, which is moved behind it. Accepts what C's strtod does in decimal, and D for E. The text must end with
   a character that belongs to no number. ST_UNDECIDED: more digits than 64 bits hold, and they matter. */
static inline st_decimal_state st_decimal(const char **text, const uint64_t *fives, double *value) {
  const char *p = *text;
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  uint64_t mantissa = 0;
  int digits = 0; /* significant ones, from the first that is not zero */
  int64_t power = 0;
  bool any = false, cut = false;
  for (int part = 0; part < 2; part++) {
    for (; st_is_digit(*p); p++) {
      any = true;
      if (digits < 19) {
        mantissa = 10 * mantissa + (uint64_t)(*p - '0');
        digits += mantissa != 0;
        power -= part;
      } else {
        cut |= *p != '0';
        power += 1 - part;
      }
    }
    if (part || *p != '.') break;
    p++;
  }
  if (!any) {
    const char *after;
    double special = 0;
    if ((after = st_word(p, "inf")) != NULL) {
      special = st_double_of_bits(UINT64_C(0x7FF) << 52);
      p = st_word(after, "inity") ? after + 5 : after;
    } else if ((after = st_word(p, "nan")) != NULL) {
      special = st_double_of_bits(UINT64_C(0x7FF8) << 48);
      p = after;
    } else {
      return ST_NO_NUMBER;
    }
    *value = negative ? -special : special;
    *text = p;
    return ST_NUMBER;
  }
  if ((*p | 32) == 'e' || (*p | 32) == 'd') {
    const char *e = p + 1;
    const bool below = *e == '-';
    if (*e == '-' || *e == '+') e++;
    if (st_is_digit(*e)) {
      int64_t exponent = 0;
      for (; st_is_digit(*e); e++)
        if (exponent < 100000) exponent = 10 * exponent + (*e - '0');
      power += below ? -exponent : exponent;
      p = e;
    }
  }
  *text = p;
  const double magnitude = st_scaled(mantissa, power, fives);
  *value = negative ? -magnitude : magnitude;
  return cut && magnitude != st_scaled(mantissa + 1, power, fives) ? ST_UNDECIDED : ST_NUMBER;
}

#endif
