// Products of weights in groups for CPUs with AMX. Results are those of AVX-512.
//
// The sums of each group must leave their tile to be scaled.
#ifndef KERNELS_CPU_GROUPS_AMX_H
#define KERNELS_CPU_GROUPS_AMX_H

#include "amx.h"
#include "groups_product.h"

#define AMX_BLOCK 128 // rows for which weights are unpacked once

#if HAS_AMX

// Groups that are unpacked together: as bytes they stay in L1 for all rows.
#define AMX_GROUPS 16
#define AMX_DELAY 4 // groups between storing sums and reading them
#define AMX_SLOTS (2 * AMX_DELAY)

typedef struct {
  __m512i w[AMX_GROUPS][8]; // codes as signed bytes
  group_scales scales[AMX_GROUPS];
} amx_groups;

// Sums of some groups, of each half if their scales differ.
typedef int32_t amx_slots[AMX_SLOTS][2][AMX_ROWS][16];

// Returns what is subtracted from unsigned codes.
INLINE int amx_offset(int bits, group_form form) {
  const int numbers = number_bits(bits, form);
  if (numbers == 8)
    return 128;
  return is_symmetric(form) || form == FORM_HALVES ? 1 << (numbers - 1) : 0;
}

// Unpacks `count` groups of a panel.
INLINE void amx_unpack(int bits, group_form form, const product *x, index panel,
                       index first, index count, amx_groups *groups) {
  const index all = x->k / GROUP, length = groups_of_run(form, x->group);
  const index runs = divide_up(all, length);
  const element_type type = type_of(form, x);
  const __m512i offset = _mm512_set1_epi8((int8_t)amx_offset(bits, form));
  run_scales run;
  for (index g = 0; g < count; ++g) {
    const index at = (first + g) % length;
    const uint8_t *block = x->w + (panel * all + first + g) * code_bytes(bits);
#pragma clang loop unroll(full)
    for (int v = 0; v < 8; ++v)
      groups->w[g][v] = _mm512_sub_epi8(code_vector(bits, form, block, v), offset);
    if (g == 0 || at == 0)
      load_run(bits, form, type,
               x->w_scale + (panel * runs + (first + g) / length) *
                                scale_bytes(form, type),
               &run);
    load_group(bits, form, &run, at, &groups->scales[g]);
    if (form == FORM_ZEROS && bits == 8)
      groups->scales[g].zeros =
          _mm512_add_epi16(groups->scales[g].zeros, _mm512_set1_epi16(128));
  }
}

// Multiplies rows by a group.
INLINE void amx_multiply(group_form form, const int8_t *a, index k,
                         const __m512i w[8], int32_t sums[2][AMX_ROWS][16]) {
  _tile_loadd(4, a, k);
  _tile_loadd(6, w, AMX_BYTES);
  _tile_zero(0);
  _tile_dpbssd(0, 4, 6);
  _tile_stored(0, sums[0], AMX_BYTES);
  if (!has_halves(form))
    return;
  _tile_loadd(4, a + HALF, k);
  _tile_loadd(6, w + 4, AMX_BYTES);
  _tile_zero(1);
  _tile_dpbssd(1, 4, 6);
  _tile_stored(1, sums[1], AMX_BYTES);
}

// Returns the dot products of a row and a group.
INLINE __m512 amx_dots(int bits, group_form form, const group_scales *scales,
                       const row_sums *a_sums, int32_t sums[2][AMX_ROWS][16],
                       index row) {
  const __m512i first = _mm512_loadu_si512(sums[0][row]);
  if (has_halves(form))
    return scale_halves(form, scales, first, _mm512_loadu_si512(sums[1][row]));
  __m512i factor = _mm512_set1_epi16(128);
  if (form == FORM_ZEROS)
    factor = scales->zeros;
  else if (bits != 8 || is_symmetric(form))
    return _mm512_cvtepi32_ps(first);
  return _mm512_cvtepi32_ps(_mm512_dpwssd_epi32(first, factor, a_sums->halves));
}

// Adds the groups from `first` on to `out`, for the rows of one tile or fewer.
INLINE void amx_add(int bits, group_form form, index rows, const product *x,
                    index first, index count, const amx_groups *groups,
                    __m512 out[AMX_ROWS]) {
  const index all = x->k / GROUP;
  __m512 acc[AMX_ROWS];
  for (index r = 0; r < rows; ++r)
    acc[r] = first ? out[r] : _mm512_setzero_ps();
  // A stored tile can be read only some time later, so the next ones are computed
  // in the meantime.
  amx_slots slots;
  for (index next = 0; next < count + AMX_DELAY; ++next) {
    if (next < count)
      amx_multiply(form, x->a + (first + next) * GROUP, x->k, groups->w[next],
                   slots[next % AMX_SLOTS]);
    const index g = next - AMX_DELAY;
    if (g < 0)
      continue;
    const float *a_scale = x->a_scale + first + g;
    const int16_t *a_sums = x->a_sums + (first + g) * 2;
    for (index r = 0; r < rows; ++r) {
      row_sums sums;
      load_sums(a_sums + r * all * 2, &sums);
      const __m512 dots = amx_dots(bits, form, &groups->scales[g], &sums,
                                   slots[g % AMX_SLOTS], r);
      add_group(form, &dots, a_scale[r * all],
                scaled_sum(form, x, r * all + first + g), &sums,
                &groups->scales[g], &acc[r]);
    }
  }
  for (index r = 0; r < rows; ++r)
    out[r] = acc[r];
}

// Multiplies up to AMX_BLOCK rows by a panel.
INLINE void amx_panel(int bits, group_form form, index rows, index panel,
                      const product *x) {
  const index all = x->k / GROUP, bytes = has_halves(form) ? HALF : GROUP;
  amx_groups groups;
  __m512 acc[AMX_BLOCK];
  for (index first = 0; first < all; first += AMX_GROUPS) {
    const index count = min_index(AMX_GROUPS, all - first);
    amx_unpack(bits, form, x, panel, first, count, &groups);
    for (index r = 0; r < rows; r += AMX_ROWS) {
      const index some = min_index(AMX_ROWS, rows - r);
      product part = rows_from(x, r);
      if (has_minima(form))
        part.scaled_sums += r * all;
      if (r == 0 || some < AMX_ROWS)
        amx_begin(some, bytes);
      amx_add(bits, form, some, &part, first, count, &groups, acc + r);
    }
  }
  for (index r = 0; r < rows; ++r)
    store_columns(&acc[r], results_at(x, r, panel * NR), x->n - panel * NR);
}

#else

INLINE void amx_panel(int bits, group_form form, index rows, index panel,
                      const product *x) {
  (void)bits, (void)form, (void)rows, (void)panel, (void)x;
}

#endif

#endif // KERNELS_CPU_GROUPS_AMX_H
