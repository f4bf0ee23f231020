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
// A lane of 32 bits belongs to one row, so vpdpbusd or vpmaddubsw with four
// activations in every lane needs no shuffles. The latter's sums of two
// products are at most 2 * 15 * 127, so the eight of a group add up in 16 bits
// without overflow. AVX-512 takes two panels at a time, side by side in its
// registers.

#include "matmul.h"

#define NR 8 // columns of a panel
// Most rows of a register tile: more would spill the nibbles.
#if defined(__AVX512VNNI__)
#define MR 8
#define PANELS 2 // at a time
#else
#define MR 3
#define PANELS 1
#endif
#define GROUP 32
#define GROUP_BYTES (GROUP / 2 * NR)
#define PREFETCH_AHEAD 1024 // bytes

#if defined(__AVX512VNNI__)

// nibbles[j] holds k = 4j..4j+3 of each row of both panels.
INLINE void unpack_nibbles(const uint8_t *left, const uint8_t *right,
                           __m512i nibbles[8]) {
  const __m512i mask = _mm512_set1_epi8(0x0f);
#pragma clang loop unroll(full)
  for (int j = 0; j < 4; ++j) {
    const __m512i packed = _mm512_inserti64x4(
        _mm512_castsi256_si512(
            _mm256_loadu_si256((const __m256i *)(left + j * 32))),
        _mm256_loadu_si256((const __m256i *)(right + j * 32)), 1);
    nibbles[j] = _mm512_and_si512(packed, mask);
    nibbles[j + 4] = _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask);
  }
}

INLINE __m512 load_scales(const uint16_t *left, const uint16_t *right) {
  return _mm512_cvtph_ps(_mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)left)),
      _mm_loadu_si128((const __m128i *)right), 1));
}

// dots[r] = the sums of nibble * a[r] over the group, per column.
INLINE void dot_group(int rows, const __m512i nibbles[8], const int8_t *a,
                      index k, __m512 dots[MR]) {
  const int8_t *row[MR]; // every third, from which the next two are reached
  __m512i sums[MR];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    row[r] = r % 3 ? row[r - 1] + k : a + r * k;
    if (r % 3 == 0) // else compilers work out each address anew
      __asm__("" : "+r"(row[r]));
  }
#pragma clang loop unroll(full)
  for (int j = 0; j < 8; ++j) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      sums[r] = _mm512_dpbusd_epi32(j ? sums[r] : _mm512_setzero_si512(),
                                    nibbles[j], broadcast_four(row[r] + 4 * j));
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    dots[r] = _mm512_cvtepi32_ps(sums[r]);
}

INLINE void tile(int rows, const uint8_t *w, const uint16_t *w_scale,
                 const int8_t *a, const float *a_scale, const float *a_offset,
                 float *out, index columns, index n, index k) {
  const index groups = k / GROUP;
  // Without a second panel, the first once more, of which nothing is stored.
  const index right = columns > NR ? groups : 0;
  __m512 acc[MR];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    acc[r] = _mm512_setzero_ps();
  for (index g = 0; g < groups; ++g) {
    const uint8_t *block = w + g * GROUP_BYTES;
    const uint16_t *scales = w_scale + g * NR;
    __m512i nibbles[8];
    __m512 dots[MR];
#pragma clang loop unroll(full)
    for (int line = 0; line < GROUP_BYTES; line += 64) {
      prefetch(block + line, PREFETCH_AHEAD);
      prefetch(block + right * GROUP_BYTES + line, PREFETCH_AHEAD);
    }
    unpack_nibbles(block, block + right * GROUP_BYTES, nibbles);
    const __m512 d = load_scales(scales, scales + right * NR);
    dot_group(rows, nibbles, a + g * GROUP, k, dots);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const index at = r * groups + g;
      const __m512 x = _mm512_fmsub_ps(dots[r], _mm512_set1_ps(a_scale[at]),
                                       _mm512_set1_ps(a_offset[at]));
      acc[r] = _mm512_fmadd_ps(x, d, acc[r]);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    _mm512_mask_storeu_ps(out + r * n, first_lanes(columns), acc[r]);
}

#elif defined(__AVX2__)

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

INLINE void tile(int rows, const uint8_t *w, const uint16_t *w_scale,
                 const int8_t *a, const float *a_scale, const float *a_offset,
                 float *out, index columns, index n, index k) {
  const index groups = k / GROUP;
  __m256 acc[MR];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    acc[r] = _mm256_setzero_ps();
  for (index g = 0; g < groups; ++g) {
    __m256i nibbles[8];
    __m256 dots[MR];
    prefetch(w + g * GROUP_BYTES, PREFETCH_AHEAD);
    prefetch(w + g * GROUP_BYTES, PREFETCH_AHEAD + 64);
    unpack_nibbles(w + g * GROUP_BYTES, nibbles);
    const __m256 d = load_lanes(w_scale, ELEMENT_F16, g * NR);
    dot_group(rows, nibbles, a + g * GROUP, k, dots);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const index at = r * groups + g;
      const __m256 x = _mm256_fmsub_ps(dots[r], _mm256_set1_ps(a_scale[at]),
                                       _mm256_set1_ps(a_offset[at]));
      acc[r] = _mm256_fmadd_ps(x, d, acc[r]);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    store_columns(acc[r], out + r * n, columns);
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

INLINE void tile(int rows, const uint8_t *w, const uint16_t *w_scale,
                 const int8_t *a, const float *a_scale, const float *a_offset,
                 float *out, index columns, index n, index k) {
  float32x4_t low[MR], high[MR];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    low[r] = high[r] = vdupq_n_f32(0.0f);
  for (index g = 0; g < k / GROUP; ++g) {
    const uint8_t *group = w + g * GROUP_BYTES;
    add_group(rows, group, load_quad(w_scale, ELEMENT_F16, g * NR),
              a + g * GROUP, a_scale + g, a_offset + g, k, low);
    add_group(rows, group + 16, load_quad(w_scale, ELEMENT_F16, g * NR + 4),
              a + g * GROUP, a_scale + g, a_offset + g, k, high);
  }
  for (int r = 0; r < rows; ++r) {
    float lanes[NR];
    vst1q_f32(lanes, low[r]);
    vst1q_f32(lanes + 4, high[r]);
    for (index j = 0; j < columns; ++j)
      out[r * n + j] = lanes[j];
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

static void tile_rows(index rows, const uint8_t *w, const uint16_t *w_scale,
                      const int8_t *a, const float *a_scale,
                      const float *a_offset, float *out, index columns, index n,
                      index k) {
  const index groups = k / GROUP;
  for (index i = 0; i < rows; ++i) {
    for (index j = 0; j < columns; ++j) {
      float sum = 0;
      for (index g = 0; g < groups; ++g) {
        const int32_t dot =
            dot_group(w + g * GROUP_BYTES, a + i * k + g * GROUP, j);
        const float x =
            (float)dot * a_scale[i * groups + g] - a_offset[i * groups + g];
        sum += x * float_from_f16(w_scale[g * NR + j]);
      }
      out[i * n + j] = sum;
    }
  }
}

#endif

#if defined(__AVX2__) || defined(__ARM_FEATURE_DOTPROD)

static void tile_rows(index rows, const uint8_t *w, const uint16_t *w_scale,
                      const int8_t *a, const float *a_scale,
                      const float *a_offset, float *out, index columns, index n,
                      index k) {
  TILE_OF_ROWS(rows, w, w_scale, a, a_scale, a_offset, out, columns, n, k)
}

#endif

static void multiply(const uint8_t *w, const uint16_t *w_scale, const int8_t *a,
                     const float *a_scale, const float *a_offset, float *out,
                     index m, index n, index k, index panel_begin,
                     index panel_end) {
  // As in matmul_q8.c: tiles of rows outside, the panels of a call inside.
  const index groups = k / GROUP;
  const index tiles = divide_up(m, MR);
  for (index t = 0; t < tiles; ++t) {
    const index i = m * t / tiles, rows = m * (t + 1) / tiles - i;
    for (index panel = panel_begin; panel < panel_end; panel += PANELS) {
      const index j = panel * NR, end = min_index(panel + PANELS, panel_end);
      tile_rows(rows, w + panel * groups * GROUP_BYTES, w_scale + j * groups,
                a + i * k, a_scale + i * groups, a_offset + i * groups,
                out + i * n + j, min_index(end * NR, n) - j, n, k);
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
