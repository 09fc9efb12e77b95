/* The host's part: memory, launches, scalars that kernels return, and functions for callers. */
#ifndef ST_CUDA_HOST_H
#define ST_CUDA_HOST_H

/* Twice as many blocks of so many threads as the device runs at once, so that the last ones end at about the same time: for loops
   over work whose amount only the device knows. */
inline int64_t st_resident_blocks(int64_t threads) { return INT64_C(2) * st_runtime::processors * (2048 / threads); }

/* What host code holds: memory of the device, which is freed at the end unless it was published, and the state of the device. */
class st_host {
  enum { MOST_BLOCKS = 0x7fffffff, GIVEN = 64, HELD = 256 };
  void *held_[HELD] = {nullptr};
  bool left_[HELD] = {false};
  int64_t *given_ = nullptr;
  int32_t status_ = 0;

 public:
  static inline thread_local bool waits = true; /* whether host code waits for the device at its end */
  st_host() { st_runtime::begin(); }
  ~st_host() {
    for (int k = 0; k < HELD; k++)
      if (held_[k] && (status_ || !left_[k])) st_runtime::give_back(held_[k]);
  }
  /* 0, 1 where there was no memory, 2 where the device reports an error. */
  int32_t status() {
    if (!status_ && waits && !st_runtime::finish()) status_ = 2;
    return status_;
  }
  static int64_t blocks(int64_t wanted) { return wanted < 1 ? 1 : wanted > MOST_BLOCKS ? (int64_t)MOST_BLOCKS : wanted; }
  /* As many blocks as fit into a GiB with the private bytes of each. */
  static int64_t blocks(int64_t wanted, int64_t bytes_each) {
    const int64_t most = (INT64_C(1) << 30) / (bytes_each > 0 ? bytes_each : 1);
    return blocks(wanted < most ? wanted : most);
  }
  template <class... P, class... A> void launch(int64_t wanted, st_shape shape, st_entry<P...> kernel, A... given) {
    if (!status_ && !st_runtime::run(blocks(wanted), shape, kernel, static_cast<P>(given)...)) status_ = 2;
  }
  template <class T> T *allocate(int64_t length, bool zero) {
    const uint64_t count = length > 0 ? (uint64_t)length : 1;
    void *memory = status_ || count > (UINT64_C(1) << 60) / sizeof(T) ? nullptr : st_runtime::take(count * sizeof(T));
    if (!memory) {
      if (!status_) status_ = 1;
      return nullptr;
    }
    for (void *&place : held_) {
      if (place) continue;
      place = memory;
      if (zero && !st_runtime::zero(memory, count * sizeof(T))) status_ = 2;
      return (T *)memory;
    }
    st_runtime::give_back(memory);
    status_ = 1;
    return nullptr;
  }
  /* Leaves memory to the caller, unless an error occurs later: then there is no result that the caller would free. */
  void *publish(void *memory) {
    for (int k = 0; k < HELD; k++) left_[k] |= memory && held_[k] == memory;
    return memory;
  }
  template <class T> void release(T *&memory) {
    for (void *&place : held_)
      if (place == memory) place = nullptr;
    if (memory) st_runtime::give_back(memory);
    memory = nullptr;
  }
  template <class T> void fill(T *array, int64_t low, int64_t high, T value) {
    if (high > low) launch((high - low + 1023) / 1024, 256, st_fill_part<T>, array, low, high, value);
  }
  template <class T> void scan(T *array, int64_t count) {
    const int64_t stretches = (count + ST_STRETCH - 1) / ST_STRETCH;
    T *wholes = count > 0 ? allocate<T>(stretches, false) : nullptr;
    if (!wholes) return;
    launch(stretches, 256, st_scan_part<T>, array, count, wholes);
    if (stretches > 1) {
      scan(wholes, stretches);
      launch(stretches, 256, st_scan_add<T>, array, count, wholes);
    }
    release(wholes);
  }
  template <class T> void carry(int64_t *to, T *kept, T *result, int64_t slots, int64_t width, int64_t op) {
    int64_t *next_to = nullptr, *old_to = nullptr;
    T *next_kept = nullptr, *old_kept = nullptr;
    for (int64_t groups = st_carry_groups(slots); slots > 0 && !status_; slots = groups > 1 ? groups : 0, groups = st_carry_groups(slots)) {
      next_to = allocate<int64_t>(groups * width, false);
      next_kept = allocate<T>(groups * width, false);
      fill(next_to, 0, groups * width, (int64_t)-1);
      launch(groups * width, 256, st_carry<T>, to, kept, result, slots, width, op, next_to, next_kept);
      release(old_to);
      release(old_kept);
      to = old_to = next_to;
      kept = old_kept = next_kept;
    }
    release(old_to);
    release(old_kept);
  }
  template <class T> void sort(T *keys, int64_t count) { sort_range(keys, (int64_t)0, count); }
  template <class T> void sort_range(T *keys, int64_t low, int64_t high) {
    const int64_t count = high - low, blocks = (count + 511) / 512;
    for (int64_t most = 1; most < count; most *= 2)
      for (int64_t apart = most; apart > 0; apart /= 2)
        launch(blocks, 256, st_sort_part<T>, keys, low, count, apart, (int64_t)(apart == most));
  }
  int64_t *given() {
    if (!given_) given_ = allocate<int64_t>(GIVEN, false);
    return given_;
  }
  template <class T> void take(int64_t place, T &value) {
    int64_t bits = 0;
    if (status_ || !given_) return;
    if (!st_runtime::read(&bits, given_ + place, sizeof bits)) {
      status_ = 2;
      return;
    }
    memcpy(&value, &bits, sizeof(T));
  }
};

/* For the caller: memory of the device, freed by st_release like arrays that a kernel published, and transfers; 0, or 2 for an error. */
ST_EXPORT void *st_get(int64_t bytes) { return st_runtime::get(bytes > 0 ? bytes : 1); }
ST_EXPORT void st_release(void *memory) {
  if (memory) st_runtime::put(memory);
}
ST_EXPORT int32_t st_upload(void *to, const void *from, int64_t bytes) { return st_runtime::write(to, from, bytes) ? 0 : 2; }
ST_EXPORT int32_t st_download(void *to, const void *from, int64_t bytes) { return st_runtime::read(to, from, bytes) ? 0 : 2; }
/* From memory of the device to memory of the device. */
ST_EXPORT int32_t st_copy(void *to, const void *from, int64_t bytes) {
  return bytes <= 0 || (st_runtime::copy(to, from, (size_t)bytes) && (!st_host::waits || st_runtime::finish())) ? 0 : 2;
}
ST_EXPORT int32_t st_zero(void *memory, int64_t bytes) { return bytes <= 0 || st_runtime::zero(memory, bytes) ? 0 : 2; }
/* Fills memory with an element, which is transferred once and then doubled on the device by copies. */
ST_EXPORT int32_t st_repeat(void *memory, const void *element, int64_t size, int64_t bytes) {
  if (bytes <= 0) return 0;
  bool right = st_runtime::write(memory, element, (size_t)size);
  for (int64_t done = size; right && done < bytes; done *= 2)
    right = st_runtime::copy((char *)memory + done, memory, (size_t)(done < bytes - done ? done : bytes - done));
  return right ? 0 : 2;
}
/* A moment in the device's work, and the seconds from one to a later one, which ends both. */
ST_EXPORT void *st_moment() { return st_runtime::moment(); }
ST_EXPORT double st_between(void *first, void *last) { return st_runtime::between(first, last); }
ST_EXPORT const char *st_trouble() { return st_runtime::trouble(); }
/* Loads kernels that were compiled apart from the host's part; 0, the driver's number of the error, or -1 without a driver. */
ST_EXPORT int32_t st_open(const void *image) { return st_runtime::open(image); }
/* The driver's number for the last error. */
ST_EXPORT int32_t st_code() { return st_runtime::code(); }
/* Everything from now on happens in a stream, null being the default one, and host code waits for its end or not. */
ST_EXPORT void st_use_stream(void *stream, int32_t waits) {
  st_runtime::use(stream);
  st_host::waits = waits;
}
/* From now on memory of the device that somebody else owns is used, or no longer used. */
ST_EXPORT void st_adopt(void *memory, int64_t bytes, int32_t writable) { st_runtime::adopt(memory, bytes, writable); }
ST_EXPORT void st_disown(void *memory) { st_runtime::disown(memory); }

/* Weak: a file with kernels of other names has none to time. */
ST_EXPORT __attribute__((weak)) int32_t st_kernel(void **arrays, int64_t *sizes, int64_t threads);

/* Seconds of each of some runs on the device. Before a run memory of `flushed` bytes is written, so that no operand is in a cache;
   zeroed: bytes of each array that are set to 0 as a part of the run; made: whether the kernel publishes the array. */
ST_EXPORT int32_t st_time(void **arrays, int64_t *sizes, int64_t threads, const int64_t *zeroed, const int64_t *made, int64_t count,
                          int64_t flushed, int64_t runs, double *seconds) {
  void *const other = flushed > 0 ? st_runtime::get((size_t)flushed) : nullptr;
  int32_t status = flushed > 0 && !other;
  const bool waited = st_host::waits;
  st_host::waits = false;
  for (int64_t run = 0; run < runs && !status; run++) {
    if (other && !st_runtime::zero(other, (size_t)flushed)) status = 2;
    void *const begin = st_runtime::moment();
    for (int64_t k = 0; k < count; k++)
      if (zeroed[k] > 0 && !st_runtime::zero(arrays[k], (size_t)zeroed[k])) status = 2;
    if (!status) status = st_kernel(arrays, sizes, threads);
    seconds[run] = st_runtime::between(begin, st_runtime::moment());
    if (!st_runtime::finish()) status = 2;
    for (int64_t k = 0; k < count && !status; k++)
      if (made[k]) st_release(arrays[k]);
  }
  st_host::waits = waited;
  if (other) st_runtime::put(other);
  return status;
}

/* Seconds of each of some copies from memory of the device to memory of the device: what bandwidths are compared with. */
ST_EXPORT int32_t st_copy_time(int64_t bytes, int64_t runs, double *seconds) {
  void *const from = st_runtime::get((size_t)bytes), *const to = st_runtime::get((size_t)bytes);
  int32_t status = !from || !to ? 1 : st_runtime::zero(from, (size_t)bytes) && st_runtime::zero(to, (size_t)bytes) ? 0 : 2;
  for (int64_t run = 0; run < runs && !status; run++) {
    void *const begin = st_runtime::moment();
    if (!st_runtime::copy(to, from, (size_t)bytes)) status = 2;
    seconds[run] = st_runtime::between(begin, st_runtime::moment());
  }
  if (!status && !st_runtime::finish()) status = 2;
  if (from) st_runtime::put(from);
  if (to) st_runtime::put(to);
  return status;
}

#endif
