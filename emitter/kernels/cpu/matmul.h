// Helpers of all matrix products.
#ifndef KERNELS_CPU_MATMUL_H
#define KERNELS_CPU_MATMUL_H

#include "kernels.h"
#include "simd.h"

// Most panels that a tile of few rows reads at once. Such a tile is bound by memory,
// which gives a quarter more when it is read in several places. It also has too few
// sums to keep multipliers busy, and one sum cannot be divided: the order in which an
// output is summed must not depend on the number of rows.
#define STREAMS 4

// Calls tile(rows, streams, apart, panel, ...) from `panel` on, and advances `panel`,
// for as many panels up to `end` as `streams` places have in common. Each call
// computes PANELS panels in each place. The places are `apart` panels apart.
#define STREAM(tile, rows, streams, end, ...)                                  \
  do {                                                                         \
    const index apart = (end - panel) / (streams * PANELS) * PANELS;           \
    for (const index last = panel + apart; panel < last; panel += PANELS)      \
      tile(rows, streams, apart, panel, __VA_ARGS__);                          \
    panel += (streams - 1) * apart;                                            \
  } while (0)

// Defines NAME(rows, begin, end, x), which calls tile(rows, streams, apart, panel, ...)
// for panels begin..end of `rows` rows, 1 to MR, with constant `rows` and `streams`.
// Registers hold the sums of SUMS rows times streams. A single row takes STREAMS with
// fewer, too, unless SUMS is 1.
//
// Numbers of rows have functions of their own: for each loop that a compiler unrolls, it
// looks at all of the function again. A single row, which most calls have, is faster in
// the caller's.
#define DEFINE_ROW_TILES(name, ...)                                            \
  _Static_assert(MR <= 12, "a case for every number of rows");                 \
  FROM_2_TO_12(TILES_OF_ROWS, name, __VA_ARGS__)                               \
  INLINE void name(index rows, index begin, index end, const product *x) {     \
    index panel = begin;                                                       \
    switch (rows) {                                                            \
    case 1:                                                                    \
      STREAMED_TILES(1, __VA_ARGS__)                                           \
      break;                                                                   \
      FROM_2_TO_12(TILES_CASE, name, )                                         \
    }                                                                          \
  }
#define FROM_2_TO_12(of, name, ...)                                            \
  of(2, name, __VA_ARGS__)                                                     \
  of(3, name, __VA_ARGS__)                                                     \
  of(4, name, __VA_ARGS__)                                                     \
  of(5, name, __VA_ARGS__)                                                     \
  of(6, name, __VA_ARGS__)                                                     \
  of(7, name, __VA_ARGS__)                                                     \
  of(8, name, __VA_ARGS__)                                                     \
  of(9, name, __VA_ARGS__)                                                     \
  of(10, name, __VA_ARGS__)                                                    \
  of(11, name, __VA_ARGS__)                                                    \
  of(12, name, __VA_ARGS__)
#define TILES_CASE(count, name, ...)                                           \
  case count:                                                                  \
    name##_##count(begin, end, x);                                             \
    break;
// The copy tells compilers that no store changes x.
#define TILES_OF_ROWS(count, name, ...)                                        \
  static __attribute__((noinline)) void name##_##count(                        \
      index panel, index end, const product *whole) {                          \
    const product copy = *whole, *const x = &copy;                             \
    if (count > MR)                                                            \
      return;                                                                  \
    STREAMED_TILES(count, __VA_ARGS__)                                         \
  }
#define STREAMED_TILES(count, ...)                                             \
  if (count * STREAMS <= SUMS || (count == 1 && SUMS > 1))                     \
    STREAM(tile, count, STREAMS, end, __VA_ARGS__);                            \
  if (count * 2 <= SUMS)                                                       \
    STREAM(tile, count, 2, end, __VA_ARGS__);                                  \
  for (; panel < end; panel += PANELS)                                         \
    tile(count, 1, 0, panel, __VA_ARGS__);

// The part of a mixture of experts that one call computes: rows of one expert, by
// some of its panels.
typedef struct {
  index expert, row, rows, panel_begin, panel_end;
} expert_part;

// Finds the next part among items *item to `end` that has rows, and advances
// *item. Returns 0 if there is none.
//
// Weights are one matrix of `panels` panels for each expert. Rows are grouped into
// segments: segment s is rows begins[s] to begins[s + 1], all of experts[s]. Items
// are the panels of all segments.
INLINE int next_expert_part(const int32_t *experts, const int32_t *begins,
                            index panels, index *item, index end,
                            expert_part *part) {
  while (*item < end) {
    const index segment = *item / panels, first = *item % panels;
    const index last = min_index(panels, first + end - *item);
    *item += last - first;
    part->expert = experts[segment];
    part->row = begins[segment];
    part->rows = begins[segment + 1] - begins[segment];
    part->panel_begin = first;
    part->panel_end = last;
    if (part->rows > 0)
      return 1;
  }
  return 0;
}

#if defined(__AVX512VNNI__)

// Most steps of k that are unrolled, so that computing addresses costs little.
#define STEPS 4

// Returns the steps of k that are unrolled for a tile of `sums` sums.
INLINE int steps_for(int sums) { return sums <= 12 ? STEPS : 2; }

// Returns whether a tile needs KEEP_ORDER.
INLINE int fills_registers(int sums) { return sums > 16; }

// Keeps what computes a sum before later loads. Compilers would load for all rows of
// all steps first, for which large tiles leave no registers.
#if defined(__AVX512F__)
#define KEEP_ORDER(sum) __asm__ volatile("" : "+v"(sum) : : "memory")
#else
#define KEEP_ORDER(sum) (void)sum
#endif

// Returns how many bytes ahead a tile prefetches weights that come from memory, which
// was found by measuring. Few rows in several places are slower with prefetches.
INLINE index prefetch_ahead(int rows, int streams) {
  if (streams == 1)
    return 1024;
  return rows < 4 ? 0 : streams == STREAMS ? 2048 : 4096;
}

// Prefetches weights for `steps` steps of `bytes` bytes, in places `apart` bytes apart.
INLINE void prefetch_steps(int rows, int streams, int steps, index bytes,
                           const void *w, index apart) {
  const index ahead = prefetch_ahead(rows, streams);
#pragma clang loop unroll(full)
  for (int i = 0; ahead && i < steps; ++i) {
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s)
      prefetch(w, ahead + s * apart + i * bytes);
  }
}

// Returns a mask of the first `columns` of 16 lanes, or of all.
INLINE __mmask16 first_lanes(index columns) {
  return (__mmask16)((1u << min_index(columns, 16)) - 1);
}

// Loads sixteen consecutive elements as floats.
INLINE __m512 load_16_lanes(const void *base, element_type type, index i) {
  if (type == ELEMENT_F32)
    return _mm512_loadu_ps((const float *)base + i);
  const __m256i halves =
      _mm256_loadu_si256((const __m256i *)((const uint16_t *)base + i));
  if (type == ELEMENT_F16)
    return _mm512_cvtph_ps(halves);
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

// Broadcasts the four bytes at p to every lane.
INLINE __m512i broadcast_four(const void *p) {
  int32_t four;
  __builtin_memcpy(&four, p, sizeof four);
  return _mm512_set1_epi32(four);
}

#endif

#endif // KERNELS_CPU_MATMUL_H
