// Symmetric 8-bit quantization of activations, by row and by group of 32.
//
// The largest magnitude is found among the bit patterns of |x| as integers, which
// order like the floats, with inf and NaN as the largest. A row (or group) with inf
// or NaN gets q = 0 and a scale of inf or NaN. So its products are NaN, and no
// conversion is out of range.

#include "quantize.h"

// Quantizes rows: x and q are [rows][k], scale is [rows].
void quantize_rows(const float *x, act_q8 *q, float *scale, index k,
                   index row_begin, index row_end) {
  for (index row = row_begin; row < row_end; ++row)
    scale[row] = quantize_whole_row(x + row * k, q + row * k, k);
}

// Quantizes groups of 32: x and q are [rows][k], scale and offset are
// [rows][k / 32], and k is a multiple of 32.
// offset = scale * 8 * (sum of the group's q).
void quantize_groups(const float *x, int8_t *q, float *scale, float *offset,
                     index k, index row_begin, index row_end) {
  const index groups = k / GROUP;
  for (index row = row_begin; row < row_end; ++row)
    quantize_groups_of(x + row * k, q + row * k, scale + row * groups,
                       offset + row * groups, k);
}
