// Dot products of groups for any CPU.
#ifndef KERNELS_CPU_GROUPS_PORTABLE_H
#define KERNELS_CPU_GROUPS_PORTABLE_H

#include "groups.h"
#include "matmul.h"

#define MR 3   // maximum of rows in a register tile
#define SUMS 3 // maximum of rows times streams

INLINE int rows_of_tile(int bits, group_form form) {
  return (void)bits, (void)form, MR;
}

typedef struct {
  float lane[NR];
} floats;

// Sums of a row's activations over a group.
typedef struct {
  int32_t halves[2];
} row_sums;

INLINE void load_sums(const int16_t *a_sums, row_sums *sums) {
  *sums = (row_sums){{a_sums[0], a_sums[1]}};
}

// Scales of a run.
typedef struct {
  element_type type;
  const uint8_t *block;
} run_scales;

// Scales of a group. Those of halves lack s and t, which sums of products have.
typedef struct {
  weight_scale lane[NR];
  int32_t s[2][NR], t[2][NR];
  float e[2][NR]; // of halves of E2M1
} group_scales;

INLINE void load_run(int bits, group_form form, element_type type,
                     const uint8_t *block, run_scales *run) {
  (void)bits, (void)form;
  *run = (run_scales){type, block};
}

INLINE void load_group(int bits, group_form form, const run_scales *run,
                       index g, group_scales *scales) {
  for (index j = 0; j < NR; ++j) {
    scales->lane[j] = scale_at(bits, form, run->type, run->block, j, g, 0);
    scales->s[0][j] = scales->s[1][j] = 1;
    if (form == FORM_E2M1_HALVES) {
      scales->lane[j].d =
          load_element(run->block, ELEMENT_F32, j) * (E4M3_UNIT / 2);
      for (index half = 0; half < 2; ++half)
        scales->e[half][j] = float_from_f16(
            load_e4m3(run->block + NR * (4 + 2 * g + half)).halves[j]);
      continue;
    }
    if (!has_halves(form))
      continue;
    scales->lane[j].d = load_element(run->block, ELEMENT_F16, j);
    if (form == FORM_HALVES) {
      const int8_t *s = (const int8_t *)run->block + NR * 2 + 2 * g * NR + j;
      scales->s[0][j] = s[0];
      scales->s[1][j] = s[NR];
      continue;
    }
    scales->lane[j].m = -load_element(run->block, ELEMENT_F16, NR + j);
    const uint8_t *both = run->block + NR * 4 + 2 * g * NR + j;
    for (index half = 0; half < 2; ++half) {
      scales->s[half][j] = both[half * NR] & 15;
      scales->t[half][j] = both[half * NR] >> 4;
    }
  }
}

INLINE void prefetch_codes(int streams, int cold, const uint8_t *block,
                           index bytes) {
  (void)streams, (void)cold, (void)block, (void)bytes;
}

// Sets dots[r] to the sums of (code - zero) * a[r] over a group, per column.
INLINE void dot_group(int bits, group_form form, int rows, const uint8_t *block,
                      const group_scales *scales, const int8_t *a,
                      const row_sums a_sums[MR], index apart,
                      floats dots[MR]) {
  (void)a_sums;
  for (int r = 0; r < rows; ++r) {
    for (index j = 0; j < NR; ++j) {
      int32_t sums[2] = {0};
      for (index i = 0; i < GROUP; ++i)
        sums[i / HALF] += (code_at(bits, form, block, j, i) - scales->lane[j].zero) *
                          a[r * apart + i] * scales->s[i / HALF][j];
      dots[r].lane[j] = form == FORM_E2M1_HALVES
                            ? (float)sums[0] * scales->e[0][j] +
                                  (float)sums[1] * scales->e[1][j]
                            : (float)(sums[0] + sums[1]);
    }
  }
}

// Adds a group's products to a row's sums.
INLINE void add_group(group_form form, const floats *dots, float a_scale,
                      float scaled_sum, const row_sums *sums,
                      const group_scales *scales, floats *acc) {
  for (index j = 0; j < NR; ++j) {
    const weight_scale by = scales->lane[j];
    acc->lane[j] += dots->lane[j] * a_scale * by.d;
    if (has_minima(form))
      acc->lane[j] += scaled_sum * by.m;
    if (form == FORM_HALF_MINIMA)
      acc->lane[j] += (float)(scales->t[0][j] * sums->halves[0] +
                              scales->t[1][j] * sums->halves[1]) *
                      a_scale * by.m;
  }
}

INLINE void store_columns(const floats *x, float *out, index columns) {
  for (index j = 0; j < min_index(NR, columns); ++j)
    out[j] = x->lane[j];
}

#endif // KERNELS_CPU_GROUPS_PORTABLE_H
