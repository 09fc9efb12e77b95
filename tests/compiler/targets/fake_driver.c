/* A driver of a GPU that is memory of the processor: it writes down what is launched, and fails as $ST_FAKE says, "function=code ...". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong(const char *function) {
  const char *said = getenv("ST_FAKE"), *found = said ? strstr(said, function) : NULL;
  return found && found[strlen(function)] == '=' ? atoi(found + strlen(function) + 1) : 0;
}
static void say(const char *form, const char *name, const unsigned long long *values, int count) {
  FILE *file = fopen(getenv("ST_FAKE_LOG"), "a");
  fprintf(file, form, name);
  for (int k = 0; k < count; k++) fprintf(file, " %llu", values[k]);
  fprintf(file, "\n");
  fclose(file);
}
static void *current;

int cuInit(unsigned flags) { return wrong("cuInit"); }
int cuDeviceGet(int *device, int number) { return *device = 0, wrong("cuDeviceGet"); }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &current, wrong("cuDevicePrimaryCtxRetain"); }
int cuDeviceGetAttribute(int *value, int which, int device) { return *value = which == 16 ? 132 : 1, wrong("cuDeviceGetAttribute"); }
int cuDeviceGetDefaultMemPool(void **pool, int device) { return *pool = &current, wrong("cuDeviceGetDefaultMemPool"); }
int cuMemPoolGetAttribute(void *pool, int which, void *value) { return memset(value, 0, 8), 0; }
int cuMemPoolSetAttribute(void *pool, int which, void *value) { return wrong("cuMemPoolSetAttribute"); }
int cuCtxSynchronize(void) { return 0; }
int cuCtxGetCurrent(void **context) { return *context = current, 0; }
int cuCtxSetCurrent(void *context) { return current = context, 0; }
int cuModuleLoadData(void **module, const void *image) {
  *module = (void *)image;
  return memcmp(image, "\177ELF", 4) ? 200 : wrong("cuModuleLoadData");
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = strdup(name);
  return wrong("cuModuleGetFunction");
}
int cuMemAlloc_v2(uint64_t *memory, size_t bytes) { return *memory = (uint64_t)calloc(1, bytes), wrong("cuMemAlloc"); }
int cuMemFree_v2(uint64_t memory) { return free((void *)memory), 0; }
int cuMemAllocAsync(uint64_t *memory, size_t bytes, void *stream) {
  return *memory = (uint64_t)calloc(1, bytes), wrong("cuMemAllocAsync");
}
int cuMemFreeAsync(uint64_t memory, void *stream) { return free((void *)memory), 0; }
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream) { return memset((void *)to, value, bytes), 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) { return memcpy((void *)to, from, bytes), 0; }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) { return memcpy(to, (void *)from, bytes), 0; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) { return memcpy((void *)to, (void *)from, bytes), 0; }
int cuFuncSetAttribute(void *function, int which, int value) {
  say("%s may have", function, (unsigned long long[]){which, value}, 2);
  return wrong("cuFuncSetAttribute");
}
int cuLaunchKernel(void *function, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz, unsigned shared,
                   void *stream, void **parameters, void **extra) {
  unsigned long long values[40] = {blocks, threads, (unsigned long long)(uintptr_t)stream};
  int count = 0;
  for (; parameters[count] && count < 30; count++) memcpy(values + 3 + count, parameters[count], 8);
  say("%s", function, values, 3 + count);
  if (!strcmp(function, "st_fill_part_f64"))
    for (unsigned long long k = values[4]; k < values[5]; k++) ((double *)values[3])[k] = *(double *)parameters[3];
  return wrong("cuLaunchKernel");
}
int cuStreamSynchronize(void *stream) { return wrong("cuStreamSynchronize"); }
int cuEventCreate(void **event, unsigned flags) { return *event = malloc(1), 0; }
int cuEventRecord(void *event, void *stream) { return 0; }
int cuEventSynchronize(void *event) { return 0; }
int cuEventElapsedTime(float *milliseconds, void *first, void *last) { return *milliseconds = 2, 0; }
int cuEventDestroy_v2(void *event) { return free(event), 0; }
int cuGetErrorString(int code, const char **text) { return *text = "said by the driver", 0; }
