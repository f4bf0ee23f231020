// Activations of a tile with many rows, copied so that those of a group lie together.
//
// Rows are often a power of two of bytes apart, so that they take the same few places
// in the cache and drive each other out of it. Packed ones do not, one pointer reaches
// all of them, and they stay in the first-level cache while panels go by.
#ifndef KERNELS_CPU_GROUPS_PACKED_H
#define KERNELS_CPU_GROUPS_PACKED_H

#include "groups_product.h"
#include "simd.h"

#ifndef PACKED_ROWS
#define PACKED_ROWS (MR + 1) // no tile
#endif
#define PACKED_GROUPS 64 // at a time, a multiple of SUPERBLOCK

typedef struct {
  _Alignas(64) int8_t a[PACKED_GROUPS][MR][GROUP];
  float a_scale[PACKED_GROUPS][MR], scaled_sums[PACKED_GROUPS][MR];
  int16_t a_sums[PACKED_GROUPS][MR][2];
} packed_rows;

INLINE int is_packed(int rows) { return rows >= PACKED_ROWS; }

// Returns whether some tiles are packed. Compilers know it, and leave the copy out of
// functions without such tiles.
INLINE int has_packed(int bits, group_form form) {
  return is_packed(rows_of_tile(bits, form));
}

// Returns the place of a row's group among those of a tile's first row on.
INLINE index place_of(int rows, const product *x, index r, index g) {
  return is_packed(rows) ? (g - x->begin) * MR + r : r * (x->k / GROUP) + g;
}

// Returns the activations from one row of a tile to the next.
INLINE index rows_apart(int rows, const product *x) {
  return is_packed(rows) ? GROUP : x->k;
}

// Copies groups begin..end of `rows` rows, and has x read the copy. Prefetches what is
// copied next: further groups, or the first ones of the rows that follow.
INLINE void pack_rows(group_form form, index rows, packed_rows *to, product *x) {
  const index groups = x->end - x->begin, all = x->k / GROUP;
  const index ahead = x->end < all ? groups : rows * all - x->begin;
  for (index r = 0; r < rows; ++r) {
    const index first = r * all + x->begin;
    const int8_t *a = x->a + first * GROUP;
    const int16_t *a_sums = x->a_sums + first * 2;
    const float *a_scale = x->a_scale + first;
    // A line has the sums or scales of 16 groups, or the activations of two.
    for (index g = 0; g < groups; g += 16) {
      prefetch_later(a_sums + (ahead + g) * 2);
      prefetch_later(a_scale + ahead + g);
    }
#pragma clang loop unroll_count(2)
    for (index g = 0; g < groups; ++g) {
      if (g % 2 == 0)
        prefetch_later(a + (ahead + g) * GROUP);
      __builtin_memcpy(to->a[g][r], a + g * GROUP, GROUP);
      __builtin_memcpy(to->a_sums[g][r], a_sums + g * 2,
                       sizeof to->a_sums[g][r]);
      to->a_scale[g][r] = a_scale[g];
    }
  }
  x->a = to->a[0][0];
  x->a_scale = to->a_scale[0];
  x->a_sums = to->a_sums[0][0];
  if (has_minima(form))
    // Of all rows, as vectors; results of those that are not there are not read.
    scale_sums(groups * MR, to->scaled_sums[0], x);
}

#endif // KERNELS_CPU_GROUPS_PACKED_H
