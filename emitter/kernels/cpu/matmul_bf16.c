// out = a * w^T with weights and activations in bf16, sums in f32.
//
//   w        [ceil(n / NR)][k / 2][NR][2]; rows past n hold anything finite
//   a        [batch][tokens][k]
//   lengths  [batch]; see real_rows()
//   out      [batch][tokens][n]
//
// vdpbf16ps multiplies pairs of k, and treats operands below the normal range as
// zero. AMX adds products in another order, so it takes every number of rows or
// none: the result of a row may not depend on others. Panels and rows are ordered as
// in matmul_q8.c.

#include "amx.h"

#define NR 16    // columns of a panel
#define MR 12    // maximum of rows in a register tile
#define SUMS 24  // maximum of rows times streams
#define PANELS 1 // at a time
#define PAIR 2   // consecutive k per multiplication

// The part of a product that one register tile computes.
typedef struct {
  const uint16_t *w, *a;
  float *out;
  index n, k;
  int cold; // weights are not in this core's cache yet
} product;

#if HAS_AMX

// Does what tile() does, with the tiles of AMX.
INLINE void amx_tile(index rows, int streams, index apart, index panel,
                     int tall, const product *x) {
  const amx_operands operands =
      amx_at(x->a, x->w, panel, apart, x->k * (index)sizeof *x->a);
  amx_sums sums;
  amx_product(AMX_BF16, rows, tall, streams, &operands, sums);
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
    const __mmask16 mask = first_lanes(x->n - j);
    for (index r = 0; r < rows; ++r)
      _mm512_mask_storeu_ps(x->out + r * x->n + j, mask,
                            _mm512_loadu_ps(amx_row(sums, r, s)));
  }
}

#elif defined(__AVX512BF16__)

// Adds one pair of k, whose weights are `apart` elements apart, to acc.
INLINE void step(int rows, int streams, const uint16_t *w, index apart,
                 const uint16_t *a, index k, __m512 acc[MR][STREAMS]) {
  __m512bh weights[STREAMS];
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s)
    weights[s] = (__m512bh)_mm512_loadu_si512(w + s * apart);
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    const __m512bh pair = (__m512bh)broadcast_four(a + r * k);
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      acc[r][s] = _mm512_dpbf16_ps(acc[r][s], weights[s], pair);
      if (fills_registers(rows * streams))
        KEEP_ORDER(acc[r][s]);
    }
  }
}

INLINE void tile(int rows, int streams, index apart, index panel,
                 const product *x) {
  const int steps = steps_for(rows * streams);
  const index k = x->k, step_apart = apart * NR * k;
  const uint16_t *w = x->w + panel * NR * k;
  __m512 acc[MR][STREAMS];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s)
      acc[r][s] = _mm512_setzero_ps();
  }
  index p = 0;
  for (; p + steps * PAIR <= k; p += steps * PAIR) {
    if (x->cold)
      prefetch_steps(rows, streams, steps, PAIR * NR * sizeof *w, w + p * NR,
                     step_apart * (index)sizeof *w);
#pragma clang loop unroll(full)
    for (int i = 0; i < steps; ++i) {
      const index at = p + i * PAIR;
      step(rows, streams, w + at * NR, step_apart, x->a + at, k, acc);
    }
  }
  for (; p < k; p += PAIR)
    step(rows, streams, w + p * NR, step_apart, x->a + p, k, acc);
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
    const __mmask16 mask = first_lanes(x->n - j);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      _mm512_mask_storeu_ps(x->out + r * x->n + j, mask, acc[r][s]);
  }
}

#else

INLINE void tile(int rows, int streams, index apart, index panel,
                 const product *x) {
  for (int s = 0; s < streams; ++s) {
    const index first = (panel + s * apart) * NR, k = x->k;
    for (index j = first; j < min_index(first + NR, x->n); ++j) {
      const uint16_t *w = x->w + first * k + (j - first) * PAIR;
      for (index r = 0; r < rows; ++r) {
        float sum = 0;
        for (index p = 0; p < k; ++p)
          sum += float_from_bf16(x->a[r * k + p]) *
                 float_from_bf16(w[p / PAIR * PAIR * NR + p % PAIR]);
        x->out[r * x->n + j] = sum;
      }
    }
  }
}

#endif

#if !HAS_AMX
DEFINE_ROW_TILES(tiles, x)
#endif

static void multiply(const uint16_t *w, const uint16_t *a, float *out, index m,
                     index n, index k, index panel_begin, index panel_end) {
  const index count = divide_up(m, HAS_AMX ? AMX_MR : MR);
  for (index t = 0; t < count; ++t) {
    const index i = m * t / count, rows = m * (t + 1) / count - i;
    const product x = {
        .w = w, .a = a + i * k, .out = out + i * n, .n = n, .k = k, .cold = !t};
#if HAS_AMX
    AMX_TILES(rows, panel_begin, panel_end, &x);
#else
    tiles(rows, panel_begin, panel_end, &x);
#endif
  }
}

void matmul_bf16_pairs(const uint16_t *w, const uint16_t *a,
                       const int32_t *lengths, float *out, index batch,
                       index tokens, index n, index k, index panel_begin,
                       index panel_end) {
  for (index b = 0; b < batch; ++b) {
    const index first = b * tokens, m = real_rows(lengths, b, tokens);
    multiply(w, a + first * k, out + first * n, m, n, k, panel_begin,
             panel_end);
  }
}

void matmul_bf16_pairs_experts(const uint16_t *w, const uint16_t *a, EXPERTS) {
  const index panels = divide_up(n, NR);
  expert_part p;
  for (index item = begin;
       next_expert_part(experts, begins, panels, &item, end, &p);) {
    const index panel = p.expert * panels;
    multiply(w + panel * NR * k, a + p.row * k, out + p.row * n, p.rows, n, k,
             p.panel_begin, p.panel_end);
  }
}
