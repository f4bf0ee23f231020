// Symmetric 8-bit quantization of activations, by row and by group of 32.
// quantize.h documents how.

#include "kernels.h"
#include "quantize.h"

// ggml's Q4_0 stores weights plus 8, which the first summand of a group corrects.
#define NIBBLE_ZERO 8

#if defined(__AVX2__)

INLINE void quantize_row(const float *x, act_q8 *q, float inverse, index k) {
  index i = 0;
#if defined(__AVX512VNNI__)
  for (; i + GROUP <= k; i += GROUP)
    quantize_group(x + i, q + i, inverse);
#else
  for (; i + 16 <= k; i += 16)
    _mm256_storeu_si256((__m256i *)(q + i),
                        pack_i16(quantize_lanes(x + i, inverse),
                                 quantize_lanes(x + i + 8, inverse)));
#endif
  for (; i < k; ++i)
    q[i] = (act_q8)quantize_one(x[i], inverse);
}

#else

INLINE void quantize_row(const float *x, act_q8 *q, float inverse, index k) {
  for (index i = 0; i < k; ++i)
    q[i] = (act_q8)quantize_one(x[i], inverse);
}

#endif

// Quantizes rows: x and q are [rows][k], scale is [rows].
void quantize_rows(const float *x, act_q8 *q, float *scale, index k,
                   index row_begin, index row_end) {
  for (index row = row_begin; row < row_end; ++row) {
    const float *source = x + row * k;
    act_q8 *target = q + row * k;
    const quantizer by = quantizer_for(absmax_bits(source, k));
    scale[row] = by.scale;
    if (by.inverse != 0.0f) {
      quantize_row(source, target, by.inverse, k);
    } else {
      for (index i = 0; i < k; ++i)
        target[i] = 0;
    }
  }
}

// Quantizes groups of 32: x and q are [rows][k], scale and start are
// [rows][k / 32], and k is a multiple of 32. start = -8 * (sum of the group's q).
void quantize_groups(const float *x, int8_t *q, float *scale, int32_t *start,
                     index k, index row_begin, index row_end) {
  const index first = row_begin * (k / GROUP);
  const index last = row_end * (k / GROUP);
  for (index group = first; group < last; ++group) {
    const float *source = x + group * GROUP;
    int8_t *target = q + group * GROUP;
    const quantizer by = quantizer_for(absmax_bits(source, GROUP));
    int32_t sum = 0;
    if (by.inverse != 0.0f) {
      sum = quantize_group(source, target, by.inverse);
    } else {
      for (index i = 0; i < GROUP; ++i)
        target[i] = 0;
    }
    scale[group] = by.scale;
    start[group] = -NIBBLE_ZERO * sum;
  }
}
