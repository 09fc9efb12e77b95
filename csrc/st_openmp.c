/* Pieces of work for the threads of OpenMP instead of those of st_team.c, for comparison (tuner/reports/openmp.py). Each thread does
   its own lane, as OpenMP's static loops do. */
#include <omp.h>

#include "st_team.h"

void st_openmp_run(int64_t threads, int64_t pieces, bool own, st_work *work, const void *context) {
  (void)own;
#pragma omp parallel num_threads((int)threads)
  {
    const int64_t count = omp_get_num_threads(), thread = omp_get_thread_num();
    const int64_t begin = pieces / count * thread + pieces % count * thread / count;
    const int64_t end = pieces / count * (thread + 1) + pieces % count * (thread + 1) / count;
    st_lane lane = {begin + 1, end};
    st_claims claims = {&lane, 1, 0, 1, true};
    if (begin < end) work(context, &claims, begin);
  }
}
