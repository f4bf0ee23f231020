// Emulation of the primitives that stream weights, on a CPU.
#ifndef TESTS_EMULATED_STREAM_H
#define TESTS_EMULATED_STREAM_H

INLINE index grid_dim(void) { return gpu.blocks; }
INLINE float rsqrt_approx(float x) { return 1.0f / sqrtf(x); }
INLINE void wait_for_previous_kernel(void) {}
INLINE void start_next_kernel(void) {}

INLINE uint4_t load_stream(const void *p, int valid) {
  return valid ? *(const uint4_t *)p : (uint4_t){0};
}

INLINE uint4_t load_written_16_bytes(const void *p, int valid) {
  return load_stream(p, valid);
}

INLINE uint4_t load_16_bytes(const void *p, int valid) {
  return load_stream(p, valid);
}

INLINE uint4_t load_8_bytes(const void *p, int valid) {
  const uint32_t *words = p;
  return valid ? (uint4_t){words[0], words[1], 0, 0} : (uint4_t){0};
}

INLINE uint32_t load_4_bytes(const void *p, int valid) {
  return valid ? *(const uint32_t *)p : 0;
}

INLINE uint32_t load_2_bytes(const void *p, int valid) {
  return valid ? *(const uint16_t *)p : 0;
}

INLINE uint32_t select_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = (uint64_t)b << 32 | a;
  uint32_t selected = 0;
  for (int i = 0; i < 4; ++i)
    selected |= (uint32_t)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return selected;
}

#endif
