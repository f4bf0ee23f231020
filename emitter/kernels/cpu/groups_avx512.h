// Dot products of groups for CPUs with AVX-512 and VNNI. A lane of 32 bits belongs to one
// column, so vpdpbusd, with four activations in every lane, needs no shuffles.
#ifndef KERNELS_CPU_GROUPS_AVX512_H
#define KERNELS_CPU_GROUPS_AVX512_H

#include "groups.h"
#include "matmul.h"

// Maximum of rows in a register tile. AMX multiplies more than 8.
#if defined(__AMX_INT8__)
#define MR 8
#else
#define MR 12
#endif
// Maximum of rows times streams. Intel's cores gain a sixth from reading in four places.
// Zen 4, which is told by bf16 without AMX, loses a quarter: with the scales, that is too
// many for it to prefetch.
#if defined(__AVX512BF16__) && !defined(__AMX_INT8__)
#define SUMS 1
#else
#define SUMS 8
#endif

// Returns the rows of a tile. Halves have two sums of each row.
INLINE int rows_of_tile(int bits, group_form form) {
  (void)bits;
  return has_halves(form) ? 8 : MR;
}

typedef __m512 floats;

typedef __m512i zero_points; // pairs of 16 bits
typedef __m512 half_scales;
typedef __m512i half_minima; // pairs of 16 bits

// Sums of a row's activations over a group, in every lane.
typedef struct {
  __m512i halves; // pairs of 16 bits
} row_sums;

INLINE void load_sums(const int16_t *a_sums, row_sums *sums) {
  sums->halves = broadcast_four(a_sums);
}

INLINE __m128i load_columns(const uint8_t *p) {
  return _mm_loadu_si128((const __m128i *)p);
}

INLINE __m512 load_floats(const void *base, element_type type, index i) {
  return load_16_lanes(base, type, i);
}

// Returns powers of two.
INLINE __m512 load_exponents(const uint8_t *p) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu8_epi32(load_columns(p)), 23));
}

INLINE __m512 negated(__m512 x) { return _mm512_sub_ps(_mm512_setzero_ps(), x); }

INLINE __m512 times_number(__m512 x, float by) {
  return _mm512_mul_ps(x, _mm512_set1_ps(by));
}

// Multiplies by sixteen unsigned bytes.
INLINE __m512 times_bytes(__m512 x, const uint8_t *p) {
  return _mm512_mul_ps(x,
                       _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_columns(p))));
}

INLINE __m512 load_signed_byte_lanes(const uint8_t *p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_columns(p)));
}

// Multiplies by sixteen signed bytes.
INLINE __m512 times_signed_bytes(__m512 x, const uint8_t *p) {
  return _mm512_mul_ps(x, load_signed_byte_lanes(p));
}

// Unpacks the scales and minima of a superblock's groups.
INLINE void unpack_superblock(const uint8_t *packed, uint8_t *s_bytes,
                              uint8_t *t_bytes) {
  const __m512i six = _mm512_set1_epi8(0x3f), four = _mm512_set1_epi8(0x0f);
  const __m512i two = _mm512_set1_epi8(0x30);
  const __m512i s = _mm512_loadu_si512(packed);
  const __m512i t = _mm512_loadu_si512(packed + 4 * NR);
  const __m512i low = _mm512_loadu_si512(packed + 8 * NR);
  const __m512i high_s = _mm512_and_si512(_mm512_srli_epi16(s, 2), two);
  const __m512i high_t = _mm512_and_si512(_mm512_srli_epi16(t, 2), two);
  const __m512i low_t = _mm512_and_si512(_mm512_srli_epi16(low, 4), four);
  _mm512_storeu_si512(s_bytes, _mm512_and_si512(s, six));
  _mm512_storeu_si512(t_bytes, _mm512_and_si512(t, six));
  _mm512_storeu_si512(s_bytes + 4 * NR,
                      _mm512_or_si512(_mm512_and_si512(low, four), high_s));
  _mm512_storeu_si512(t_bytes + 4 * NR, _mm512_or_si512(low_t, high_t));
}

// Returns pairs of minus the zero points.
INLINE __m512i load_zeros(int bits, const uint8_t *z) {
  (void)bits;
  const __m512i wide = _mm512_cvtepu8_epi32(load_columns(z));
  return _mm512_sub_epi16(_mm512_setzero_si512(),
                          _mm512_or_si512(wide, _mm512_slli_epi32(wide, 16)));
}

// Loads s of both halves.
INLINE void load_halves(int bits, const uint8_t *p, half_scales s[2],
                        zero_points *zeros) {
  (void)bits, (void)zeros;
  s[0] = load_signed_byte_lanes(p);
  s[1] = load_signed_byte_lanes(p + NR);
}

// Loads s and t of both halves.
INLINE void load_half_minima(const uint8_t *p, half_scales s[2], half_minima *t) {
  __m512i high[2];
#pragma clang loop unroll(full)
  for (int half = 0; half < 2; ++half) {
    const __m512i both = _mm512_cvtepu8_epi32(load_columns(p + half * NR));
    s[half] = _mm512_cvtepi32_ps(_mm512_and_si512(both, _mm512_set1_epi32(15)));
    high[half] = _mm512_srli_epi32(both, 4);
  }
  *t = _mm512_or_si512(high[0], _mm512_slli_epi32(high[1], 16));
}

#include "groups_scales.h"

// Prefetches a block's size, as far ahead as measuring found best.
INLINE void prefetch_codes(int streams, int cold, const uint8_t *block,
                           index bytes) {
  (void)streams;
#pragma clang loop unroll(full)
  for (index line = 0; cold && line < bytes; line += 64)
    prefetch(block + line, 4096);
}

// Returns the numbers that codes look up, plus half of what their bits hold.
INLINE __m512i look_up(group_form form, __m512i codes) {
  const __m128i list = is_e2m1(form) ? _mm_setr_epi8(E2M1) : _mm_setr_epi8(IQ4);
  const __m128i middle = _mm_set1_epi8(is_e2m1(form) ? 16 : -128);
  const __m128i numbers = _mm_add_epi8(list, middle);
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(numbers), codes);
}

// Returns vector v of a group's codes, or of the numbers that they look up. Those of 8
// bits are unsigned too.
INLINE __m512i code_vector(int bits, group_form form, const uint8_t *block,
                           int v) {
  if (bits == 8)
    return _mm512_xor_si512(_mm512_loadu_si512(block + v * VECTOR),
                            _mm512_set1_epi8(-128));
  if (bits < 4) {
    const __m512i fields = _mm512_srli_epi16(
        _mm512_loadu_si512(block + v / 4 * VECTOR), v % 4 * 2);
    const __m512i low = _mm512_and_si512(fields, _mm512_set1_epi8(3));
    if (bits == 2)
      return low;
    const __m512i high = _mm512_loadu_si512(block + 2 * VECTOR);
    const __m512i moved = v < 2 ? _mm512_slli_epi16(high, 2 - v)
                                : _mm512_srli_epi16(high, v - 2);
    return _mm512_or_si512(low, _mm512_and_si512(moved, _mm512_set1_epi8(4)));
  }
  const __m512i both = _mm512_loadu_si512(block + v % 4 * VECTOR);
  const __m512i nibbles = _mm512_and_si512(
      v < 4 ? both : _mm512_srli_epi16(both, 4), _mm512_set1_epi8(0x0f));
  if (bits == 4)
    return is_listed(form) ? look_up(form, nibbles) : nibbles;
  const index part = bits == 6 ? v / 4 : 0;
  const __m512i high = _mm512_loadu_si512(block + NIBBLES + part * VECTOR);
  const int place = bits == 6 ? v % 4 * 2 : v;
  const __m512i moved = place < 4 ? _mm512_slli_epi16(high, 4 - place)
                                  : _mm512_srli_epi16(high, place - 4);
  const __m512i mask = _mm512_set1_epi8(bits == 6 ? 0x30 : 0x10);
  return _mm512_or_si512(nibbles, _mm512_and_si512(moved, mask));
}

// Returns what the sums of a group begin with, which takes zero points out of the inner
// loop. Halves have sums of their own.
INLINE __m512i first_sums(int bits, group_form form, int half,
                          const group_scales *scales, const row_sums *a_sums) {
  const __m512i zero = _mm512_setzero_si512();
  if (has_minima(form) || form == FORM_HALF_MINIMA)
    return zero;
  __m512i factor = _mm512_set1_epi16((int16_t)(-1 << (bits - 1)));
  if (form == FORM_ZEROS)
    factor = scales->zeros;
  if (has_halves(form)) {
    const int32_t middle = 1 << (bits - 1);
    factor = _mm512_set1_epi32(half ? -middle * 65536 : 65536 - middle);
  }
  return _mm512_dpwssd_epi32(zero, factor, a_sums->halves);
}

// Returns the dot products of a group from its sums.
INLINE __m512 scale_halves(group_form form, const group_scales *scales,
                           __m512i first, __m512i second) {
  const __m512 dots = _mm512_cvtepi32_ps(first);
  if (!has_halves(form))
    return dots;
  const int e2m1 = form == FORM_E2M1_HALVES;
  const __m512 by[2] = {e2m1 ? scales->e[0] : scales->s[0],
                        e2m1 ? scales->e[1] : scales->s[1]};
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(second), by[1],
                         _mm512_mul_ps(dots, by[0]));
}

// Sets dots[r] to the sums of (code - zero) * a[r] over a group, per column; for halves,
// times s; for minima, without a zero.
INLINE void dot_group(int bits, group_form form, int rows, const uint8_t *block,
                      const group_scales *scales, const int8_t *a,
                      const row_sums a_sums[MR], index apart,
                      floats dots[MR]) {
  const int second = has_halves(form);
  __m512i sums[2][MR];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int half = 0; half < 2; ++half)
      sums[half][r] = first_sums(number_bits(bits, form), form, half, scales,
                                 &a_sums[r]);
  }
#pragma clang loop unroll(full)
  for (int v = 0; v < 4; ++v) {
    const __m512i low = code_vector(bits, form, block, v);
    const __m512i high = code_vector(bits, form, block, v + 4);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const int8_t *four = a + r * apart + 4 * v;
      sums[0][r] = _mm512_dpbusd_epi32(sums[0][r], low, broadcast_four(four));
      sums[second][r] = _mm512_dpbusd_epi32(sums[second][r], high,
                                            broadcast_four(four + HALF));
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
    dots[r] = scale_halves(form, scales, sums[0][r], sums[1][r]);
}

// Adds a group's products to a row's sums.
INLINE void add_group(group_form form, const floats *dots, float a_scale,
                      float scaled_sum, const row_sums *sums,
                      const group_scales *scales, floats *acc) {
  const __m512 by = _mm512_set1_ps(a_scale);
  *acc = _mm512_fmadd_ps(_mm512_mul_ps(*dots, by), scales->d, *acc);
  if (has_minima(form))
    *acc = _mm512_fmadd_ps(_mm512_set1_ps(scaled_sum), scales->m, *acc);
  if (form == FORM_HALF_MINIMA) {
    const __m512i minima =
        _mm512_dpwssd_epi32(_mm512_setzero_si512(), scales->t, sums->halves);
    *acc = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(minima), by),
                           scales->m, *acc);
  }
}

INLINE void store_columns(const floats *x, float *out, index columns) {
  _mm512_mask_storeu_ps(out, first_lanes(columns), *x);
}

#endif // KERNELS_CPU_GROUPS_AVX512_H
