// Emulation of AVX-512 and AMX: SIMDe's functions replace the compiler's. This file
// adds what SIMDe 0.7.4 lacks or does differently.
#ifndef TESTS_EMULATED_IMMINTRIN_H
#define TESTS_EMULATED_IMMINTRIN_H

#include_next <immintrin.h>

// A function that is inlined everywhere takes nine times as long to compile.
#define INLINE static inline __attribute__((unused))
#define EMULATED static __attribute__((noinline, unused))
#define SIMDE_NO_INLINE

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512/setzero.h> // first, because insert.h needs it

#include <simde/x86/avx512/add.h>
#include <simde/x86/avx512/and.h>
#include <simde/x86/avx512/broadcast.h>
#include <simde/x86/avx512/cast.h>
#include <simde/x86/avx512/dpbusd.h>
#include <simde/x86/avx512/dpwssd.h>
#include <simde/x86/avx512/fmadd.h>
#include <simde/x86/avx512/fmsub.h>
#include <simde/x86/avx512/insert.h>
#include <simde/x86/avx512/loadu.h>
#include <simde/x86/avx512/mul.h>
#include <simde/x86/avx512/or.h>
#include <simde/x86/avx512/permutex2var.h>
#include <simde/x86/avx512/permutexvar.h>
#include <simde/x86/avx512/set1.h>
#include <simde/x86/avx512/shuffle.h>
#include <simde/x86/avx512/slli.h>
#include <simde/x86/avx512/srli.h>
#include <simde/x86/avx512/storeu.h>
#include <simde/x86/avx512/sub.h>
#include <simde/x86/avx512/unpackhi.h>
#include <simde/x86/avx512/unpacklo.h>
#include <simde/x86/avx512/xor.h>

// After SIMDe, which would otherwise use the instructions.
#define __AVX512VNNI__ 1
#define __AVX512BF16__ 1
#if !defined(WITHOUT_AMX)
#define __AMX_INT8__ 1
#define __AMX_BF16__ 1
#endif

EMULATED __m512 emulated_cvtepi32_ps(__m512i x) {
  int from[16];
  float to[16];
  _mm512_storeu_si512(from, x);
  for (int i = 0; i < 16; ++i)
    to[i] = (float)from[i];
  return _mm512_loadu_ps(to);
}
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps

EMULATED __m512i emulated_cvtepu16_epi32(__m256i x) {
  unsigned short from[16];
  unsigned to[16];
  _mm256_storeu_si256((__m256i *)from, x);
  for (int i = 0; i < 16; ++i)
    to[i] = from[i];
  return _mm512_loadu_si512(to);
}
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32 emulated_cvtepu16_epi32

EMULATED __m512i emulated_cvtepu8_epi32(__m128i x) {
  unsigned char from[16];
  unsigned to[16];
  _mm_storeu_si128((__m128i *)from, x);
  for (int i = 0; i < 16; ++i)
    to[i] = from[i];
  return _mm512_loadu_si512(to);
}
#undef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32 emulated_cvtepu8_epi32

EMULATED __m512i emulated_cvtepi8_epi32(__m128i x) {
  signed char from[16];
  int to[16];
  _mm_storeu_si128((__m128i *)from, x);
  for (int i = 0; i < 16; ++i)
    to[i] = from[i];
  return _mm512_loadu_si512(to);
}
#undef _mm512_cvtepi8_epi32
#define _mm512_cvtepi8_epi32 emulated_cvtepi8_epi32

EMULATED __m512 emulated_cvtph_ps(__m256i x) {
  float to[16];
  _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm256_castsi256_si128(x)));
  _mm256_storeu_ps(to + 8, _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)));
  return _mm512_loadu_ps(to);
}
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps emulated_cvtph_ps

// SIMDe's version takes literals only.
EMULATED __m512i emulated_srli_epi16(__m512i x, unsigned by) {
  unsigned short lanes[32];
  _mm512_storeu_si512(lanes, x);
  for (int i = 0; i < 32; ++i)
    lanes[i] = (unsigned short)(lanes[i] >> by);
  return _mm512_loadu_si512(lanes);
}
#undef _mm512_srli_epi16
#define _mm512_srli_epi16 emulated_srli_epi16

EMULATED int emulated_reduce_add_epi32(__m512i x) {
  unsigned lanes[16], sum = 0;
  _mm512_storeu_si512(lanes, x);
  for (int i = 0; i < 16; ++i)
    sum += lanes[i];
  return (int)sum;
}
#undef _mm512_reduce_add_epi32
#define _mm512_reduce_add_epi32 emulated_reduce_add_epi32

// Does not access masked elements.
EMULATED __m512i emulated_maskz_loadu_epi8(__mmask64 mask, const void *from) {
  char to[64];
  for (int i = 0; i < 64; ++i)
    to[i] = mask >> i & 1 ? ((const char *)from)[i] : 0;
  return _mm512_loadu_si512(to);
}
#undef _mm512_maskz_loadu_epi8
#define _mm512_maskz_loadu_epi8 emulated_maskz_loadu_epi8

EMULATED __m512 emulated_maskz_loadu_ps(__mmask16 mask, const void *from) {
  float to[16];
  for (int i = 0; i < 16; ++i)
    to[i] = mask >> i & 1 ? ((const float *)from)[i] : 0;
  return _mm512_loadu_ps(to);
}
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps emulated_maskz_loadu_ps

EMULATED void emulated_mask_storeu_ps(void *to, __mmask16 mask, __m512 x) {
  float from[16];
  _mm512_storeu_ps(from, x);
  for (int i = 0; i < 16; ++i)
    if (mask >> i & 1)
      ((float *)to)[i] = from[i];
}
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps emulated_mask_storeu_ps

EMULATED float emulated_normal(float x) {
  return __builtin_fabsf(x) < 0x1p-126f ? 0 : x;
}

EMULATED float emulated_bf16(unsigned short x) {
  const unsigned bits = (unsigned)x << 16;
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return emulated_normal(value);
}

// SIMDe's version computes with subnormal numbers, which the instruction flushes to
// zero. It passes vectors of bf16, for which unoptimized code needs a library. The
// instruction adds the second product of a pair first.
EMULATED __m512 emulated_dpbf16_ps(__m512 sums, __m512i x, __m512i y) {
  float to[16];
  unsigned short a[32], b[32];
  _mm512_storeu_ps(to, sums);
  _mm512_storeu_si512(a, x);
  _mm512_storeu_si512(b, y);
  for (int i = 0; i < 32; ++i) {
    const int at = i ^ 1;
    to[i / 2] = emulated_normal(__builtin_fmaf(
        emulated_bf16(a[at]), emulated_bf16(b[at]), to[i / 2]));
  }
  return _mm512_loadu_ps(to);
}
#undef _mm512_dpbf16_ps
#define _mm512_dpbf16_ps(sums, x, y)                                           \
  emulated_dpbf16_ps(sums, (__m512i)(x), (__m512i)(y))

// Tile registers of AMX. Accesses outside of a tile's shape trap.
static struct {
  int rows, bytes;
  unsigned char at[16][64];
} emulated_tiles[8];

static inline void emulated_tile_loadconfig(const void *from) {
  const unsigned char *shapes = from;
  __builtin_memset(emulated_tiles, 0, sizeof emulated_tiles);
  for (int tile = 0; tile < 8; ++tile) {
    emulated_tiles[tile].bytes = shapes[16 + 2 * tile];
    emulated_tiles[tile].rows = shapes[48 + tile];
    if (shapes[0] != 1 || emulated_tiles[tile].bytes > 64 ||
        emulated_tiles[tile].rows > 16)
      __builtin_trap();
  }
}
#undef _tile_loadconfig
#define _tile_loadconfig emulated_tile_loadconfig

static inline void emulated_tile_release(void) {
  __builtin_memset(emulated_tiles, 0, sizeof emulated_tiles);
}
#undef _tile_release
#define _tile_release emulated_tile_release

static inline void emulated_tile_zero(int tile) {
  if (emulated_tiles[tile].rows == 0)
    __builtin_trap();
  __builtin_memset(emulated_tiles[tile].at, 0, sizeof emulated_tiles[tile].at);
}
#undef _tile_zero
#define _tile_zero emulated_tile_zero

static inline void emulated_tile_loadd(int tile, const void *from,
                                       long long stride) {
  emulated_tile_zero(tile);
  for (int row = 0; row < emulated_tiles[tile].rows; ++row)
    __builtin_memcpy(emulated_tiles[tile].at[row],
                     (const char *)from + row * stride,
                     (unsigned)emulated_tiles[tile].bytes);
}
#undef _tile_loadd
#define _tile_loadd emulated_tile_loadd

static inline void emulated_tile_stored(int tile, void *to, long long stride) {
  if (emulated_tiles[tile].rows == 0)
    __builtin_trap();
  for (int row = 0; row < emulated_tiles[tile].rows; ++row)
    __builtin_memcpy((char *)to + row * stride, emulated_tiles[tile].at[row],
                     (unsigned)emulated_tiles[tile].bytes);
}
#undef _tile_stored
#define _tile_stored emulated_tile_stored

// Adds the dot product of `depth` times four bytes of a row and of a column to the
// four bytes of `sum`. Those of a column are AMX's 64 bytes apart.
typedef void emulated_dot(unsigned char *sum, const unsigned char *row,
                          const unsigned char *column, int depth);

static inline void emulated_tile_dot(int sums, int rows, int columns,
                                     emulated_dot *dot) {
  const int depth = emulated_tiles[rows].bytes / 4;
  if (emulated_tiles[sums].rows != emulated_tiles[rows].rows ||
      emulated_tiles[sums].bytes != emulated_tiles[columns].bytes ||
      emulated_tiles[columns].rows != depth || depth == 0)
    __builtin_trap();
  for (int i = 0; i < emulated_tiles[sums].rows; ++i)
    for (int j = 0; j < emulated_tiles[sums].bytes; j += 4)
      dot(&emulated_tiles[sums].at[i][j], emulated_tiles[rows].at[i],
          &emulated_tiles[columns].at[0][j], depth);
}

static inline void emulated_dot_bytes(unsigned char *sum,
                                      const unsigned char *row,
                                      const unsigned char *column, int depth) {
  unsigned total;
  __builtin_memcpy(&total, sum, 4);
  for (int i = 0; i < 4 * depth; ++i)
    total += (unsigned)((signed char)row[i] *
                        (signed char)column[i / 4 * 64 + i % 4]);
  __builtin_memcpy(sum, &total, 4);
}
#undef _tile_dpbssd
#define _tile_dpbssd(sums, rows, columns)                                      \
  emulated_tile_dot(sums, rows, columns, emulated_dot_bytes)

// The instruction sums the first products of all pairs and the second ones apart.
static inline void emulated_dot_bf16(unsigned char *sum,
                                     const unsigned char *row,
                                     const unsigned char *column, int depth) {
  float total, parts[2] = {0, 0};
  for (int i = 0; i < 2 * depth; ++i) {
    unsigned short a, b;
    __builtin_memcpy(&a, row + 2 * i, 2);
    __builtin_memcpy(&b, column + i / 2 * 64 + i % 2 * 2, 2);
    parts[i % 2] = emulated_normal(
        __builtin_fmaf(emulated_bf16(a), emulated_bf16(b), parts[i % 2]));
  }
  __builtin_memcpy(&total, sum, 4);
  total = emulated_normal(total + emulated_normal(parts[0] + parts[1]));
  __builtin_memcpy(sum, &total, 4);
}
#undef _tile_dpbf16ps
#define _tile_dpbf16ps(sums, rows, columns)                                    \
  emulated_tile_dot(sums, rows, columns, emulated_dot_bf16)

// Optimizing kernels, which call all of these for each instruction, would take longer
// than it saves. What they call is optimized.
#if defined(UNOPTIMIZED)
#pragma clang optimize off
#endif

#endif // TESTS_EMULATED_IMMINTRIN_H
