// out = a * w^T with weights in groups, as groups.h documents, and 8-bit activations in
// the same groups of 32.
//
//   w, w_scale  see groups.h; columns past n hold anything finite
//   terms       quantized rows whose sum is a row, see quantize.h
//   a           [batch][tokens][terms][k], a_scale [batch][tokens][terms][k / 32]
//   a_sums      [batch][tokens][terms][k / 16]: sums of a over each half of a group
//   lengths     [batch]; see real_rows()
//   out         [batch][tokens][n]
//   group       inputs with the same scales, a multiple of 32 that divides k
//   scale_type  the element_type of d and m
//               forms with D read neither, e2m1 no type
//
// Sums of a group are exact. Each output adds them, scaled, over ascending groups, and
// then those of all terms: the result of a row may not depend on the others of the call.
//
// A file for each number of bits includes this one. The header of an instruction set has
// the parts of a tile.
#ifndef KERNELS_CPU_MATMUL_GROUPS_H
#define KERNELS_CPU_MATMUL_GROUPS_H

#include "groups.h"

#if defined(__AVX512VNNI__)
#include "groups_avx512.h"
#elif defined(__AVX2__)
#include "groups_avx2.h"
#elif defined(__ARM_FEATURE_DOTPROD)
#include "groups_neon.h"
#else
#include "groups_portable.h"
#endif
#include "groups_amx.h"
#include "groups_packed.h"

#define PANELS 1 // at a time

// Fewest places of a tile with a loop of its own for runs of one group and scales of
// f16, which the commonest checkpoints have. A loop within the loop over runs costs few
// rows more than it costs many, and a second loop costs code.
#ifndef SIMPLE_STREAMS
#define SIMPLE_STREAMS STREAMS
#endif

// Returns the runs of groups in a row of weights.
INLINE index runs_of(group_form form, const product *x) {
  return divide_up(x->k / GROUP, groups_of_run(form, x->group));
}

// The weights of a tile's first panel, and the bytes from those of one stream to the next.
typedef struct {
  const uint8_t *codes, *scales;
  index codes_apart, scales_apart;
} tile_weights;

// Adds the products of group g, which is group `at` of its run.
INLINE void tile_group(int bits, group_form form, int rows, int streams,
                       const tile_weights *w, index g, index at,
                       const product *x, const run_scales runs[STREAMS],
                       floats acc[STREAMS][MR]) {
  row_sums sums[MR];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    load_sums(x->a_sums + place_of(rows, x, r, g) * 2, &sums[r]);
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const uint8_t *block = w->codes + s * w->codes_apart + g * code_bytes(bits);
    group_scales scales;
    floats dots[MR];
    prefetch_codes(streams, x->cold, block, code_bytes(bits));
    load_group(bits, form, &runs[s], at, &scales);
    dot_group(bits, form, rows, block, &scales,
              x->a + place_of(rows, x, 0, g) * GROUP, sums, rows_apart(rows, x),
              dots);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const index place = place_of(rows, x, r, g);
      add_group(form, &dots[r], x->a_scale[place], scaled_sum(form, x, place),
                &sums[r], &scales, &acc[s][r]);
    }
  }
}

// Loads the scales of a run in each stream.
INLINE void load_runs(int bits, group_form form, element_type type, int streams,
                      const tile_weights *w, run_scales runs[STREAMS]) {
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s)
    load_run(bits, form, type, w->scales + s * w->scales_apart, &runs[s]);
}

// Returns what earlier groups of a panel's columns added up to.
INLINE floats load_results(const float *out, index columns) {
  floats sums;
  if (columns >= NR) {
    __builtin_memcpy(&sums, out, sizeof sums);
    return sums;
  }
  float lanes[NR] = {0};
  copy_columns(lanes, out, columns);
  __builtin_memcpy(&sums, lanes, sizeof sums);
  return sums;
}

// Adds groups begin..end of a tile's rows to `out`, the first ones to zero.
INLINE void tile(int rows, int streams, index apart, index panel, int bits,
                 group_form form, const product *x) {
  if (rows > rows_of_tile(bits, form))
    return; // for compilers: there are no such tiles
  const index groups = x->k / GROUP, length = groups_of_run(form, x->group);
  const element_type type = type_of(form, x);
  const index codes = groups * code_bytes(bits);
  const index scales = runs_of(form, x) * scale_bytes(form, type);
  tile_weights w = {x->w + panel * codes, x->w_scale + panel * scales,
                    apart * codes, apart * scales};
  floats acc[STREAMS][MR];
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[s][r] = is_packed(rows) && x->begin
                      ? load_results(results_at(x, r, j), x->n - j)
                      : (floats){0};
  }
  // Others have all groups, which compilers know only so.
  const index begin = is_packed(rows) ? x->begin : 0;
  const index stop = is_packed(rows) ? x->end : groups;
  index first = begin - begin % length;
  w.scales += first / length * scale_bytes(form, type);
  const int simple = streams >= SIMPLE_STREAMS && !has_superblocks(form) &&
                     length == 1 && type == ELEMENT_F16;
  for (index g = begin; simple && g < stop; ++g) {
    run_scales runs[STREAMS];
    load_runs(bits, form, ELEMENT_F16, streams, &w, runs);
    w.scales += scale_bytes(form, ELEMENT_F16);
    tile_group(bits, form, rows, streams, &w, g, 0, x, runs, acc);
  }
  for (index g = simple ? stop : begin; g < stop; first = g) {
    const index end = min_index(first + length, stop);
    run_scales runs[STREAMS];
    if (type == ELEMENT_F16)
      load_runs(bits, form, ELEMENT_F16, streams, &w, runs);
    else if (type == ELEMENT_BF16)
      load_runs(bits, form, ELEMENT_BF16, streams, &w, runs);
    else
      load_runs(bits, form, ELEMENT_F32, streams, &w, runs);
    w.scales += scale_bytes(form, type);
    do
      tile_group(bits, form, rows, streams, &w, g, g - first, x, runs, acc);
    while (++g < end);
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      store_columns(&acc[s][r], results_at(x, r, j), x->n - j);
  }
}

// Multiplies `rows` rows, at most those of a tile, by panels begin..end.
typedef void tiles_function(index rows, index begin, index end, const product *x);

// Multiplies the rows of a tile by panels begin..end.
INLINE void multiply_rows(int bits, group_form form, tiles_function *tiles,
                          const product *whole, int rows, index begin,
                          index end) {
  const int packs = has_packed(bits, form) && is_packed(rows);
  const int scales = has_minima(form) && !packs;
  const index groups = whole->k / GROUP, step = packs ? PACKED_GROUPS : groups;
  float scaled_sums[scales ? rows * groups : 1];
  packed_rows packed;
  for (index g = 0; g < groups; g += step) {
    product x = *whole;
    x.begin = g;
    x.end = min_index(g + step, groups);
    if (packs)
      pack_rows(form, rows, &packed, &x);
    else if (scales)
      scale_sums(rows * groups, scaled_sums, &x);
    tiles(rows, begin, end, &x);
  }
}

// Multiplies up to AMX_BLOCK rows by panels begin..end.
INLINE void multiply_by_amx(int bits, group_form form, const product *whole,
                            index rows, index begin, index end) {
  product x = *whole;
  float scaled_sums[has_minima(form) ? rows * (x.k / GROUP) : 1];
  if (has_minima(form))
    scale_sums(rows * (x.k / GROUP), scaled_sums, &x);
  for (index panel = begin; panel < end; ++panel)
    amx_panel(bits, form, rows, panel, &x);
}

// Sets results of a row to the sums of those of its terms.
static __attribute__((noinline)) void add_terms(const float *results,
                                                index terms, index stride,
                                                float *out, index columns) {
  for (index j = 0; j < columns; ++j)
    out[j] = results[j];
  for (index term = 1; term < terms; ++term)
    for (index j = 0; j < columns; ++j)
      out[j] += results[term * stride + j];
}

// Multiplies m rows. As in matmul_q8.c, the outer loop is over tiles of rows, the inner
// over panels. Tiles have all terms of a row.
INLINE void multiply(int bits, group_form form, tiles_function *tiles,
                     const product *whole, index m, index begin, index end) {
  const index terms = whole->terms, columns = (end - begin) * NR;
  const int by_amx = amx_multiplies(m * terms);
  const index most = by_amx ? AMX_BLOCK : rows_of_tile(bits, form);
  const index count = divide_up(m, most / terms);
  const index room = terms > 1 ? min_index(m * terms, most) * columns : 0;
  float results[room + 1];
  for (index t = 0; t < count; ++t) {
    const index i = m * t / count, rows = m * (t + 1) / count - i;
    const product to = rows_from(whole, i);
    product x = to;
    x.cold = t == 0;
    if (terms > 1) {
      x.terms = 1;
      x.out = results;
      x.stride = columns;
      x.first = begin * NR;
    }
    if (by_amx)
      multiply_by_amx(bits, form, &x, rows * terms, begin, end);
    else
      multiply_rows(bits, form, tiles, &x, (int)(rows * terms), begin, end);
    for (index r = 0; terms > 1 && r < rows; ++r)
      add_terms(results + r * terms * columns, terms, columns,
                results_at(&to, r, begin * NR),
                min_index(columns, to.n - begin * NR));
  }
}

typedef void multiply_function(const product *x, index m, index begin,
                               index end);

INLINE void multiply_batch(multiply_function *multiply, const product *x,
                           const int32_t *lengths, index batch, index tokens,
                           index begin, index end) {
  for (index b = 0; b < batch; ++b) {
    const product part = rows_from(x, b * tokens);
    multiply(&part, real_rows(lengths, b, tokens), begin, end);
  }
}

INLINE void multiply_experts(multiply_function *multiply, int bits,
                             group_form form, const product *x,
                             const int32_t *experts, const int32_t *begins,
                             index begin, index end) {
  const index panels = divide_up(x->n, NR);
  const index codes = x->k / GROUP * code_bytes(bits);
  const index scales = runs_of(form, x) * scale_bytes(form, x->type);
  expert_part p;
  for (index item = begin;
       next_expert_part(experts, begins, panels, &item, end, &p);) {
    product part = rows_from(x, p.row);
    part.w += p.expert * panels * codes;
    part.w_scale += p.expert * panels * scales;
    multiply(&part, p.rows, p.panel_begin, p.panel_end);
  }
}

#define GROUPS_PRODUCT                                                         \
  const product x = {.w = w,                                                   \
                     .w_scale = w_scale,                                       \
                     .a = a,                                                   \
                     .a_scale = a_scale,                                       \
                     .a_sums = a_sums,                                         \
                     .out = out,                                               \
                     .n = n,                                                   \
                     .k = k,                                                   \
                     .terms = terms,                                           \
                     .stride = n,                                              \
                     .group = group,                                           \
                     .type = (element_type)scale_type}

// Defines the functions of one form.
#define MATMUL_GROUPS(name, bits, form)                                        \
  DEFINE_ROW_TILES(tiles_##name, bits, form, x)                                \
  static __attribute__((noinline)) void multiply_##name(                       \
      const product *x, index m, index begin, index end) {                     \
    multiply(bits, form, tiles_##name, x, m, begin, end);                      \
  }                                                                            \
  void matmul_##name(GROUPS_OPERANDS, const int32_t *lengths, float *out,      \
                     index batch, index tokens, index n, index k,              \
                     GROUPS_SIZES, index terms, index begin, index end) {      \
    GROUPS_PRODUCT;                                                            \
    multiply_batch(multiply_##name, &x, lengths, batch, tokens, begin, end);   \
  }                                                                            \
  void matmul_##name##_experts(                                                \
      GROUPS_OPERANDS, const int32_t *experts, const int32_t *begins,          \
      float *out, index n, index k, GROUPS_SIZES, index terms, index begin,    \
      index end) {                                                             \
    GROUPS_PRODUCT;                                                            \
    multiply_experts(multiply_##name, bits, form, &x, experts, begins, begin,  \
                     end);                                                     \
  }

#endif // KERNELS_CPU_MATMUL_GROUPS_H
