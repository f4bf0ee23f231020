// Causal attention over a key/value cache, with grouped queries, one online
// softmax per query row, in f32 arithmetic.
//
//   q               [tokens][heads][head_dim], rotated
//   k_cache/v_cache the row of position s and kv head h is the head_dim
//                   elements at h * head_stride + s * position_stride
//   out             [tokens][heads][head_dim]
//
// Query t stands at position *position + t and sees 0..*position + t. Queries
// from `valid` on are padding and give zeros.
//
// One call does the heads / kv_heads query heads of one kv head, queries
// token_begin..token_end, positions chunk_index * chunk up to the next chunk.
// With `partial` NULL the result is complete and goes to `out`. Otherwise sums
// weighted by 2^(score - max) go to partial [chunks][tokens][heads][head_dim],
// and max and the sum of the weights to partial_max_sum
// [chunks][tokens][heads][2], to be merged by attention_combine. Scores are
// kept in units of log 2, so max is too. A chunk of which a row sees nothing
// has max = -inf and sum = 0, and its partial row is not to be read.
//
// Sums accumulate in the destination row itself. A "row" here is one query of
// one head; the rows of a call are ordered by token, then head.

#ifndef KERNELS_ATTENTION_TASK_H
#define KERNELS_ATTENTION_TASK_H

#include "kernels.h"

#define NEGATIVE_INFINITY float_of(0xff800000u)

typedef struct {
  element_type type;
  const float *q;
  const void *keys, *values; // of this kv head
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
