// out = a * w^T with 4-bit weights in groups of 32 (ggml's Q4_0: weight =
// (nibble - 8) * d) and 8-bit activations in the same groups.
//
//   w         [ceil(n / NR)][k / 32][4][NR][4] bytes: byte [j][r][e] of a block
//             holds row r's weight k = 4j + e low and k = 16 + 4j + e high
//   w_scale   [ceil(n / NR)][k / 32][NR] f16 (d); rows past n hold anything
//             finite
//   a         [batch][tokens][k], a_scale and a_offset
//             [batch][tokens][k / 32]; a_offset is a_scale * 8 * (sum of the
//             group's a), which takes the - 8 of all nibbles out of the inner
//             loop
//   lengths   [batch]; see real_rows()
//   out       [batch][tokens][n]
//
// A lane of 32 bits belongs to one row, so vpmaddubsw with four activations in
// every lane needs no shuffles. Its sums of two products are at most
// 2 * 15 * 127, so the eight of a group add up in 16 bits without overflow.

#include "kernels.h"

#define NR 8 // columns of a panel
#define MR 3 // most rows of a register tile: more would spill the nibbles
#define GROUP 32
#define GROUP_BYTES (GROUP / 2 * NR)
#define PREFETCH_AHEAD 1024 // bytes

#if defined(__AVX2__)

// The four activations at a, in every lane.
INLINE __m256i broadcast_four(const int8_t *a) {
  int32_t four;
  __builtin_memcpy(&four, a, sizeof four);
  return _mm256_set1_epi32(four);
}

// nibbles[j] holds k = 4j..4j+3 of each row.
INLINE void unpack_nibbles(const uint8_t *w, __m256i nibbles[8]) {
  const __m256i mask = _mm256_set1_epi8(0x0f);
#pragma clang loop unroll(full)
  for (int j = 0; j < 4; ++j) {
    const __m256i packed = _mm256_loadu_si256((const __m256i *)(w + j * 32));
    nibbles[j] = _mm256_and_si256(packed, mask);
    nibbles[j + 4] = _mm256_and_si256(_mm256_srli_epi16(packed, 4), mask);
  }
}

// dots[r] = the sums of nibble * a[r] over the group, per column. Rows go in
// step: one after the other, their chains of additions would fill the
// processor's queues and leave its units idle.
INLINE void dot_group(int rows, const __m256i nibbles[8], const int8_t *a,
                      index k, __m256 dots[MR]) {
  __m256i sums[MR];
#pragma clang loop unroll(full)
  for (int j = 0; j < 8; ++j) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const __m256i products = _mm256_maddubs_epi16(
          nibbles[j], broadcast_four(a + r * k + 4 * j));
      sums[r] = j ? _mm256_add_epi16(sums[r], products) : products;
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    dots[r] = _mm256_cvtepi32_ps(
        _mm256_madd_epi16(sums[r], _mm256_set1_epi16(1)));
}

INLINE void store_columns(__m256 x, float *out, index columns) {
  if (columns >= NR) {
    _mm256_storeu_ps(out, x);
    return;
  }
  float lanes[NR];
  _mm256_storeu_ps(lanes, x);
  for (index j = 0; j < columns; ++j)
    out[j] = lanes[j];
}

INLINE void tile(int rows, int panels, const uint8_t *w,
                 const uint16_t *w_scale, const int8_t *a, const float *a_scale,
                 const float *a_offset, float *out, index columns, index n,
                 index k) {
  const index groups = k / GROUP;
  __m256 acc[STREAMS][MR];
#pragma clang loop unroll(full)
  for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[s][r] = _mm256_setzero_ps();
  }
  for (index g = 0; g < groups; ++g) {
#pragma clang loop unroll(full)
    for (int s = 0; s < panels; ++s) {
      const index group = s * groups + g;
      const uint8_t *weights = w + group * GROUP_BYTES;
      __m256i nibbles[8];
      __m256 dots[MR];
      if (panels == 1) {
        prefetch(weights, PREFETCH_AHEAD);
        prefetch(weights, PREFETCH_AHEAD + 64);
      }
      unpack_nibbles(weights, nibbles);
      const __m256 d = load_lanes(w_scale, ELEMENT_F16, group * NR);
      dot_group(rows, nibbles, a + g * GROUP, k, dots);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const index at = r * groups + g;
        const __m256 x = _mm256_fmsub_ps(dots[r], _mm256_set1_ps(a_scale[at]),
                                         _mm256_set1_ps(a_offset[at]));
        acc[s][r] = _mm256_fmadd_ps(x, d, acc[s][r]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      store_columns(acc[s][r], out + r * n + s * NR, columns - s * NR);
  }
}

#elif defined(__ARM_FEATURE_DOTPROD)

// acc[r] += one group, for the four columns of half a panel.
INLINE void add_group(int rows, const uint8_t *w, float32x4_t d,
                      const int8_t *a, const float *a_scale,
                      const float *a_offset, index k, float32x4_t acc[]) {
  int8x16_t nibbles[8];
#pragma clang loop unroll(full)
  for (int j = 0; j < 4; ++j) {
    const uint8x16_t packed = vld1q_u8(w + j * 32);
    nibbles[j] = vreinterpretq_s8_u8(vandq_u8(packed, vdupq_n_u8(0x0f)));
    nibbles[j + 4] = vreinterpretq_s8_u8(vshrq_n_u8(packed, 4));
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    int32x4_t sums = vdupq_n_s32(0);
#pragma clang loop unroll(full)
    for (int j = 0; j < 8; ++j)
      sums = vdotq_s32(sums, nibbles[j], broadcast_bytes(a + r * k + 4 * j));
    const index at = r * (k / GROUP);
    const float32x4_t x = vfmaq_n_f32(vdupq_n_f32(-a_offset[at]),
                                      vcvtq_f32_s32(sums), a_scale[at]);
    acc[r] = vfmaq_f32(acc[r], x, d);
  }
}

INLINE void tile(int rows, int panels, const uint8_t *w,
                 const uint16_t *w_scale, const int8_t *a, const float *a_scale,
                 const float *a_offset, float *out, index columns, index n,
                 index k) {
  const index groups = k / GROUP;
  float32x4_t low[STREAMS][MR], high[STREAMS][MR];
#pragma clang loop unroll(full)
  for (int s = 0; s < panels; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      low[s][r] = high[s][r] = vdupq_n_f32(0.0f);
  }
  for (index g = 0; g < groups; ++g) {
#pragma clang loop unroll(full)
    for (int s = 0; s < panels; ++s) {
      const index group = s * groups + g;
      const uint8_t *weights = w + group * GROUP_BYTES;
      add_group(rows, weights, load_quad(w_scale, ELEMENT_F16, group * NR),
                a + g * GROUP, a_scale + g, a_offset + g, k, low[s]);
      add_group(rows, weights + 16,
                load_quad(w_scale, ELEMENT_F16, group * NR + 4), a + g * GROUP,
                a_scale + g, a_offset + g, k, high[s]);
    }
  }
  for (int s = 0; s < panels; ++s) {
    for (int r = 0; r < rows; ++r) {
      float lanes[NR];
      vst1q_f32(lanes, low[s][r]);
      vst1q_f32(lanes + 4, high[s][r]);
      for (index j = 0; j < min_index(NR, columns - s * NR); ++j)
        out[r * n + s * NR + j] = lanes[j];
    }
  }
}

#else

INLINE int32_t dot_group(const uint8_t *w, const int8_t *a, index row) {
  int32_t sum = 0;
  for (index j = 0; j < 4; ++j) {
    for (index e = 0; e < 4; ++e) {
      const int32_t packed = w[(j * NR + row) * 4 + e];
      sum += (packed & 15) * a[4 * j + e] + (packed >> 4) * a[16 + 4 * j + e];
    }
  }
  return sum;
}

INLINE void tile(int rows, int panels, const uint8_t *w,
                 const uint16_t *w_scale, const int8_t *a, const float *a_scale,
                 const float *a_offset, float *out, index columns, index n,
                 index k) {
  const index groups = k / GROUP;
  for (index i = 0; i < rows; ++i) {
    for (index j = 0; j < min_index(panels * NR, columns); ++j) {
      float sum = 0;
      for (index g = 0; g < groups; ++g) {
        const index group = j / NR * groups + g, at = i * groups + g;
        const int32_t dot = dot_group(w + group * GROUP_BYTES,
                                      a + i * k + g * GROUP, j % NR);
        const float x = (float)dot * a_scale[at] - a_offset[at];
        sum += x * float_from_f16(w_scale[group * NR + j % NR]);
      }
      out[i * n + j] = sum;
    }
  }
}

#endif

// The first `rows` rows with `panels` panels, of which `columns` columns exist.
static void tile_rows(index rows, index panels, const uint8_t *w,
                      const uint16_t *w_scale, const int8_t *a,
                      const float *a_scale, const float *a_offset, float *out,
                      index columns, index n, index k) {
#define TILE(rows, panels)                                                     \
  tile(rows, panels, w, w_scale, a, a_scale, a_offset, out, columns, n, k)
  switch (rows) {
  case 1: panels == 1 ? TILE(1, 1) : TILE(1, STREAMS); break;
  case 2: TILE(2, 1); break;
  default: TILE(3, 1); break;
  }
#undef TILE
}

static void multiply(const uint8_t *w, const uint16_t *w_scale, const int8_t *a,
                     const float *a_scale, const float *a_offset, float *out,
                     index m, index n, index k, index panel_begin,
                     index panel_end) {
  // As in matmul_q8.c: tiles of rows outside, the panels of a call inside.
  const index groups = k / GROUP;
  const index tiles = divide_up(m, MR);
  for (index t = 0; t < tiles; ++t) {
    const index i = m * t / tiles, rows = m * (t + 1) / tiles - i;
    for (index panel = panel_begin, panels; panel < panel_end;
         panel += panels) {
      const index j = panel * NR;
      panels = panels_at_once(rows, panel_end - panel);
      tile_rows(rows, panels, w + panel * groups * GROUP_BYTES,
                w_scale + j * groups, a + i * k, a_scale + i * groups,
                a_offset + i * groups, out + i * n + j, n - j, n, k);
    }
  }
}

void matmul_q4(const uint8_t *w, const uint16_t *w_scale, const int8_t *a,
               const float *a_scale, const float *a_offset,
               const int32_t *lengths, float *out, index batch, index tokens,
               index n, index k, index panel_begin, index panel_end) {
  const index groups = k / GROUP;
  for (index b = 0; b < batch; ++b) {
    const index first = b * tokens, m = real_rows(lengths, b, tokens);
    multiply(w, w_scale, a + first * k, a_scale + first * groups,
             a_offset + first * groups, out + first * n, m, n, k, panel_begin,
             panel_end);
    clear_padding_rows(out + (first + m) * n, tokens - m, n, panel_begin * NR,
                       panel_end * NR);
  }
}
