// out = a * w^T with 8-bit weights and 8-bit activations, one scale per row of
// each, and exact 32-bit sums.
//
//   w        [ceil(n / NR)][k / STEP][NR][STEP]; rows past n are zero; STEP is
//            2, or 4 where AVX-512 or NEON has dot products
//   w_scale  [n]
//   a        [batch][tokens][k], a_scale [batch][tokens]
//   lengths  [batch]; see real_rows()
//   out      [batch][tokens][n]
//
// AVX2 has no exact 8-bit dot product, so weights are widened to 16 bits as
// they are read and multiplied in pairs by vpmaddwd. The one of AVX-512 takes
// unsigned bytes on one side: weights are read as w + 128, and sums begin with
// what takes that out again. Blocking over k does not pay: a panel of 16
// columns fits in L2 for every k in use, and one pass over all of k leaves the
// sums in registers.

#include "matmul.h"

#define NR 16 // columns of a panel
#if defined(__AVX512VNNI__)
#define MR 12  // most rows of a register tile
#define STEP 4 // consecutive k that one multiplication takes
#elif !defined(__AVX2__) && defined(__ARM_FEATURE_DOTPROD)
#define MR 4
#define STEP 4
#else
#define MR 6
#define STEP 2
#endif
#define PREFETCH_AHEAD 1024 // bytes

// Rows of a that one register tile takes.
typedef struct {
  const act_q8 *a;
  const float *scale;
#if defined(__AVX512VNNI__)
  int32_t start[MR]; // what each row's sums begin with
#endif
} input_rows;

#if defined(__AVX512VNNI__)

INLINE int32_t sum_row(const int8_t *a, index k) {
  __m512i sums = _mm512_setzero_si512();
  for (index p = 0; p < k; p += 64) {
    const __mmask64 mask = k - p < 64 ? (1ull << (k - p)) - 1 : ~0ull;
    sums = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(1),
                               _mm512_maskz_loadu_epi8(mask, a + p));
  }
  return _mm512_reduce_add_epi32(sums);
}

// Sums wrap around, so that only what is left of them in the end has to fit.
INLINE void start_sums(input_rows *x, index rows, index k) {
  for (index r = 0; r < rows; ++r)
    x->start[r] = -128 * sum_row(x->a + r * k, k);
}

// acc += one step of k.
INLINE void step(int rows, const int8_t *w, const int8_t *a, index k,
                 __m512i acc[MR]) {
  const __m512i weights =
      _mm512_xor_si512(_mm512_loadu_si512(w), _mm512_set1_epi8(-128));
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    acc[r] = _mm512_dpbusd_epi32(acc[r], weights, broadcast_four(a + r * k));
}

INLINE void tile(int rows, const int8_t *w, const float *w_scale,
                 const input_rows *x, float *out, index columns, index n,
                 index k) {
  const int chains = chains_for(rows);
  __m512i acc[STEPS][MR];
#pragma clang loop unroll(full)
  for (int c = 0; c < chains; ++c) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[c][r] = _mm512_set1_epi32(c ? 0 : x->start[r]);
  }
  index p = 0;
  for (; p + STEPS * STEP <= k; p += STEPS * STEP) {
#pragma clang loop unroll(full)
    for (int s = 0; s < STEPS; ++s) {
      const index at = p + s * STEP;
      prefetch(w + at * NR, PREFETCH_AHEAD);
      step(rows, w + at * NR, x->a + at, k, acc[s % chains]);
    }
  }
  for (; p < k; p += STEP)
    step(rows, w + p * NR, x->a + p, k, acc[0]);
  const __mmask16 mask = first_lanes(columns);
  const __m512 scale = _mm512_maskz_loadu_ps(mask, w_scale);
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int c = 1; c < chains; ++c)
      acc[0][r] = _mm512_add_epi32(acc[0][r], acc[c][r]);
    const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(acc[0][r]),
                                        _mm512_set1_ps(x->scale[r]));
    _mm512_mask_storeu_ps(out + r * n, mask, _mm512_mul_ps(scaled, scale));
  }
}

#elif defined(__AVX2__)

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

INLINE void tile(int rows, const int8_t *w, const float *w_scale,
                 const input_rows *x, float *out, index columns, index n,
                 index k) {
  __m256i acc[MR][2];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    acc[r][0] = acc[r][1] = _mm256_setzero_si256();
  for (index p = 0; p < k; p += STEP) {
    prefetch(w + p * NR, PREFETCH_AHEAD);
    const __m256i w0 = widen(w + p * NR);
    const __m256i w1 = widen(w + p * NR + 16);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const __m256i a = broadcast_pair(x->a + r * k + p);
      acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(a, w0));
      acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(a, w1));
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    store_scaled(acc[r][0], x->scale[r], w_scale, out + r * n, columns);
    if (columns > 8)
      store_scaled(acc[r][1], x->scale[r], w_scale + 8, out + r * n + 8,
                   columns - 8);
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

INLINE void tile(int rows, const int8_t *w, const float *w_scale,
                 const input_rows *x, float *out, index columns, index n,
                 index k) {
  int32x4_t acc[MR][4];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v)
      acc[r][v] = vdupq_n_s32(0);
  }
  for (index p = 0; p < k; p += STEP) {
    int8x16_t weights[4];
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v)
      weights[v] = vld1q_s8(w + p * NR + v * 16);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const int8x16_t a = broadcast_bytes(x->a + r * k + p);
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        acc[r][v] = vdotq_s32(acc[r][v], weights[v], a);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    store_scaled(acc[r], x->scale[r], w_scale, out + r * n, columns);
}

#else

static void tile_rows(index rows, const int8_t *w, const float *w_scale,
                      const input_rows *x, float *out, index columns, index n,
                      index k) {
  for (index i = 0; i < rows; ++i) {
    int32_t sums[NR];
    for (index j = 0; j < NR; ++j)
      sums[j] = 0;
    for (index p = 0; p < k; p += STEP) {
      const int32_t a0 = x->a[i * k + p];
      const int32_t a1 = x->a[i * k + p + 1];
      for (index j = 0; j < NR; ++j)
        sums[j] += a0 * w[p * NR + j * STEP] + a1 * w[p * NR + j * STEP + 1];
    }
    for (index j = 0; j < columns; ++j)
      out[i * n + j] = (float)sums[j] * x->scale[i] * w_scale[j];
  }
}

#endif

#if defined(__AVX2__) || defined(__ARM_FEATURE_DOTPROD)

static void tile_rows(index rows, const int8_t *w, const float *w_scale,
                      const input_rows *x, float *out, index columns, index n,
                      index k) {
  TILE_OF_ROWS(rows, w, w_scale, x, out, columns, n, k)
}

#endif

static void multiply(const int8_t *w, const float *w_scale, const act_q8 *a,
                     const float *a_scale, float *out, index m, index n,
                     index k, index panel_begin, index panel_end) {
  // Rows are dealt evenly: 4 + 4 is faster than 6 + 2. The panels of a call stay
  // in the cache of this core; rows come from further away, once for all panels.
  const index tiles = divide_up(m, MR);
  for (index t = 0; t < tiles; ++t) {
    const index i = m * t / tiles, rows = m * (t + 1) / tiles - i;
    input_rows x = {.a = a + i * k, .scale = a_scale + i};
#if defined(__AVX512VNNI__)
    start_sums(&x, rows, k);
#endif
    for (index panel = panel_begin; panel < panel_end; ++panel) {
      const index j = panel * NR;
      tile_rows(rows, w + j * k, w_scale + j, &x, out + i * n + j,
                min_index(NR, n - j), n, k);
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
