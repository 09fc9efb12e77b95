/* The machine on which st_executor.h runs kernels: fibres that take turns, the records of every element of memory, and errors. To be
   compiled by itself with -DST_EXECUTOR_APART, or included. */
#ifndef ST_EXECUTOR_MACHINE_H
#define ST_EXECUTOR_MACHINE_H

#include "st_executor_fibres.h"
#include "st_executor_memory.h"
#include "st_executor_races.h"

/* The functions of the device that the host's part calls. */

void st_runtime::begin() {
  st_forget_shared();
  st_it.failed = false;
  st_it.error[0] = 0;
}
void st_runtime::adopt(void *memory, size_t bytes, bool writable) { st_register(memory, bytes, bytes, writable); }
void st_runtime::disown(void *memory) { st_forget(memory); }
void *st_runtime::get(size_t bytes) {
  if (!st_it.allowed) return nullptr;
  if (st_it.allowed > 0) st_it.allowed--;
  void *made = malloc(bytes);
  if (!made) return nullptr;
  memset(made, 0xa5, bytes < st_machine::STALE ? bytes : st_machine::STALE); /* not 0, which may be right by chance */
  st_register(made, bytes, 0, true);
  return made;
}
void st_runtime::put(void *memory) {
  st_forget(memory);
  free(memory);
}
bool st_runtime::zero(void *memory, size_t bytes) {
  memset(memory, 0, bytes);
  st_known(memory, bytes);
  return true;
}
bool st_runtime::read(void *to, const void *from, size_t bytes) {
  memcpy(to, from, bytes);
  return !st_it.failed;
}
bool st_runtime::write(void *to, const void *from, size_t bytes) {
  memcpy(to, from, bytes);
  st_known(to, bytes);
  return true;
}
bool st_runtime::finish() { return !st_it.failed; }
void *st_runtime::moment() {
  timespec *const made = new timespec;
  clock_gettime(CLOCK_MONOTONIC, made);
  return made;
}
double st_runtime::between(void *first, void *last) {
  const timespec *const begin = (timespec *)first, *const end = (timespec *)last;
  const double seconds = (double)(end->tv_sec - begin->tv_sec) + 1e-9 * (double)(end->tv_nsec - begin->tv_nsec);
  delete begin;
  delete end;
  return seconds;
}
const char *st_runtime::trouble() { return st_it.error; }
bool st_runtime::run_all(int64_t blocks, st_shape shape, void (*thread)(void *), void *given) {
  if (!st_it.stacks) {
    st_it.stacks = (char *)mmap(nullptr, (size_t)st_machine::STACK * st_machine::MOST_THREADS, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    st_it.fibres.resize(st_machine::MOST_THREADS);
  }
  if (st_it.stacks == MAP_FAILED || shape.threads > st_machine::MOST_THREADS) return false;
  st_it.body = thread;
  st_it.given = given;
  st_it.launch++;
  st_it.lanes = 32;
  st_here.threads = shape.threads;
  st_here.shared = shape.shared;
  st_here.blocks = blocks < ST_MOST_BLOCKS ? blocks : ST_MOST_BLOCKS;
  for (st_here.block = 0; st_here.block < st_here.blocks && !st_it.failed; st_here.block++) st_run_block();
  return !st_it.failed;
}

/* How many further allocations succeed; -1: all. */
extern "C" __attribute__((visibility("default"))) void st_executor_allow(int64_t count) { st_it.allowed = count; }
/* How many pieces of memory kernels may use. */
extern "C" __attribute__((visibility("default"))) int64_t st_executor_held() { return (int64_t)st_it.regions.size(); }

#endif
