// What the quantizers of weights share: vectors with a lane for each group, and what
// fits of them need.
//
// A vector has 16 lanes on every instruction set, and lanes meet only in sums of
// doubles in a fixed order. So results have the same bits everywhere.
#ifndef KERNELS_CPU_QUANTIZE_WEIGHTS_H
#define KERNELS_CPU_QUANTIZE_WEIGHTS_H

#include "kernels.h"

#define BLOCK 256 // inputs of a superblock
#define GROUPS 16 // lanes
#define ROUNDS 3  // of a search and a fit

// Larger weights are beyond the largest unit, the largest scale and the largest code
// anyway, and their squares could overflow.
#define LARGEST_WEIGHT 0x1p30f
// Smaller weights count as zero: the smallest unit is 2^-24.
#define SMALLEST_WEIGHT 0x1p-40f
#define LARGEST_F16 65504.0f

typedef float __attribute__((ext_vector_type(GROUPS))) floats;
typedef int32_t __attribute__((ext_vector_type(GROUPS))) ints;
typedef int8_t __attribute__((ext_vector_type(GROUPS))) bytes;

// Returns `a` where the lanes of the mask are -1, and `b` where they are 0.
INLINE floats choose(ints mask, floats a, floats b) { return mask ? a : b; }
INLINE floats smaller(floats a, floats b) { return choose(a < b, a, b); }
INLINE floats larger(floats a, floats b) { return choose(a > b, a, b); }

INLINE floats clamped(floats x, float low, float high) {
  return smaller(larger(x, (floats)low), (floats)high);
}

// Returns the nearest whole numbers from low to high, ties to even.
INLINE floats rounded(floats x, float low, float high) {
  return clamped(x, low, high) + ROUNDING_MAGIC - ROUNDING_MAGIC;
}

// Returns whole numbers from -128 to 127 as bytes.
INLINE bytes bytes_of(floats x) {
  return __builtin_convertvector(__builtin_convertvector(x, ints), bytes);
}

// Returns a / b, and `otherwise` where b is not positive.
INLINE floats ratio(floats a, floats b, floats otherwise) {
  const ints is_positive = b > 0.0f;
  return choose(is_positive, a / choose(is_positive, b, (floats)1.0f),
                otherwise);
}

// Returns the nearest half precision of a finite number.
INLINE uint16_t unit_bits(double x) {
  const float narrow = x > LARGEST_F16    ? LARGEST_F16
                       : x < -LARGEST_F16 ? -LARGEST_F16
                                          : (float)x;
  return f16_from_float(narrow);
}

// Rows of weights, [rows][k], of which the last superblock may be short.
typedef struct {
  const void *x;
  element_type type;
  const float *importance; // of inputs
  index k;
} weight_rows;

// Groups of weights: input i of each, and its importance.
typedef struct {
  floats x[GROUPS * 2], w[GROUPS * 2];
} weight_groups;

// Loads groups of `size` inputs of a superblock to lanes from `lane` on. Groups past
// the end of a row are zeros of no importance.
INLINE void load_groups(const weight_rows *rows, index row, index block,
                        index size, index lane, weight_groups *groups) {
  for (index g = 0; g < BLOCK / size; ++g) {
    const index first = block * BLOCK + g * size;
    for (index i = 0; i < size; ++i) {
      float x = 0.0f, w = 0.0f;
      if (first < rows->k) {
        x = load_element(rows->x, rows->type, row * rows->k + first + i);
        w = rows->importance[first + i];
      }
      x = x < LARGEST_WEIGHT ? x : LARGEST_WEIGHT;
      groups->x[i][lane + g] = x > -LARGEST_WEIGHT ? x : -LARGEST_WEIGHT;
      groups->w[i][lane + g] = w;
    }
  }
}

// Stores the codes of a superblock's groups, which are in lanes from `lane` on.
INLINE void store_codes(const weight_rows *rows, index row, index block,
                        index size, index lane, const bytes *codes,
                        int8_t *to) {
  for (index g = 0; g < BLOCK / size; ++g) {
    const index first = block * BLOCK + g * size;
    if (first < rows->k)
      for (index i = 0; i < size; ++i)
        to[row * rows->k + first + i] = codes[i][lane + g];
  }
}

// Returns the sum of `count` lanes from `lane` on.
INLINE double sum_of(floats x, index lane, index count) {
  double sum = 0.0;
  for (index g = lane; g < lane + count; ++g)
    sum += (double)x[g];
  return sum;
}

#endif // KERNELS_CPU_QUANTIZE_WEIGHTS_H
