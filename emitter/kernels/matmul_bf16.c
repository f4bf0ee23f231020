// out = a * w^T with weights and activations in bf16, sums in f32.
//
//   w        [ceil(n / NR)][k / 2][NR][2]; rows past n hold anything finite
//   a        [batch][tokens][k]
//   lengths  [batch]; see real_rows()
//   out      [batch][tokens][n]
//
// vdpbf16ps takes pairs of k, and takes operands below the normal range for
// zero. Panels and rows go as in matmul_q8.c.

#include "matmul.h"

#define NR 16  // columns of a panel
#define MR 12  // most rows of a register tile
#define PAIR 2 // consecutive k that one multiplication takes
#define PREFETCH_AHEAD 1024 // bytes

#if defined(__AVX512BF16__)

// acc += one pair of k.
INLINE void step(int rows, const uint16_t *w, const uint16_t *a, index k,
                 __m512 acc[MR]) {
  const __m512bh weights = (__m512bh)_mm512_loadu_si512(w);
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    acc[r] = _mm512_dpbf16_ps(acc[r], weights,
                              (__m512bh)broadcast_four(a + r * k));
}

INLINE void tile(int rows, const uint16_t *w, const uint16_t *a, float *out,
                 index columns, index n, index k) {
  const int chains = chains_for(rows);
  __m512 acc[STEPS][MR];
#pragma clang loop unroll(full)
  for (int c = 0; c < chains; ++c) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[c][r] = _mm512_setzero_ps();
  }
  index p = 0;
  for (; p + STEPS * PAIR <= k; p += STEPS * PAIR) {
#pragma clang loop unroll(full)
    for (int s = 0; s < STEPS; ++s) {
      const index at = p + s * PAIR;
      prefetch(w + at * NR, PREFETCH_AHEAD);
      step(rows, w + at * NR, a + at, k, acc[s % chains]);
    }
  }
  for (; p < k; p += PAIR)
    step(rows, w + p * NR, a + p, k, acc[0]);
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int c = 1; c < chains; ++c)
      acc[0][r] = _mm512_add_ps(acc[0][r], acc[c][r]);
    _mm512_mask_storeu_ps(out + r * n, first_lanes(columns), acc[0][r]);
  }
}

static void tile_rows(index rows, const uint16_t *w, const uint16_t *a,
                      float *out, index columns, index n, index k) {
  TILE_OF_ROWS(rows, w, a, out, columns, n, k)
}

#else

static void tile_rows(index rows, const uint16_t *w, const uint16_t *a,
                      float *out, index columns, index n, index k) {
  for (index i = 0; i < rows; ++i) {
    float sums[NR];
    for (index j = 0; j < NR; ++j)
      sums[j] = 0;
    for (index p = 0; p < k; ++p)
      for (index j = 0; j < NR; ++j)
        sums[j] += float_from_bf16(a[i * k + p]) *
                   float_from_bf16(w[(p / PAIR * NR + j) * PAIR + p % PAIR]);
    for (index j = 0; j < columns; ++j)
      out[i * n + j] = sums[j];
  }
}

#endif

static void multiply(const uint16_t *w, const uint16_t *a, float *out, index m,
                     index n, index k, index panel_begin, index panel_end) {
  const index tiles = divide_up(m, MR);
  for (index t = 0; t < tiles; ++t) {
    const index i = m * t / tiles, rows = m * (t + 1) / tiles - i;
    for (index panel = panel_begin; panel < panel_end; ++panel) {
      const index j = panel * NR;
      tile_rows(rows, w + j * k, a + i * k, out + i * n + j,
                min_index(NR, n - j), n, k);
    }
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
    clear_padding_rows(out + (first + m) * n, tokens - m, n, panel_begin * NR,
                       panel_end * NR);
  }
}
