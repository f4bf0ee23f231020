// out = a * w^T with weights in f32, bf16 or f16, activations and sums in f32.
//
//   w        [ceil(n / NR)][k][NR]; rows past n hold anything finite
//   a        [batch][tokens][k]
//   lengths  [batch]; see real_rows()
//   out      [batch][tokens][n]
//
// Each output is one sum over ascending k, in blocks of KC: the result of a row may
// not depend on the others of the call.

#include "matmul.h"

#define NR 16    // columns of a panel
#define PANELS 1 // at a time
// Maximum of rows in a register tile.
#if defined(__AVX512VNNI__)
#define MR 12
#define SUMS 24 // maximum of rows times streams
#else
#define MR 6
#define SUMS 6
#endif
#define KC 2048 // maximum of k per block

// The part of a product that one register tile computes: its rows, and the next
// `depth` of k.
typedef struct {
  const void *w;
  const float *a;
  float *out;
  index n, k, depth;
  int first; // if not, results are added to out
  int cold;  // weights are not in this core's cache yet
} product;

#if defined(__AVX512VNNI__)

// Adds one step of k to acc. The weights of the streams begin at element `at` and
// are `apart` elements apart.
INLINE void step(int rows, int streams, element_type type, const product *x,
                 index at, index apart, index p, __m512 acc[MR][STREAMS]) {
  __m512 weights[STREAMS];
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s)
    weights[s] = load_16_lanes(x->w, type, at + s * apart);
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    const __m512 a = _mm512_set1_ps(x->a[r * x->k + p]);
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      acc[r][s] = _mm512_fmadd_ps(a, weights[s], acc[r][s]);
      if (fills_registers(rows * streams))
        KEEP_ORDER(acc[r][s]);
    }
  }
}

INLINE void tile(int rows, int streams, index apart, index panel,
                 element_type type, const product *x) {
  const int steps = steps_for(rows * streams);
  const index first = panel * x->k * NR, step_apart = apart * x->k * NR;
  const index bytes = NR * element_size(type);
  __m512 acc[MR][STREAMS];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s)
      acc[r][s] = _mm512_setzero_ps();
  }
  index p = 0;
  for (; p + steps <= x->depth; p += steps) {
    if (x->cold)
      prefetch_steps(rows, streams, steps, bytes,
                     element_at(x->w, type, first + p * NR),
                     step_apart / NR * bytes);
#pragma clang loop unroll(full)
    for (int i = 0; i < steps; ++i) {
      const index at = first + (p + i) * NR;
      step(rows, streams, type, x, at, step_apart, p + i, acc);
    }
  }
  for (; p < x->depth; ++p)
    step(rows, streams, type, x, first + p * NR, step_apart, p, acc);
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
    const __mmask16 mask = first_lanes(x->n - j);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      float *target = x->out + r * x->n + j;
      const __m512 before = x->first ? _mm512_setzero_ps()
                                     : _mm512_maskz_loadu_ps(mask, target);
      _mm512_mask_storeu_ps(target, mask, _mm512_add_ps(acc[r][s], before));
    }
  }
}

#elif defined(__AVX2__)

// Returns how many bytes ahead to prefetch, which was found by measuring.
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

// Adds one step of k to acc, whose weights begin at element `at`.
INLINE void step(int rows, element_type type, const product *x, index at,
                 index p, __m256 acc[MR][2]) {
  __m256 weights[2];
  load_paired(x->w, type, at, weights);
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    const __m256 a = _mm256_set1_ps(x->a[r * x->k + p]);
    acc[r][0] = _mm256_fmadd_ps(a, weights[0], acc[r][0]);
    acc[r][1] = _mm256_fmadd_ps(a, weights[1], acc[r][1]);
  }
}

INLINE void tile(int rows, int streams, index apart, index panel,
                 element_type type, const product *x) {
  const index first = panel * x->k, step_apart = apart * x->k;
  __m256 acc[STREAMS][MR][2];
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[s][r][0] = acc[s][r][1] = _mm256_setzero_ps();
  }
  for (index p = 0; p < x->depth; ++p) {
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      const index at = (first + s * step_apart + p) * NR;
      if (streams == 1)
        prefetch(element_at(x->w, type, at), prefetch_ahead(type));
      step(rows, type, x, at, p, acc[s]);
    }
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      __m256 *sums = acc[s][r];
      unpair(type, sums);
      store_columns(sums, x->out + r * x->n + j, x->n - j, x->first);
    }
  }
}

#elif defined(__ARM_NEON)

INLINE void tile(int rows, int streams, index apart, index panel,
                 element_type type, const product *x) {
  const index first = panel * x->k, step_apart = apart * x->k;
  float32x4_t acc[STREAMS][MR][4];
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        acc[s][r][v] = vdupq_n_f32(0.0f);
    }
  }
  for (index p = 0; p < x->depth; ++p) {
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      const index at = (first + s * step_apart + p) * NR;
      float32x4_t weights[4];
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        weights[v] = load_quad(x->w, type, at + v * 4);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const float a = x->a[r * x->k + p];
#pragma clang loop unroll(full)
        for (int v = 0; v < 4; ++v)
          acc[s][r][v] = vfmaq_n_f32(acc[s][r][v], weights[v], a);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const index begin = (panel + s * apart) * NR;
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      float lanes[NR], *target = x->out + r * x->n + begin;
#pragma clang loop unroll(full)
      for (int v = 0; v < 4; ++v)
        vst1q_f32(lanes + v * 4, acc[s][r][v]);
      for (index j = 0; j < min_index(NR, x->n - begin); ++j)
        target[j] = lanes[j] + (x->first ? 0.0f : target[j]);
    }
  }
}

#else

INLINE void tile(int rows, int streams, index apart, index panel,
                 element_type type, const product *x) {
  for (int s = 0; s < streams; ++s) {
    const index first = (panel + s * apart) * NR;
    for (index j = first; j < min_index(first + NR, x->n); ++j) {
      for (index r = 0; r < rows; ++r) {
        float sum = 0, *target = x->out + r * x->n + j;
        for (index p = 0; p < x->depth; ++p)
          sum += x->a[r * x->k + p] *
                 load_element(x->w, type, first * x->k + p * NR + j - first);
        *target = sum + (x->first ? 0.0f : *target);
      }
    }
  }
}

#endif

// Multiplies `rows` rows, 1 to MR, by panels begin..end.
typedef void tiles_function(index rows, index begin, index end, const product *x);

DEFINE_ROW_TILES(tiles_f32, ELEMENT_F32, x)
DEFINE_ROW_TILES(tiles_bf16, ELEMENT_BF16, x)
DEFINE_ROW_TILES(tiles_f16, ELEMENT_F16, x)

// Multiplies rows by panels, in blocks of KC.
//
// Weights are read from memory once, and from this core's cache for every further
// tile of rows. So the panels of a call should fit in that cache: up to four of KC.
INLINE void multiply(element_type type, tiles_function *tiles, const void *w,
                     const float *a, float *out, index m, index n, index k,
                     index panel_begin, index panel_end) {
  // Rows are divided evenly: 4 + 4 is faster than 6 + 2.
  const index count = divide_up(m, MR);
  for (index p = 0; p < k; p += KC) {
    for (index t = 0; t < count; ++t) {
      const index i = m * t / count, rows = m * (t + 1) / count - i;
      const product x = {.w = element_at(w, type, p * NR),
                         .a = a + i * k + p,
                         .out = out + i * n,
                         .n = n,
                         .k = k,
                         .depth = min_index(KC, k - p),
                         .first = p == 0,
                         .cold = t == 0};
      tiles(rows, panel_begin, panel_end, &x);
    }
  }
}

// Specializations of multiply(), which take too much code to be in every caller.
typedef void multiply_function(const void *w, const float *a, float *out,
                               index m, index n, index k, index panel_begin,
                               index panel_end);

#define SPECIALIZED __attribute__((noinline)) static

SPECIALIZED void multiply_f32(const void *w, const float *a, float *out,
                              index m, index n, index k, index panel_begin,
                              index panel_end) {
  multiply(ELEMENT_F32, tiles_f32, w, a, out, m, n, k, panel_begin, panel_end);
}

SPECIALIZED void multiply_bf16(const void *w, const float *a, float *out,
                               index m, index n, index k, index panel_begin,
                               index panel_end) {
  multiply(ELEMENT_BF16, tiles_bf16, w, a, out, m, n, k, panel_begin, panel_end);
}

SPECIALIZED void multiply_f16(const void *w, const float *a, float *out,
                              index m, index n, index k, index panel_begin,
                              index panel_end) {
  multiply(ELEMENT_F16, tiles_f16, w, a, out, m, n, k, panel_begin, panel_end);
}

INLINE void matmul(multiply_function *by, const void *w, const float *a,
                   const int32_t *lengths, float *out, index batch,
                   index tokens, index n, index k, index panel_begin,
                   index panel_end) {
  for (index b = 0; b < batch; ++b) {
    const index first = b * tokens, m = real_rows(lengths, b, tokens);
    by(w, a + first * k, out + first * n, m, n, k, panel_begin, panel_end);
  }
}

void matmul_f32(const float *w, const float *a, const int32_t *lengths,
                float *out, index batch, index tokens, index n, index k,
                index panel_begin, index panel_end) {
  matmul(multiply_f32, w, a, lengths, out, batch, tokens, n, k, panel_begin,
         panel_end);
}

void matmul_bf16(const uint16_t *w, const float *a, const int32_t *lengths,
                 float *out, index batch, index tokens, index n, index k,
                 index panel_begin, index panel_end) {
  matmul(multiply_bf16, w, a, lengths, out, batch, tokens, n, k, panel_begin,
         panel_end);
}

void matmul_f16(const uint16_t *w, const float *a, const int32_t *lengths,
                float *out, index batch, index tokens, index n, index k,
                index panel_begin, index panel_end) {
  matmul(multiply_f16, w, a, lengths, out, batch, tokens, n, k, panel_begin,
         panel_end);
}

INLINE void matmul_experts(element_type type, multiply_function *by,
                           const void *w, const float *a, EXPERTS) {
  const index panels = divide_up(n, NR);
  expert_part p;
  for (index item = begin;
       next_expert_part(experts, begins, panels, &item, end, &p);) {
    const index panel = p.expert * panels;
    by(element_at(w, type, panel * NR * k), a + p.row * k, out + p.row * n,
       p.rows, n, k, p.panel_begin, p.panel_end);
  }
}

void matmul_f32_experts(const float *w, const float *a, EXPERTS) {
  matmul_experts(ELEMENT_F32, multiply_f32, w, a, experts, begins, out, n, k,
                 begin, end);
}

void matmul_bf16_experts(const uint16_t *w, const float *a, EXPERTS) {
  matmul_experts(ELEMENT_BF16, multiply_bf16, w, a, experts, begins, out, n, k,
                 begin, end);
}

void matmul_f16_experts(const uint16_t *w, const float *a, EXPERTS) {
  matmul_experts(ELEMENT_F16, multiply_f16, w, a, experts, begins, out, n, k,
                 begin, end);
}
