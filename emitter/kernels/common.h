// Types and inline helpers of all kernels.
//
// Everything here compiles freestanding: no libc, no libm, and nothing that the
// compiler turns into a library call.
#ifndef KERNELS_COMMON_H
#define KERNELS_COMMON_H

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

// Kernels rely on helpers being specialized for constant arguments, such as row
// counts and element types. So inlining is a requirement and not a hint. Only
// tests of what is not optimized replace the macro.
#ifndef INLINE
#define INLINE static inline __attribute__((always_inline))
#endif

typedef int64_t index;

INLINE index min_index(index a, index b) { return a < b ? a : b; }
INLINE index max_index(index a, index b) { return a > b ? a : b; }
INLINE index divide_up(index a, index b) { return (a + b - 1) / b; }
INLINE index clamp_index(index x, index low, index high) {
  return max_index(low, min_index(x, high));
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

// Uses integers, because compilers lower _Float16 to a library call on targets
// without half-precision conversion.
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

// Rounds to the nearest, ties to even. NaN gives NaN.
INLINE uint16_t bf16_from_float(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const int is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return (uint16_t)(is_nan ? bits >> 16 | 0x40u : rounded);
}

INLINE uint16_t f16_from_float_portable(float x) {
  const uint32_t sign = bits_of(x) >> 16 & 0x8000u;
  const uint32_t magnitude = bits_of(x) & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return (uint16_t)(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) // 65520 and more round to inf
    return (uint16_t)(sign | 0x7c00u);
  if (magnitude < 0x38800000u) // subnormal halves are multiples of 2^-24
    // The sum's last place is 2^-24, so that the addition rounds.
    return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) & 0x7ffu));
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return (uint16_t)(sign | ((rounded - (112u << 23)) >> 13));
}

// Rounds to the nearest, ties to even. NaN gives NaN.
INLINE uint16_t f16_from_float(float x) {
#if defined(__F16C__)
  return (uint16_t)_mm_cvtsi128_si32(
      _mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__ARM_NEON)
  const __fp16 half = (__fp16)x;
  uint16_t bits;
  __builtin_memcpy(&bits, &half, sizeof bits);
  return bits;
#else
  return f16_from_float_portable(x);
#endif
}

// For |x| < 2^22, adding 1.5 * 2^23 leaves the nearest integer (ties to even) in
// the low bits of the mantissa. A conversion would be undefined for NaN.
#define ROUNDING_MAGIC 12582912.0f
#define ROUNDING_MAGIC_BITS 0x4b400000u

INLINE int32_t round_to_int(float x) {
  return (int32_t)(bits_of(x + ROUNDING_MAGIC) - ROUNDING_MAGIC_BITS);
}

// Returns 2^x for x <= 126, with a relative error below 2e-7 for x >= -126.
//
// Results below the normal range are between 0 and 2^-125. From x = -127 down to
// -inf they are exactly 0: at the clamp the polynomial is exactly 1, and the
// exponent arithmetic turns 1.0 into +0. NaN gives NaN: its low bits would get
// into the exponent, and are left out.
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
  return p == p ? float_of(bits_of(p) + (bits_of(shifted) << 23)) : p;
}

// Element types of the cache and of weights. Q8 loads as whole numbers, because
// its scales are stored elsewhere.
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

#endif // KERNELS_COMMON_H
