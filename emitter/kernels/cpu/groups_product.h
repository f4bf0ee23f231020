// The part of a product that a tile computes.
#ifndef KERNELS_CPU_GROUPS_PRODUCT_H
#define KERNELS_CPU_GROUPS_PRODUCT_H

#include "groups.h"

typedef struct {
  const uint8_t *w, *w_scale;
  const int8_t *a;
  const float *a_scale;
  const int16_t *a_sums;
  const float *scaled_sums; // in the order of a_scale, for minima
  float *out; // from column `first` on
  index n, k, group;
  index terms;         // rows of a for each of out
  index stride, first; // columns of out
  index begin, end;    // groups of a tile
  element_type type;
  int cold; // weights are not in this core's cache yet
} product;

// Returns the part of a product from a row on.
INLINE product rows_from(const product *x, index row) {
  product part = *x;
  const index of_a = row * x->terms;
  part.a += of_a * x->k;
  part.a_scale += of_a * (x->k / GROUP);
  part.a_sums += of_a * (x->k / HALF);
  part.out += row * x->stride;
  return part;
}

// Returns the results of a row from column j on.
INLINE float *results_at(const product *x, index row, index j) {
  return x->out + row * x->stride + j - x->first;
}

// Returns the type of d and m, or of D and M. Exponents have none.
INLINE element_type type_of(group_form form, const product *x) {
  if (form == FORM_E2M1_HALVES)
    return ELEMENT_F32;
  return has_superblocks(form) || form == FORM_E2M1 ? ELEMENT_F16 : x->type;
}

// Sets the scaled sums of `count` groups, once for all panels, which else would take
// registers for sums.
INLINE void scale_sums(index count, float *scaled_sums, product *x) {
  for (index i = 0; i < count; ++i)
    scaled_sums[i] =
        x->a_scale[i] * (float)(x->a_sums[2 * i] + x->a_sums[2 * i + 1]);
  x->scaled_sums = scaled_sums;
}

// Returns the scaled sum of a row's group, for minima.
INLINE float scaled_sum(group_form form, const product *x, index at) {
  return has_minima(form) ? x->scaled_sums[at] : 0.0f;
}

#endif // KERNELS_CPU_GROUPS_PRODUCT_H
