// Attention of many rows with AVX2: register tiles over converted blocks.

#ifndef KERNELS_CPU_ATTENTION_BLOCKS_H
#define KERNELS_CPU_ATTENTION_BLOCKS_H

#include "attention_task.h"

// A block of keys is transposed and converted to floats on the stack, and then the
// block of values, once for a hundred rows or more. Products use register tiles
// like a matmul.
//
// Loops over the rest after whole vectors have pragmas against unrolling, because
// unrolled they would be most of the code.

#define MR 6          // maximum of rows in a register tile
#define LANES 8
#define NR 16         // its columns: positions, then dimensions
#define BLOCK 64      // maximum of positions in a block
#define SCRATCH 13824 // floats for a converted block and scores: 54 KiB
#define MAX_TILES 26  // register tiles that share a converted block
#define MAX_HEAD_DIM 256
// A bound below the scores of any model: lower maxima count as nothing attended to.
#define LOWEST_BASE (-0x1p120f)

// State of the rows of one register tile. Indices and counts are kept, because
// computing them takes divisions, which cost as much as the softmax.
typedef struct {
  float max[LANES]; // spare lanes are meaningless
  float sum[LANES];
  float rescale[LANES]; // factor of sums, from the last block's new maximum
  index indices[MR];    // row_index()
  index first[MR];      // row_first()
  index visible[MR];    // row_visible()
  index rows;
  float *scores; // [MR][BLOCK], then weights
} row_tile;

// Returns the number of positions that are converted at once.
INLINE index block_size_for(index head_dim) {
  return head_dim <= MAX_HEAD_DIM / 2 ? BLOCK : BLOCK / 2;
}

// Returns the floats in a converted block, of keys or values.
INLINE index converted_size(index head_dim) {
  return divide_up(head_dim, NR) * NR * block_size_for(head_dim);
}

// Returns how many rows share a converted block, whose scores fit beside it.
INLINE index row_block_for(index head_dim) {
  return min_index((SCRATCH - converted_size(head_dim)) / BLOCK,
                   MAX_TILES * MR);
}

INLINE void transpose_8x8(__m256 x[8]) {
  __m256 pairs[8], quads[8];
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 8; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
    x[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
  }
}

// Copies eight positions from `first` on, of which `count` exist, to the columns
// of keys [head_dim][NR].
INLINE void pack_eight_keys(const task *t, index first, index count,
                            float *keys) {
  const __m256 scale = _mm256_set1_ps(t->scale);
  index d = 0;
  for (; d + 8 <= t->head_dim; d += 8) {
    __m256 x[8];
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; ++i)
      x[i] = i < count ? kv_lanes(&t->keys,
                                    (first + i) * t->position_stride + d)
                       : _mm256_setzero_ps();
    transpose_8x8(x);
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; ++i)
      _mm256_storeu_ps(keys + (d + i) * NR, _mm256_mul_ps(x[i], scale));
  }
#pragma clang loop vectorize(disable) unroll(disable)
  for (; d < t->head_dim; ++d)
    for (index i = 0; i < 8; ++i)
      keys[d * NR + i] =
          i < count ? t->scale * kv_element(&t->keys,
                                              (first + i) * t->position_stride +
                                                  d)
                    : 0.0f;
}

// Copies keys to [ceil(count / NR)][head_dim][NR], scaled and padded with zeros.
INLINE void pack_keys(const task *t, index first, index count, float *keys) {
  for (index s = 0; s < divide_up(count, NR) * NR; s += 8) {
    float *columns = keys + s / NR * NR * t->head_dim + s % NR;
    if (s + 8 <= count)
      pack_eight_keys(t, first + s, 8, columns);
    else
      pack_eight_keys(t, first + s, max_index(count - s, 0), columns);
  }
}

// Copies values to [ceil(head_dim / NR)][block_size][NR], padded with zeros.
INLINE void pack_values(const task *t, index first, index count,
                        float *values) {
  const index block_size = block_size_for(t->head_dim);
  for (index s = 0; s < count; ++s) {
    const index row = (first + s) * t->position_stride;
    index d = 0;
    for (; d + NR <= t->head_dim; d += NR) {
      float *target = values + d * block_size + s * NR;
      _mm256_storeu_ps(target, kv_lanes(&t->values, row + d));
      _mm256_storeu_ps(target + 8, kv_lanes(&t->values, row + d + 8));
    }
    for (index i = d; d < t->head_dim && i < d + NR; ++i)
      values[d * block_size + s * NR + i - d] =
          i < t->head_dim ? kv_element(&t->values, row + i) : 0.0f;
  }
}

// Computes scores[r][s] = q[r] * keys for all panels of `count` positions.
INLINE void score_tile(int rows, const float *const q[MR], const float *keys,
                       float *scores, index count, index head_dim) {
  for (index s = 0; s < count; s += NR) {
    const float *panel = keys + s * head_dim;
    __m256 acc[MR][2];
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
      acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    for (index d = 0; d < head_dim; ++d) {
      const __m256 key0 = _mm256_loadu_ps(panel + d * NR);
      const __m256 key1 = _mm256_loadu_ps(panel + d * NR + 8);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const __m256 x = _mm256_set1_ps(q[r][d]);
        acc[r][0] = _mm256_fmadd_ps(x, key0, acc[r][0]);
        acc[r][1] = _mm256_fmadd_ps(x, key1, acc[r][1]);
      }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      float *target = scores + r * BLOCK + s;
      _mm256_storeu_ps(target, acc[r][0]);
      _mm256_storeu_ps(target + 8, acc[r][1]);
    }
  }
}

// Computes sums[r] = sums[r] * rescale[r] + weights[r] * values for `dims`
// dimensions, a multiple of NR. Panels of values are `panel_stride` apart.
INLINE void value_tile(int rows, const float *weights, const float *values,
                       index panel_stride, float *const sums[MR],
                       const float *rescale, index count, index dims) {
  for (index d = 0; d < dims; d += NR) {
    __m256 acc[MR][2];
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      const __m256 by = _mm256_set1_ps(rescale[r]);
      acc[r][0] = _mm256_mul_ps(_mm256_loadu_ps(sums[r] + d), by);
      acc[r][1] = _mm256_mul_ps(_mm256_loadu_ps(sums[r] + d + 8), by);
    }
    for (index s = 0; s < count; ++s) {
      const __m256 value0 = _mm256_loadu_ps(values + s * NR);
      const __m256 value1 = _mm256_loadu_ps(values + s * NR + 8);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const __m256 x = _mm256_set1_ps(weights[r * BLOCK + s]);
        acc[r][0] = _mm256_fmadd_ps(x, value0, acc[r][0]);
        acc[r][1] = _mm256_fmadd_ps(x, value1, acc[r][1]);
      }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      _mm256_storeu_ps(sums[r] + d, acc[r][0]);
      _mm256_storeu_ps(sums[r] + d + 8, acc[r][1]);
    }
    values += panel_stride;
  }
}

static void score_rows(index rows, const float *const q[MR], const float *keys,
                       float *scores, index count, index head_dim) {
  switch (rows) {
  case 1: score_tile(1, q, keys, scores, count, head_dim); break;
  case 2: score_tile(2, q, keys, scores, count, head_dim); break;
  case 3: score_tile(3, q, keys, scores, count, head_dim); break;
  case 4: score_tile(4, q, keys, scores, count, head_dim); break;
  case 5: score_tile(5, q, keys, scores, count, head_dim); break;
  default: score_tile(6, q, keys, scores, count, head_dim); break;
  }
}

static void value_rows(index rows, const float *weights, const float *values,
                       index stride, float *const sums[MR],
                       const float *by, index count, index dims) {
  switch (rows) {
  case 1: value_tile(1, weights, values, stride, sums, by, count, dims); break;
  case 2: value_tile(2, weights, values, stride, sums, by, count, dims); break;
  case 3: value_tile(3, weights, values, stride, sums, by, count, dims); break;
  case 4: value_tile(4, weights, values, stride, sums, by, count, dims); break;
  case 5: value_tile(5, weights, values, stride, sums, by, count, dims); break;
  default: value_tile(6, weights, values, stride, sums, by, count, dims); break;
  }
}

// Does what value_rows() does for the last dims < NR dimensions, in whole panels.
static void value_rows_partial(index rows, const float *weights,
                               const float *values, float *const sums[MR],
                               const float *rescale, index count, index dims) {
  float lanes[MR][NR];
  float *whole[MR];
  for (index r = 0; r < rows; ++r) {
    whole[r] = lanes[r];
#pragma clang loop vectorize(disable) unroll(disable)
    for (index d = 0; d < NR; ++d)
      lanes[r][d] = d < dims ? sums[r][d] : 0.0f;
  }
  value_rows(rows, weights, values, 0, whole, rescale, count, NR);
  for (index r = 0; r < rows; ++r)
#pragma clang loop vectorize(disable) unroll(disable)
    for (index d = 0; d < dims; ++d)
      sums[r][d] = lanes[r][d];
}

// Masks a row's scores except those from `first` to `visible`, and returns the
// largest.
INLINE float mask_row(float *scores, index first, index visible,
                      index padded) {
#pragma clang loop vectorize(disable) unroll(disable)
  for (index s = 0; s < first; ++s)
    scores[s] = NEGATIVE_INFINITY;
#pragma clang loop vectorize(disable) unroll(disable)
  for (index s = visible; s < padded; ++s)
    scores[s] = NEGATIVE_INFINITY;
  __m256 largest = _mm256_loadu_ps(scores);
  for (index s = 8; s < padded; s += 8)
    largest = _mm256_max_ps(largest, _mm256_loadu_ps(scores + s));
  return max_lanes(largest);
}

// Turns `count` vectors of scores into weights and returns their sum.
INLINE __m256 weigh_vectors(int count, float *scores, __m256 base) {
  __m256 x[EXP2_MAX_VECTORS];
#pragma clang loop unroll(full)
  for (int i = 0; i < count; ++i)
    x[i] = _mm256_sub_ps(_mm256_loadu_ps(scores + i * 8), base);
  exp2_vectors(count, x);
  __m256 total = x[0];
#pragma clang loop unroll(full)
  for (int i = 0; i < count; ++i) {
    _mm256_storeu_ps(scores + i * 8, x[i]);
    total = i ? _mm256_add_ps(total, x[i]) : total;
  }
  return total;
}

// Turns a row's scores into weights and returns their sum.
INLINE float weigh_row(float *scores, float max, index padded) {
  const __m256 base = _mm256_set1_ps(max);
  __m256 total = _mm256_setzero_ps();
  index s = 0;
  for (; s + 32 <= padded; s += 32)
    total = _mm256_add_ps(total, weigh_vectors(4, scores + s, base));
  for (; s < padded; s += 8)
    total = _mm256_add_ps(total, weigh_vectors(1, scores + s, base));
  return sum_lanes(total);
}

// Does one step of the online softmax for the rows of a tile. Maxima of all rows
// are computed before weights, so that no row waits for its own maximum.
static void softmax_tile(const task *t, row_tile *tile, index block,
                         index count) {
  const index padded = divide_up(count, 8) * 8;
  float block_max[LANES], block_sum[LANES];
  for (index r = 0; r < LANES; ++r)
    block_max[r] = block_sum[r] = 0.0f;
  for (index r = 0; r < tile->rows; ++r) {
    float *scores = tile->scores + r * BLOCK;
    cap_scores(t, scores, count);
    block_max[r] =
        mask_row(scores, clamp_index(tile->first[r] - block, 0, count),
                 clamp_index(tile->visible[r] - block, 0, count), padded);
  }
  const __m256 old_max = _mm256_loadu_ps(tile->max);
  // The bound avoids inf - inf in rows that have attended to nothing yet.
  const __m256 max =
      _mm256_max_ps(_mm256_max_ps(_mm256_loadu_ps(block_max), old_max),
                    _mm256_set1_ps(LOWEST_BASE));
  const __m256 rescale = exp2_lanes(_mm256_sub_ps(old_max, max));
  _mm256_storeu_ps(tile->max, max);
  _mm256_storeu_ps(tile->rescale, rescale);
  for (index r = 0; r < tile->rows; ++r)
    block_sum[r] =
        weigh_row(tile->scores + r * BLOCK, tile->max[r], padded);
  _mm256_storeu_ps(tile->sum,
                   _mm256_fmadd_ps(_mm256_loadu_ps(tile->sum), rescale,
                                   _mm256_loadu_ps(block_sum)));
}

static void begin_tile(const task *t, index first, index rows, float *scores,
                       row_tile *tile) {
  _mm256_storeu_ps(tile->max, _mm256_set1_ps(NEGATIVE_INFINITY));
  _mm256_storeu_ps(tile->sum, _mm256_setzero_ps());
  tile->rows = rows;
  tile->scores = scores;
  for (index r = 0; r < rows; ++r) {
    tile->indices[r] = row_index(t, first + r);
    tile->first[r] = row_first(t, first + r);
    tile->visible[r] = row_visible(t, first + r);
    clear_row(t->sums + tile->indices[r] * t->head_dim, t->head_dim);
  }
}

static void finish_tile(const task *t, const row_tile *tile) {
  for (index r = 0; r < tile->rows; ++r)
    finish_row(t, tile->indices[r], tile->max[r], tile->sum[r]);
}

// Returns how many positions of the block, from its first on, some row of the tile
// attends to. The last row attends to the latest positions, the first row to the
// earliest.
INLINE index tile_visible(const row_tile *tile, index block, index count) {
  if (block + count <= tile->first[0])
    return 0;
  return clamp_index(tile->visible[tile->rows - 1] - block, 0, count);
}

// Computes scores and weights of one tile.
static void weigh_tile(const task *t, row_tile *tile, index block, index count,
                       const float *keys) {
  const index visible = tile_visible(tile, block, count);
  const float *q[MR];
  if (visible == 0)
    return;
  for (index r = 0; r < tile->rows; ++r)
    q[r] = t->q + tile->indices[r] * t->head_dim;
  score_rows(tile->rows, q, keys, tile->scores, visible, t->head_dim);
  softmax_tile(t, tile, block, visible);
}

static void add_tile(const task *t, const row_tile *tile, index block,
                     index count, const float *values) {
  const index visible = tile_visible(tile, block, count);
  const index block_size = block_size_for(t->head_dim);
  const index whole = t->head_dim & ~(index)(NR - 1);
  float *sums[MR];
  if (visible == 0)
    return;
  for (index r = 0; r < tile->rows; ++r)
    sums[r] = t->sums + tile->indices[r] * t->head_dim;
  value_rows(tile->rows, tile->scores, values, block_size * NR, sums,
             tile->rescale, visible, whole);
  if (whole == t->head_dim)
    return;
  for (index r = 0; r < tile->rows; ++r)
    sums[r] += whole;
  value_rows_partial(tile->rows, tile->scores, values + whole * block_size,
                     sums, tile->rescale, visible, t->head_dim - whole);
}

// Computes up to row_block_for() rows over the chunk, by converted blocks.
INLINE void attend_many(const task *t, index row_begin, index rows) {
  float scratch[SCRATCH] __attribute__((aligned(64)));
  row_tile tiles[MAX_TILES];
  float *converted = scratch;
  float *scores = scratch + converted_size(t->head_dim);
  const index tile_count = divide_up(rows, MR);
  const index block_size = block_size_for(t->head_dim);
  const index begin = max_index(t->chunk_begin, row_first(t, row_begin));
  const index end =
      min_index(t->chunk_end, row_visible(t, row_begin + rows - 1));
  for (index i = 0; i < tile_count; ++i) {
    // Rows are divided evenly.
    const index first = rows * i / tile_count;
    begin_tile(t, row_begin + first, rows * (i + 1) / tile_count - first,
               scores + first * BLOCK, &tiles[i]);
  }
  for (index block = begin; block < end;) {
    const index count =
        until_wrap(t, block, min_index(block_size, end - block));
    const index slot = position_slot(t, block);
    pack_keys(t, slot, count, converted);
    for (index i = 0; i < tile_count; ++i)
      weigh_tile(t, &tiles[i], block, count, converted);
    pack_values(t, slot, count, converted);
    for (index i = 0; i < tile_count; ++i)
      add_tile(t, &tiles[i], block, count, converted);
    block += count;
  }
  for (index i = 0; i < tile_count; ++i)
    finish_tile(t, &tiles[i]);
}

#endif // KERNELS_CPU_ATTENTION_BLOCKS_H
