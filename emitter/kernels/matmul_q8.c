// out = a * w^T with 8-bit weights and 8-bit activations, one scale per row of
// each, and exact 32-bit sums.
//
//   w        [ceil(n / NR)][k / STEP][NR][STEP]; rows past n are zero; STEP is
//            2, or 4 where NEON has dot products
//   w_scale  [n]
//   a        [batch][tokens][k], a_scale [batch][tokens]
//   lengths  [batch]; see real_rows()
//   out      [batch][tokens][n]
//
// AVX2 has no exact 8-bit dot product, so weights are widened to 16 bits as
// they are read and multiplied in pairs by vpmaddwd. Blocking over k does not
// pay: a panel of 16 columns fits in L2 for every k in use, and one pass over
// all of k leaves the sums in registers.

#include "kernels.h"

#define NR 16 // columns of a panel
#define MR 6  // most rows of a register tile
#if !defined(__AVX2__) && defined(__ARM_FEATURE_DOTPROD)
#define STEP 4 // consecutive k that one multiplication takes
#else
#define STEP 2
#endif
#define PREFETCH_AHEAD 1024 // bytes

#if defined(__AVX2__)

INLINE __m256i widen(const int8_t *w) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)w));
}

// The pair of activations at a, in every lane.
INLINE __m256i broadcast_pair(const act_q8 *a) {
  int32_t pair;
  __builtin_memcpy(&pair, a, sizeof pair);
  return _mm256_set1_epi32(pair);
}

INLINE void store_scaled(__m256i sums, float a_scale, const float *w_scale,
                         float *out, index columns) {
  const __m256 x =
      _mm256_mul_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(a_scale));
  if (columns >= 8) {
    _mm256_storeu_ps(out, _mm256_mul_ps(x, _mm256_loadu_ps(w_scale)));
    return;
  }
  float scaled[8];
  _mm256_storeu_ps(scaled, x);
  for (index j = 0; j < columns; ++j)
    out[j] = scaled[j] * w_scale[j];
}

INLINE void store_row(const __m256i sums[2], float a_scale,
                      const float *w_scale, float *out, index columns) {
  store_scaled(sums[0], a_scale, w_scale, out, columns);
  if (columns > 8)
    store_scaled(sums[1], a_scale, w_scale + 8, out + 8, columns - 8);
}

INLINE void tile(int rows, int panels, const int8_t *w, const float *w_scale,
                 const act_q8 *a, const float *a_scale, float *out,
                 index columns, index n, index k) {
  __m256i acc[STREAMS][MR][2];
#pragma clang loop unroll(full)
  for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[s][r][0] = acc[s][r][1] = _mm256_setzero_si256();
  }
  for (index p = 0; p < k; p += STEP) {
#pragma clang loop unroll(full)
    for (int s = 0; s < panels; ++s) {
      const int8_t *weights = w + (s * k + p) * NR;
      const __m256i w0 = widen(weights), w1 = widen(weights + 16);
      if (panels == 1)
        prefetch(weights, PREFETCH_AHEAD);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const __m256i x = broadcast_pair(a + r * k + p);
        acc[s][r][0] = _mm256_add_epi32(acc[s][r][0], _mm256_madd_epi16(x, w0));
        acc[s][r][1] = _mm256_add_epi32(acc[s][r][1], _mm256_madd_epi16(x, w1));
      }
    }
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      store_row(acc[s][r], a_scale[r], w_scale + s * NR, out + r * n + s * NR,
                columns - s * NR);
  }
}

#elif defined(__ARM_FEATURE_DOTPROD)

INLINE void store_scaled(const int32x4_t sums[4], float a_scale,
                         const float *w_scale, float *out, index columns) {
  float scaled[NR];
  for (int v = 0; v < 4; ++v)
    vst1q_f32(scaled + v * 4, vmulq_n_f32(vcvtq_f32_s32(sums[v]), a_scale));
  for (index j = 0; j < columns; ++j)
    out[j] = scaled[j] * w_scale[j];
}

INLINE void tile(int rows, int panels, const int8_t *w, const float *w_scale,
                 const act_q8 *a, const float *a_scale, float *out,
                 index columns, index n, index k) {
  int32x4_t acc[STREAMS][MR][4];
#pragma clang loop unroll(full)
  for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        acc[s][r][v] = vdupq_n_s32(0);
    }
  }
  for (index p = 0; p < k; p += STEP) {
#pragma clang loop unroll(full)
    for (int s = 0; s < panels; ++s) {
      int8x16_t weights[4];
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        weights[v] = vld1q_s8(w + (s * k + p) * NR + v * 16);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const int8x16_t x = broadcast_bytes(a + r * k + p);
#pragma clang loop unroll(full)
        for (int v = 0; v < 4; ++v)
          acc[s][r][v] = vdotq_s32(acc[s][r][v], weights[v], x);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      store_scaled(acc[s][r], a_scale[r], w_scale + s * NR,
                   out + r * n + s * NR, min_index(NR, columns - s * NR));
  }
}

#else

INLINE void tile(int rows, int panels, const int8_t *w, const float *w_scale,
                 const act_q8 *a, const float *a_scale, float *out,
                 index columns, index n, index k) {
  for (index i = 0; i < rows; ++i) {
    for (index j = 0; j < min_index(panels * NR, columns); ++j) {
      const int8_t *weights = w + j / NR * NR * k + j % NR * STEP;
      int32_t sum = 0;
      for (index p = 0; p < k; ++p)
        sum += a[i * k + p] * weights[p / STEP * STEP * NR + p % STEP];
      out[i * n + j] = (float)sum * a_scale[i] * w_scale[j];
    }
  }
}

#endif

// The first `rows` rows with `panels` panels, of which `columns` columns exist.
static void tile_rows(index rows, index panels, const int8_t *w,
                      const float *w_scale, const act_q8 *a,
                      const float *a_scale, float *out, index columns, index n,
                      index k) {
#define TILE(rows, panels)                                                     \
  tile(rows, panels, w, w_scale, a, a_scale, out, columns, n, k)
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

static void multiply(const int8_t *w, const float *w_scale, const act_q8 *a,
                     const float *a_scale, float *out, index m, index n,
                     index k, index panel_begin, index panel_end) {
  // Rows are dealt evenly: 4 + 4 is faster than 6 + 2. The panels of a call stay
  // in the cache of this core; rows come from further away, once for all panels.
  const index tiles = divide_up(m, MR);
  for (index t = 0; t < tiles; ++t) {
    const index i = m * t / tiles, rows = m * (t + 1) / tiles - i;
    for (index panel = panel_begin, panels; panel < panel_end;
         panel += panels) {
      const index j = panel * NR;
      panels = panels_at_once(rows, panel_end - panel);
      tile_rows(rows, panels, w + j * k, w_scale + j, a + i * k, a_scale + i,
                out + i * n + j, n - j, n, k);
    }
  }
}

void matmul_q8(const int8_t *w, const float *w_scale, const act_q8 *a,
               const float *a_scale, const int32_t *lengths, float *out,
               index batch, index tokens, index n, index k, index panel_begin,
               index panel_end) {
  for (index b = 0; b < batch; ++b) {
    const index first = b * tokens, m = real_rows(lengths, b, tokens);
    multiply(w, w_scale, a + first * k, a_scale + first, out + first * n, m, n,
             k, panel_begin, panel_end);
    clear_padding_rows(out + (first + m) * n, tokens - m, n, panel_begin * NR,
                       panel_end * NR);
  }
}
