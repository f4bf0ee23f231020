// Attention of few rows with AVX2, which reads the cache without converting it.

#ifndef KERNELS_CPU_ATTENTION_FEW_H
#define KERNELS_CPU_ATTENTION_FEW_H

#include "attention_blocks.h"

// For decoding: dimensions are in the lanes. Scores are [position][FEW_TILE], so
// that lanes compute the softmax of all rows at once.

#define FEW_ROWS 8   // maximum of rows without conversion
#define FEW_TILE 4   // rows at once
#define FEW_AHEAD 24 // positions prefetched ahead

// State of up to FEW_TILE rows. The first paired_dims() dimensions of q and sums
// are in the order of load_paired().
typedef struct {
  float q[FEW_TILE][MAX_HEAD_DIM]; // scaled
  float sums[FEW_TILE][MAX_HEAD_DIM];
  float scores[(BLOCK + 1) * FEW_TILE];
  __m128 max, sum, rescale;
} few_rows;

INLINE index paired_dims(index head_dim) { return head_dim & ~(index)15; }

INLINE index dim_position(const task *t, index d) {
  return d < paired_dims(t->head_dim)
             ? (d & ~(index)15) + paired_position(t->keys.type, d & 15)
             : d;
}

// Returns the sums of the lanes of four vectors.
INLINE __m128 sum_each(const __m256 x[FEW_TILE]) {
  const __m256 low = _mm256_hadd_ps(x[0], x[1]);
  const __m256 high = _mm256_hadd_ps(x[2], x[3]);
  const __m256 quads = _mm256_hadd_ps(low, high);
  return _mm_add_ps(_mm256_castps256_ps128(quads),
                    _mm256_extractf128_ps(quads, 1));
}

// Computes the scores of `positions` (1 or 2) positions from cache element `at` on.
INLINE void score_positions(int rows, int positions, const task *t,
                            const few_rows *few, index at, float *scores) {
  __m256 acc[2][FEW_TILE];
#pragma clang loop unroll(full)
  for (int i = 0; i < positions; ++i) {
#pragma clang loop unroll(full)
    for (int r = 0; r < FEW_TILE; ++r)
      acc[i][r] = _mm256_setzero_ps();
  }
  const index paired = paired_dims(t->head_dim);
  for (index d = 0; d < paired; d += 16) {
    __m256 keys[2][2];
#pragma clang loop unroll(full)
    for (int i = 0; i < positions; ++i)
      kv_pair(&t->keys, at + i * t->position_stride + d, keys[i]);
#pragma clang loop unroll(full)
    for (int v = 0; v < 2; ++v) {
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const __m256 x = _mm256_loadu_ps(few->q[r] + d + v * 8);
#pragma clang loop unroll(full)
        for (int i = 0; i < positions; ++i)
          acc[i][r] = _mm256_fmadd_ps(x, keys[i][v], acc[i][r]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < positions; ++i)
    _mm_storeu_ps(scores + i * FEW_TILE, sum_each(acc[i]));
#pragma clang loop vectorize(disable) unroll(disable)
  for (index d = paired; d < t->head_dim; ++d)
    for (index i = 0; i < positions; ++i)
      for (index r = 0; r < rows; ++r)
        scores[i * FEW_TILE + r] +=
            few->q[r][d] *
            kv_element(&t->keys, at + i * t->position_stride + d);
}

INLINE void prefetch_row(const kv_slice *rows, index at, index head_dim) {
  const char *row = element_at(rows->elements, rows->type, at);
  for (index byte = 0; byte < head_dim * element_size(rows->type); byte += 64)
    prefetch(row + byte, 0);
}

INLINE void score_block(int rows, const task *t, few_rows *few, index first,
                        index count) {
  const index stride = t->position_stride;
  index s = 0;
  for (; s + 2 <= count; s += 2) {
    const index at = (first + s) * stride;
    for (index i = 0; i < 2; ++i) {
      prefetch_row(&t->keys, at + (FEW_AHEAD + i) * stride,
                   t->head_dim);
      // Values are read after all scores of the block.
      prefetch_row(&t->values, at + i * stride, t->head_dim);
    }
    score_positions(rows, 2, t, few, at, few->scores + s * FEW_TILE);
  }
  if (s < count)
    score_positions(rows, 1, t, few, (first + s) * stride,
                    few->scores + s * FEW_TILE);
  cap_scores(t, few->scores, count * FEW_TILE);
}

// Turns the block's scores into weights. Row r attends to positions first[r] to
// visible[r] of the block; others get the weight 0.
INLINE void weigh_block(const index first[FEW_TILE],
                        const index visible[FEW_TILE], index count,
                        few_rows *few) {
  float *scores = few->scores;
  for (index r = 0; r < FEW_TILE; ++r) {
#pragma clang loop vectorize(disable) unroll(disable)
    for (index s = 0; s < first[r]; ++s)
      scores[s * FEW_TILE + r] = NEGATIVE_INFINITY;
#pragma clang loop vectorize(disable) unroll(disable)
    for (index s = visible[r]; s < count + 1; ++s)
      scores[s * FEW_TILE + r] = NEGATIVE_INFINITY;
  }
  __m256 largest = _mm256_loadu_ps(scores);
  for (index s = 2; s < count; s += 2)
    largest = _mm256_max_ps(largest, _mm256_loadu_ps(scores + s * FEW_TILE));
  const __m128 block_max = _mm_max_ps(_mm256_castps256_ps128(largest),
                                      _mm256_extractf128_ps(largest, 1));
  // The bound avoids inf - inf in rows that have attended to nothing yet.
  const __m128 max = _mm_max_ps(_mm_max_ps(block_max, few->max),
                                _mm_set1_ps(LOWEST_BASE));
  const __m256 both = _mm256_set_m128(max, max);
  __m256 total = _mm256_setzero_ps();
  index s = 0;
  for (; s + 8 <= count; s += 8)
    total =
        _mm256_add_ps(total, weigh_vectors(4, scores + s * FEW_TILE, both));
  for (; s < count; s += 2)
    total =
        _mm256_add_ps(total, weigh_vectors(1, scores + s * FEW_TILE, both));
  few->rescale = _mm256_castps256_ps128(
      exp2_lanes(_mm256_castps128_ps256(_mm_sub_ps(few->max, max))));
  few->sum = _mm_add_ps(_mm_mul_ps(few->sum, few->rescale),
                        _mm_add_ps(_mm256_castps256_ps128(total),
                                   _mm256_extractf128_ps(total, 1)));
  few->max = max;
}

// Computes sums = sums * rescale + weights * values, for `pairs` times 16
// dimensions from d on.
INLINE void add_dims(int rows, int pairs, const task *t, few_rows *few,
                     const float *rescale, index first, index count, index d) {
  __m256 acc[FEW_TILE][4][2];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 2 * pairs; ++v)
      acc[r][v / 2][v % 2] = _mm256_mul_ps(
          _mm256_loadu_ps(few->sums[r] + d + v * 8), _mm256_set1_ps(rescale[r]));
  }
  for (index s = 0; s < count; ++s) {
    const index at = (first + s) * t->position_stride + d;
#pragma clang loop unroll(full)
    for (int p = 0; p < pairs; ++p) {
      __m256 values[2];
      kv_pair(&t->values, at + p * 16, values);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const __m256 x = _mm256_set1_ps(few->scores[s * FEW_TILE + r]);
        acc[r][p][0] = _mm256_fmadd_ps(x, values[0], acc[r][p][0]);
        acc[r][p][1] = _mm256_fmadd_ps(x, values[1], acc[r][p][1]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
    for (int v = 0; v < 2 * pairs; ++v)
      _mm256_storeu_ps(few->sums[r] + d + v * 8, acc[r][v / 2][v % 2]);
  }
}

INLINE void add_block(int rows, const task *t, few_rows *few, index first,
                      index count) {
  float rescale[FEW_TILE];
  _mm_storeu_ps(rescale, few->rescale);
  // Fewer rows take more dimensions at once, to have enough independent sums.
  const int pairs = rows == 1 ? 4 : rows == 2 ? 2 : 1;
  const index paired = paired_dims(t->head_dim);
  index d = 0;
  for (; d + 16 * pairs <= paired; d += 16 * pairs)
    add_dims(rows, pairs, t, few, rescale, first, count, d);
  for (; d < paired; d += 16)
    add_dims(rows, 1, t, few, rescale, first, count, d);
#pragma clang loop vectorize(disable) unroll(disable)
  for (; d < t->head_dim; ++d) {
    for (index r = 0; r < rows; ++r) {
      float sum = few->sums[r][d] * rescale[r];
#pragma clang loop vectorize(disable) unroll(disable)
      for (index s = 0; s < count; ++s)
        sum += few->scores[s * FEW_TILE + r] *
               kv_element(&t->values,
                            (first + s) * t->position_stride + d);
      few->sums[r][d] = sum;
    }
  }
}

INLINE void begin_few(int rows, const task *t, index row_begin, few_rows *few) {
  few->max = _mm_set1_ps(NEGATIVE_INFINITY);
  few->sum = _mm_setzero_ps();
  for (index r = 0; r < rows; ++r) {
    const float *q = t->q + row_index(t, row_begin + r) * t->head_dim;
#pragma clang loop vectorize(disable) unroll(disable)
    for (index d = 0; d < t->head_dim; ++d) {
      few->q[r][dim_position(t, d)] = q[d] * t->scale;
      few->sums[r][d] = 0.0f;
    }
  }
}

INLINE void finish_few(int rows, const task *t, index row_begin,
                       const few_rows *few) {
  float max[FEW_TILE], sum[FEW_TILE];
  _mm_storeu_ps(max, few->max);
  _mm_storeu_ps(sum, few->sum);
  for (index r = 0; r < rows; ++r) {
    const index place = row_index(t, row_begin + r);
    float *sums = t->sums + place * t->head_dim;
#pragma clang loop vectorize(disable) unroll(disable)
    for (index d = 0; d < t->head_dim; ++d)
      sums[d] = few->sums[r][dim_position(t, d)];
    finish_row(t, place, max[r], sum[r]);
  }
}

// Computes `rows` <= FEW_TILE rows over the chunk.
INLINE void attend_tile(int rows, const task *t, index row_begin) {
  few_rows few;
  index first[FEW_TILE], visible[FEW_TILE];
  const index begin = max_index(t->chunk_begin, row_first(t, row_begin));
  const index end =
      min_index(t->chunk_end, row_visible(t, row_begin + rows - 1));
  begin_few(rows, t, row_begin, &few);
  for (index block = begin; block < end;) {
    const index count = until_wrap(t, block, min_index(BLOCK, end - block));
    const index slot = position_slot(t, block);
    for (index r = 0; r < FEW_TILE; ++r) {
      const index row = row_begin + min_index(r, rows - 1);
      first[r] = clamp_index(row_first(t, row) - block, 0, count);
      visible[r] = clamp_index(row_visible(t, row) - block, 0, count);
    }
    score_block(rows, t, &few, slot, count);
    weigh_block(first, visible, count, &few);
    add_block(rows, t, &few, slot, count);
    block += count;
  }
  finish_few(rows, t, row_begin, &few);
}

INLINE void attend_few(const task *t, index row_begin, index rows) {
  switch (rows) {
  case 1: attend_tile(1, t, row_begin); break;
  case 2: attend_tile(2, t, row_begin); break;
  case 3: attend_tile(3, t, row_begin); break;
  default: attend_tile(4, t, row_begin); break;
  }
}

#endif // KERNELS_CPU_ATTENTION_FEW_H
