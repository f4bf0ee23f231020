// Quantizes weights to superblocks of 6 bits: a weight is (c - 32) * (D * s), with an
// s for each 16 inputs.
// halves.h has how.

#include "halves.h"

// Quantizes rows: x is [rows][k], with k a multiple of 32, and importance is [k], the
// factor of the squared error of each input, about 1. codes are [rows][k], units are
// f16, [rows][k / 256 rounded up], and scales are [rows][k / 16].
INLINE void quantize(const weight_rows *rows, int8_t *codes, uint16_t *unit,
                     int8_t *scales, index begin, index end) {
  const index blocks = divide_up(rows->k, BLOCK), in_row = rows->k / HALF;
  for (index row = begin; row < end; ++row) {
    for (index block = 0; block < blocks; ++block) {
      weight_groups groups;
      bytes s, coded[HALF];
      load_groups(rows, row, block, HALF, 0, &groups);
      unit[row * blocks + block] =
          f16_from_float(quantize_one(&groups, &s, coded));
      store_codes(rows, row, block, HALF, 0, coded, codes);
      for (index g = 0; g < GROUPS && block * GROUPS + g < in_row; ++g)
        scales[row * in_row + block * GROUPS + g] = s[g];
    }
  }
}

#define QUANTIZE_HALVES(name, element, element_type)                           \
  void quantize_halves_##name(const element *x, const float *importance,       \
                              int8_t *codes, uint16_t *unit, int8_t *scales,   \
                              index k, index row_begin, index row_end) {       \
    const weight_rows rows = {x, element_type, importance, k};                 \
    quantize(&rows, codes, unit, scales, row_begin, row_end);                  \
  }

QUANTIZE_HALVES(f32, float, ELEMENT_F32)
QUANTIZE_HALVES(bf16, uint16_t, ELEMENT_BF16)
QUANTIZE_HALVES(f16, uint16_t, ELEMENT_F16)
