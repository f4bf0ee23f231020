// out = a * w^T with weights in f32, bf16 or f16, activations and sums in f32.
//
//   w        [ceil(n / NR)][k][NR]; rows past n hold anything finite
//   a        [batch][tokens][k]
//   lengths  [batch]; see real_rows()
//   out      [batch][tokens][n]

#include "matmul.h"

#define NR 16 // columns of a panel
// Most rows of a register tile.
#if defined(__AVX512VNNI__)
#define MR 12
#else
#define MR 6
#define MAX_CHAINS 4
#endif
#define KC 2048 // most of k that is summed at a time

// What of k a call does: `depth` of it, from where its pointers are.
typedef struct {
  index n, stride, depth; // stride: from a row of a to the next
  int first;              // else what is in out counts too
} part;

#if defined(__AVX2__)

// In bytes, found by trial.
INLINE index prefetch_ahead(element_type type) {
  return type == ELEMENT_F32 ? 512 : 1024;
}

#endif

#if defined(__AVX512VNNI__)

// acc += one step of k.
INLINE void step(int rows, element_type type, const void *w, const float *a,
                 index stride, index p, __m512 acc[MR]) {
  const __m512 weights = load_16_lanes(w, type, p * NR);
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    acc[r] = _mm512_fmadd_ps(_mm512_set1_ps(a[r * stride + p]), weights,
                             acc[r]);
}

INLINE void tile(int rows, element_type type, const void *w, const float *a,
                 float *out, index columns, const part *at) {
  const index k = at->depth;
  const int chains = chains_for(rows);
  __m512 acc[STEPS][MR];
#pragma clang loop unroll(full)
  for (int c = 0; c < chains; ++c) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[c][r] = _mm512_setzero_ps();
  }
  index p = 0;
  for (; p + STEPS <= k; p += STEPS) {
#pragma clang loop unroll(full)
    for (int s = 0; s < STEPS; ++s) {
      prefetch(element_at(w, type, (p + s) * NR), prefetch_ahead(type));
      step(rows, type, w, a, at->stride, p + s, acc[s % chains]);
    }
  }
  for (; p < k; ++p)
    step(rows, type, w, a, at->stride, p, acc[0]);
  const __mmask16 mask = first_lanes(columns);
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    float *target = out + r * at->n;
#pragma clang loop unroll(full)
    for (int c = 1; c < chains; ++c)
      acc[0][r] = _mm512_add_ps(acc[0][r], acc[c][r]);
    const __m512 before = at->first ? _mm512_setzero_ps()
                                    : _mm512_maskz_loadu_ps(mask, target);
    _mm512_mask_storeu_ps(target, mask, _mm512_add_ps(acc[0][r], before));
  }
}

#elif defined(__AVX2__)

// How many separate sums each output has: a tile of few rows would otherwise
// wait for its own additions (4 cycles each, 2 begun per cycle).
INLINE int chains_for(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

INLINE void store_columns(const __m256 sums[2], float *out, index columns,
                          int first) {
  if (columns >= NR) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 2; ++v) {
      const __m256 before =
          first ? _mm256_setzero_ps() : _mm256_loadu_ps(out + v * 8);
      _mm256_storeu_ps(out + v * 8, _mm256_add_ps(sums[v], before));
    }
    return;
  }
  float lanes[NR];
  _mm256_storeu_ps(lanes, sums[0]);
  _mm256_storeu_ps(lanes + 8, sums[1]);
  for (index j = 0; j < columns; ++j)
    out[j] = lanes[j] + (first ? 0.0f : out[j]);
}

// acc += one step of k.
INLINE void step(int rows, element_type type, const void *w, const float *a,
                 index stride, index p, __m256 acc[MR][2]) {
  __m256 weights[2];
  load_paired(w, type, p * NR, weights);
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    const __m256 x = _mm256_set1_ps(a[r * stride + p]);
    acc[r][0] = _mm256_fmadd_ps(x, weights[0], acc[r][0]);
    acc[r][1] = _mm256_fmadd_ps(x, weights[1], acc[r][1]);
  }
}

INLINE void tile(int rows, element_type type, const void *w, const float *a,
                 float *out, index columns, const part *at) {
  const index k = at->depth;
  const int chains = chains_for(rows);
  __m256 acc[MAX_CHAINS][MR][2];
#pragma clang loop unroll(full)
  for (int c = 0; c < chains; ++c) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[c][r][0] = acc[c][r][1] = _mm256_setzero_ps();
  }
  index p = 0;
  for (; p + chains <= k; p += chains) {
#pragma clang loop unroll(full)
    for (int c = 0; c < chains; ++c) {
      prefetch(element_at(w, type, (p + c) * NR), prefetch_ahead(type));
      step(rows, type, w, a, at->stride, p + c, acc[c]);
    }
  }
  for (; p < k; ++p)
    step(rows, type, w, a, at->stride, p, acc[0]);
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int c = 1; c < chains; ++c) {
      acc[0][r][0] = _mm256_add_ps(acc[0][r][0], acc[c][r][0]);
      acc[0][r][1] = _mm256_add_ps(acc[0][r][1], acc[c][r][1]);
    }
    put_in_order(type, acc[0][r]);
    store_columns(acc[0][r], out + r * at->n, columns, at->first);
  }
}

#elif defined(__ARM_NEON)

INLINE void tile(int rows, element_type type, const void *w, const float *a,
                 float *out, index columns, const part *at) {
  const index k = at->depth, stride = at->stride, n = at->n;
  float32x4_t acc[MR][4];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v)
      acc[r][v] = vdupq_n_f32(0.0f);
  }
  for (index p = 0; p < k; ++p) {
    float32x4_t weights[4];
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v)
      weights[v] = load_quad(w, type, p * NR + v * 4);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        acc[r][v] = vfmaq_n_f32(acc[r][v], weights[v], a[r * stride + p]);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    float lanes[NR];
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v)
      vst1q_f32(lanes + v * 4, acc[r][v]);
    for (index j = 0; j < columns; ++j)
      out[r * n + j] = lanes[j] + (at->first ? 0.0f : out[r * n + j]);
  }
}

#endif

#if defined(__AVX2__) || defined(__ARM_NEON)

INLINE void tile_rows(index rows, element_type type, const void *w,
                      const float *a, float *out, index columns,
                      const part *at) {
  TILE_OF_ROWS(rows, type, w, a, out, columns, at)
}

#else

INLINE void tile_rows(index rows, element_type type, const void *w,
                      const float *a, float *out, index columns,
                      const part *at) {
  const index k = at->depth, stride = at->stride, n = at->n;
  for (index i = 0; i < rows; ++i) {
    float sums[NR];
    for (index j = 0; j < NR; ++j)
      sums[j] = 0;
    for (index p = 0; p < k; ++p)
      for (index j = 0; j < NR; ++j)
        sums[j] += a[i * stride + p] * load_element(w, type, p * NR + j);
    for (index j = 0; j < columns; ++j)
      out[i * n + j] = sums[j] + (at->first ? 0.0f : out[i * n + j]);
  }
}

#endif

// Weights are read from memory once, into the cache of this core, and from there
// for every tile of rows; rows are read from further away, once for all panels.
// So the panels of a call should fit: up to four of KC.
INLINE void multiply(element_type type, const void *w, const float *a, float *out,
                     index m, index n, index k, index panel_begin,
                     index panel_end) {
  // Rows are dealt evenly: 4 + 4 is faster than 6 + 2.
  const index tiles = divide_up(m, MR);
  for (index p = 0; p < k; p += KC) {
    const part at = {
        .n = n, .stride = k, .depth = min_index(KC, k - p), .first = p == 0};
    for (index t = 0; t < tiles; ++t) {
      const index i = m * t / tiles, rows = m * (t + 1) / tiles - i;
      for (index panel = panel_begin; panel < panel_end; ++panel) {
        const index j = panel * NR;
        tile_rows(rows, type, element_at(w, type, j * k + p * NR), a + i * k + p,
                  out + i * n + j, min_index(NR, n - j), &at);
      }
    }
  }
}

INLINE void matmul(element_type type, const void *w, const float *a,
                   const int32_t *lengths, float *out, index batch,
                   index tokens, index n, index k, index panel_begin,
                   index panel_end) {
  for (index b = 0; b < batch; ++b) {
    const index first = b * tokens, m = real_rows(lengths, b, tokens);
    multiply(type, w, a + first * k, out + first * n, m, n, k, panel_begin,
             panel_end);
    clear_padding_rows(out + (first + m) * n, tokens - m, n, panel_begin * NR,
                       panel_end * NR);
  }
}

void matmul_f32(const float *w, const float *a, const int32_t *lengths,
                float *out, index batch, index tokens, index n, index k,
                index panel_begin, index panel_end) {
  matmul(ELEMENT_F32, w, a, lengths, out, batch, tokens, n, k, panel_begin,
         panel_end);
}

void matmul_bf16(const uint16_t *w, const float *a, const int32_t *lengths,
                 float *out, index batch, index tokens, index n, index k,
                 index panel_begin, index panel_end) {
  matmul(ELEMENT_BF16, w, a, lengths, out, batch, tokens, n, k, panel_begin,
         panel_end);
}

void matmul_f16(const uint16_t *w, const float *a, const int32_t *lengths,
                float *out, index batch, index tokens, index n, index k,
                index panel_begin, index panel_end) {
  matmul(ELEMENT_F16, w, a, lengths, out, batch, tokens, n, k, panel_begin,
         panel_end);
}
