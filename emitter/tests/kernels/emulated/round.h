// What cuda/round.h has, on a CPU.
#ifndef TESTS_EMULATED_ROUND_H
#define TESTS_EMULATED_ROUND_H

INLINE uint32_t pack_bf16(float low, float high) {
  return bf16_from_float(low) | (uint32_t)bf16_from_float(high) << 16;
}

INLINE uint32_t pack_f16(float low, float high) {
  return f16_from_float_portable(low) |
         (uint32_t)f16_from_float_portable(high) << 16;
}

#endif
