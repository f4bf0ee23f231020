// out = a * w^T with 8-bit weights and activations, one scale per row of each, and
// exact 32-bit sums.
//
//   w        [ceil(n / NR)][k / STEP][NR][STEP]; rows past n are zero; STEP is
//            4 if AVX-512 or NEON has dot products, otherwise 2
//   w_scale  [n]
//   a        [batch][tokens][k], a_scale [batch][tokens]
//   lengths  [batch]; see real_rows()
//   out      [batch][tokens][n]
//
// AVX2 has no exact 8-bit dot product, so weights are widened to 16 bits as they
// are read, and multiplied in pairs by vpmaddwd. The dot product of AVX-512 takes
// unsigned bytes on one side, so weights are read as w + 128, and sums begin with
// a correction. There is no blocking over k: a panel of 16 columns fits in L2 for
// every k in use, and one pass over k keeps the sums in registers.

#include "amx.h"

#define NR 16    // columns of a panel
#define PANELS 1 // at a time
#if defined(__AVX512VNNI__)
#define MR 12   // maximum of rows in a register tile
#define SUMS 24 // maximum of rows times streams
#define STEP 4  // consecutive k per multiplication
#elif !defined(__AVX2__) && defined(__ARM_FEATURE_DOTPROD)
#define MR 6
#define SUMS 6
#define STEP 4
#else
#define MR 6
#define SUMS 6
#define STEP 2
#endif

// The part of a product that one register tile computes.
typedef struct {
  const int8_t *w;
  const float *w_scale;
  const act_q8 *a;
  const float *a_scale;
  float *out;
  index n, k;
#if defined(__AVX512VNNI__)
  int cold;          // weights are not in this core's cache yet
  int32_t start[MR]; // initial value of each row's sums
#endif
} product;

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

// Sums may wrap around on the way, because only the final ones have to fit.
INLINE void start_sums(product *x, index rows) {
  for (index r = 0; r < rows; ++r)
    x->start[r] = -128 * sum_row(x->a + r * x->k, x->k);
}

// Adds one step of k, whose weights are `apart` bytes apart, to acc.
INLINE void step(int rows, int streams, const int8_t *w, index apart,
                 const int8_t *a, index k, __m512i acc[MR][STREAMS]) {
  __m512i weights[STREAMS];
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s)
    weights[s] = _mm512_xor_si512(_mm512_loadu_si512(w + s * apart),
                                  _mm512_set1_epi8(-128));
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    const __m512i four = broadcast_four(a + r * k);
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      acc[r][s] = _mm512_dpbusd_epi32(acc[r][s], weights[s], four);
      if (fills_registers(rows * streams))
        KEEP_ORDER(acc[r][s]);
    }
  }
}

INLINE void store_scaled(__m512i sums, float a_scale, __m512 w_scale,
                         float *out, __mmask16 mask) {
  const __m512 scaled =
      _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(a_scale));
  _mm512_mask_storeu_ps(out, mask, _mm512_mul_ps(scaled, w_scale));
}

INLINE void tile(int rows, int streams, index apart, index panel,
                 const product *x) {
  const int steps = steps_for(rows * streams);
  const index k = x->k, step_apart = apart * NR * k;
  const int8_t *w = x->w + panel * NR * k;
  __m512i acc[MR][STREAMS];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s)
      acc[r][s] = _mm512_set1_epi32(x->start[r]);
  }
  index p = 0;
  for (; p + steps * STEP <= k; p += steps * STEP) {
    if (x->cold)
      prefetch_steps(rows, streams, steps, STEP * NR, w + p * NR, step_apart);
#pragma clang loop unroll(full)
    for (int i = 0; i < steps; ++i) {
      const index at = p + i * STEP;
      step(rows, streams, w + at * NR, step_apart, x->a + at, k, acc);
    }
  }
  for (; p < k; p += STEP)
    step(rows, streams, w + p * NR, step_apart, x->a + p, k, acc);
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
    const __mmask16 mask = first_lanes(x->n - j);
    const __m512 scale = _mm512_maskz_loadu_ps(mask, x->w_scale + j);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      store_scaled(acc[r][s], x->a_scale[r], scale, x->out + r * x->n + j,
                   mask);
  }
}

#if defined(__AMX_INT8__)

// Does what tile() does, with the tiles of AMX.
INLINE void amx_tile(index rows, int streams, index apart, index panel,
                     int tall, const product *x) {
  const amx_operands operands = amx_at(x->a, x->w, panel, apart, x->k);
  amx_sums sums;
  amx_product(AMX_INT8, rows, tall, streams, &operands, sums);
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
    const __mmask16 mask = first_lanes(x->n - j);
    const __m512 scale = _mm512_maskz_loadu_ps(mask, x->w_scale + j);
    for (index r = 0; r < rows; ++r)
      store_scaled(_mm512_loadu_si512(amx_row(sums, r, s)), x->a_scale[r],
                   scale, x->out + r * x->n + j, mask);
  }
}

#endif

#elif defined(__AVX2__)

INLINE __m256i widen(const int8_t *w) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)w));
}

// Broadcasts the pair of activations at a to every lane.
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

INLINE void tile(int rows, int streams, index apart, index panel,
                 const product *x) {
  const index k = x->k;
  const int8_t *w = x->w + panel * NR * k;
  __m256i acc[STREAMS][MR][2];
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[s][r][0] = acc[s][r][1] = _mm256_setzero_si256();
  }
  for (index p = 0; p < k; p += STEP) {
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      const int8_t *weights = w + (s * apart * k + p) * NR;
      const __m256i w0 = widen(weights), w1 = widen(weights + 16);
      if (streams == 1)
        prefetch(weights, 1024); // which was found by measuring
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const __m256i a = broadcast_pair(x->a + r * k + p);
        acc[s][r][0] = _mm256_add_epi32(acc[s][r][0], _mm256_madd_epi16(a, w0));
        acc[s][r][1] = _mm256_add_epi32(acc[s][r][1], _mm256_madd_epi16(a, w1));
      }
    }
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      store_row(acc[s][r], x->a_scale[r], x->w_scale + j, x->out + r * x->n + j,
                x->n - j);
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

INLINE void tile(int rows, int streams, index apart, index panel,
                 const product *x) {
  const index k = x->k;
  const int8_t *w = x->w + panel * NR * k;
  int32x4_t acc[STREAMS][MR][4];
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        acc[s][r][v] = vdupq_n_s32(0);
    }
  }
  for (index p = 0; p < k; p += STEP) {
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      int8x16_t weights[4];
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        weights[v] = vld1q_s8(w + (s * apart * k + p) * NR + v * 16);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const int8x16_t a = broadcast_bytes(x->a + r * k + p);
#pragma clang loop unroll(full)
        for (int v = 0; v < 4; ++v)
          acc[s][r][v] = vdotq_s32(acc[s][r][v], weights[v], a);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      store_scaled(acc[s][r], x->a_scale[r], x->w_scale + j,
                   x->out + r * x->n + j, min_index(NR, x->n - j));
  }
}

#else

INLINE void tile(int rows, int streams, index apart, index panel,
                 const product *x) {
  for (int s = 0; s < streams; ++s) {
    const index first = (panel + s * apart) * NR, k = x->k;
    for (index j = first; j < min_index(first + NR, x->n); ++j) {
      const int8_t *w = x->w + first * k + (j - first) * STEP;
      for (index r = 0; r < rows; ++r) {
        int32_t sum = 0;
        for (index p = 0; p < k; ++p)
          sum += x->a[r * k + p] * w[p / STEP * STEP * NR + p % STEP];
        x->out[r * x->n + j] = (float)sum * x->a_scale[r] * x->w_scale[j];
      }
    }
  }
}

#endif

DEFINE_ROW_TILES(tiles, x)

static void multiply(const int8_t *w, const float *w_scale, const act_q8 *a,
                     const float *a_scale, float *out, index m, index n,
                     index k, index panel_begin, index panel_end) {
  // Rows are dealt evenly: 4 + 4 is faster than 6 + 2. The panels of a call
  // stay in the cache of this core; rows come from further away, once for all
  // panels.
  const int by_amx = amx_multiplies(m);
  const index count = divide_up(m, by_amx ? AMX_MR : MR);
  for (index t = 0; t < count; ++t) {
    const index i = m * t / count, rows = m * (t + 1) / count - i;
    product x = {.w = w,
                 .w_scale = w_scale,
                 .a = a + i * k,
                 .a_scale = a_scale + i,
                 .out = out + i * n,
                 .n = n,
                 .k = k};
    if (by_amx) {
      AMX_TILES(rows, panel_begin, panel_end, &x);
      continue;
    }
#if defined(__AVX512VNNI__)
    x.cold = t == 0;
    start_sums(&x, rows);
#endif
    tiles(rows, panel_begin, panel_end, &x);
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
  }
}

void matmul_q8_experts(const int8_t *w, const float *w_scale, const act_q8 *a,
                       const float *a_scale, EXPERTS) {
  const index panels = divide_up(n, NR);
  expert_part p;
  for (index item = begin;
       next_expert_part(experts, begins, panels, &item, end, &p);) {
    const index panel = p.expert * panels;
    multiply(w + panel * NR * k, w_scale + panel * NR, a + p.row * k,
             a_scale + p.row, out + p.row * n, p.rows, n, k, p.panel_begin,
             p.panel_end);
  }
}
