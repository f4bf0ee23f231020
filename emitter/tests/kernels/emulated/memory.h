// What cuda/memory.h has, on the emulated GPU of emulated/cuda.h.
#ifndef TESTS_EMULATED_MEMORY_H
#define TESTS_EMULATED_MEMORY_H

// Lanes of a warp wait equally often. So the others have come here when this one
// resumes.
static inline void syncwarp(void) { gpu_yield(); }

static inline uint32_t shuffle_u32(uint32_t x, int lane) {
  const index thread = gpu.thread;
  const unsigned at = gpu.exchanges[thread]++ % 2;
  gpu.shuffled[thread][at] = x;
  gpu_yield();
  return gpu.shuffled[thread / 32 * 32 + lane][at];
}

INLINE uint4_t load_16_if(const void *p, int there) {
  uint4_t x = {0, 0, 0, 0};
  if (there)
    __builtin_memcpy(&x, p, sizeof x);
  return x;
}

INLINE uint2_t load_8_if(const void *p, int there) {
  uint2_t x = {0, 0};
  if (there)
    __builtin_memcpy(&x, p, sizeof x);
  return x;
}

INLINE uint32_t load_4_if(const void *p, int there) {
  uint32_t x = 0;
  if (there)
    __builtin_memcpy(&x, p, sizeof x);
  return x;
}

INLINE uint16_t load_2_if(const void *p, int there) {
  uint16_t x = 0;
  if (there)
    __builtin_memcpy(&x, p, sizeof x);
  return x;
}

// Blocks run one after the other.
INLINE int32_t atomic_add_ordered(int32_t *to, int32_t x) {
  const int32_t before = *to;
  *to = before + x;
  return before;
}

INLINE uint32_t atomic_count_ordered(uint32_t *to, uint32_t end) {
  const uint32_t before = *to;
  *to = before + 1 < end ? before + 1 : 0;
  return before;
}

#endif
