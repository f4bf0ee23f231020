// Rows of the residual stream: what is added to them, and their norms.
//
//   x            [rows][width]
//   parts        [splits][rows][width]: of a product; read only if splits is not 0
//   norm_weight, norm_bias
//                [width], see norm.h; read only if there is a norm, and the bias
//                only of norm 2
//   sum          [rows][width]: x + factor * (the sum of the parts, in order); written
//                only if splits is not 0. It may be x
//   out          [rows][width], of out_type: the norm of the sum, or of x; written only
//                if norm is not 0
//   norm         see norm.h
//   norm_type, out_type
//                0 f32, 1 bf16, 2 f16
//   epsilon, offset, factor
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
  index row;       // of all rows
  index part_size; // elements
  int width, splits;
  element_type out_type;
  float factor;
} stream_row;

// Returns four consecutive elements of the sum, number `i`.
INLINE four summed(const stream_row *r, int i) {
  const index at = r->row * r->width + 4 * i;
  four x = four_of(*(const uint4_t *)(r->x + at));
  if (r->splits == 0)
    return x;
  four sum = four_of(*(const uint4_t *)(r->parts + at));
#pragma clang loop unroll_count(4)
  for (int s = 1; s < r->splits; ++s) {
    const four part = four_of(*(const uint4_t *)(r->parts + s * r->part_size + at));
    UNROLL for (int e = 0; e < 4; ++e)
      sum.of[e] += part.of[e];
  }
  UNROLL for (int e = 0; e < 4; ++e)
    x.of[e] = __builtin_fmaf(r->factor, sum.of[e], x.of[e]);
  *(uint4_t *)(r->sum + at) = words_of(x);
  return x;
}

// Returns four elements that were summed, if they are not kept.
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

// Returns the sum of a row's differences from `mean`, or of their squares, over the block.
INLINE float moment(const stream_row *r, const four kept[KEPT], float mean,
                    const int is_square, int thread) {
  float sum = 0.0f;
  UNROLL for (int k = 0; k < KEPT; ++k)
    UNROLL for (int e = 0; e < 4; ++e) {
      const float x = kept[k].of[e] - mean;
      if (thread + k * THREADS < r->width / 4)
        sum += is_square ? x * x : x;
    }
  for (int i = thread + KEPT * THREADS; i < r->width / 4; i += THREADS) {
    const four row = reloaded(r, i);
    UNROLL for (int e = 0; e < 4; ++e) {
      const float x = row.of[e] - mean;
      sum += is_square ? x * x : x;
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

INLINE void sum_and_norm(const stream_row *r, const norm by) {
  const int thread = (int)thread_idx(), width = r->width;
  four kept[KEPT];
  UNROLL for (int k = 0; k < KEPT; ++k)
    if (thread + k * THREADS < width / 4)
      kept[k] = summed(r, thread + k * THREADS);
    else
      kept[k] = (four){{0.0f, 0.0f, 0.0f, 0.0f}};
  for (int i = thread + KEPT * THREADS; i < width / 4; i += THREADS)
    summed(r, i);
  if (by.kind == NORM_NONE)
    return;
  float mean = 0.0f;
  if (by.kind == NORM_LAYER) {
    mean = moment(r, kept, 0.0f, 0, thread) / (float)width;
    syncthreads(); // until all have read the sums of warps
  }
  const float square = moment(r, kept, mean, 1, thread) / (float)width;
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

KERNEL cuda_norm_rows(const float *x, const float *parts, const void *norm_weight,
                      const void *norm_bias, float *sum, void *out, int rows,
                      int width, int splits, int norm, int norm_type, int out_type,
                      uint32_t epsilon, uint32_t offset, uint32_t factor) {
  const stream_row r = {
      .x = x,
      .parts = parts,
      .sum = sum,
      .out = out,
      .row = block_idx(),
      .part_size = (index)rows * width,
      .width = width,
      .splits = splits,
      .out_type = (element_type)out_type,
      .factor = float_of(factor),
  };
  sum_and_norm(&r, norm_by(norm, norm_type, norm_weight, norm_bias, epsilon, offset));
}
