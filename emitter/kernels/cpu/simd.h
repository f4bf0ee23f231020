// Vector helpers for AVX2 and NEON.
#ifndef KERNELS_CPU_SIMD_H
#define KERNELS_CPU_SIMD_H

#include "../common.h"

// Prefetches the cache line `bytes_ahead` past p, which may lie beyond the end of
// a tensor: prefetches do not fault.
INLINE void prefetch(const void *p, index bytes_ahead) {
  __builtin_prefetch((const char *)p + bytes_ahead);
}

// Prefetches a cache line into the second-level cache.
INLINE void prefetch_later(const void *p) { __builtin_prefetch(p, 0, 2); }

#if defined(__AVX2__)

INLINE int32_t sum_lanes_i32(__m256i x) {
  __m128i s =
      _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

INLINE uint32_t max_lanes_u32(__m256i x) {
  __m128i s =
      _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  s = _mm_max_epu32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_max_epu32(s, _mm_shuffle_epi32(s, 0xb1));
  return (uint32_t)_mm_cvtsi128_si32(s);
}

// Loads eight consecutive elements as floats.
INLINE __m256 load_lanes(const void *base, element_type type, index i) {
  if (type == ELEMENT_F32)
    return _mm256_loadu_ps((const float *)base + i);
  if (type == ELEMENT_Q8)
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(
        _mm_loadl_epi64((const __m128i *)((const int8_t *)base + i))));
  const __m128i halves =
      _mm_loadu_si128((const __m128i *)((const uint16_t *)base + i));
  if (type == ELEMENT_F16)
    return _mm256_cvtph_ps(halves);
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

// Loads sixteen consecutive elements as two vectors, in the cheapest order: bf16
// gives the even elements and the odd ones, which takes half the work of widening
// them in order. unpair() restores the order.
INLINE void load_paired(const void *base, element_type type, index i,
                        __m256 pair[2]) {
  if (type != ELEMENT_BF16) {
    pair[0] = load_lanes(base, type, i);
    pair[1] = load_lanes(base, type, i + 8);
    return;
  }
  const __m256i both =
      _mm256_loadu_si256((const __m256i *)((const uint16_t *)base + i));
  pair[0] = _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
  pair[1] = _mm256_castsi256_ps(
      _mm256_and_si256(both, _mm256_set1_epi32((int)0xffff0000u)));
}

INLINE void unpair(element_type type, __m256 pair[2]) {
  if (type != ELEMENT_BF16)
    return;
  const __m256 low = _mm256_unpacklo_ps(pair[0], pair[1]);
  const __m256 high = _mm256_unpackhi_ps(pair[0], pair[1]);
  pair[0] = _mm256_permute2f128_ps(low, high, 0x20);
  pair[1] = _mm256_permute2f128_ps(low, high, 0x31);
}

#elif defined(__ARM_NEON)

// Loads four consecutive elements as floats.
INLINE float32x4_t load_quad(const void *base, element_type type, index i) {
  if (type == ELEMENT_F32)
    return vld1q_f32((const float *)base + i);
  if (type == ELEMENT_Q8) {
    int32_t four;
    __builtin_memcpy(&four, (const int8_t *)base + i, sizeof four);
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
  }
  const uint16x4_t halves = vld1_u16((const uint16_t *)base + i);
  if (type == ELEMENT_F16)
    return vcvt_f32_f16(vreinterpret_f16_u16(halves));
  return vreinterpretq_f32_u32(vshll_n_u16(halves, 16));
}

// Broadcasts the four bytes at p to every lane.
INLINE int8x16_t broadcast_bytes(const int8_t *p) {
  int32_t four;
  __builtin_memcpy(&four, p, sizeof four);
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

#endif // __AVX2__, __ARM_NEON

#endif // KERNELS_CPU_SIMD_H
