// Scores, weights and weighted values of a register tile of rows and one page.
//
// Each result has one accumulator and one order: scores add up dimensions, and
// values add up positions, both ascending. So neither the shape of a tile nor the
// other rows in it change a row's bits.

#ifndef KERNELS_CPU_ATTENTION_TILES_H
#define KERNELS_CPU_ATTENTION_TILES_H

#include "../kv_cache.h"
#include "kernels.h"
#include "lanes.h"
#include "simd.h"

#define MR 6 // maximum of rows in a register tile
#define MAX_HEAD_DIM 256
// A bound below the scores of any model: lower maxima count as nothing attended to.
#define LOWEST_BASE (-0x1p120f)
// Vectors that hold a number for each row of a tile.
#define ROW_VECTORS ((MR + LANES - 1) / LANES)
#define ROW_LANES (ROW_VECTORS * LANES)

// A page's keys or values of a kv head. Keys are [width][PAGE], where width is
// head_dim. Values are [PAGE][width], where width may include padding.
typedef struct {
  element_type type;
  const void *elements;
  const float *scales; // of Q8: [width / 32][PAGE] or [PAGE][width / 32]
  const char *ahead;   // what is read after it, of the same size, or NULL
  index width;
} page_half;

// Rows of a register tile.
typedef struct {
  index rows;
  const float *q[MR];   // [head_dim]
  float *sums[MR];      // [width], where width is a multiple of LANES
  index first[MR];      // the first position of the page that the row sees
  index end[MR];        // one past the last one; at most first[] if it sees none
  float *weights;       // [MR][PAGE], first scores
  float *max, *sum;     // [ROW_LANES], of the chunk so far
  float rescale[ROW_LANES]; // factor of sums, from the page's new maximum
} row_tile;

// Returns how many vectors of columns a tile of `rows` rows has. Fewer rows take
// more columns, to have enough independent sums.
INLINE int vectors_for(int rows, int most) {
  const int registers = REGISTERS / 4 * 3;
  int vectors = 1;
  while (vectors * 2 <= most && vectors * 2 * rows <= registers)
    vectors *= 2;
  return vectors;
}

// Prefetches `bytes` at `offset` of what is read after a page half. Each step of
// reading the half prefetches as much as it reads.
INLINE void prefetch_next(const page_half *half, index offset, index bytes) {
  if (half->ahead)
    for (index byte = 0; byte < bytes; byte += 64)
      prefetch(half->ahead + offset, byte);
}

// Computes the scores of `vectors` vectors of positions from `column` on.
INLINE void score_columns(int rows, int vectors, element_type type,
                          const row_tile *tile, const page_half *keys,
                          index column) {
  const index step_bytes = vectors * LANES * element_size(type);
  lanes acc[MR][8];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v)
      acc[r][v] = 0.0f;
  }
  for (index d = 0; d < keys->width; ++d) {
    lanes key[8];
    prefetch_next(keys, column * keys->width * element_size(type) +
                            d * step_bytes, step_bytes);
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v) {
      key[v] = load_elements(keys->elements, type,
                             d * PAGE + column + v * LANES);
      if (type == ELEMENT_Q8)
        key[v] *= load_floats(keys->scales + d / CACHE_GROUP * PAGE + column +
                              v * LANES);
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const lanes x = tile->q[r][d];
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; ++v)
        acc[r][v] = multiply_add(x, key[v], acc[r][v]);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v)
      store_floats(tile->weights + r * PAGE + column + v * LANES, acc[r][v]);
  }
}

// Computes the scores of all rows, at least of the positions that rows see.
INLINE void score_tile(int rows, element_type type, const row_tile *tile,
                       const page_half *keys) {
  const int most = PAGE / LANES < 8 ? PAGE / LANES : 8;
  const int vectors = vectors_for(rows, most);
  const index columns = vectors * LANES;
  index first = tile->first[0], end = tile->end[0];
  for (index r = 1; r < rows; ++r) {
    first = min_index(first, tile->first[r]);
    end = max_index(end, tile->end[r]);
  }
  for (index at = first / columns * columns; at < end; at += columns)
    score_columns(rows, vectors, type, tile, keys, at);
}

// Computes sums = sums * rescale + weights * values for `vectors` vectors of
// dimensions from `d` on, and the positions begin..end. The last `vectors` may be
// one that has only `count` dimensions.
INLINE void add_columns(int rows, int vectors, element_type type,
                        const row_tile *tile, const page_half *values,
                        index begin, index end, index d, index count) {
  const index step_bytes = vectors * LANES * element_size(type);
  lanes acc[MR][8];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    const lanes by = tile->rescale[r];
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v)
      acc[r][v] = load_floats(tile->sums[r] + d + v * LANES) * by;
  }
  for (index s = begin; s < end; ++s) {
    lanes value[8];
    prefetch_next(values, d * PAGE * element_size(type) + s * step_bytes,
                  step_bytes);
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v) {
      const index at = s * values->width + d + v * LANES;
      value[v] = count < LANES
                     ? load_some_elements(values->elements, type, at, count)
                     : load_elements(values->elements, type, at);
      if (type == ELEMENT_Q8)
        value[v] *= values->scales[at / CACHE_GROUP];
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const lanes x = tile->weights[r * PAGE + s];
#pragma clang loop unroll(full)
      for (int v = 0; v < vectors; ++v)
        acc[r][v] = multiply_add(x, value[v], acc[r][v]);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v)
      store_floats(tile->sums[r] + d + v * LANES, acc[r][v]);
  }
}

INLINE void add_tile(int rows, element_type type, const row_tile *tile,
                     const page_half *values, index begin, index end) {
  const int vectors = vectors_for(rows, 8);
  index d = 0;
  for (; d + vectors * LANES <= values->width; d += vectors * LANES)
    add_columns(rows, vectors, type, tile, values, begin, end, d, LANES);
  for (; d + LANES <= values->width; d += LANES)
    add_columns(rows, 1, type, tile, values, begin, end, d, LANES);
  if (d < values->width)
    add_columns(rows, 1, type, tile, values, begin, end, d,
                values->width - d);
}

#define EACH_ROW_COUNT(call)                                                   \
  _Static_assert(MR == 6, "a case for every number of rows");                  \
  switch (tile->rows) {                                                        \
  case 1: call(1); break;                                                      \
  case 2: call(2); break;                                                      \
  case 3: call(3); break;                                                      \
  case 4: call(4); break;                                                      \
  case 5: call(5); break;                                                      \
  default: call(6); break;                                                     \
  }

// Defines score_rows_<name>() and add_rows_<name>() for elements of one type.
#define DEFINE_TILES(name, type)                                               \
  static void score_rows_##name(const row_tile *tile, const page_half *keys) { \
    EACH_ROW_COUNT(SCORE_##name)                                               \
  }                                                                            \
  static void add_rows_##name(const row_tile *tile, const page_half *values,   \
                              index begin, index end) {                        \
    EACH_ROW_COUNT(ADD_##name)                                                 \
  }
#define SCORE_f32(rows) score_tile(rows, ELEMENT_F32, tile, keys)
#define SCORE_bf16(rows) score_tile(rows, ELEMENT_BF16, tile, keys)
#define SCORE_f16(rows) score_tile(rows, ELEMENT_F16, tile, keys)
#define SCORE_q8(rows) score_tile(rows, ELEMENT_Q8, tile, keys)
#define ADD_f32(rows) add_tile(rows, ELEMENT_F32, tile, values, begin, end)
#define ADD_bf16(rows) add_tile(rows, ELEMENT_BF16, tile, values, begin, end)
#define ADD_f16(rows) add_tile(rows, ELEMENT_F16, tile, values, begin, end)
#define ADD_q8(rows) add_tile(rows, ELEMENT_Q8, tile, values, begin, end)
DEFINE_TILES(f32, ELEMENT_F32)
DEFINE_TILES(bf16, ELEMENT_BF16)
DEFINE_TILES(f16, ELEMENT_F16)
DEFINE_TILES(q8, ELEMENT_Q8)

static void score_rows(const row_tile *tile, const page_half *keys) {
  switch (keys->type) {
  case ELEMENT_F32: score_rows_f32(tile, keys); break;
  case ELEMENT_BF16: score_rows_bf16(tile, keys); break;
  case ELEMENT_F16: score_rows_f16(tile, keys); break;
  case ELEMENT_Q8: score_rows_q8(tile, keys); break;
  }
}

static void add_range(const row_tile *tile, const page_half *values,
                      index begin, index end) {
  switch (values->type) {
  case ELEMENT_F32: add_rows_f32(tile, values, begin, end); break;
  case ELEMENT_BF16: add_rows_bf16(tile, values, begin, end); break;
  case ELEMENT_F16: add_rows_f16(tile, values, begin, end); break;
  case ELEMENT_Q8: add_rows_q8(tile, values, begin, end); break;
  }
}

// Does what add_range() does for one row.
static void add_row_range(const row_tile *tile, index r,
                          const page_half *values, index begin, index end) {
  if (begin >= end)
    return;
  row_tile one = {.rows = 1, .weights = tile->weights + r * PAGE};
  one.sums[0] = tile->sums[r];
  one.rescale[0] = tile->rescale[r];
  add_range(&one, values, begin, end);
}

// Adds weighted values to the sums of all rows. Positions that only some rows see
// are added to these alone, because a value may be NaN where a weight is 0.
static void add_rows(row_tile *tile, const page_half *values) {
  index begin = 0, end = PAGE;
  for (index r = 0; r < tile->rows; ++r) {
    begin = max_index(begin, tile->first[r]);
    end = min_index(end, tile->end[r]);
  }
  if (begin >= end) {
    for (index r = 0; r < tile->rows; ++r)
      add_row_range(tile, r, values, tile->first[r], tile->end[r]);
    return;
  }
  for (index r = 0; r < tile->rows; ++r) {
    add_row_range(tile, r, values, tile->first[r], begin);
    tile->rescale[r] = tile->first[r] < begin ? 1.0f : tile->rescale[r];
  }
  add_range(tile, values, begin, end);
  for (index r = 0; r < tile->rows; ++r) {
    tile->rescale[r] = 1.0f;
    add_row_range(tile, r, values, end, tile->end[r]);
  }
}

// ---------------------------------------------------------------- weights

// tanh(x) = 1 - 2 / (e^2x + 1). Beyond 10 it rounds to 1.
#define TANH_END 10.0f

INLINE lanes capped(lanes score, float cap) {
  lanes x = score / cap;
  x = select_lanes(x > TANH_END, TANH_END, x); // keeps NaN
  x = select_lanes(x < -TANH_END, -TANH_END, x);
  const lanes e = exp2_of(x * (2.0f * LOG2_E));
  return cap * (1.0f - 2.0f / (e + 1.0f));
}

// Caps a row's scores, if soft_cap is not 0, masks those of positions that it does
// not see, and returns the largest.
INLINE float mask_row(float *scores, index first, index end, float soft_cap) {
  lanes largest = NEGATIVE_INFINITY;
  if (soft_cap == 0.0f && first == 0 && end == PAGE) {
    for (int s = 0; s < PAGE; s += LANES)
      largest = max_of(largest, load_floats(scores + s));
    return max_of_lanes(largest);
  }
  int_lanes position;
  for (int i = 0; i < LANES; ++i)
    position[i] = i;
  for (int s = 0; s < PAGE; s += LANES) {
    lanes x = load_floats(scores + s);
    if (soft_cap != 0.0f)
      x = capped(x, soft_cap);
    const int_lanes is_seen =
        (position >= (int32_t)(first - s)) & (position < (int32_t)(end - s));
    x = select_lanes(is_seen, x, NEGATIVE_INFINITY);
    store_floats(scores + s, x);
    largest = max_of(largest, x);
  }
  return max_of_lanes(largest);
}

// Turns a row's scores into weights and returns their sum.
INLINE float weigh_row(float *scores, float max) {
  lanes total = 0.0f;
#pragma clang loop unroll(disable)
  for (int s = 0; s < PAGE; s += 4 * LANES) {
    lanes x[4];
    for (int i = 0; i < 4; ++i)
      x[i] = load_floats(scores + s + i * LANES) - max;
    exp2_each(4, x);
    for (int i = 0; i < 4; ++i)
      store_floats(scores + s + i * LANES, x[i]);
    total += (x[0] + x[1]) + (x[2] + x[3]);
  }
  return sum_of_lanes(total);
}

// Does one step of the online softmax. Maxima of all rows are computed before
// weights, so that no row waits for its own maximum.
static void weigh_rows(row_tile *tile, float soft_cap) {
  float page_max[ROW_LANES], page_sum[ROW_LANES];
  for (int r = 0; r < ROW_LANES; ++r) {
    page_max[r] = NEGATIVE_INFINITY;
    page_sum[r] = 0.0f;
  }
  for (index r = 0; r < tile->rows; ++r)
    page_max[r] = mask_row(tile->weights + r * PAGE, tile->first[r],
                           tile->end[r], soft_cap);
  for (int r = 0; r < ROW_LANES; r += LANES) {
    const lanes old = load_floats(tile->max + r);
    // The bound avoids inf - inf in rows that have seen nothing yet.
    const lanes max =
        max_of(max_of(load_floats(page_max + r), old), LOWEST_BASE);
    store_floats(tile->rescale + r, exp2_of(old - max));
    store_floats(tile->max + r, max);
  }
  for (index r = 0; r < tile->rows; ++r)
    page_sum[r] = weigh_row(tile->weights + r * PAGE, tile->max[r]);
  for (int r = 0; r < ROW_LANES; r += LANES)
    store_floats(tile->sum + r, multiply_add(load_floats(tile->sum + r),
                                             load_floats(tile->rescale + r),
                                             load_floats(page_sum + r)));
}

#endif // KERNELS_CPU_ATTENTION_TILES_H
