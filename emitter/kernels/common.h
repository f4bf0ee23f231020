// Shared types and inline helpers for the inference kernels.
//
// Everything here must compile freestanding: no libc, no libm, and nothing that
// the compiler would turn into a library call.
#ifndef KERNELS_COMMON_H
#define KERNELS_COMMON_H

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

// Kernels rely on helpers being specialised on constant arguments (row counts,
// element types), so inlining is part of their meaning and not a hint.
#define INLINE static inline __attribute__((always_inline))

typedef int64_t index;

// How matmul_q8's activations are stored. AVX2 multiplies 16-bit pairs
// (vpmaddwd), the dot products of AVX-512 and NEON take bytes.
#if defined(__AVX512VNNI__) || \
    (!defined(__AVX2__) && defined(__ARM_FEATURE_DOTPROD))
typedef int8_t act_q8;
#else
typedef int16_t act_q8;
#endif

INLINE index min_index(index a, index b) { return a < b ? a : b; }
INLINE index max_index(index a, index b) { return a > b ? a : b; }
INLINE index divide_up(index a, index b) { return (a + b - 1) / b; }
INLINE index clamp_index(index x, index low, index high) {
  return max_index(low, min_index(x, high));
}

// Rows of products come as [batch][tokens]. Those from lengths[b] on are padding:
// nothing is computed for them, and they give zeros.
INLINE index real_rows(const int32_t *lengths, index b, index tokens) {
  return clamp_index(lengths[b], 0, tokens);
}

// Columns begin..end of padding, the last of which may be past n.
INLINE void clear_padding_rows(float *out, index rows, index n, index begin,
                               index end) {
  for (index i = 0; i < rows; ++i)
    for (index j = begin; j < min_index(end, n); ++j)
      out[i * n + j] = 0.0f;
}

INLINE uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

INLINE float float_of(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

INLINE float float_from_bf16(uint16_t x) { return float_of((uint32_t)x << 16); }

// Written out in integers because compilers lower _Float16 to a library call
// on targets without half-precision conversion.
INLINE float float_from_f16_portable(uint16_t x) {
  const uint32_t sign = (uint32_t)(x & 0x8000u) << 16;
  const uint32_t magnitude = x & 0x7fffu;
  if (magnitude >= 0x7c00u)
    return float_of(sign | 0x7f800000u | magnitude << 13);
  if (magnitude < 0x0400u) {
    // Subnormal halves are exact multiples of 2^-24.
    const float value = (float)(int32_t)magnitude * 0x1p-24f;
    return float_of(sign | bits_of(value));
  }
  return float_of(sign | ((magnitude << 13) + (112u << 23)));
}

INLINE float float_from_f16(uint16_t x) {
#if defined(__NVPTX__)
  _Float16 half;
  __builtin_memcpy(&half, &x, sizeof half);
  return (float)half;
#elif defined(__F16C__)
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(x)));
#elif defined(__ARM_NEON)
  __fp16 half;
  __builtin_memcpy(&half, &x, sizeof half);
  return (float)half;
#else
  return float_from_f16_portable(x);
#endif
}

// Adding 1.5 * 2^23 leaves the nearest integer (ties to even) in the low bits
// of the sum's mantissa, for any |x| < 2^22 and without a conversion that
// would be undefined for NaN.
#define ROUNDING_MAGIC 12582912.0f
#define ROUNDING_MAGIC_BITS 0x4b400000u

INLINE int32_t round_to_int(float x) {
  return (int32_t)(bits_of(x + ROUNDING_MAGIC) - ROUNDING_MAGIC_BITS);
}

// 2^x for x <= 126. Relative error below 2e-7 for x >= -126; results below the
// normal range are between 0 and 2^-125, and exactly 0 from x = -127 down to
// -inf: at the clamp the polynomial is exactly 1, and the exponent arithmetic
// turns 1.0 into +0. A NaN that arithmetic made stays one; its low bits are zero.
#define EXP2_LOWEST (-127.0f)
#define EXP2_C1 6.931472028550421e-1f
#define EXP2_C2 2.402264791363012e-1f
#define EXP2_C3 5.550332471162809e-2f
#define EXP2_C4 9.618437357674640e-3f
#define EXP2_C5 1.339887440266574e-3f
#define EXP2_C6 1.535336188319500e-4f
#define LOG2_E 1.4426950408889634f

INLINE float exp2_poly(float x) {
  const float clamped = x < EXP2_LOWEST ? EXP2_LOWEST : x;
  const float shifted = clamped + ROUNDING_MAGIC;
  const float r = clamped - (shifted - ROUNDING_MAGIC);
  float p = EXP2_C6;
  p = p * r + EXP2_C5;
  p = p * r + EXP2_C4;
  p = p * r + EXP2_C3;
  p = p * r + EXP2_C2;
  p = p * r + EXP2_C1;
  p = p * r + 1.0f;
  return float_of(bits_of(p) + (bits_of(shifted) << 23));
}

// The cache and weight element types that share one implementation each. Those
// of Q8 are steps of a scale that lies elsewhere; they load as whole numbers.
typedef enum { ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16, ELEMENT_Q8 } element_type;

INLINE index element_size(element_type type) {
  return type == ELEMENT_F32 ? 4 : type == ELEMENT_Q8 ? 1 : 2;
}

INLINE const void *element_at(const void *base, element_type type, index i) {
  return (const char *)base + i * element_size(type);
}

INLINE float load_element(const void *base, element_type type, index i) {
  if (type == ELEMENT_F32)
    return ((const float *)base)[i];
  if (type == ELEMENT_Q8)
    return ((const int8_t *)base)[i];
  const uint16_t bits = ((const uint16_t *)base)[i];
  return type == ELEMENT_BF16 ? float_from_bf16(bits) : float_from_f16(bits);
}

#if defined(__AVX2__)

#define EXP2_MOST_VECTORS 4

// Hints that `bytes_ahead` past p will be read soon. Beyond the end of a
// tensor the hint is harmless: prefetches do not fault.
INLINE void prefetch(const void *p, index bytes_ahead) {
  _mm_prefetch((const char *)p + bytes_ahead, _MM_HINT_T0);
}

INLINE float sum_lanes(__m256 x) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

INLINE float max_lanes(__m256 x) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

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

// Lets no instruction that makes one of the vectors move past one that uses
// another: compilers like to finish one chain before they begin the next.
INLINE void in_step(int count, __m256 x[]) {
  if (count == 4)
    __asm__("" : "+x"(x[0]), "+x"(x[1]), "+x"(x[2]), "+x"(x[3]));
}

// exp2_poly of all lanes of `count` vectors, in step: done one after the
// other, their long chains fill the processor's queues and leave its units
// idle.
INLINE void exp2_vectors(int count, __m256 x[]) {
  const float coefficients[] = {EXP2_C5, EXP2_C4, EXP2_C3,
                                EXP2_C2, EXP2_C1, 1.0f};
  const __m256 magic = _mm256_set1_ps(ROUNDING_MAGIC);
  __m256 shifted[EXP2_MOST_VECTORS], p[EXP2_MOST_VECTORS];
#pragma clang loop unroll(full)
  for (int i = 0; i < count; ++i) {
    // maxps returns its second operand for NaN, which keeps NaN visible.
    x[i] = _mm256_max_ps(_mm256_set1_ps(EXP2_LOWEST), x[i]);
    shifted[i] = _mm256_add_ps(x[i], magic);
  }
  in_step(count, shifted);
#pragma clang loop unroll(full)
  for (int i = 0; i < count; ++i) {
    x[i] = _mm256_sub_ps(x[i], _mm256_sub_ps(shifted[i], magic));
    p[i] = _mm256_set1_ps(EXP2_C6);
  }
#pragma clang loop unroll(full)
  for (int c = 0; c < 6; ++c) {
#pragma clang loop unroll(full)
    for (int i = 0; i < count; ++i)
      p[i] = _mm256_fmadd_ps(p[i], x[i], _mm256_set1_ps(coefficients[c]));
    in_step(count, p);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < count; ++i)
    x[i] = _mm256_castsi256_ps(_mm256_add_epi32(
        _mm256_castps_si256(p[i]),
        _mm256_slli_epi32(_mm256_castps_si256(shifted[i]), 23)));
}

INLINE __m256 exp2_lanes(__m256 x) {
  exp2_vectors(1, &x);
  return x;
}

// Eight consecutive elements as floats.
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

// Sixteen consecutive elements as two vectors, in an order that suits the
// type: bf16 comes as the even elements and the odd ones, which takes half the
// work of widening them in place. put_in_order() sorts such a pair.
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

INLINE void put_in_order(element_type type, __m256 pair[2]) {
  if (type != ELEMENT_BF16)
    return;
  const __m256 low = _mm256_unpacklo_ps(pair[0], pair[1]);
  const __m256 high = _mm256_unpackhi_ps(pair[0], pair[1]);
  pair[0] = _mm256_permute2f128_ps(low, high, 0x20);
  pair[1] = _mm256_permute2f128_ps(low, high, 0x31);
}

// Where load_paired puts element i of its sixteen.
INLINE index paired_place(element_type type, index i) {
  return type == ELEMENT_BF16 ? i / 2 + i % 2 * 8 : i;
}

#elif defined(__ARM_NEON)

// Four consecutive elements as floats.
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

// The four bytes at p, in every lane.
INLINE int8x16_t broadcast_bytes(const int8_t *p) {
  int32_t four;
  __builtin_memcpy(&four, p, sizeof four);
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

#endif // __AVX2__, __ARM_NEON

#endif // KERNELS_COMMON_H
