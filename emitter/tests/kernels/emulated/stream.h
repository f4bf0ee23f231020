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

INLINE int32_t dot_signed(uint32_t a, uint32_t b, int32_t sum) {
  for (int i = 0; i < 4; ++i)
    sum += (int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i);
  return sum;
}

INLINE int32_t dot_unsigned(uint32_t a, uint32_t b, int32_t sum) {
  for (int i = 0; i < 4; ++i)
    sum += (int8_t)(a >> 8 * i) * (uint8_t)(b >> 8 * i);
  return sum;
}

#endif
