// Symmetric 8-bit quantization of floats in groups of 32 and more.
//
// The largest magnitude is found among the bit patterns of |x| as integers, which
// order like the floats, with inf and NaN as the largest. A group with inf or NaN
// gets q = 0 and a scale of inf or NaN. So its products are NaN, and no conversion
// is out of range.

#ifndef KERNELS_CPU_QUANTIZE_H
#define KERNELS_CPU_QUANTIZE_H

#include "kernels.h"
#include "simd.h"

#define GROUP 32
#define HALF 16 // of a group
#define Q_MAX 127.0f

#define ABS_MASK 0x7fffffffu
#define INF_BITS 0x7f800000u
// 2^-120: smaller rows count as zero, because 127 / absmax would overflow.
#define SMALLEST_ABSMAX_BITS 0x03800000u

typedef struct {
  float scale;   // value of one step of q
  float inverse; // steps per unit; 0 if every q is 0
} quantizer;

INLINE quantizer quantizer_for(uint32_t absmax_bits) {
  const float absmax = float_of(absmax_bits);
  if (absmax_bits >= INF_BITS)
    return (quantizer){absmax, 0.0f};
  if (absmax_bits < SMALLEST_ABSMAX_BITS)
    return (quantizer){0.0f, 0.0f};
  return (quantizer){absmax / Q_MAX, Q_MAX / absmax};
}

INLINE uint32_t absmax_bits_tail(const float *x, index begin, index end,
                                 uint32_t largest) {
  for (index i = begin; i < end; ++i) {
    const uint32_t bits = bits_of(x[i]) & ABS_MASK;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

INLINE int32_t quantize_one(float x, float inverse) {
  const float scaled = x * inverse;
  return round_to_int(scaled);
}

#if defined(__AVX2__)

INLINE __m256i abs_bits(const float *x) {
  return _mm256_and_si256(_mm256_loadu_si256((const __m256i *)x),
                          _mm256_set1_epi32((int)ABS_MASK));
}

INLINE uint32_t absmax_bits(const float *x, index k) {
  __m256i largest0 = _mm256_setzero_si256();
  __m256i largest1 = _mm256_setzero_si256();
  index i = 0;
  for (; i + 16 <= k; i += 16) {
    largest0 = _mm256_max_epu32(largest0, abs_bits(x + i));
    largest1 = _mm256_max_epu32(largest1, abs_bits(x + i + 8));
  }
  const uint32_t largest = max_lanes_u32(_mm256_max_epu32(largest0, largest1));
  return absmax_bits_tail(x, i, k, largest);
}

INLINE __m256i quantize_lanes(const float *x, float inverse) {
  return _mm256_cvtps_epi32(
      _mm256_mul_ps(_mm256_loadu_ps(x), _mm256_set1_ps(inverse)));
}

// Packs eight and eight lanes in order. The instruction interleaves 128-bit halves.
INLINE __m256i pack_i16(__m256i low, __m256i high) {
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
}

// Stores the sum of each operand, which fit in 16 bits.
INLINE void store_sums(__m256i low, __m256i high, int16_t *sums) {
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i pairs = _mm256_hadd_epi32(_mm256_madd_epi16(low, ones),
                                          _mm256_madd_epi16(high, ones));
  __m128i both = _mm_add_epi32(_mm256_castsi256_si128(pairs),
                               _mm256_extracti128_si256(pairs, 1));
  both = _mm_hadd_epi32(both, both);
  const int32_t word = _mm_cvtsi128_si32(_mm_packs_epi32(both, both));
  __builtin_memcpy(sums, &word, sizeof word);
}

// Quantizes 32 values. Sets `sums`, unless it is null, to the sum of each half.
INLINE void quantize_group(const float *x, int8_t *q, float inverse,
                           int16_t *sums) {
  const __m256i low =
      pack_i16(quantize_lanes(x, inverse), quantize_lanes(x + 8, inverse));
  const __m256i high = pack_i16(quantize_lanes(x + 16, inverse),
                                quantize_lanes(x + 24, inverse));
  const __m256i bytes =
      _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
  _mm256_storeu_si256((__m256i *)q, bytes);
  if (sums)
    store_sums(low, high, sums);
}

INLINE void quantize_row(const float *x, act_q8 *q, float inverse, index k) {
  index i = 0;
#if defined(__AVX512VNNI__)
  for (; i + GROUP <= k; i += GROUP)
    quantize_group(x + i, q + i, inverse, NULL);
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

INLINE uint32_t absmax_bits(const float *x, index k) {
  return absmax_bits_tail(x, 0, k, 0);
}

INLINE void quantize_row(const float *x, act_q8 *q, float inverse, index k) {
  for (index i = 0; i < k; ++i)
    q[i] = (act_q8)quantize_one(x[i], inverse);
}

INLINE void quantize_group(const float *x, int8_t *q, float inverse,
                           int16_t *sums) {
  for (index half = 0; half < GROUP / HALF; ++half) {
    int32_t sum = 0;
    for (index i = half * HALF; i < half * HALF + HALF; ++i) {
      const int32_t value = quantize_one(x[i], inverse);
      q[i] = (int8_t)value;
      sum += value;
    }
    if (sums)
      sums[half] = (int16_t)sum;
  }
}

#endif

// Quantizes a row of k elements. Returns its scale.
INLINE float quantize_whole_row(const float *x, act_q8 *q, index k) {
  const quantizer by = quantizer_for(absmax_bits(x, k));
  if (by.inverse != 0.0f) {
    quantize_row(x, q, by.inverse, k);
  } else {
    for (index i = 0; i < k; ++i)
      q[i] = 0;
  }
  return by.scale;
}

// Quantizes a group. Sets `sums` to the sum of each half of q.
INLINE void quantize_whole_group(const float *x, int8_t *q, float *scale,
                                 int16_t *sums) {
  const quantizer by = quantizer_for(absmax_bits(x, GROUP));
  *scale = by.scale;
  if (by.inverse != 0.0f) {
    quantize_group(x, q, by.inverse, sums);
    return;
  }
  for (index i = 0; i < GROUP; ++i)
    q[i] = 0;
  sums[0] = sums[1] = 0;
}

// Rows in groups, each as the sum of `terms` quantized rows: q is [rows][terms][k],
// scale is [rows][terms][k / 32], sums is [rows][terms][k / 16]. The first term is the
// row, the second is what the first leaves of it. Two have the precision of 16 bits.
typedef struct {
  int8_t *q;
  float *scale;
  int16_t *sums;
  index k, terms;
} quantized_rows;

// Quantizes elements first..first + count of a row, which begin at x, in whole groups.
INLINE void quantize_groups_of(const float *x, const quantized_rows *to,
                               index row, index first, index count) {
  for (index i = 0; i < count; i += GROUP) {
    float rest[GROUP];
    __builtin_memcpy(rest, x + i, sizeof rest);
    for (index term = 0; term < to->terms; ++term) {
      const index at = (row * to->terms + term) * to->k + first + i;
      int8_t *q = to->q + at;
      float *scale = to->scale + at / GROUP;
      quantize_whole_group(rest, q, scale, to->sums + at / HALF);
      if (term + 1 == to->terms)
        break;
      for (index j = 0; j < GROUP; ++j)
        rest[j] -= *scale * (float)q[j];
    }
  }
}

#endif // KERNELS_CPU_QUANTIZE_H
