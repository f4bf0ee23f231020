// Norms of rows, by blocks of THREADS.
//
//   norm 0  none
//   norm 1  x / sqrt(mean(x^2) + epsilon) * (offset + weight)
//   norm 2  (x - mean(x)) / sqrt(variance(x) + epsilon) * (offset + weight) + bias
//   norm 3  norm 2 without the bias
#ifndef KERNELS_CUDA_NORM_H
#define KERNELS_CUDA_NORM_H

#include "stream.h"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP,
};

STATED(threads, THREADS);

typedef enum { NORM_NONE, NORM_RMS, NORM_LAYER, NORM_LAYER_UNBIASED } norm_kind;

typedef struct {
  norm_kind kind;
  element_type type; // of weight and bias
  const void *weight, *bias;
  float epsilon, offset;
} norm;

// Returns whether a norm is of differences from the mean.
INLINE int is_layer_norm(norm_kind kind) { return kind >= NORM_LAYER; }

SHARED_MEMORY float norm_sums[WARPS];

// Returns the sum over the block.
INLINE float block_sum(float x, int thread) {
  const float sum = warp_reduce_sum(x);
  if (thread % WARP == 0)
    norm_sums[thread / WARP] = sum;
  syncthreads();
  float all = 0.0f;
  UNROLL for (int w = 0; w < WARPS; ++w)
    all += norm_sums[w];
  return all;
}

#endif
