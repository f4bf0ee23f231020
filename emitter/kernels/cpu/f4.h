// Floating-point numbers of 4 bits, for float_codes.h: those of a list of 16.
//
// A block of bytes has the codes of INPUTS inputs. Byte h * 16 + i * 4 + c has those of
// input i: of column h * 4 + c in its low half, and of column 8 + h * 4 + c in its high
// half. So the bytes of their numbers become vectors of columns by interleaving.
#ifndef KERNELS_CPU_F4_H
#define KERNELS_CPU_F4_H

#include "../group_form.h"
#include "e4m3.h"
#include "simd.h"

#define INPUTS 4
#define INPUT_BYTES (INPUTS * NR / 2)
#define WEIGHT_UNIT 1.0f

static const float lists[LISTS][16] = {
    {E2M1_NUMBERS}, {NF4_NUMBERS}, {FP4_NUMBERS}};

// The bytes of a list's numbers, those of the same place together.
typedef struct {
  uint8_t planes[4][16];
} codes;

INLINE codes codes_of(number_list list) {
  codes of;
  for (int code = 0; code < 16; ++code)
    for (int byte = 0; byte < 4; ++byte)
      of.planes[byte][code] = (uint8_t)(bits_of(lists[list][code]) >> 8 * byte);
  return of;
}

// Codes in low and in high halves of bytes.
typedef uint8_t block __attribute__((ext_vector_type(INPUT_BYTES)));
typedef struct {
  block halves[2];
} stored_codes;

#if LANES == 16
typedef __m512i vector;
#define REPEATED(p) _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(p)))
#define LOOK_UP _mm512_shuffle_epi8
#define INTERLEAVE(x, y, size)                                                 \
  {_mm512_unpacklo_epi##size(x, y), _mm512_unpackhi_epi##size(x, y)}
#elif defined(__AVX2__)
typedef __m256i vector;
#define REPEATED(p)                                                            \
  _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(p)))
#define LOOK_UP _mm256_shuffle_epi8
#define INTERLEAVE(x, y, size)                                                 \
  {_mm256_unpacklo_epi##size(x, y), _mm256_unpackhi_epi##size(x, y)}
#elif defined(__ARM_NEON)
typedef uint8x16_t vector;
#define REPEATED(p) vld1q_u8(p)
#define LOOK_UP vqtbl1q_u8
#define AS_8(x) (x)
#define AS_16(x) vreinterpretq_u16_u8(x)
#define INTERLEAVE(x, y, size)                                                 \
  {(uint8x16_t)vzip1q_u##size(AS_##size(x), AS_##size(y)),                     \
   (uint8x16_t)vzip2q_u##size(AS_##size(x), AS_##size(y))}
#endif

#ifdef LOOK_UP

// Looks up the numbers of a part of the columns, whose codes are bytes.
INLINE void look_up(const codes *codes, vector bytes, lanes numbers[INPUTS]) {
  vector planes[4];
#pragma clang loop unroll(full)
  for (int byte = 0; byte < 4; ++byte)
    planes[byte] = LOOK_UP(REPEATED(codes->planes[byte]), bytes);
  const vector low[2] = INTERLEAVE(planes[0], planes[1], 8);
  const vector high[2] = INTERLEAVE(planes[2], planes[3], 8);
#pragma clang loop unroll(full)
  for (int half = 0; half < 2; ++half) {
    const vector two[2] = INTERLEAVE(low[half], high[half], 16);
    __builtin_memcpy(numbers + half * 2, two, sizeof two);
  }
}

INLINE stored_codes load_codes(const uint8_t *w) {
  block bytes;
  __builtin_memcpy(&bytes, w, sizeof bytes);
  return (stored_codes){{bytes & 15, bytes >> 4}};
}

INLINE void numbers_of(const codes *codes, const stored_codes *stored, int part,
                       lanes numbers[INPUTS]) {
  // As many vectors as there are parts.
  vector bytes;
  __builtin_memcpy(&bytes, (const char *)stored + part * sizeof bytes,
                   sizeof bytes);
  look_up(codes, bytes, numbers);
}

#else

INLINE stored_codes load_codes(const uint8_t *w) {
  stored_codes stored;
  for (int i = 0; i < INPUT_BYTES; ++i)
    stored.halves[0][i] = w[i] & 15, stored.halves[1][i] = w[i] >> 4;
  return stored;
}

INLINE void numbers_of(const codes *codes, const stored_codes *stored, int part,
                       lanes numbers[INPUTS]) {
  for (int i = 0; i < INPUTS; ++i)
    for (int lane = 0; lane < LANES; ++lane) {
      const int c = part * LANES + lane;
      const int code = stored->halves[c / 8][c % 8 / 4 * 16 + i * 4 + c % 4];
      uint32_t bits = 0;
      for (int byte = 0; byte < 4; ++byte)
        bits |= (uint32_t)codes->planes[byte][code] << 8 * byte;
      numbers[i][lane] = float_of(bits);
    }
}

#endif

#endif
