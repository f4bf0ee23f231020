// Attention over a key/value cache with grouped query heads, in f32, by one online
// softmax per query row.
//
//   q          [batch][tokens][heads][head_dim], rotated and scaled
//   cache      [2 * layers][batch][kv_heads][capacity][head_dim], each layer's
//              keys before its values, as a ring buffer: position p is at
//              p % capacity; Q8's scales are [...][head_dim / 32]
//   positions  [batch]; query t of row b is at positions[b] + t and attends to all
//              positions up to there, or to the last `window` of them if window is
//              not 0; if causal is 0 it attends to all positions up to the row's
//              last query
//   lengths    [batch]; queries from lengths[b] on are padding
//   out        [batch][tokens][heads][head_dim]; padding gives zeros
//
// Items are [batch][chunks][tiles of queries][kv_heads]. Each item is the
// heads / kv_heads query heads of one kv head, over one chunk of positions. Chunks
// begin at the first position that the item's first query attends to. If the bits
// of the float c, soft_cap, are not 0, scores s become c * tanh(s / c).
//
// Without max_sum there is one chunk, and the result is complete. With max_sum,
// results are to be merged by attention_combine: sums weighted by 2^(score - max)
// go to out as [batch][chunks][tokens][heads][head_dim], and max and the sum of the
// weights to max_sum as [batch][chunks][tokens][heads][2]. Scores are in units of
// log 2, and so is max. If a row attends to nothing in a chunk, max is -inf, sum is
// 0, and the row of sums is undefined.
//
// Sums accumulate in the destination row itself. A "row" here is one query of one
// head. The rows of an item are ordered by token, then head.

#ifndef KERNELS_CPU_ATTENTION_TASK_H
#define KERNELS_CPU_ATTENTION_TASK_H

#include "../kv_cache.h"
#include "kernels.h"
#include "simd.h"

INLINE float kv_scale(const kv_slice *from, index i) {
  return float_from_f16(from->scales[i / CACHE_GROUP]);
}

INLINE float kv_element(const kv_slice *from, index i) {
  const float x = load_element(from->elements, from->type, i);
  return from->type == ELEMENT_Q8 ? x * kv_scale(from, i) : x;
}

#if defined(__AVX2__)

// Loads eight consecutive elements of a group.
INLINE __m256 kv_lanes(const kv_slice *from, index i) {
  const __m256 x = load_lanes(from->elements, from->type, i);
  return from->type == ELEMENT_Q8
             ? _mm256_mul_ps(x, _mm256_set1_ps(kv_scale(from, i)))
             : x;
}

// Loads sixteen elements in the order of load_paired().
INLINE void kv_pair(const kv_slice *from, index i, __m256 pair[2]) {
  load_paired(from->elements, from->type, i, pair);
  if (from->type == ELEMENT_Q8) {
    const __m256 scale = _mm256_set1_ps(kv_scale(from, i));
    pair[0] = _mm256_mul_ps(pair[0], scale);
    pair[1] = _mm256_mul_ps(pair[1], scale);
  }
}

#elif defined(__ARM_NEON)

// Loads four consecutive elements of a group.
INLINE float32x4_t kv_quad(const kv_slice *from, index i) {
  const float32x4_t x = load_quad(from->elements, from->type, i);
  return from->type == ELEMENT_Q8 ? vmulq_n_f32(x, kv_scale(from, i)) : x;
}

#endif

typedef struct {
  const float *q;
  kv_slice keys, values; // of the kv head
  float *sums;               // [tokens][heads][head_dim]
  float *max_sum;            // [tokens][heads][2], or NULL
  index position, token_begin, heads, first_head, group, head_dim;
  index position_stride;
  index capacity, window;  // window: 0 for none
  index seen;              // positions that every row attends to, or 0 if causal
  float scale;             // factor of scores, to units of log 2
  float soft_cap;          // of scores in units of log 2, or 0
  index chunk_begin, chunk_end;
} task;

INLINE index row_token(const task *t, index row) {
  return t->token_begin + row / t->group;
}

// Returns the index of the row among all [tokens][heads].
INLINE index row_index(const task *t, index row) {
  return row_token(t, row) * t->heads + t->first_head + row % t->group;
}

// Returns one past the last position that the row attends to.
INLINE index row_visible(const task *t, index row) {
  return t->seen ? t->seen : t->position + row_token(t, row) + 1;
}

// Returns the first position that the row attends to.
INLINE index row_first(const task *t, index row) {
  return t->window ? max_index(row_visible(t, row) - t->window, 0) : 0;
}

// Returns the slot of a position in the cache.
INLINE index position_slot(const task *t, index position) {
  return position % t->capacity;
}

// Returns how many of `count` positions from `position` on are contiguous.
INLINE index until_wrap(const task *t, index position, index count) {
  return min_index(count, t->capacity - position_slot(t, position));
}

// tanh(x) = 1 - 2 / (e^2x + 1). Beyond 10 it rounds to 1.
#define TANH_END 10.0f

INLINE float capped(const task *t, float score) {
  const float x = score / t->soft_cap;
  const float inside = x > TANH_END ? TANH_END : x < -TANH_END ? -TANH_END : x;
  const float e = exp2_poly(inside * (2.0f * LOG2_E));
  return t->soft_cap * (1.0f - 2.0f / (e + 1.0f));
}

#if defined(__AVX2__)

// Caps `count` scores, and up to seven more.
INLINE void cap_scores(const task *t, float *scores, index count) {
  if (t->soft_cap == 0.0f)
    return;
  const __m256 cap = _mm256_set1_ps(t->soft_cap);
  const __m256 one = _mm256_set1_ps(1.0f), two = _mm256_set1_ps(2.0f);
  for (index s = 0; s < count; s += 8) {
    __m256 x = _mm256_div_ps(_mm256_loadu_ps(scores + s), cap);
    // NaN propagates, as the second operand.
    x = _mm256_min_ps(_mm256_set1_ps(TANH_END), x);
    x = _mm256_max_ps(_mm256_set1_ps(-TANH_END), x);
    const __m256 e =
        exp2_lanes(_mm256_mul_ps(x, _mm256_set1_ps(2.0f * LOG2_E)));
    const __m256 tanh =
        _mm256_sub_ps(one, _mm256_div_ps(two, _mm256_add_ps(e, one)));
    _mm256_storeu_ps(scores + s, _mm256_mul_ps(cap, tanh));
  }
}

#endif

INLINE void clear_row(float *row, index head_dim) {
  for (index d = 0; d < head_dim; ++d)
    row[d] = 0.0f;
}

INLINE void scale_row(float *row, float by, index head_dim) {
  for (index d = 0; d < head_dim; ++d)
    row[d] *= by;
}

// Writes the results of a row whose sums are complete.
INLINE void finish_row(const task *t, index place, float max, float sum) {
  if (t->max_sum) {
    t->max_sum[place * 2] = sum == 0.0f ? NEGATIVE_INFINITY : max;
    t->max_sum[place * 2 + 1] = sum;
  } else {
    // Every query attends to its own position, so sum is not zero.
    scale_row(t->sums + place * t->head_dim, 1.0f / sum, t->head_dim);
  }
}

#endif // KERNELS_CPU_ATTENTION_TASK_H
