// out = a * w^T with weights in f32, bf16 or f16, activations and sums in f32.
//
//   w        [ceil(n / NR)][k][NR]; rows past n hold anything finite
//   a        [batch][tokens][k]
//   lengths  [batch]; see real_rows()
//   out      [batch][tokens][n]

#include "kernels.h"

#define NR 16 // columns of a panel
#define MR 6  // most rows of a register tile
#define MAX_CHAINS 4
#define KC 2048 // most of k that is summed at a time

// What of k a call does: `depth` of it, from where its pointers are.
typedef struct {
  index n, stride, depth; // stride: from a row of a to the next
  int first;              // else what is in out counts too
} part;

#if defined(__AVX2__)

// How many separate sums each output has: a tile of few outputs would otherwise
// wait for its own additions (4 cycles each, 2 begun per cycle).
INLINE int chains_for(int rows, int panels) {
  return panels > 1 ? 1 : rows == 1 ? 4 : rows <= 3 ? 2 : 1;
}

// In bytes, found by trial.
INLINE index prefetch_ahead(element_type type) {
  return type == ELEMENT_F32 ? 512 : 1024;
}

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

// acc += one step of k, whose weights lie at element `at`.
INLINE void step(int rows, element_type type, const void *w, index at,
                 const float *a, index stride, index p, __m256 acc[MR][2]) {
  __m256 weights[2];
  load_paired(w, type, at, weights);
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    const __m256 x = _mm256_set1_ps(a[r * stride + p]);
    acc[r][0] = _mm256_fmadd_ps(x, weights[0], acc[r][0]);
    acc[r][1] = _mm256_fmadd_ps(x, weights[1], acc[r][1]);
  }
}

INLINE void tile(int rows, int panels, element_type type, const void *w,
                 const float *a, float *out, index columns, const part *at) {
  const index k = at->depth, stride = at->stride;
  const int chains = chains_for(rows, panels);
  __m256 acc[STREAMS][MAX_CHAINS][MR][2];
#pragma clang loop unroll(full)
  for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
    for (int c = 0; c < chains; ++c) {
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r)
        acc[s][c][r][0] = acc[s][c][r][1] = _mm256_setzero_ps();
    }
  }
  index p = 0;
  for (; p + chains <= k; p += chains) {
#pragma clang loop unroll(full)
    for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
      for (int c = 0; c < chains; ++c) {
        const index weights = (s * stride + p + c) * NR;
        if (panels == 1)
          prefetch(element_at(w, type, weights), prefetch_ahead(type));
        step(rows, type, w, weights, a, stride, p + c, acc[s][c]);
      }
    }
  }
  // Several panels have one chain each, which leaves nothing over.
  for (; p < k; ++p)
    step(rows, type, w, p * NR, a, stride, p, acc[0][0]);
#pragma clang loop unroll(full)
  for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      __m256 *sums = acc[s][0][r];
#pragma clang loop unroll(full)
      for (int c = 1; c < chains; ++c) {
        sums[0] = _mm256_add_ps(sums[0], acc[s][c][r][0]);
        sums[1] = _mm256_add_ps(sums[1], acc[s][c][r][1]);
      }
      put_in_order(type, sums);
      store_columns(sums, out + r * at->n + s * NR, columns - s * NR,
                    at->first);
    }
  }
}

#elif defined(__ARM_NEON)

INLINE void tile(int rows, int panels, element_type type, const void *w,
                 const float *a, float *out, index columns, const part *at) {
  const index k = at->depth, stride = at->stride, n = at->n;
  float32x4_t acc[STREAMS][MR][4];
#pragma clang loop unroll(full)
  for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        acc[s][r][v] = vdupq_n_f32(0.0f);
    }
  }
  for (index p = 0; p < k; ++p) {
#pragma clang loop unroll(full)
    for (int s = 0; s < panels; ++s) {
      float32x4_t weights[4];
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        weights[v] = load_quad(w, type, (s * stride + p) * NR + v * 4);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const float x = a[r * stride + p];
#pragma clang loop unroll(full)
        for (int v = 0; v < 4; ++v)
          acc[s][r][v] = vfmaq_n_f32(acc[s][r][v], weights[v], x);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      float lanes[NR], *target = out + r * n + s * NR;
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        vst1q_f32(lanes + v * 4, acc[s][r][v]);
      for (index j = 0; j < min_index(NR, columns - s * NR); ++j)
        target[j] = lanes[j] + (at->first ? 0.0f : target[j]);
    }
  }
}

#else

INLINE void tile(int rows, int panels, element_type type, const void *w,
                 const float *a, float *out, index columns, const part *at) {
  const index k = at->depth, stride = at->stride, n = at->n;
  for (index i = 0; i < rows; ++i) {
    for (index j = 0; j < min_index(panels * NR, columns); ++j) {
      const index weights = j / NR * NR * stride + j % NR;
      float sum = 0;
      for (index p = 0; p < k; ++p)
        sum += a[i * stride + p] * load_element(w, type, weights + p * NR);
      out[i * n + j] = sum + (at->first ? 0.0f : out[i * n + j]);
    }
  }
}

#endif

// The first `rows` rows with `panels` panels, of which `columns` columns exist.
INLINE void tile_rows(index rows, index panels, element_type type,
                      const void *w, const float *a, float *out, index columns,
                      const part *at) {
#define TILE(rows, panels) tile(rows, panels, type, w, a, out, columns, at)
  switch (rows) {
  case 1: panels == 1 ? TILE(1, 1) : TILE(1, STREAMS); break;
  case 2: TILE(2, 1); break;
  case 3: TILE(3, 1); break;
  case 4: TILE(4, 1); break;
  case 5: TILE(5, 1); break;
  default: TILE(6, 1); break;
  }
#undef TILE
}

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
      for (index panel = panel_begin, panels; panel < panel_end;
           panel += panels) {
        const index j = panel * NR;
        panels = panels_at_once(rows, panel_end - panel);
        tile_rows(rows, panels, type, element_at(w, type, j * k + p * NR),
                  a + i * k + p, out + i * n + j, n - j, &at);
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
