// Helpers of matrix products for CPUs with AMX.
//
// AMX has eight registers, each a tile of up to 16 rows of 64 bytes. Its
// instructions add to one tile the dot products of the rows of a second tile with
// the columns of a third, four bytes at a time. A panel's 64 bytes of k have the
// layout of the third tile in memory.
#ifndef KERNELS_CPU_AMX_H
#define KERNELS_CPU_AMX_H

#include "matmul.h"

#if defined(__AMX_INT8__) && defined(__AMX_BF16__)

#define AMX_ROWS 16           // of a tile
#define AMX_BYTES 64          // of a row of a tile
#define AMX_MR (2 * AMX_ROWS) // maximum of rows in a product of tiles
#define AMX_DEPTH AMX_BYTES   // bytes of k in a tile

// Returns whether AMX multiplies m rows. Fewer rows are bound by memory, which
// AVX-512 reads in more places at once.
INLINE int amx_multiplies(index m) { return m > 8; }

// Shapes of all registers, in the layout of ldtilecfg.
typedef struct {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} amx_shapes;

INLINE void amx_shape(amx_shapes *shapes, int tile, index rows, index bytes) {
  shapes->rows[tile] = (uint8_t)rows;
  shapes->row_bytes[tile] = (uint16_t)(rows ? bytes : 0);
}

// Configures the registers for two tiles of rows, of which the lower may be empty,
// by two panels, so that each tile that is read is used twice. Registers 0 to 3
// hold the sums, 4 and 5 the rows, 6 and 7 the panels. The latter four hold `bytes`
// of k.
INLINE void amx_begin(index rows, index bytes) {
  const index upper = min_index(rows, AMX_ROWS), lower = rows - upper;
  amx_shapes shapes = {.palette = 1};
  for (int i = 0; i < 2; ++i) {
    amx_shape(&shapes, i, upper, AMX_BYTES);
    amx_shape(&shapes, 2 + i, lower, AMX_BYTES);
    amx_shape(&shapes, 4 + i, i ? lower : upper, bytes);
    amx_shape(&shapes, 6 + i, bytes / 4, AMX_BYTES);
  }
  _tile_loadconfig(&shapes);
}

// Operands of a product: rows `stride` bytes apart, by one or two panels, each of
// `bytes` bytes of k.
typedef struct {
  const uint8_t *rows;
  index stride;
  const uint8_t *left, *right;
  index bytes;
} amx_operands;

// Returns the operands for consecutive rows and the panels of 16 columns from
// `panel` on.
INLINE amx_operands amx_at(const void *rows, const void *w, index panel,
                           index bytes) {
  const uint8_t *left = (const uint8_t *)w + panel * 16 * bytes;
  return (amx_operands){.rows = rows,
                        .stride = bytes,
                        .left = left,
                        .right = left + 16 * bytes,
                        .bytes = bytes};
}

// Sums by tile of rows and by panel, as 32-bit integers or floats.
typedef uint32_t amx_sums[2][2][AMX_ROWS][16];

typedef enum { AMX_INT8, AMX_BF16 } amx_type;

// A macro, because register numbers are part of the instruction.
#define AMX_DOT(type, sums, rows, panel)                                       \
  do {                                                                         \
    if (type == AMX_BF16)                                                      \
      _tile_dpbf16ps(sums, rows, panel);                                       \
    else                                                                       \
      _tile_dpbssd(sums, rows, panel);                                         \
  } while (0)

// Multiplies one tile's depth of k.
INLINE void amx_step(amx_type type, int tall, int wide, const uint8_t *rows,
                     index stride, const uint8_t *left, const uint8_t *right) {
  _tile_loadd(4, rows, stride);
  _tile_loadd(6, left, AMX_BYTES);
  AMX_DOT(type, 0, 4, 6);
  if (wide) {
    _tile_loadd(7, right, AMX_BYTES);
    AMX_DOT(type, 1, 4, 7);
  }
  if (tall) {
    _tile_loadd(5, rows + AMX_ROWS * stride, stride);
    AMX_DOT(type, 2, 5, 6);
    if (wide)
      AMX_DOT(type, 3, 5, 7);
  }
}

// Multiplies the rest of k after whole tiles, from byte p on, padded with zeros.
INLINE void amx_last_step(amx_type type, index count, int tall, int wide,
                          const amx_operands *x, index p) {
  uint8_t rows[AMX_MR][AMX_BYTES], panels[2][AMX_ROWS][AMX_BYTES];
  const index bytes = x->bytes - p;
  const __mmask64 mask = (1ull << bytes) - 1;
  for (index r = 0; r < count; ++r)
    _mm512_storeu_si512(
        rows[r], _mm512_maskz_loadu_epi8(mask, x->rows + r * x->stride + p));
  for (int c = 0; c <= wide; ++c) {
    const uint8_t *panel = (c ? x->right : x->left) + p * 16;
    for (index r = 0; r < AMX_ROWS; ++r)
      _mm512_storeu_si512(panels[c][r],
                          r * 4 < bytes
                              ? _mm512_loadu_si512(panel + r * AMX_BYTES)
                              : _mm512_setzero_si512());
  }
  amx_step(type, tall, wide, rows[0], AMX_BYTES, panels[0][0], panels[1][0]);
}

// Computes the sums of `count` rows, for which amx_begin() was called. `tall` says
// that they need two tiles, `wide` that there is a right panel.
INLINE void amx_product(amx_type type, index count, int tall, int wide,
                        const amx_operands *x, amx_sums sums) {
  _tile_zero(0);
  if (wide)
    _tile_zero(1);
  if (tall) {
    _tile_zero(2);
    if (wide)
      _tile_zero(3);
  }
  index p = 0;
  for (; p + AMX_DEPTH <= x->bytes; p += AMX_DEPTH)
    amx_step(type, tall, wide, x->rows + p, x->stride, x->left + p * 16,
             x->right + p * 16);
  if (p < x->bytes)
    amx_last_step(type, count, tall, wide, x, p);
  _tile_stored(0, sums[0][0], AMX_BYTES);
  if (wide)
    _tile_stored(1, sums[0][1], AMX_BYTES);
  if (tall) {
    _tile_stored(2, sums[1][0], AMX_BYTES);
    if (wide)
      _tile_stored(3, sums[1][1], AMX_BYTES);
  }
}

// Calls amx_tile(rows, tall, wide, panel, ...) for panels begin..end, specialized
// for tall and wide.
#define AMX_TILES(rows, begin, end, ...)                                       \
  do {                                                                         \
    amx_begin(rows, AMX_DEPTH);                                                \
    for (index panel = begin; panel < end; panel += 2) {                       \
      const int tall = rows > AMX_ROWS, wide = panel + 1 < end;                \
      if (tall && wide)                                                        \
        amx_tile(rows, 1, 1, panel, __VA_ARGS__);                              \
      else if (tall)                                                           \
        amx_tile(rows, 1, 0, panel, __VA_ARGS__);                              \
      else if (wide)                                                           \
        amx_tile(rows, 0, 1, panel, __VA_ARGS__);                              \
      else                                                                     \
        amx_tile(rows, 0, 0, panel, __VA_ARGS__);                              \
    }                                                                          \
    _tile_release();                                                           \
  } while (0)

#else

#define AMX_MR 1
#define AMX_TILES(...)
INLINE int amx_multiplies(index m) { return (void)m, 0; }

#endif

#endif // KERNELS_CPU_AMX_H
