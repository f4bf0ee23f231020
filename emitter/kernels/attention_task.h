// Causal attention over a key/value cache, with grouped queries, one online
// softmax per query row, in f32 arithmetic.
//
//   q          [batch][tokens][heads][head_dim], rotated and scaled
//   cache      [2 * layers][batch][kv_heads][capacity][head_dim], each layer's
//              keys before its values; Q8's scales [...][head_dim / 32]
//   positions  [batch]; query t of row b stands at positions[b] + t and sees
//              everything up to there
//   lengths    [batch]; queries from lengths[b] on are padding
//   out        [batch][tokens][heads][head_dim]; padding gives zeros
//
// Items are [batch][chunks][tiles of queries][kv_heads]: each is the heads /
// kv_heads query heads of one kv head, over one chunk of positions. Without
// max_sum there is one chunk and the result is complete. With it, sums weighted
// by 2^(score - max) go to out as [batch][chunks][tokens][heads][head_dim], and
// max and the sum of the weights to max_sum [batch][chunks][tokens][heads][2], to
// be merged by attention_combine. Scores are kept in units of log 2, so max is
// too. A chunk of which a row sees nothing has max = -inf and sum = 0, and its
// row of sums is not to be read.
//
// Sums accumulate in the destination row itself. A "row" here is one query of
// one head; the rows of an item are ordered by token, then head.

#ifndef KERNELS_ATTENTION_TASK_H
#define KERNELS_ATTENTION_TASK_H

#include "kernels.h"

#define NEGATIVE_INFINITY float_of(0xff800000u)

#define CACHE_GROUP 32 // consecutive dimensions that share a scale

// A part of the cache. Only Q8 has scales: that of element i is scales[i / 32],
// and rows are whole groups.
typedef struct {
  element_type type;
  const void *elements;
  const uint16_t *scales; // f16
} cached;

// The part from element i on, which begins a row.
INLINE cached cached_from(cached all, index i) {
  all.elements = element_at(all.elements, all.type, i);
  if (all.type == ELEMENT_Q8)
    all.scales += i / CACHE_GROUP;
  return all;
}

INLINE float cached_scale(const cached *from, index i) {
  return float_from_f16(from->scales[i / CACHE_GROUP]);
}

INLINE float cached_element(const cached *from, index i) {
  const float x = load_element(from->elements, from->type, i);
  return from->type == ELEMENT_Q8 ? x * cached_scale(from, i) : x;
}

#if defined(__AVX2__)

// Eight consecutive elements of a group.
INLINE __m256 cached_lanes(const cached *from, index i) {
  const __m256 x = load_lanes(from->elements, from->type, i);
  return from->type == ELEMENT_Q8
             ? _mm256_mul_ps(x, _mm256_set1_ps(cached_scale(from, i)))
             : x;
}

// Sixteen in load_paired's order.
INLINE void cached_pair(const cached *from, index i, __m256 pair[2]) {
  load_paired(from->elements, from->type, i, pair);
  if (from->type == ELEMENT_Q8) {
    const __m256 scale = _mm256_set1_ps(cached_scale(from, i));
    pair[0] = _mm256_mul_ps(pair[0], scale);
    pair[1] = _mm256_mul_ps(pair[1], scale);
  }
}

#elif defined(__ARM_NEON)

// Four consecutive elements of a group.
INLINE float32x4_t cached_quad(const cached *from, index i) {
  const float32x4_t x = load_quad(from->elements, from->type, i);
  return from->type == ELEMENT_Q8 ? vmulq_n_f32(x, cached_scale(from, i)) : x;
}

#endif

typedef struct {
  const float *q;
  cached keys, values; // of this kv head
  float *sums;               // [tokens][heads][head_dim]
  float *max_sum;            // [tokens][heads][2], or NULL
  index position, token_begin, heads, first_head, group, head_dim;
  index position_stride;
  float scale;             // to scores in units of log 2
  index chunk_begin, chunk_end;
} task;

INLINE index row_token(const task *t, index row) {
  return t->token_begin + row / t->group;
}

// Index of the row among all [tokens][heads].
INLINE index row_place(const task *t, index row) {
  return row_token(t, row) * t->heads + t->first_head + row % t->group;
}

// How many positions, from 0 on, the row sees.
INLINE index row_visible(const task *t, index row) {
  return t->position + row_token(t, row) + 1;
}

INLINE void clear_row(float *row, index head_dim) {
  for (index d = 0; d < head_dim; ++d)
    row[d] = 0.0f;
}

INLINE void scale_row(float *row, float by, index head_dim) {
  for (index d = 0; d < head_dim; ++d)
    row[d] *= by;
}

// Hands over a row whose sums are complete.
INLINE void finish_row(const task *t, index place, float max, float sum) {
  if (t->max_sum) {
    t->max_sum[place * 2] = sum == 0.0f ? NEGATIVE_INFINITY : max;
    t->max_sum[place * 2 + 1] = sum;
  } else {
    // Every query sees at least its own position, so sum is not zero.
    scale_row(t->sums + place * t->head_dim, 1.0f / sum, t->head_dim);
  }
}

#endif // KERNELS_ATTENTION_TASK_H
