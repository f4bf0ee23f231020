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

#define HAS_AMX 1
#define AMX_ROWS 16           // of a tile
#define AMX_BYTES 64          // of a row of a tile
#define AMX_MR (2 * AMX_ROWS) // maximum of rows in a product of tiles
#define AMX_DEPTH AMX_BYTES   // bytes of k in a tile

// Returns whether AMX multiplies m rows, if its results are those of AVX-512. Fewer
// rows are bound by memory.
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

// Configures the registers for two tiles of rows by two panels, so that each tile
// that is read is used twice, or for one tile of rows by four panels. Registers 0 to
// 3 hold the sums, 4 and 5 the rows, 6 and 7 the panels. The latter four hold
// `bytes` of k.
INLINE void amx_begin(index rows, index bytes) {
  const index upper = min_index(rows, AMX_ROWS), lower = rows - upper;
  amx_shapes shapes = {.palette = 1};
  for (int i = 0; i < 2; ++i) {
    amx_shape(&shapes, i, upper, AMX_BYTES);
    amx_shape(&shapes, 2 + i, lower ? lower : upper, AMX_BYTES);
    amx_shape(&shapes, 4 + i, i ? lower : upper, bytes);
    amx_shape(&shapes, 6 + i, bytes / 4, AMX_BYTES);
  }
  _tile_loadconfig(&shapes);
}

// Operands of a product: rows `stride` bytes apart, by panels `apart` bytes apart,
// each of `bytes` bytes of k.
typedef struct {
  const uint8_t *rows;
  index stride;
  const uint8_t *w;
  index apart, bytes;
} amx_operands;

// Returns the operands for consecutive rows and panels of 16 columns, which begin at
// `panel` and are `apart` panels apart.
INLINE amx_operands amx_at(const void *rows, const void *w, index panel,
                           index apart, index bytes) {
  return (amx_operands){.rows = rows,
                        .stride = bytes,
                        .w = (const uint8_t *)w + panel * 16 * bytes,
                        .apart = apart * 16 * bytes,
                        .bytes = bytes};
}

// Sums of the registers 0 to 3, as 32-bit integers or floats.
typedef uint32_t amx_sums[4][AMX_ROWS][16];

// Returns the sums of a row by one of the panels. Two tiles of rows have two panels.
INLINE const uint32_t *amx_row(amx_sums sums, index row, int stream) {
  return sums[row / AMX_ROWS * 2 + stream][row % AMX_ROWS];
}

typedef enum { AMX_INT8, AMX_BF16 } amx_type;

// A macro, because register numbers are part of the instruction.
#define AMX_DOT(type, sums, rows, panel)                                       \
  do {                                                                         \
    if (type == AMX_BF16)                                                      \
      _tile_dpbf16ps(sums, rows, panel);                                       \
    else                                                                       \
      _tile_dpbssd(sums, rows, panel);                                         \
  } while (0)

// Multiplies one tile's depth of k. Panels are `apart` bytes apart.
INLINE void amx_step(amx_type type, int tall, int streams, const uint8_t *rows,
                     index stride, const uint8_t *w, index apart) {
  _tile_loadd(4, rows, stride);
  _tile_loadd(6, w, AMX_BYTES);
  AMX_DOT(type, 0, 4, 6);
  if (streams > 1) {
    _tile_loadd(7, w + apart, AMX_BYTES);
    AMX_DOT(type, 1, 4, 7);
  }
  if (tall) {
    _tile_loadd(5, rows + AMX_ROWS * stride, stride);
    AMX_DOT(type, 2, 5, 6);
    if (streams > 1)
      AMX_DOT(type, 3, 5, 7);
  } else if (streams == 4) {
    _tile_loadd(6, w + 2 * apart, AMX_BYTES);
    AMX_DOT(type, 2, 4, 6);
    _tile_loadd(7, w + 3 * apart, AMX_BYTES);
    AMX_DOT(type, 3, 4, 7);
  }
}

// Multiplies the rest of k after whole tiles, from byte p on, padded with zeros.
INLINE void amx_last_step(amx_type type, index count, int tall, int streams,
                          const amx_operands *x, index p) {
  uint8_t rows[AMX_MR][AMX_BYTES], panels[4][AMX_ROWS][AMX_BYTES];
  const index bytes = x->bytes - p;
  const __mmask64 mask = (1ull << bytes) - 1;
  for (index r = 0; r < count; ++r)
    _mm512_storeu_si512(
        rows[r], _mm512_maskz_loadu_epi8(mask, x->rows + r * x->stride + p));
  for (int s = 0; s < streams; ++s) {
    const uint8_t *panel = x->w + s * x->apart + p * 16;
    for (index r = 0; r < AMX_ROWS; ++r)
      _mm512_storeu_si512(panels[s][r],
                          r * 4 < bytes
                              ? _mm512_loadu_si512(panel + r * AMX_BYTES)
                              : _mm512_setzero_si512());
  }
  amx_step(type, tall, streams, rows[0], AMX_BYTES, panels[0][0],
           sizeof panels[0]);
}

// Computes the sums of `count` rows, for which amx_begin() was called, by `streams`
// panels: 1, 2, or 4 if the rows need only one tile. `tall` says that they need two.
INLINE void amx_product(amx_type type, index count, int tall, int streams,
                        const amx_operands *x, amx_sums sums) {
  _tile_zero(0);
  if (streams > 1)
    _tile_zero(1);
  if (tall || streams == 4)
    _tile_zero(2);
  if ((tall && streams > 1) || streams == 4)
    _tile_zero(3);
  index p = 0;
  for (; p + AMX_DEPTH <= x->bytes; p += AMX_DEPTH)
    amx_step(type, tall, streams, x->rows + p, x->stride, x->w + p * 16,
             x->apart);
  if (p < x->bytes)
    amx_last_step(type, count, tall, streams, x, p);
  _tile_stored(0, sums[0], AMX_BYTES);
  if (streams > 1)
    _tile_stored(1, sums[1], AMX_BYTES);
  if (tall || streams == 4)
    _tile_stored(2, sums[2], AMX_BYTES);
  if ((tall && streams > 1) || streams == 4)
    _tile_stored(3, sums[3], AMX_BYTES);
}

// Calls amx_tile(rows, streams, apart, panel, tall, ...) for panels begin..end, with
// constant `streams` and `tall`.
#define AMX_TILES(rows, begin, end, ...)                                       \
  do {                                                                         \
    index panel = begin;                                                       \
    amx_begin(rows, AMX_DEPTH);                                                \
    if (rows > AMX_ROWS) {                                                     \
      STREAM(amx_tile, rows, 2, end, 1, __VA_ARGS__);                          \
      STREAM(amx_tile, rows, 1, end, 1, __VA_ARGS__);                          \
    } else {                                                                   \
      STREAM(amx_tile, rows, STREAMS, end, 0, __VA_ARGS__);                    \
      STREAM(amx_tile, rows, 2, end, 0, __VA_ARGS__);                          \
      STREAM(amx_tile, rows, 1, end, 0, __VA_ARGS__);                          \
    }                                                                          \
    _tile_release();                                                           \
  } while (0)

#else

#define HAS_AMX 0
#define AMX_MR 1
#define AMX_TILES(...)
INLINE int amx_multiplies(index m) { return (void)m, 0; }

#endif

#endif // KERNELS_CPU_AMX_H
