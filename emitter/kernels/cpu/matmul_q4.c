// out = a * w^T with 4-bit weights in groups of 32 (ggml's Q4_0: weight =
// (nibble - 8) * d) and 8-bit activations in the same groups.
//
//   w         [ceil(n / NR)][k / 32][4][NR][4] bytes: byte [j][r][e] of a block
//             holds row r's weight k = 4j + e low and k = 16 + 4j + e high; NR is
//             16 with AVX-512, otherwise 8
//   w_scale   [ceil(n / NR)][k / 32][NR] f16 (d); rows past n hold anything
//             finite
//   a         [batch][tokens][k], a_scale [batch][tokens][k / 32]
//   a_sums    [batch][tokens][k / 16]: sums of a over each half of a group, which
//             take the - 8 of all nibbles out of the inner loop
//   lengths   [batch]; see real_rows()
//   out       [batch][tokens][n]
//
// Sums of a group are exact. Each output adds sum * a_scale * d over ascending groups:
// the result of a row may not depend on the others of the call.
//
// A lane of 32 bits belongs to one row, so vpdpbusd and vpmaddubsw, with four
// activations in every lane, need no shuffles. The sums of two products that
// vpmaddubsw returns are at most 2 * 15 * 127, so the eight of a group add up in 16
// bits without overflow.

#include "amx.h"

#define NR Q4_COLUMNS // of a panel
#define PANELS 1      // at a time
// Maximum of rows in a register tile, and of rows times streams. Intel's cores gain a
// sixth from reading in four places. Zen 4, which is told by bf16 without AMX, loses a
// quarter: with the scales, that is too many for it to prefetch.
#if defined(__AVX512VNNI__)
#define MR 12
#if defined(__AVX512BF16__) && !defined(__AMX_INT8__)
#define SUMS 1
#else
#define SUMS 8
#endif
#else
#define MR 3
#define SUMS 3
#endif
#define BLOCK 128 // rows for which AMX unpacks weights once
#define GROUP 32
#define GROUP_BYTES (GROUP / 2 * NR)

// The part of a product that one register tile computes.
typedef struct {
  const uint8_t *w;
  const uint16_t *w_scale;
  const int8_t *a;
  const float *a_scale;
  const int16_t *a_sums;
  float *out;
  index n, k;
  int cold; // weights are not in this core's cache yet
} product;

// Returns what the sums of group g of a row begin with, from those of its row.
INLINE int32_t first_summand(const int16_t *sums, index g) {
  return -8 * (sums[2 * g] + sums[2 * g + 1]);
}

#if defined(__AVX512VNNI__)

// Bytes of weights to prefetch ahead, which was found by measuring.
#define PREFETCH_AHEAD 4096

// Sets `low` and `high` to k = 4j..4j+3 and 16+4j..16+4j+3 of each row.
INLINE void unpack_nibbles(const uint8_t *block, int j, __m512i *low,
                           __m512i *high) {
  const __m512i mask = _mm512_set1_epi8(0x0f);
  const __m512i packed = _mm512_loadu_si512(block + j * 64);
  *low = _mm512_and_si512(packed, mask);
  *high = _mm512_and_si512(_mm512_srli_epi16(packed, 4), mask);
}

// Sets sums[r] to the sums of nibble * a[r] over group g, per column, plus the row's
// start.
INLINE void dot_group(int rows, const product *x, const uint8_t *block, index g,
                      __m512i sums[MR]) {
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    sums[r] = _mm512_set1_epi32(first_summand(x->a_sums + r * (x->k / 16), g));
#pragma clang loop unroll(full)
  for (int j = 0; j < 4; ++j) {
    const int8_t *a = x->a + g * GROUP + 4 * j;
    __m512i low, high;
    unpack_nibbles(block, j, &low, &high);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const int8_t *four = a + r * x->k;
      sums[r] = _mm512_dpbusd_epi32(sums[r], low, broadcast_four(four));
      sums[r] = _mm512_dpbusd_epi32(sums[r], high, broadcast_four(four + 16));
    }
  }
}

INLINE __m512 load_scales(const uint16_t *scales) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)scales));
}

INLINE void tile(int rows, int streams, index apart, index panel,
                 const product *x) {
  const index groups = x->k / GROUP;
  __m512 acc[STREAMS][MR];
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[s][r] = _mm512_setzero_ps();
  }
  for (index g = 0; g < groups; ++g) {
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      const index group = (panel + s * apart) * groups + g;
      const uint8_t *block = x->w + group * GROUP_BYTES;
      __m512i sums[MR];
#pragma clang loop unroll(full)
      for (int line = 0; x->cold && line < GROUP_BYTES; line += 64)
        prefetch(block + line, PREFETCH_AHEAD);
      dot_group(rows, x, block, g, sums);
      const __m512 d = load_scales(x->w_scale + group * NR);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const __m512 a_scale = _mm512_set1_ps(x->a_scale[r * groups + g]);
        const __m512 dots = _mm512_cvtepi32_ps(sums[r]);
        acc[s][r] = _mm512_fmadd_ps(_mm512_mul_ps(dots, a_scale), d, acc[s][r]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
    const __mmask16 mask = first_lanes(x->n - j);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      _mm512_mask_storeu_ps(x->out + r * x->n + j, mask, acc[s][r]);
  }
}

#if defined(__AMX_INT8__)

// Groups that are unpacked together: as bytes they stay in L1 for all rows.
#define AMX_GROUPS 16
#define AMX_DELAY 4 // groups between storing sums and reading them

typedef struct {
  __m512i w[AMX_GROUPS][8]; // weights without their scale, -8 to 7
  __m512 d[AMX_GROUPS];
} amx_groups;

INLINE void amx_unpack(const product *x, index panel, index first, index count,
                       amx_groups *groups) {
  const __m512i zero = _mm512_set1_epi8(8);
  for (index g = 0; g < count; ++g) {
    const index group = panel * (x->k / GROUP) + first + g;
#pragma clang loop unroll(full)
    for (int j = 0; j < 4; ++j) {
      __m512i low, high;
      unpack_nibbles(x->w + group * GROUP_BYTES, j, &low, &high);
      groups->w[g][j] = _mm512_sub_epi8(low, zero);
      groups->w[g][j + 4] = _mm512_sub_epi8(high, zero);
    }
    groups->d[g] = load_scales(x->w_scale + group * NR);
  }
}

// Adds the groups from `first` on to `out`, for the rows of one tile or fewer.
INLINE void amx_add(index rows, const int8_t *a, const float *a_scale,
                    index first, index count, const amx_groups *groups, index k,
                    __m512 out[AMX_ROWS]) {
  const index all = k / GROUP;
  __m512 acc[AMX_ROWS];
  for (index r = 0; r < rows; ++r)
    acc[r] = first ? out[r] : _mm512_setzero_ps();
  // A stored tile can be read only some time later, so the next ones are computed
  // in the meantime.
  int32_t sums[2 * AMX_DELAY][AMX_ROWS][16];
  for (index next = 0; next < count + AMX_DELAY; ++next) {
    if (next < count) {
      _tile_loadd(4, a + (first + next) * GROUP, k);
      _tile_loadd(6, groups->w[next], AMX_BYTES);
      _tile_zero(0);
      _tile_dpbssd(0, 4, 6);
      _tile_stored(0, sums[next % (2 * AMX_DELAY)], AMX_BYTES);
    }
    const index g = next - AMX_DELAY;
    if (g < 0)
      continue;
    const float *scale = a_scale + first + g;
    for (index r = 0; r < rows; ++r) {
      const __m512 dots =
          _mm512_cvtepi32_ps(_mm512_loadu_si512(sums[g % (2 * AMX_DELAY)][r]));
      acc[r] =
          _mm512_fmadd_ps(_mm512_mul_ps(dots, _mm512_set1_ps(scale[r * all])),
                          groups->d[g], acc[r]);
    }
  }
  for (index r = 0; r < rows; ++r)
    out[r] = acc[r];
}

// Multiplies up to BLOCK rows by a panel.
INLINE void amx_tile(index rows, index panel, const product *x) {
  const index all = x->k / GROUP, rest = rows % AMX_ROWS, whole = rows - rest;
  amx_groups groups;
  __m512 acc[BLOCK];
  for (index first = 0; first < all; first += AMX_GROUPS) {
    const index count = min_index(AMX_GROUPS, all - first);
    amx_unpack(x, panel, first, count, &groups);
    amx_begin(AMX_ROWS, GROUP);
    for (index r = 0; r < whole; r += AMX_ROWS)
      amx_add(AMX_ROWS, x->a + r * x->k, x->a_scale + r * all, first, count,
              &groups, x->k, acc + r);
    if (rest) {
      amx_begin(rest, GROUP);
      amx_add(rest, x->a + whole * x->k, x->a_scale + whole * all, first, count,
              &groups, x->k, acc + whole);
    }
  }
  const index j = panel * NR;
  for (index r = 0; r < rows; ++r)
    _mm512_mask_storeu_ps(x->out + r * x->n + j, first_lanes(x->n - j), acc[r]);
}

#endif

#elif defined(__AVX2__)

// Returns how many bytes ahead to prefetch, which was found by measuring.
INLINE index prefetch_ahead(int streams) { return streams > 1 ? 512 : 1024; }

// Broadcasts the four activations at a to every lane.
INLINE __m256i broadcast_four(const int8_t *a) {
  int32_t four;
  __builtin_memcpy(&four, a, sizeof four);
  return _mm256_set1_epi32(four);
}

// Sets nibbles[j] to k = 4j..4j+3 of each row.
INLINE void unpack_nibbles(const uint8_t *w, __m256i nibbles[8]) {
  const __m256i mask = _mm256_set1_epi8(0x0f);
#pragma clang loop unroll(full)
  for (int j = 0; j < 4; ++j) {
    const __m256i packed = _mm256_loadu_si256((const __m256i *)(w + j * 32));
    nibbles[j] = _mm256_and_si256(packed, mask);
    nibbles[j + 4] = _mm256_and_si256(_mm256_srli_epi16(packed, 4), mask);
  }
}

// Sets dots[r] to the sums of nibble * a[r] over the group, per column, plus the
// first summand. Rows are interleaved: one
// after the other, their dependency chains would leave execution units idle.
INLINE void dot_group(int rows, const __m256i nibbles[8], const int8_t *a,
                      const int16_t *a_sums, index k, __m256 dots[MR]) {
  __m256i sums[MR];
#pragma clang loop unroll(full)
  for (int j = 0; j < 8; ++j) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const __m256i products =
          _mm256_maddubs_epi16(nibbles[j], broadcast_four(a + r * k + 4 * j));
      sums[r] = j ? _mm256_add_epi16(sums[r], products) : products;
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    dots[r] = _mm256_cvtepi32_ps(_mm256_add_epi32(
        _mm256_madd_epi16(sums[r], _mm256_set1_epi16(1)),
        _mm256_set1_epi32(first_summand(a_sums + r * (k / 16), 0))));
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

INLINE void tile(int rows, int streams, index apart, index panel,
                 const product *x) {
  const index groups = x->k / GROUP;
  __m256 acc[STREAMS][MR];
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[s][r] = _mm256_setzero_ps();
  }
  for (index g = 0; g < groups; ++g) {
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      const index group = (panel + s * apart) * groups + g;
      const uint8_t *block = x->w + group * GROUP_BYTES;
      __m256i nibbles[8];
      __m256 dots[MR];
      prefetch(block, prefetch_ahead(streams));
      prefetch(block, prefetch_ahead(streams) + 64);
      unpack_nibbles(block, nibbles);
      const __m256 d = load_lanes(x->w_scale, ELEMENT_F16, group * NR);
      dot_group(rows, nibbles, x->a + g * GROUP, x->a_sums + 2 * g, x->k, dots);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const __m256 a_scale = _mm256_set1_ps(x->a_scale[r * groups + g]);
        acc[s][r] =
            _mm256_fmadd_ps(_mm256_mul_ps(dots[r], a_scale), d, acc[s][r]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const index j = (panel + s * apart) * NR;
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      store_columns(acc[s][r], x->out + r * x->n + j, x->n - j);
  }
}

#elif defined(__ARM_FEATURE_DOTPROD)

// Adds one group to acc[r], for the four columns of half a panel.
INLINE void add_group(int rows, const uint8_t *w, float32x4_t d,
                      const int8_t *a, const float *a_scale,
                      const int16_t *a_sums, index k, float32x4_t acc[]) {
  int8x16_t nibbles[8];
#pragma clang loop unroll(full)
  for (int j = 0; j < 4; ++j) {
    const uint8x16_t packed = vld1q_u8(w + j * 32);
    nibbles[j] = vreinterpretq_s8_u8(vandq_u8(packed, vdupq_n_u8(0x0f)));
    nibbles[j + 4] = vreinterpretq_s8_u8(vshrq_n_u8(packed, 4));
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    const index at = r * (k / GROUP);
    int32x4_t sums = vdupq_n_s32(first_summand(a_sums + r * (k / 16), 0));
#pragma clang loop unroll(full)
    for (int j = 0; j < 8; ++j)
      sums = vdotq_s32(sums, nibbles[j], broadcast_bytes(a + r * k + 4 * j));
    acc[r] =
        vfmaq_f32(acc[r], vmulq_n_f32(vcvtq_f32_s32(sums), a_scale[at]), d);
  }
}

INLINE void tile(int rows, int streams, index apart, index panel,
                 const product *x) {
  const index groups = x->k / GROUP;
  float32x4_t low[STREAMS][MR], high[STREAMS][MR];
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      low[s][r] = high[s][r] = vdupq_n_f32(0.0f);
  }
  for (index g = 0; g < groups; ++g) {
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      const index group = (panel + s * apart) * groups + g;
      const uint8_t *block = x->w + group * GROUP_BYTES;
      const float32x4_t d_low = load_quad(x->w_scale, ELEMENT_F16, group * NR);
      const float32x4_t d_high =
          load_quad(x->w_scale, ELEMENT_F16, group * NR + 4);
      add_group(rows, block, d_low, x->a + g * GROUP, x->a_scale + g,
                x->a_sums + 2 * g, x->k, low[s]);
      add_group(rows, block + 16, d_high, x->a + g * GROUP, x->a_scale + g,
                x->a_sums + 2 * g, x->k, high[s]);
    }
  }
  for (int s = 0; s < streams; ++s) {
    const index begin = (panel + s * apart) * NR;
    for (int r = 0; r < rows; ++r) {
      float lanes[NR];
      vst1q_f32(lanes, low[s][r]);
      vst1q_f32(lanes + 4, high[s][r]);
      for (index j = 0; j < min_index(NR, x->n - begin); ++j)
        x->out[r * x->n + begin + j] = lanes[j];
    }
  }
}

#else

INLINE int32_t dot_group(const uint8_t *w, const int8_t *a, int32_t start,
                         index row) {
  int32_t sum = start;
  for (index j = 0; j < 4; ++j) {
    for (index e = 0; e < 4; ++e) {
      const int32_t packed = w[(j * NR + row) * 4 + e];
      sum += (packed & 15) * a[4 * j + e] + (packed >> 4) * a[16 + 4 * j + e];
    }
  }
  return sum;
}

INLINE void tile(int rows, int streams, index apart, index panel,
                 const product *x) {
  const index groups = x->k / GROUP;
  for (int s = 0; s < streams; ++s) {
    const index first = (panel + s * apart) * NR;
    for (index j = first; j < min_index(first + NR, x->n); ++j) {
      for (index r = 0; r < rows; ++r) {
        float sum = 0;
        for (index g = 0; g < groups; ++g) {
          const index group = first / NR * groups + g, at = r * groups + g;
          const int32_t dot = dot_group(
              x->w + group * GROUP_BYTES, x->a + r * x->k + g * GROUP,
              first_summand(x->a_sums + r * (x->k / 16), g), j - first);
          sum += (float)dot * x->a_scale[at] *
                 float_from_f16(x->w_scale[group * NR + j - first]);
        }
        x->out[r * x->n + j] = sum;
      }
    }
  }
}

#endif

static void multiply(const uint8_t *w, const uint16_t *w_scale, const int8_t *a,
                     const float *a_scale, const int16_t *a_sums, float *out,
                     index m, index n, index k, index panel_begin,
                     index panel_end) {
  const index groups = k / GROUP;
  product x = {.w = w,
               .w_scale = w_scale,
               .a = a,
               .a_scale = a_scale,
               .a_sums = a_sums,
               .out = out,
               .n = n,
               .k = k};
  // As in matmul_q8.c, the outer loop is over tiles of rows, the inner over panels.
  const int by_amx = amx_multiplies(m);
  const index tiles = divide_up(m, by_amx ? BLOCK : MR);
  for (index t = 0; t < tiles; ++t) {
    const index i = m * t / tiles, rows = m * (t + 1) / tiles - i;
    x.a = a + i * k;
    x.a_scale = a_scale + i * groups;
    x.a_sums = a_sums + i * (k / 16);
    x.out = out + i * n;
    x.cold = t == 0;
#if defined(__AMX_INT8__)
    if (by_amx) {
      for (index panel = panel_begin; panel < panel_end; ++panel)
        amx_tile(rows, panel, &x);
      continue;
    }
#endif
    TILES(rows, panel_begin, panel_end, &x);
  }
}

void matmul_q4(const uint8_t *w, const uint16_t *w_scale, const int8_t *a,
               const float *a_scale, const int16_t *a_sums,
               const int32_t *lengths, float *out, index batch, index tokens,
               index n, index k, index panel_begin, index panel_end) {
  const index groups = k / GROUP;
  for (index b = 0; b < batch; ++b) {
    const index first = b * tokens, m = real_rows(lengths, b, tokens);
    multiply(w, w_scale, a + first * k, a_scale + first * groups,
             a_sums + first * (k / 16), out + first * n, m, n, k, panel_begin,
             panel_end);
  }
}

void matmul_q4_experts(const uint8_t *w, const uint16_t *w_scale,
                       const int8_t *a, const float *a_scale,
                       const int16_t *a_sums, EXPERTS) {
  const index groups = k / GROUP;
  const index panels = divide_up(n, NR);
  expert_part p;
  for (index item = begin;
       next_expert_part(experts, begins, panels, &item, end, &p);) {
    const index panel = p.expert * panels;
    multiply(w + panel * NR * k / 2, w_scale + panel * NR * groups,
             a + p.row * k, a_scale + p.row * groups, a_sums + p.row * (k / 16),
             out + p.row * n, p.rows, n, k, p.panel_begin, p.panel_end);
  }
}
