// Quantizes weights to superblocks of 4 or 5 bits: a weight is c * (D * s) - M * t.
// superblocks.h has how.

#include "superblocks.h"

// Results of rows: codes are [rows][k], units and those of minima are f16,
// [rows][k / 256 rounded up], scales and minima are [rows][k / 32].
typedef struct {
  int8_t *codes;
  uint16_t *unit, *least;
  int8_t *scales, *minima;
} results;

INLINE void store(const weight_rows *rows, const superblocks *of,
                  const bytes *codes, index row, index block, index lane,
                  const results *to) {
  const index at = row * divide_up(rows->k, BLOCK) + block;
  const index in_row = rows->k / GROUP;
  store_codes(rows, row, block, GROUP, lane, codes, to->codes);
  to->unit[at] = f16_from_float(of->D[lane]);
  to->least[at] = f16_from_float(of->M[lane]);
  for (index g = 0; g < IN_BLOCK && block * IN_BLOCK + g < in_row; ++g) {
    const index group = row * in_row + block * IN_BLOCK + g;
    to->scales[group] = (int8_t)of->s[lane + g];
    to->minima[group] = (int8_t)of->t[lane + g];
  }
}

// Quantizes rows: x is [rows][k], with k a multiple of 32, and importance is [k], the
// factor of the squared error of each input, about 1.
INLINE void quantize(const weight_rows *rows, const results *to, index bits,
                     index begin, index end) {
  const float most = (float)((1 << bits) - 1);
  const index blocks = divide_up(rows->k, BLOCK);
  for (index at = begin * blocks; at < end * blocks; at += BLOCKS) {
    weight_groups groups;
    superblocks of;
    bytes codes[GROUP];
    for (index b = 0; b < BLOCKS; ++b) {
      const weight_rows none = {rows->x, rows->type, rows->importance, 0};
      load_groups(at + b < end * blocks ? rows : &none, (at + b) / blocks,
                  (at + b) % blocks, GROUP, b * IN_BLOCK, &groups);
    }
    quantize_two(&groups, most, &of, codes);
    for (index b = 0; b < BLOCKS && at + b < end * blocks; ++b)
      store(rows, &of, codes, (at + b) / blocks, (at + b) % blocks,
            b * IN_BLOCK, to);
  }
}

#define QUANTIZE_SUPERBLOCKS(name, element, element_type)                      \
  void quantize_superblocks_##name(                                            \
      const element *x, const float *importance, int8_t *codes,                \
      uint16_t *unit, uint16_t *least, int8_t *scales, int8_t *minima,         \
      index k, index bits, index row_begin, index row_end) {                   \
    const weight_rows rows = {x, element_type, importance, k};                 \
    const results to = {codes, unit, least, scales, minima};                   \
    quantize(&rows, &to, bits, row_begin, row_end);                            \
  }

QUANTIZE_SUPERBLOCKS(f32, float, ELEMENT_F32)
QUANTIZE_SUPERBLOCKS(bf16, uint16_t, ELEMENT_BF16)
QUANTIZE_SUPERBLOCKS(f16, uint16_t, ELEMENT_F16)
