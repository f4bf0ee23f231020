// out = a * w^T with weights in E4M3 and activations in bf16, which tiles multiply in
// pairs; float_codes.h documents the arguments. k and group are even.
//
// Every number of E4M3 is one of bf16. As in matmul_bf16.c, AMX takes every number of
// rows, because it adds products in another order.

#include "amx.h"
#include "e4m3.h"

#define INPUTS 1
#define INPUT_BYTES NR
#define WEIGHT_UNIT 1.0f
#define PAIR 2 // inputs that are multiplied at once
typedef uint16_t activation;

// Writes the bits of the numbers of NR codes.
INLINE void bits_of_e4m3(const uint8_t *stored, uint32_t bits[NR]) {
  const e4m3_codes loaded = load_e4m3(stored);
#pragma clang loop unroll(full)
  for (int part = 0; part < PARTS; ++part) {
    const bit_lanes of_part =
        bits_of_lanes(e4m3_numbers(&loaded, part) * E4M3_UNIT);
    __builtin_memcpy(bits + part * LANES, &of_part, sizeof of_part);
  }
}

#if HAS_AMX

// The bf16 of all codes without a sign: their low bytes, and their high bytes.
// `paired` are the places of four inputs' codes in the order of pairs.
typedef struct {
  __m512i low[2], high[2], paired;
} codes;

INLINE codes all_codes(void) {
  uint8_t low[128], high[128], paired[64];
  for (int first = 0; first < 128; first += NR) {
    uint8_t stored[NR];
    uint32_t bits[NR];
    for (int i = 0; i < NR; ++i)
      stored[i] = (uint8_t)(first + i);
    bits_of_e4m3(stored, bits);
    for (int i = 0; i < NR; ++i) {
      low[first + i] = (uint8_t)(bits[i] >> 16);
      high[first + i] = (uint8_t)(bits[i] >> 24);
    }
  }
  // Unpacking takes halves of a quarter. The first halves have pairs of columns 0 to 15
  // of the first two inputs, the second halves those of the other two.
  for (int i = 0; i < 64; ++i) {
    const int column = i / 16 * 4 + i % 8 / 2, input = i % 16 / 8 * 2 + i % 2;
    paired[i] = (uint8_t)(input * NR + column);
  }
  return (codes){{_mm512_loadu_si512(low), _mm512_loadu_si512(low + 64)},
                 {_mm512_loadu_si512(high), _mm512_loadu_si512(high + 64)},
                 _mm512_loadu_si512(paired)};
}

#include "float_codes.h"

#define BLOCK 128 // rows for which weights are decoded once

// Weights of some of the inputs as pairs, for as many panels as are read at once.
typedef uint16_t decoded[STREAMS][KC * NR];

// Sums of some rows, by panels with these scales.
typedef struct {
  index row, rows;
  const lanes *scales;
  amx_sums sums;
} unscaled;

// Decodes the weights of inputs begin..end of a panel.
INLINE void decode(const product *x, index panel, index begin, index end,
                   uint16_t *pairs) {
  const uint8_t *w = x->w + panel * bytes_before(x->k);
  const __m512i sign = _mm512_set1_epi8((char)0x80);
  for (index p = begin; p < end; p += 2 * PAIR) {
    const uint8_t *stored = w + bytes_before(p);
    uint16_t *to = pairs + (p - begin) * NR;
    const int is_one = p + PAIR == end;
    prefetch(stored, AHEAD);
    const __m512i all =
        _mm512_maskz_loadu_epi8(is_one ? (1ull << PAIR * NR) - 1 : ~0ull, stored);
    const __m512i ordered = _mm512_permutexvar_epi8(x->codes.paired, all);
    const __m512i low = _mm512_permutex2var_epi8(x->codes.low[0], ordered,
                                                 x->codes.low[1]);
    const __m512i unsigned_high = _mm512_permutex2var_epi8(
        x->codes.high[0], ordered, x->codes.high[1]);
    const __m512i high =
        _mm512_or_si512(unsigned_high, _mm512_and_si512(ordered, sign));
    _mm512_storeu_si512(to, _mm512_unpacklo_epi8(low, high));
    if (!is_one)
      _mm512_storeu_si512(to + PAIR * NR, _mm512_unpackhi_epi8(low, high));
  }
}

// Adds sums, scaled, to the totals of `streams` panels.
INLINE void add_scaled(int streams, unscaled *of, lanes *total) {
  for (index r = 0; r < of->rows; ++r)
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      lanes sums, *to = &total[(of->row + r) * streams + s];
      __builtin_memcpy(&sums, amx_row(of->sums, r, s), sizeof sums);
      *to = multiply_add(sums, of->scales[s], *to);
    }
}

// Multiplies up to BLOCK rows, or up to one tile of rows by more than two panels.
INLINE void tile(index rows, int streams, index apart, index panel,
                 const product *x) {
  lanes total[BLOCK * 2], scales[2][STREAMS];
  decoded w;
  // A stored tile can be read only some time later, so the next one is computed in the
  // meantime.
  unscaled slots[2];
  index shape = 0;
  int slot = 0, part = 0;
  slots[1].rows = 0;
  for (index i = 0; i < rows * streams; ++i)
    total[i] = 0.0f;
  for (index begin = 0, end; begin < x->k; begin = end, part ^= 1) {
    end = end_of_part(x, begin);
    const index bytes = (end - begin) * (index)sizeof *x->a;
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      decode(x, panel + s * apart, begin, end, w[s]);
      load_scales(x, panel + s * apart, begin / x->group, &scales[part][s]);
    }
    for (index row = 0; row < rows; row += AMX_MR, slot ^= 1) {
      const index some = min_index(AMX_MR, rows - row);
      const amx_operands operands = {(const uint8_t *)(x->a + row * x->k + begin),
                                     x->k * (index)sizeof *x->a,
                                     (const uint8_t *)w[0], sizeof w[0], bytes};
      unscaled *next = &slots[slot];
      if (some != shape)
        amx_begin(shape = some, AMX_DEPTH);
      next->row = row;
      next->rows = some;
      next->scales = scales[part];
      if (streams <= 2 && some > AMX_ROWS)
        amx_product(AMX_BF16, some, 1, streams, &operands, next->sums);
      else
        amx_product(AMX_BF16, some, 0, streams, &operands, next->sums);
      add_scaled(streams, &slots[slot ^ 1], total);
    }
  }
  add_scaled(streams, &slots[slot ^ 1], total);
  _tile_release();
  for (index r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      const index j = (panel + s * apart) * NR;
      store_some_floats(x->out + r * x->n + j, total[r * streams + s], x->n - j);
    }
}

INLINE void multiply(const product *whole, index m, index begin, index end) {
  for (index row = 0; row < m; row += BLOCK) {
    const product x = rows_from(whole, row);
    const index rows = min_index(BLOCK, m - row);
    index panel = begin;
    if (rows <= AMX_ROWS)
      STREAM(tile, rows, STREAMS, end, &x);
    STREAM(tile, rows, 2, end, &x);
    STREAM(tile, rows, 1, end, &x);
  }
}

#else

typedef struct {
} codes;

INLINE codes all_codes(void) { return (codes){}; }

#include "float_codes.h"

// Multiplies a row by a panel.
INLINE void multiply_one(const product *x, index panel) {
  lanes total[PARTS] = {0};
  for (index begin = 0, end; begin < x->k; begin = end) {
    lanes sums[PARTS] = {0}, scales[PARTS];
    end = end_of_part(x, begin);
    for (index p = begin; p < end; ++p) {
      uint32_t bits[NR];
      bits_of_e4m3(x->w + panel * bytes_before(x->k) + bytes_before(p), bits);
      for (int part = 0; part < PARTS; ++part) {
        bit_lanes of_part;
        __builtin_memcpy(&of_part, bits + part * LANES, sizeof of_part);
        sums[part] = multiply_add(float_from_bf16(x->a[p]), lanes_of(of_part),
                                  sums[part]);
      }
    }
    load_scales(x, panel, begin / x->group, scales);
    for (int part = 0; part < PARTS; ++part)
      total[part] = multiply_add(sums[part], scales[part], total[part]);
  }
  for (int part = 0; part < PARTS; ++part) {
    const index j = panel * NR + part * LANES;
    store_some_floats(x->out + j, total[part], x->n - j);
  }
}

INLINE void multiply(const product *whole, index m, index begin, index end) {
  for (index row = 0; row < m; ++row) {
    const product x = rows_from(whole, row);
    for (index panel = begin; panel < end; ++panel)
      multiply_one(&x, panel);
  }
}

#endif

void matmul_e4m3_pairs(const uint8_t *w, const uint8_t *w_scale,
                       const uint16_t *a, const int32_t *lengths, float *out,
                       index batch, index tokens, index n, index k,
                       GROUPS_SIZES, index begin, index end) {
  const product whole = WHOLE(a, n, k, all_codes());
  multiply_rows(&whole, lengths, batch, tokens, begin, end);
}

void matmul_e4m3_pairs_experts(const uint8_t *w, const uint8_t *w_scale,
                               const uint16_t *a, const int32_t *experts,
                               const int32_t *begins, float *out, index n,
                               index k, GROUPS_SIZES, index begin, index end) {
  const product whole = WHOLE(a, n, k, all_codes());
  multiply_experts(&whole, experts, begins, begin, end);
}
