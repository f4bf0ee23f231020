// Queries, the new key and the new value, on their way from projections to attention:
// the norm of heads, clipping and the rotation of positions, all in f32.
//
// A warp does one head. Lane l has the elements l, l + 32, l + 64 and so on.
#ifndef KERNELS_CUDA_ATTENTION_HEADS_H
#define KERNELS_CUDA_ATTENTION_HEADS_H

#include "attention_rows.h"

enum {
  MAX_WIDTH = 256,
  MAX_LANE_ELEMENTS = MAX_WIDTH / WARP,
};

typedef enum { NORM_NONE, NORM_RMS, NORM_LAYER } norm_kind;

// How heads are normed, clipped and rotated.
typedef struct {
  norm_kind norm;
  element_type norm_type; // of weights
  float epsilon, offset;  // of the norm
  float clip;             // the largest magnitude, or 0 for any
  int head_dim;
  int pairs, interleaved; // of the rotation
} head_form;

// This lane's elements of a head, with zeros past its end, and bits of its norm's
// weights. Nothing computes with them when they are loaded, and so nothing waits.
typedef struct {
  float x[MAX_LANE_ELEMENTS];
  uint32_t weights[MAX_LANE_ELEMENTS];
} lane_head;

// Cosines and sines for this lane's elements.
typedef struct {
  float cos[MAX_LANE_ELEMENTS], sin[MAX_LANE_ELEMENTS];
} lane_rotation;

// Loads the weights of a head's norm from `first_weight` on, or none if `weights` is
// NULL. No kernel writes them.
INLINE void load_norm_weights(const head_form *form, const void *weights,
                              index first_weight, lane_head *head,
                              const int width) {
  const int lane = (int)thread_idx() % WARP;
  const int is_f32 = form->norm_type == ELEMENT_F32;
  const char *first = (const char *)weights + first_weight * (is_f32 ? 4 : 2);
  UNROLL for (int i = 0; i < width / WARP; ++i) {
    const int d = i * WARP + lane;
    const int has_weight = d < form->head_dim && weights;
    head->weights[i] = load_4_if(first + d * 4, has_weight && is_f32) |
                       load_2_if(first + d * 2, has_weight && !is_f32);
  }
}

// Loads a head, which the kernel before has written.
INLINE void load_head(const head_form *form, const float *x, lane_head *head,
                      const int width) {
  const int lane = (int)thread_idx() % WARP;
  UNROLL for (int i = 0; i < width / WARP; ++i) {
    const int d = i * WARP + lane;
    head->x[i] = float_of(load_4_if(x + d, d < form->head_dim));
  }
}

INLINE float norm_weight(element_type type, uint32_t bits) {
  return type == ELEMENT_F32    ? float_of(bits)
         : type == ELEMENT_BF16 ? float_from_bf16((uint16_t)bits)
                                : float_from_f16((uint16_t)bits);
}

// Returns the element that element d is rotated with.
INLINE int partner_of(const head_form *form, int d) {
  if (form->interleaved)
    return d ^ 1;
  return d < form->pairs ? d + form->pairs : d - form->pairs;
}

// Loads what rotates this lane's elements. `cos` and `sin` are [pairs].
INLINE lane_rotation load_rotation(const head_form *form, const float *cos,
                                   const float *sin, const int width) {
  const int lane = (int)thread_idx() % WARP;
  lane_rotation rotation;
  UNROLL for (int i = 0; i < width / WARP; ++i) {
    const int d = i * WARP + lane, lower = min_int(d, partner_of(form, d));
    const int pair = form->interleaved ? lower / 2 : lower;
    const int there = d < 2 * form->pairs;
    rotation.cos[i] = float_of(load_4_if(cos + pair, there));
    rotation.sin[i] = float_of(load_4_if(sin + pair, there));
  }
  return rotation;
}

// Returns element d, rotated with its partner.
INLINE float rotated(const head_form *form, int d, float x, float partner,
                     float cos, float sin) {
  const float product = partner * sin;
  return x * cos + (d < partner_of(form, d) ? -product : product);
}

// Applies the norm.
INLINE void norm_head(const head_form *form, lane_head *head, const int width) {
  const int lane = (int)thread_idx() % WARP;
  const float size = (float)form->head_dim;
  if (form->norm == NORM_LAYER) {
    float sum = 0.0f;
    UNROLL for (int i = 0; i < width / WARP; ++i)
      sum += head->x[i];
    const float mean = warp_reduce_sum(sum) / size;
    UNROLL for (int i = 0; i < width / WARP; ++i)
      head->x[i] = i * WARP + lane < form->head_dim ? head->x[i] - mean : 0.0f;
  }
  float squares = 0.0f;
  UNROLL for (int i = 0; i < width / WARP; ++i)
    squares = __builtin_fmaf(head->x[i], head->x[i], squares);
  const float scale =
      rsqrt_approx(warp_reduce_sum(squares) / size + form->epsilon);
  UNROLL for (int i = 0; i < width / WARP; ++i)
    head->x[i] *= scale * (form->offset +
                           norm_weight(form->norm_type, head->weights[i]));
}

INLINE float clipped(float x, float limit) {
  return x < -limit ? -limit : x > limit ? limit : x;
}

// Norms, clips and rotates a head if they apply, and writes it, times `factor`, to
// `to` [width]. `stage` [width] is this head's own.
INLINE void finish_head(const head_form *form, lane_head head, int has_norm,
                        const lane_rotation *rotation, int rotates, float factor,
                        SHARED_SPACE float *stage, SHARED_SPACE float *to,
                        const int width) {
  const int lane = (int)thread_idx() % WARP;
  if (has_norm)
    norm_head(form, &head, width);
  if (form->clip != 0.0f)
    UNROLL for (int i = 0; i < width / WARP; ++i)
      head.x[i] = clipped(head.x[i], form->clip);
  if (rotates && form->pairs != 0) {
    UNROLL for (int i = 0; i < width / WARP; ++i)
      stage[i * WARP + lane] = head.x[i];
    syncwarp();
    UNROLL for (int i = 0; i < width / WARP; ++i) {
      const int d = i * WARP + lane;
      if (d < 2 * form->pairs)
        head.x[i] = rotated(form, d, head.x[i], stage[partner_of(form, d)],
                            rotation->cos[i], rotation->sin[i]);
    }
  }
  UNROLL for (int i = 0; i < width / WARP; ++i)
    to[i * WARP + lane] = head.x[i] * factor;
}

#endif
