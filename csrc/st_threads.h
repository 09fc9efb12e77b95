/* The team of threads; a team of one where the compiler has no OpenMP. */
#ifndef ST_THREADS_H
#define ST_THREADS_H

#include <stdint.h>

#ifdef _OPENMP
#include <omp.h>
static inline int64_t st_thread_number(void) { return omp_get_thread_num(); }
static inline int64_t st_thread_count(void) { return omp_get_num_threads(); }
#else
static inline int64_t st_thread_number(void) { return 0; }
static inline int64_t st_thread_count(void) { return 1; }
#endif

#endif
