// Packs rows of weights into panels of 16, in which an element of each row is beside
// the same element of the others.
//
//   w    [rows][k]; of pairs [rows][2 * k]
//   out  [ceil(rows / 16)][k][16]; of pairs [ceil(rows / 16)][k][16][2]
//        rows past the last are zeros

#include "kernels.h"

#define ROWS 16 // of a panel

// Elements are copied by way of tiles, a cache line of each row. The rows of most
// weights are powers of two apart, where caches keep few lines at a time.
#define LINE 64

#define DEFINE_PACK(name, element)                                             \
  static __attribute__((noinline)) void pack_##name(                           \
      const element *w, element *out, index rows, index k, index begin,        \
      index end) {                                                             \
    enum { WIDTH = LINE / sizeof(element) };                                   \
    for (index panel = begin; panel < end; ++panel) {                          \
      const index first = panel * ROWS, real = min_index(ROWS, rows - first);  \
      for (index at = 0; at < k; at += WIDTH) {                                \
        const index width = min_index(WIDTH, k - at);                          \
        element tile[ROWS][WIDTH];                                             \
        for (index row = 0; row < ROWS; ++row) {                               \
          const element *from = w + (first + row) * k + at;                    \
          if (row >= real)                                                     \
            __builtin_memset(tile[row], 0, LINE);                              \
          else if (width == WIDTH)                                             \
            __builtin_memcpy(tile[row], from, LINE);                           \
          else                                                                 \
            for (index i = 0; i < width; ++i)                                  \
              tile[row][i] = from[i];                                          \
        }                                                                      \
        element *to = out + (panel * k + at) * ROWS;                           \
        for (index i = 0; i < width; ++i)                                      \
          for (index row = 0; row < ROWS; ++row)                               \
            to[i * ROWS + row] = tile[row][i];                                 \
      }                                                                        \
    }                                                                          \
  }

DEFINE_PACK(words, uint32_t)
DEFINE_PACK(halves, uint16_t)

#define PACK_PANELS(type, elements)                                            \
  void panels_##type(const void *w, void *out, index rows, index k,            \
                     index begin, index end) {                                 \
    pack_##elements(w, out, rows, k, begin, end);                              \
  }

PACK_PANELS(f32, words)
PACK_PANELS(bf16, halves)
PACK_PANELS(f16, halves)
PACK_PANELS(bf16_pairs, words)
