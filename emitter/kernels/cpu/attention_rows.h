// Attention row by row and position by position, on any target.

#ifndef KERNELS_CPU_ATTENTION_ROWS_H
#define KERNELS_CPU_ATTENTION_ROWS_H

#include "attention_task.h"

#if defined(__ARM_NEON)

INLINE float score_position(const task *t, const float *q, index at) {
  float32x4_t acc0 = vdupq_n_f32(0.0f), acc1 = acc0;
  index d = 0;
  for (; d + 8 <= t->head_dim; d += 8) {
    acc0 = vfmaq_f32(acc0, vld1q_f32(q + d),
                     kv_quad(&t->keys, at + d));
    acc1 = vfmaq_f32(acc1, vld1q_f32(q + d + 4),
                     kv_quad(&t->keys, at + d + 4));
  }
  float score = vaddvq_f32(vaddq_f32(acc0, acc1));
  for (; d < t->head_dim; ++d)
    score += q[d] * kv_element(&t->keys, at + d);
  return score;
}

INLINE void add_position(const task *t, float *sums, float weight, index at) {
  index d = 0;
  for (; d + 4 <= t->head_dim; d += 4)
    vst1q_f32(sums + d,
              vfmaq_n_f32(vld1q_f32(sums + d),
                          kv_quad(&t->values, at + d), weight));
  for (; d < t->head_dim; ++d)
    sums[d] += weight * kv_element(&t->values, at + d);
}

#else

INLINE float score_position(const task *t, const float *q, index at) {
  float score = 0.0f;
  for (index d = 0; d < t->head_dim; ++d)
    score += q[d] * kv_element(&t->keys, at + d);
  return score;
}

INLINE void add_position(const task *t, float *sums, float weight, index at) {
  for (index d = 0; d < t->head_dim; ++d)
    sums[d] += weight * kv_element(&t->values, at + d);
}

#endif

INLINE void attend_row(const task *t, index row) {
  const index place = row_index(t, row), head_dim = t->head_dim;
  const float *q = t->q + place * head_dim;
  float *sums = t->sums + place * head_dim;
  const index end = min_index(t->chunk_end, row_visible(t, row));
  const index begin = max_index(t->chunk_begin, row_first(t, row));
  float max = NEGATIVE_INFINITY, sum = 0.0f;
  clear_row(sums, head_dim);
  for (index s = begin; s < end; ++s) {
    const index at = position_slot(t, s) * t->position_stride;
    float score = score_position(t, q, at) * t->scale;
    if (t->soft_cap != 0.0f)
      score = capped(t, score);
    if (score > max) {
      const float rescale = exp2_poly(max - score);
      scale_row(sums, rescale, head_dim);
      sum *= rescale;
      max = score;
    }
    const float weight = exp2_poly(score - max);
    sum += weight;
    add_position(t, sums, weight, at);
  }
  finish_row(t, place, max, sum);
}

INLINE void attend_rows(const task *t, index rows) {
  for (index row = 0; row < rows; ++row)
    attend_row(t, row);
}

#endif // KERNELS_CPU_ATTENTION_ROWS_H
