// Norms of the heads of queries and keys, of several rows. A warp has a head.
//
//   q, k           [rows][heads][head_dim] and [rows][kv_heads][head_dim]
//   q_norm         [head_dim], or [heads][head_dim] if norm_by_head, in norm_type:
//                  0 f32, 1 bf16, 2 f16
//   k_norm         [head_dim], or [kv_heads][head_dim] if norm_by_head
//   q_out, k_out   as q and k
//   norm           1 RMS, 2 layer, without biases. Weights are offset + q_norm
//   epsilon, offset
//                  bits of floats
//
// head_dim is a multiple of 4 and at most MAX_HEAD_DIM. All are aligned to four elements.

#include "stream.h"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP,
  MAX_HEAD_DIM = 256,
  FOURS = MAX_HEAD_DIM / 4 / WARP, // of a lane
};

STATED(threads, THREADS);
STATED(heads, WARPS);

typedef struct {
  const float *x;
  const void *weights;
  float *out;
  index first; // weight
} head;

typedef struct {
  int head_dim, is_layer;
  element_type type; // of weights
  float epsilon, offset;
} head_norm;

// Returns the mean of a head's differences from `mean`, or of their squares.
INLINE float mean_of(const four x[FOURS], float mean, const int is_square, int head_dim) {
  float sum = 0.0f;
  UNROLL for (int f = 0; f < FOURS; ++f)
    UNROLL for (int e = 0; e < 4; ++e) {
      const float y = x[f].of[e] - mean;
      if (((int)thread_idx() % WARP + f * WARP) * 4 < head_dim)
        sum += is_square ? y * y : y;
    }
  return warp_reduce_sum(sum) / (float)head_dim;
}

// All lanes of the warp call it.
INLINE void norm_head(const head *of, const head_norm *by) {
  const int lane = (int)thread_idx() % WARP;
  four x[FOURS];
  UNROLL for (int f = 0; f < FOURS; ++f) {
    const int d = (lane + f * WARP) * 4;
    x[f] = d < by->head_dim ? four_of(*(const uint4_t *)(of->x + d))
                            : (four){{0.0f, 0.0f, 0.0f, 0.0f}};
  }
  const float mean = by->is_layer ? mean_of(x, 0.0f, 0, by->head_dim) : 0.0f;
  const float scale = rsqrt_approx(mean_of(x, mean, 1, by->head_dim) + by->epsilon);
  UNROLL for (int f = 0; f < FOURS; ++f) {
    const int d = (lane + f * WARP) * 4;
    if (d >= by->head_dim)
      continue;
    const four w = four_of_raw(
        by->type, load_raw_four(of->weights, by->type, (int)(of->first + d) / 4, 1));
    UNROLL for (int e = 0; e < 4; ++e)
      x[f].of[e] = (x[f].of[e] - mean) * scale * (by->offset + w.of[e]);
    *(uint4_t *)(of->out + d) = words_of(x[f]);
  }
}

KERNEL cuda_norm_heads(const float *q, const float *k, const void *q_norm,
                       const void *k_norm, float *q_out, float *k_out, int rows,
                       int heads, int kv_heads, int head_dim, int norm, int norm_type,
                       int norm_by_head, uint32_t epsilon, uint32_t offset) {
  const int number = (int)block_idx() * WARPS + (int)thread_idx() / WARP;
  const int all = heads + kv_heads, row = number / all, at = number - row * all;
  if (row >= rows)
    return;
  const int is_key = at >= heads, place = is_key ? at - heads : at;
  const index from = ((index)row * (is_key ? kv_heads : heads) + place) * head_dim;
  const head of = {(is_key ? k : q) + from, is_key ? k_norm : q_norm,
                   (is_key ? k_out : q_out) + from,
                   norm_by_head ? (index)place * head_dim : 0};
  const head_norm by = {head_dim, norm == 2, (element_type)norm_type, float_of(epsilon),
                        float_of(offset)};
  norm_head(&of, &by);
}
