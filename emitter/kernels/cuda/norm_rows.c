// Rows of the residual stream: what is added to them, and their norms.
//
//   x            [rows][width]
//   parts        [splits][rows][width]: of a product; read only if splits is not 0
//   gates        [rows]: read only if `gated`
//   after_weight [width]: of the parts' own norm, if `after` is not 0
//   norm_weight, norm_bias
//                [width], see norm.h; read only if there is a norm, and the bias
//                only of norm 2
//   sum          [rows][width]: x + factor * sigmoid(gate) * norm(the sum of the parts,
//                in order); written only if splits is not 0. It may be x
//   out          [rows][width], of out_type: the norm of the sum, or of x; written only
//                if norm is not 0
//   norm, after  see norm.h; `after` is 0 or 1
//   norm_type, after_type, out_type
//                0 f32, 1 bf16, 2 f16
//   epsilon, offset, after_epsilon, after_offset, factor
//                bits of floats
//
// Pointers that are not needed may be anything. A block has a row. The width is a multiple
// of 4, and all are aligned to four elements.

#include "norm.h"
#include "round.h"

enum {
  KEPT = 4, // fours of a thread that stay in registers
};

typedef struct {
  const float *x, *parts;
  float *sum;
  void *out;
  norm after;      // of the parts
  index row;       // of all rows
  index part_size; // elements
  int width, splits;
  element_type out_type;
  float factor;
} stream_row;

// Returns four consecutive elements of the sum of the parts, number `i`, or of x if there
// are none.
INLINE four summed(const stream_row *r, int i) {
  const index at = r->row * r->width + 4 * i;
  if (r->splits == 0)
    return four_of(*(const uint4_t *)(r->x + at));
  four sum = four_of(*(const uint4_t *)(r->parts + at));
#pragma clang loop unroll_count(4)
  for (int s = 1; s < r->splits; ++s) {
    const four part = four_of(*(const uint4_t *)(r->parts + s * r->part_size + at));
    UNROLL for (int e = 0; e < 4; ++e)
      sum.of[e] += part.of[e];
  }
  return sum;
}

// Adds what was summed, times the norm's `scale`, to x, if there are parts.
INLINE four added(const stream_row *r, int i, four sum, float scale) {
  if (r->splits == 0)
    return sum;
  const index at = r->row * r->width + 4 * i;
  if (r->after.kind != NORM_NONE) {
    const four w = four_of_raw(r->after.type,
                               load_raw_four(r->after.weight, r->after.type, i, 1));
    UNROLL for (int e = 0; e < 4; ++e)
      sum.of[e] *= scale * (r->after.offset + w.of[e]);
  }
  four x = four_of(*(const uint4_t *)(r->x + at));
  UNROLL for (int e = 0; e < 4; ++e)
    x.of[e] = __builtin_fmaf(r->factor, sum.of[e], x.of[e]);
  *(uint4_t *)(r->sum + at) = words_of(x);
  return x;
}

// Returns four elements that were added, if they are not kept.
INLINE four reloaded(const stream_row *r, int i) {
  const float *from = r->splits ? r->sum : r->x;
  return four_of(*(const uint4_t *)(from + r->row * r->width + 4 * i));
}

INLINE void store_normed(const stream_row *r, int i, four x) {
  const index at = r->row * r->width + 4 * i;
  if (r->out_type == ELEMENT_F32) {
    *(uint4_t *)((float *)r->out + at) = words_of(x);
  } else {
    const uint32_t low = pack_halves(r->out_type, x.of[0], x.of[1]);
    const uint32_t high = pack_halves(r->out_type, x.of[2], x.of[3]);
    *(uint2_t *)((uint16_t *)r->out + at) = (uint2_t){low, high};
  }
}

typedef enum { MOMENT_MEAN, MOMENT_SQUARES, MOMENT_OF_PARTS } moment_kind;

// Returns the sum of a row's differences from `mean`, or of their squares, or of those of
// the sum of the parts, over the block.
INLINE float moment(const stream_row *r, const four kept[KEPT], float mean,
                    const moment_kind kind, int thread) {
  float sum = 0.0f;
  UNROLL for (int k = 0; k < KEPT; ++k)
    UNROLL for (int e = 0; e < 4; ++e) {
      const float x = kept[k].of[e] - mean;
      if (thread + k * THREADS < r->width / 4)
        sum += kind == MOMENT_MEAN ? x : x * x;
    }
  for (int i = thread + KEPT * THREADS; i < r->width / 4; i += THREADS) {
    const four row = kind == MOMENT_OF_PARTS ? summed(r, i) : reloaded(r, i);
    UNROLL for (int e = 0; e < 4; ++e) {
      const float x = row.of[e] - mean;
      sum += kind == MOMENT_MEAN ? x : x * x;
    }
  }
  return block_sum(sum, thread);
}

// Stores the norm of elements number `i`, of which `scale` is the inverse deviation.
INLINE void norm_four(const stream_row *r, const norm *by, int i, four x, float mean,
                      float scale) {
  const four w = four_of_raw(by->type, load_raw_four(by->weight, by->type, i, 1));
  const four b = four_of_raw(
      by->type, load_raw_four(by->bias, by->type, i, by->kind == NORM_LAYER));
  UNROLL for (int e = 0; e < 4; ++e)
    x.of[e] = (x.of[e] - mean) * scale * (by->offset + w.of[e]) + b.of[e];
  store_normed(r, i, x);
}

// Returns the inverse deviation of the sum of the parts, if these have a norm.
INLINE float scale_of_parts(const stream_row *r, const four kept[KEPT], int thread) {
  if (r->splits == 0 || r->after.kind == NORM_NONE)
    return 1.0f;
  const float square = moment(r, kept, 0.0f, MOMENT_OF_PARTS, thread) / (float)r->width;
  syncthreads(); // until all have read the sums of warps
  return rsqrt_approx(square + r->after.epsilon);
}

INLINE void sum_and_norm(const stream_row *r, const norm by) {
  const int thread = (int)thread_idx(), width = r->width;
  four kept[KEPT];
  UNROLL for (int k = 0; k < KEPT; ++k)
    if (thread + k * THREADS < width / 4)
      kept[k] = summed(r, thread + k * THREADS);
    else
      kept[k] = (four){{0.0f, 0.0f, 0.0f, 0.0f}};
  const float of_parts = scale_of_parts(r, kept, thread);
  UNROLL for (int k = 0; k < KEPT; ++k)
    if (thread + k * THREADS < width / 4)
      kept[k] = added(r, thread + k * THREADS, kept[k], of_parts);
  for (int i = thread + KEPT * THREADS; i < width / 4; i += THREADS)
    added(r, i, summed(r, i), of_parts);
  if (by.kind == NORM_NONE)
    return;
  float mean = 0.0f;
  if (is_layer_norm(by.kind)) {
    mean = moment(r, kept, 0.0f, MOMENT_MEAN, thread) / (float)width;
    syncthreads(); // until all have read the sums of warps
  }
  const float square = moment(r, kept, mean, MOMENT_SQUARES, thread) / (float)width;
  const float scale = rsqrt_approx(square + by.epsilon);
  UNROLL for (int k = 0; k < KEPT; ++k)
    if (thread + k * THREADS < width / 4)
      norm_four(r, &by, thread + k * THREADS, kept[k], mean, scale);
  for (int i = thread + KEPT * THREADS; i < width / 4; i += THREADS)
    norm_four(r, &by, i, reloaded(r, i), mean, scale);
}

INLINE norm norm_by(int kind, int type, const void *weight, const void *bias,
                    uint32_t epsilon, uint32_t offset) {
  return (norm){(norm_kind)kind, (element_type)type, weight,
                bias,            float_of(epsilon),  float_of(offset)};
}

INLINE float sigmoid(float x) { return 1.0f / (1.0f + exp2_approx(-x * LOG2_E)); }

KERNEL cuda_norm_rows(const float *x, const float *parts, const float *gates,
                      const void *after_weight, const void *norm_weight,
                      const void *norm_bias, float *sum, void *out, int rows,
                      int width, int splits, int gated, int norm, int norm_type,
                      int out_type, uint32_t epsilon, uint32_t offset, int after,
                      int after_type, uint32_t after_epsilon, uint32_t after_offset,
                      uint32_t factor) {
  wait_for_previous_kernel();
  start_next_kernel();
  const index row = block_idx();
  const stream_row r = {
      .x = x,
      .parts = parts,
      .sum = sum,
      .out = out,
      .after = norm_by(after, after_type, after_weight, 0, after_epsilon, after_offset),
      .row = row,
      .part_size = (index)rows * width,
      .width = width,
      .splits = splits,
      .out_type = (element_type)out_type,
      .factor = float_of(factor) * (gated ? sigmoid(gates[row]) : 1.0f),
  };
  sum_and_norm(&r, norm_by(norm, norm_type, norm_weight, norm_bias, epsilon, offset));
}
