// Rows of floats, as vectors of 16 that clang divides among registers of any size.
//
// Every operation is one IEEE operation for each element, and sums have one order. So
// all instruction sets give the same bits, whatever the number of rows.
#ifndef KERNELS_CPU_ROWS_H
#define KERNELS_CPU_ROWS_H

#include "kernels.h"
#include "simd.h"

#define LANES 16
// Vectors that a sum has at once, because each addition waits for the one before.
#define SUMS 4
#define STEP (SUMS * LANES)

// Functions take vectors by address, because sets without such registers have no
// convention for values.
typedef float lanes __attribute__((vector_size(4 * LANES)));
// Loads and stores by memcpy went through integer registers with AVX-512.
typedef float unaligned_lanes
    __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t lanes_i32 __attribute__((vector_size(4 * LANES)));
typedef uint32_t lanes_u32 __attribute__((vector_size(4 * LANES)));
typedef uint16_t lanes_u16 __attribute__((vector_size(2 * LANES)));

INLINE void load_row(const float *p, lanes *x) {
  *x = *(const unaligned_lanes *)p;
}

INLINE void store_row(float *p, const lanes *x) {
  *(unaligned_lanes *)p = *x;
}

// Loads sixteen consecutive elements as floats.
INLINE void load_row_of(const void *base, element_type type, index i, lanes *x) {
  if (type == ELEMENT_F32) {
    load_row((const float *)base + i, x);
  } else if (type == ELEMENT_BF16) {
    lanes_u16 halves;
    __builtin_memcpy(&halves, (const uint16_t *)base + i, sizeof halves);
    const lanes_u32 bits = __builtin_convertvector(halves, lanes_u32) << 16;
    __builtin_memcpy(x, &bits, sizeof bits);
  } else {
#if defined(__AVX2__)
    const __m256 parts[2] = {load_lanes(base, type, i),
                             load_lanes(base, type, i + 8)};
    __builtin_memcpy(x, parts, sizeof parts);
#else
    for (index j = 0; j < LANES; ++j)
      (*x)[j] = load_element(base, type, i + j);
#endif
  }
}

// Returns the sum of 64 partial sums.
INLINE float sum_of_sums(const lanes sums[SUMS]) {
  const lanes whole = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float part[LANES];
  store_row(part, &whole);
  for (index size = LANES / 2; size > 0; size /= 2)
    for (index j = 0; j < size; ++j)
      part[j] += part[j + size];
  return part[0];
}

// Returns whether row `row` of [batch][tokens] is padding.
INLINE int is_padding_row(const int32_t *lengths, index tokens, index row) {
  return row % tokens >= real_rows(lengths, row / tokens, tokens);
}

#endif // KERNELS_CPU_ROWS_H
