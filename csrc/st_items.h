/* Values of any type, as items of as many bytes. */
#ifndef ST_ITEMS_H
#define ST_ITEMS_H

#include <stdint.h>

typedef struct {
  uint64_t low, high;
} item16;

/* PASS(T, ...) with the type of items of so many bytes. */
#define ST_EACH_ITEMSIZE(itemsize, PASS, ...)                 \
  switch (itemsize) {                                         \
    case 1: PASS(uint8_t __VA_OPT__(, ) __VA_ARGS__); break;  \
    case 2: PASS(uint16_t __VA_OPT__(, ) __VA_ARGS__); break; \
    case 4: PASS(uint32_t __VA_OPT__(, ) __VA_ARGS__); break; \
    case 8: PASS(uint64_t __VA_OPT__(, ) __VA_ARGS__); break; \
    default: PASS(item16 __VA_OPT__(, ) __VA_ARGS__); break;  \
  }

#endif
