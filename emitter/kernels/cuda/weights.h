// Weights as products of a single row read them.
//
//   weights  [outputs][inputs], in the checkpoint's layout, or quantized: Q8 is int8_t
//            with a float scale per output; Q4 is groups of 32 inputs in 16 bytes,
//            where byte i holds input i low and 16 + i high, plus 8, with an f16 scale
//            per group; or in other groups, see groups.h
#ifndef KERNELS_CUDA_WEIGHTS_H
#define KERNELS_CUDA_WEIGHTS_H

#include "groups.h"

enum { MAX_INPUTS = 32 }; // in 16 bytes

// Returns how many inputs 16 bytes hold.
INLINE int inputs_in_16_bytes(weight_type type) {
  switch (type) {
  case WEIGHT_F32: return 4;
  case WEIGHT_BF16:
  case WEIGHT_F16: return 8;
  case WEIGHT_Q8:
  case WEIGHT_G8:
  case WEIGHT_E4M3: return 16;
  case WEIGHT_Q4:
  case WEIGHT_G4:
  case WEIGHT_G5:
  case WEIGHT_G6:
  case WEIGHT_F4: return 32;
  }
  return 0;
}

// Converts four bytes to floats, minus `zero`. As the lowest byte of 2^23 they need no
// conversion, which would be slower.
INLINE void whole_numbers(uint32_t bytes, float zero, float w[4]) {
  UNROLL for (uint32_t e = 0; e < 4; ++e)
    w[e] = float_of(permute_bytes(bytes, 0x4b000000u, 0x7550u | e)) -
           (0x1p23f + zero);
}

// Converts four bytes in E4M3.
INLINE void e4m3_numbers(uint32_t bytes, float w[4]) {
  UNROLL for (uint32_t e = 0; e < 4; ++e)
    w[e] = number_of_e4m3(permute_bytes(bytes, 0, e << 12 | 0x0444u));
}

// Converts inputs 4 * part to 4 * part + 3 of 16 bytes.
INLINE void widen(weight_type type, uint4_t words, int part, float w[4]) {
  switch (type) {
  case WEIGHT_F32:
    UNROLL for (int e = 0; e < 4; ++e)
      w[e] = float_of(words[e]);
    break;
  case WEIGHT_BF16:
    UNROLL for (int e = 0; e < 2; ++e) {
      w[2 * e] = float_of(words[2 * part + e] << 16);
      w[2 * e + 1] = float_of(words[2 * part + e] & 0xffff0000u);
    }
    break;
  case WEIGHT_F16:
    UNROLL for (int e = 0; e < 2; ++e) {
      w[2 * e] = float_from_f16((uint16_t)words[2 * part + e]);
      w[2 * e + 1] = float_from_f16((uint16_t)(words[2 * part + e] >> 16));
    }
    break;
  case WEIGHT_Q8: whole_numbers(words[part] ^ 0x80808080u, 128.0f, w); break;
  case WEIGHT_Q4:
    whole_numbers(words[part % 4] >> 4 * (part / 4) & 0x0f0f0f0fu, 8.0f, w);
    break;
  case WEIGHT_E4M3: e4m3_numbers(words[part], w); break;
  case WEIGHT_F4: numbers_of_codes(words[part % 4], part / 4 * 4, w); break;
  default: break; // other groups are multiplied as whole numbers
  }
}

#endif
