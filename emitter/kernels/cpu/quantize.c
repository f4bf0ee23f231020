// Symmetric 8-bit quantization of activations, by row and by group of 32.
// quantize.h documents how.

#include "quantize.h"

// Quantizes rows: x and q are [rows][k], scale is [rows].
void quantize_rows(const float *x, act_q8 *q, float *scale, index k,
                   index row_begin, index row_end) {
  for (index row = row_begin; row < row_end; ++row)
    scale[row] = quantize_whole_row(x + row * k, q + row * k, k);
}

// Quantizes groups of 32: x is [rows][k], k is a multiple of 32, and sums are those of q
// over each half of a group.
void quantize_groups(const float *x, int8_t *q, float *scale, int16_t *sums,
                     index k, index terms, index row_begin, index row_end) {
  const quantized_rows to = {q, scale, sums, k, terms};
  for (index row = row_begin; row < row_end; ++row)
    quantize_groups_of(x + row * k, &to, row, 0, k);
}
