// Emulation of the primitives that stream weights, on a CPU.
#ifndef TESTS_EMULATED_STREAM_H
#define TESTS_EMULATED_STREAM_H

INLINE index grid_dim(void) { return gpu.blocks; }

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

#endif
