// Dot products of groups for CPUs with AVX2.
//
// A lane of 32 bits belongs to one column, so vpmaddubsw, with four activations in
// every lane, needs no shuffles. It adds two products of an unsigned and a signed byte
// in 16 bits: for 4 bits at most 2 * 15 * 127, so the eight vectors of a group add up
// without overflow, for 5 bits four of them, and for 6 bits two. Signed codes of 8 bits
// give their sign to the activations.
#ifndef KERNELS_CPU_GROUPS_AVX2_H
#define KERNELS_CPU_GROUPS_AVX2_H

#include "groups.h"
#include "matmul.h"

#define MR 8             // maximum of rows in a register tile
#define SUMS 3           // maximum of rows times streams
#define PACKED_ROWS 5    // fewest rows whose activations are packed
#define SIMPLE_STREAMS 1 // all tiles

// Returns the rows of a tile, which share unpacked codes. Those of 8 bits need no
// unpacking, and both they and their magnitudes take registers.
INLINE int rows_of_tile(int bits, group_form form) {
  return number_bits(bits, form) == 8 ? 3 : MR;
}

typedef __m256 floats;

// Pairs of 16 bits.
typedef __m256i zero_points;
typedef __m256i half_scales;
typedef __m256i half_minima;

// Sums of a row's activations over a group, in every lane.
typedef struct {
  __m256i halves; // pairs of 16 bits
} row_sums;

// Broadcasts the four activations at a to every lane.
INLINE __m256i broadcast_four(const int8_t *a) {
  int32_t four;
  __builtin_memcpy(&four, a, sizeof four);
  return _mm256_set1_epi32(four);
}

INLINE void load_sums(const int16_t *a_sums, row_sums *sums) {
  sums->halves = broadcast_four((const int8_t *)a_sums);
}

INLINE __m256i load_vector(const uint8_t *p) {
  return _mm256_loadu_si256((const __m256i *)p);
}

INLINE __m128i load_columns(const uint8_t *p) {
  return _mm_loadl_epi64((const __m128i *)p);
}

INLINE __m256 load_floats(const void *base, element_type type, index i) {
  return load_lanes(base, type, i);
}

// Returns powers of two.
INLINE __m256 load_exponents(const uint8_t *p) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu8_epi32(load_columns(p)), 23));
}

INLINE __m256 negated(__m256 x) { return _mm256_sub_ps(_mm256_setzero_ps(), x); }

INLINE __m256 times_number(__m256 x, float by) {
  return _mm256_mul_ps(x, _mm256_set1_ps(by));
}

// Multiplies by eight unsigned bytes.
INLINE __m256 times_bytes(__m256 x, const uint8_t *p) {
  return _mm256_mul_ps(x,
                       _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_columns(p))));
}

// Multiplies by eight signed bytes.
INLINE __m256 times_signed_bytes(__m256 x, const uint8_t *p) {
  return _mm256_mul_ps(x,
                       _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_columns(p))));
}

// Unpacks the scales and minima of a superblock's groups. Prefetches those of the next
// but one, for which a single row would wait.
INLINE void unpack_superblock(const uint8_t *packed, uint8_t *s_bytes,
                              uint8_t *t_bytes) {
  const index ahead = 2 * scale_bytes(FORM_SUPERBLOCKS, ELEMENT_F16);
  prefetch(packed, ahead);
  prefetch(packed, ahead + 64); // blocks are two lines
  const __m256i six = _mm256_set1_epi8(0x3f), four = _mm256_set1_epi8(0x0f);
  const __m256i two = _mm256_set1_epi8(0x30);
  const __m256i s = load_vector(packed), t = load_vector(packed + 4 * NR);
  const __m256i low = load_vector(packed + 8 * NR);
  const __m256i high_s = _mm256_and_si256(_mm256_srli_epi16(s, 2), two);
  const __m256i high_t = _mm256_and_si256(_mm256_srli_epi16(t, 2), two);
  const __m256i low_t = _mm256_and_si256(_mm256_srli_epi16(low, 4), four);
  __m256i *to_s = (__m256i *)s_bytes, *to_t = (__m256i *)t_bytes;
  _mm256_storeu_si256(to_s, _mm256_and_si256(s, six));
  _mm256_storeu_si256(to_t, _mm256_and_si256(t, six));
  _mm256_storeu_si256(to_s + 1,
                      _mm256_or_si256(_mm256_and_si256(low, four), high_s));
  _mm256_storeu_si256(to_t + 1, _mm256_or_si256(low_t, high_t));
}

// Returns what the sums of activations of both halves are multiplied by.
INLINE __m256i load_zeros(int bits, const uint8_t *z) {
  const __m128i bytes = load_columns(z);
  const __m256i pairs = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(bytes, bytes));
  return _mm256_sub_epi16(_mm256_set1_epi16(bits == 8 ? 128 : 0), pairs);
}

// Loads s of both halves, and what sums of activations are multiplied by for them.
INLINE void load_halves(int bits, const uint8_t *p, half_scales s[2],
                        zero_points *zeros) {
  const __m128i both = _mm_loadu_si128((const __m128i *)p);
  const __m256i pairs =
      _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(both, _mm_srli_si128(both, 8)));
  s[0] = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(both, both));
  s[1] = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(both, both));
  *zeros = _mm256_mullo_epi16(pairs, _mm256_set1_epi16((int16_t)(-1 << (bits - 1))));
}

// Loads s and t of both halves.
INLINE void load_half_minima(const uint8_t *p, half_scales s[2], half_minima *t) {
  const __m128i both = _mm_loadu_si128((const __m128i *)p);
  const __m128i four = _mm_set1_epi8(0x0f);
  const __m128i low = _mm_and_si128(both, four);
  const __m128i high = _mm_and_si128(_mm_srli_epi16(both, 4), four);
  s[0] = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(low, low));
  s[1] = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(low, low));
  *t = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(high, _mm_srli_si128(high, 8)));
}

#include "groups_scales.h"

// Prefetches a block's size, as far ahead as measuring found best.
INLINE void prefetch_codes(int streams, int cold, const uint8_t *block,
                           index bytes) {
  (void)cold;
#pragma clang loop unroll(full)
  for (index line = 0; line < bytes; line += 64)
    prefetch(block + line, streams > 1 ? 512 : 1024);
}

// Returns the numbers that codes look up, of which those of 5 bits are unsigned.
INLINE __m256i look_up(group_form form, __m256i codes) {
  const __m128i list = is_e2m1(form) ? _mm_setr_epi8(E2M1) : _mm_setr_epi8(IQ4);
  const __m128i middle = _mm_set1_epi8(is_e2m1(form) ? 16 : 0);
  const __m128i numbers = _mm_add_epi8(list, middle);
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(numbers), codes);
}

// Returns vector v of a group's codes, or of the numbers that they look up.
INLINE __m256i code_vector(int bits, group_form form, const uint8_t *block,
                           int v) {
  if (bits == 8)
    return load_vector(block + v * VECTOR);
  if (bits < 4) {
    const __m256i fields = _mm256_srli_epi16(
        load_vector(block + v / 4 * VECTOR), v % 4 * 2);
    const __m256i low = _mm256_and_si256(fields, _mm256_set1_epi8(3));
    if (bits == 2)
      return low;
    const __m256i high = load_vector(block + 2 * VECTOR);
    const __m256i moved = v < 2 ? _mm256_slli_epi16(high, 2 - v)
                                : _mm256_srli_epi16(high, v - 2);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(4)));
  }
  const __m256i both = load_vector(block + v % 4 * VECTOR);
  const __m256i nibbles = _mm256_and_si256(
      v < 4 ? both : _mm256_srli_epi16(both, 4), _mm256_set1_epi8(0x0f));
  if (bits == 4)
    return is_listed(form) ? look_up(form, nibbles) : nibbles;
  const index part = bits == 6 ? v / 4 : 0;
  const __m256i high = load_vector(block + NIBBLES + part * VECTOR);
  const int place = bits == 6 ? v % 4 * 2 : v;
  const __m256i moved = place < 4 ? _mm256_slli_epi16(high, 4 - place)
                                  : _mm256_srli_epi16(high, place - 4);
  const __m256i mask = _mm256_set1_epi8(bits == 6 ? 0x30 : 0x10);
  return _mm256_or_si256(nibbles, _mm256_and_si256(moved, mask));
}

// Returns the vectors whose products add up in 16 bits: those of halves apart.
INLINE int vectors_in_16_bits(int bits, group_form form) {
  return bits <= 4 ? (has_halves(form) ? 4 : 8) : bits == 5 ? 4 : bits == 6 ? 2 : 1;
}

INLINE __m256i products(int bits, __m256i codes, __m256i magnitudes,
                        const int8_t *a) {
  const __m256i four = broadcast_four(a);
  return bits == 8
             ? _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(four, codes))
             : _mm256_maddubs_epi16(codes, four);
}

// Returns sums of 32 bits with what zero points and signed codes add to them.
INLINE __m256i add_zeros(int bits, group_form form, const group_scales *scales,
                         const row_sums *a_sums, __m256i sums) {
  __m256i factor;
  if (form == FORM_ZEROS || form == FORM_HALVES)
    factor = scales->zeros;
  else if (is_symmetric(form) && (bits == 5 || bits == 6))
    factor = _mm256_set1_epi16(bits == 5 ? -16 : -32);
  else if (has_minima(form) && bits == 8)
    factor = _mm256_set1_epi16(128);
  else
    return sums;
  return _mm256_add_epi32(sums, _mm256_madd_epi16(a_sums->halves, factor));
}

// Returns what the first products of a half of E2M1 are less, whose numbers are 16 more
// than they should be: 16 times the half's sum, of one of two elements. Sums fit in 16 bits:
// 8 products by up to 12 of one element, and 8 times 16 of the others.
INLINE __m256i zero_of_half(int half, const row_sums *a_sums) {
  return _mm256_and_si256(_mm256_slli_epi16(a_sums->halves, 4),
                          _mm256_set1_epi32(half ? -65536 : 65535));
}

// Keeps products of many rows in order. Compilers would mix those of several vectors,
// for which there are not enough registers.
#define IN_ORDER(pairs) __asm__ volatile("" : "+x"(pairs))

// Sets dots[r] to the sums of (code - zero) * a[r] over a group, per column; for halves,
// times s; for minima, without a zero. Rows are interleaved: one after the other, their
// dependency chains would leave execution units idle.
//
// The zero of symmetric 4 bits is subtracted in 16 bits, from each pair of elements that
// of another half. Products by c - 8 of 8 elements, by -8 of 8 and by c of 8 fit.
INLINE void dot_group(int bits, group_form form, int rows, const uint8_t *block,
                      const group_scales *scales, const int8_t *a,
                      const row_sums a_sums[MR], index apart,
                      floats dots[MR]) {
  const int numbers = number_bits(bits, form);
  const int together = vectors_in_16_bits(numbers, form);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i codes[8], magnitudes[8], pairs[MR], sums[MR];
#pragma clang loop unroll(full)
  for (int v = 0; v < 8; ++v) {
    codes[v] = code_vector(bits, form, block, v);
    magnitudes[v] = numbers == 8 ? _mm256_abs_epi8(codes[v]) : codes[v];
  }
#pragma clang loop unroll(full)
  for (int v = 0; v < 8; ++v) {
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const __m256i next =
          products(numbers, codes[v], magnitudes[v], a + r * apart + 4 * v);
      if (v % together)
        pairs[r] = _mm256_add_epi16(pairs[r], next);
      else if (bits == 4 && form == FORM_SYMMETRIC)
        pairs[r] =
            _mm256_sub_epi16(next, _mm256_slli_epi16(a_sums[r].halves, 3));
      else if (form == FORM_E2M1_HALVES)
        pairs[r] = _mm256_sub_epi16(next, zero_of_half(v / 4, &a_sums[r]));
      else
        pairs[r] = next;
      if (rows >= PACKED_ROWS && together > 2)
        IN_ORDER(pairs[r]);
      if (v % together != together - 1)
        continue;
      const int e2m1 = form == FORM_E2M1_HALVES;
      const __m256i wide = _mm256_madd_epi16(
          pairs[r], has_halves(form) && !e2m1 ? scales->s[v / 4] : ones);
      if (e2m1) {
        const __m256 half = _mm256_cvtepi32_ps(wide);
        dots[r] = v < 4 ? _mm256_mul_ps(half, scales->e[0])
                        : _mm256_fmadd_ps(half, scales->e[1], dots[r]);
        continue;
      }
      sums[r] = v < together ? wide : _mm256_add_epi32(sums[r], wide);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows && form != FORM_E2M1_HALVES; ++r)
    dots[r] =
        _mm256_cvtepi32_ps(add_zeros(numbers, form, scales, &a_sums[r], sums[r]));
}

// Adds a group's products to a row's sums.
INLINE void add_group(group_form form, const floats *dots, float a_scale,
                      float scaled_sum, const row_sums *sums,
                      const group_scales *scales, floats *acc) {
  const __m256 by = _mm256_set1_ps(a_scale);
  *acc = _mm256_fmadd_ps(_mm256_mul_ps(*dots, by), scales->d, *acc);
  if (has_minima(form))
    *acc = _mm256_fmadd_ps(_mm256_set1_ps(scaled_sum), scales->m, *acc);
  if (form == FORM_HALF_MINIMA) {
    const __m256i minima = _mm256_madd_epi16(sums->halves, scales->t);
    *acc = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(minima), by),
                           scales->m, *acc);
  }
}

INLINE void store_columns(const floats *x, float *out, index columns) {
  if (columns >= NR) {
    _mm256_storeu_ps(out, *x);
    return;
  }
  float lanes[NR];
  _mm256_storeu_ps(lanes, *x);
  copy_columns(out, lanes, columns);
}

#endif // KERNELS_CPU_GROUPS_AVX2_H
