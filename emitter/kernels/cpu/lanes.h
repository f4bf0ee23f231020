// Vectors of floats, as wide as the instruction set has them.
//
// clang's vector types take the operators of C, which work on each lane.
#ifndef KERNELS_CPU_LANES_H
#define KERNELS_CPU_LANES_H

#include "../common.h"

#if defined(__AVX512F__) || defined(__AVX512VNNI__)
#define LANES 16
#define REGISTERS 32
#elif defined(__AVX2__)
#define LANES 8
#define REGISTERS 16
#else
#define LANES 4
#if defined(__ARM_NEON)
#define REGISTERS 32
#else
#define REGISTERS 16
#endif
#endif

#define VECTOR(type) type __attribute__((ext_vector_type(LANES)))
typedef VECTOR(float) lanes;
typedef VECTOR(int32_t) int_lanes;
typedef VECTOR(uint32_t) bit_lanes;
typedef VECTOR(uint16_t) short_lanes;
typedef VECTOR(int8_t) byte_lanes;

INLINE bit_lanes bits_of_lanes(lanes x) {
  bit_lanes bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

INLINE lanes lanes_of(bit_lanes bits) {
  lanes x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

INLINE lanes load_floats(const float *p) {
  lanes x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}

INLINE void store_floats(float *p, lanes x) {
  __builtin_memcpy(p, &x, sizeof x);
}

// Loads `count` floats, up to LANES, and zeros.
INLINE lanes load_some_floats(const float *p, index count) {
  if (count >= LANES)
    return load_floats(p);
  float x[LANES];
#pragma clang loop vectorize(disable) unroll(disable)
  for (index i = 0; i < LANES; ++i)
    x[i] = i < count ? p[i] : 0.0f;
  return load_floats(x);
}

// Stores the first `count` lanes, up to LANES.
INLINE void store_some_floats(float *p, lanes x, index count) {
  if (count >= LANES) {
    store_floats(p, x);
    return;
  }
  float all[LANES];
  store_floats(all, x);
#pragma clang loop vectorize(disable) unroll(disable)
  for (index i = 0; i < count; ++i)
    p[i] = all[i];
}

INLINE lanes lanes_from_f16(const uint16_t *p) {
#if defined(__F16C__) || defined(__ARM_NEON)
  VECTOR(_Float16) halves;
  __builtin_memcpy(&halves, p, sizeof halves);
  return __builtin_convertvector(halves, lanes);
#else
  float x[LANES];
  for (int i = 0; i < LANES; ++i)
    x[i] = float_from_f16(p[i]);
  return load_floats(x);
#endif
}

// Loads consecutive elements as floats.
INLINE lanes load_elements(const void *base, element_type type, index i) {
  const void *p = element_at(base, type, i);
  if (type == ELEMENT_F32)
    return load_floats(p);
  if (type == ELEMENT_F16)
    return lanes_from_f16(p);
  if (type == ELEMENT_Q8) {
    byte_lanes bytes;
    __builtin_memcpy(&bytes, p, LANES);
    return __builtin_convertvector(__builtin_convertvector(bytes, int_lanes),
                                   lanes);
  }
  short_lanes halves;
  __builtin_memcpy(&halves, p, sizeof halves);
  return lanes_of(__builtin_convertvector(halves, bit_lanes) << 16);
}

// Loads `count` consecutive elements, up to LANES, and zeros.
INLINE lanes load_some_elements(const void *base, element_type type, index i,
                                index count) {
  float x[LANES];
#pragma clang loop vectorize(disable) unroll(disable)
  for (index at = 0; at < LANES; ++at)
    x[at] = at < count ? load_element(base, type, i + at) : 0.0f;
  return load_floats(x);
}

// Returns a * b + c, rounded once if the CPU can.
INLINE lanes multiply_add(lanes a, lanes b, lanes c) {
#if defined(__FMA__) || defined(__ARM_NEON)
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// Returns `a` where the lanes of the mask are -1, and `b` where they are 0.
INLINE lanes select_lanes(int_lanes mask, lanes a, lanes b) {
  return mask ? a : b;
}

// Returns the larger lanes, and `b` where one is NaN.
INLINE lanes max_of(lanes a, lanes b) { return select_lanes(a > b, a, b); }

// SWAPPED_n(x) has lane i ^ n in lane i.
#define SHUFFLED(x, ...) __builtin_shufflevector(x, x, __VA_ARGS__)
#if LANES == 16
#define SWAPPED_8(x)                                                           \
  SHUFFLED(x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define SWAPPED_4(x)                                                           \
  SHUFFLED(x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define SWAPPED_2(x)                                                           \
  SHUFFLED(x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define SWAPPED_1(x)                                                           \
  SHUFFLED(x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#elif LANES == 8
#define SWAPPED_4(x) SHUFFLED(x, 4, 5, 6, 7, 0, 1, 2, 3)
#define SWAPPED_2(x) SHUFFLED(x, 2, 3, 0, 1, 6, 7, 4, 5)
#define SWAPPED_1(x) SHUFFLED(x, 1, 0, 3, 2, 5, 4, 7, 6)
#else
#define SWAPPED_2(x) SHUFFLED(x, 2, 3, 0, 1)
#define SWAPPED_1(x) SHUFFLED(x, 1, 0, 3, 2)
#endif

INLINE float sum_of_lanes(lanes x) {
#if LANES >= 16
  x += SWAPPED_8(x);
#endif
#if LANES >= 8
  x += SWAPPED_4(x);
#endif
  x += SWAPPED_2(x);
  x += SWAPPED_1(x);
  return x[0];
}

INLINE float max_of_lanes(lanes x) {
#if LANES >= 16
  x = max_of(x, SWAPPED_8(x));
#endif
#if LANES >= 8
  x = max_of(x, SWAPPED_4(x));
#endif
  x = max_of(x, SWAPPED_2(x));
  x = max_of(x, SWAPPED_1(x));
  return x[0];
}

// Computes what exp2_poly() documents, of `count` vectors, interleaved: one after
// the other, their long dependency chains would leave execution units idle.
INLINE void exp2_each(int count, lanes x[]) {
  const float coefficients[] = {EXP2_C5, EXP2_C4, EXP2_C3,
                                EXP2_C2, EXP2_C1, 1.0f};
  lanes shifted[8], p[8];
#pragma clang loop unroll(full)
  for (int i = 0; i < count; ++i) {
    x[i] = max_of(EXP2_LOWEST, x[i]); // keeps NaN
    shifted[i] = x[i] + ROUNDING_MAGIC;
    x[i] -= shifted[i] - ROUNDING_MAGIC;
    p[i] = EXP2_C6;
  }
#pragma clang loop unroll(full)
  for (int c = 0; c < 6; ++c) {
#pragma clang loop unroll(full)
    for (int i = 0; i < count; ++i)
      p[i] = multiply_add(p[i], x[i], coefficients[c]);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < count; ++i) {
    const bit_lanes is_number = (bit_lanes)(p[i] == p[i]);
    x[i] = lanes_of(bits_of_lanes(p[i]) +
                    ((bits_of_lanes(shifted[i]) << 23) & is_number));
  }
}

INLINE lanes exp2_of(lanes x) {
  exp2_each(1, &x);
  return x;
}

#endif // KERNELS_CPU_LANES_H
