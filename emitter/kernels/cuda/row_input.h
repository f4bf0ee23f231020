// The input of a product of a single row: x, or its norm, in shared memory.
//
//   norm 1  x / sqrt(mean(x^2) + epsilon) * (offset + weight)
//   norm 2  (x - mean(x)) / sqrt(variance(x) + epsilon) * (offset + weight) + bias
//
// Every block computes it for itself: x is short and in L2, and a kernel of its own
// would take longer.
#ifndef KERNELS_CUDA_ROW_INPUT_H
#define KERNELS_CUDA_ROW_INPUT_H

#include "weights.h"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP,
  // Inputs that fit into shared memory, beside sums of warps. Longer rows have no
  // norm here.
  CAPACITY = 12032,
  AHEAD = 2, // fours of a thread whose loads are under way
};

STATED(threads, THREADS);
STATED(capacity, CAPACITY);

typedef enum { NORM_NONE, NORM_RMS, NORM_LAYER } norm_kind;

typedef struct {
  norm_kind kind;
  element_type type; // of weight and bias
  const void *weight, *bias;
  float epsilon, offset;
} norm;

// Four inputs at a time: those of a weight vector that are its part p are at
// [p * vectors + vector]. So lanes, which multiply consecutive vectors, read
// consecutive addresses and do not conflict.
SHARED_MEMORY uint4_t staged[CAPACITY / 4];

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

// Replaces what this thread has staged by its layer norm.
INLINE void normalize_staged(const norm *by, int inputs, int parts, int vectors,
                             float sum, int thread) {
  const float mean = sum / (float)inputs;
  float squares = 0.0f;
  for (int i = thread; i < inputs / 4; i += THREADS) {
    const four x = four_of(staged[i % parts * vectors + i / parts]);
    UNROLL for (int e = 0; e < 4; ++e)
      squares = __builtin_fmaf(x.of[e] - mean, x.of[e] - mean, squares);
  }
  syncthreads(); // until all have read the sums before
  squares = block_sum(squares, thread);
  const float scale = rsqrt_approx(squares / (float)inputs + by->epsilon);
  for (int i = thread; i < inputs / 4; i += THREADS) {
    const int at = i % parts * vectors + i / parts;
    four x = four_of(staged[at]);
    const raw_four weights = load_raw_four(by->weight, by->type, i, 1);
    const raw_four biases = load_raw_four(by->bias, by->type, i, 1);
    const four w = four_of_raw(by->type, weights);
    const four b = four_of_raw(by->type, biases);
    UNROLL for (int e = 0; e < 4; ++e)
      x.of[e] = (x.of[e] - mean) * scale * (by->offset + w.of[e]) + b.of[e];
    staged[at] = words_of(x);
  }
  syncthreads();
}

// A thread's norm weights that are under way.
typedef struct {
  raw_four of[AHEAD];
} norm_weights;

// Loads the weights for fours `i`, `i` + THREADS and so on.
INLINE norm_weights load_norm_weights(const norm *by, int inputs, int i) {
  norm_weights found;
  UNROLL for (int a = 0; a < AHEAD; ++a) {
    const int at = i + a * THREADS;
    found.of[a] = load_raw_four(by->weight, by->type, at,
                                 by->kind == NORM_RMS && at < inputs / 4);
  }
  return found;
}

// Stages x or its norm, in `parts` parts of vectors. `weights` are this thread's first
// ones. Returns a factor for the products: the RMS norm's scale, so that nobody waits
// for it before multiplying.
INLINE float stage(const float *x, const norm *by, norm_weights weights,
                   int inputs, const int parts) {
  const int thread = (int)thread_idx(), vectors = inputs / (4 * parts);
  float sum = 0.0f;
#pragma clang loop unroll(disable)
  for (int i = thread; i < inputs / 4; i += AHEAD * THREADS) {
    uint4_t rows[AHEAD];
    UNROLL for (int a = 0; a < AHEAD; ++a)
      rows[a] = load_written_16_bytes(x + 4 * (i + a * THREADS),
                                      i + a * THREADS < inputs / 4);
    UNROLL for (int a = 0; a < AHEAD; ++a) {
      const int at = i + a * THREADS;
      four row = four_of(rows[a]);
      UNROLL for (int e = 0; e < 4; ++e)
        sum = by->kind == NORM_LAYER
                  ? sum + row.of[e]
                  : __builtin_fmaf(row.of[e], row.of[e], sum);
      if (by->kind == NORM_RMS) {
        const four w = four_of_raw(by->type, weights.of[a]);
        UNROLL for (int e = 0; e < 4; ++e)
          row.of[e] *= by->offset + w.of[e];
      }
      if (at < inputs / 4)
        staged[at % parts * vectors + at / parts] = words_of(row);
    }
    weights = load_norm_weights(by, inputs, i + AHEAD * THREADS);
  }
  if (by->kind == NORM_NONE) {
    syncthreads();
    return 1.0f;
  }
  sum = block_sum(sum, thread);
  if (by->kind == NORM_LAYER) {
    normalize_staged(by, inputs, parts, vectors, sum, thread);
    return 1.0f;
  }
  return rsqrt_approx(sum / (float)inputs + by->epsilon);
}

#endif
