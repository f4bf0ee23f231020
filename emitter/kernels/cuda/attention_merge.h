// Merging of what parts of a decode step's attention found: within a warp, within a
// block, and of all chunks of positions.
//
// The state of a head is the largest score, the sum of weights 2^(score - largest),
// and the sum of values times their weights.
#ifndef KERNELS_CUDA_ATTENTION_MERGE_H
#define KERNELS_CUDA_ATTENTION_MERGE_H

#include "attention_rows.h"
#include "round.h"

#ifndef ATTENTION_THREADS
#define ATTENTION_THREADS 128
#endif

enum {
  THREADS = ATTENTION_THREADS,
  WARPS = THREADS / WARP,
  ROWS = 4, // heads per block
  AT_ONCE = 8, // chunks that are read before the first is used
};

STATED(threads, THREADS);
STATED(rows, ROWS);

#define LOWEST_FLOAT (-3.40282347e38f)

// Where the results of a block's heads go, from its first one on.
typedef struct {
  void *out;                // [heads][head_dim], of out_type
  element_type out_type;
  float *partial, *max_sum; // of the sequence's first chunk
  const float *sinks;       // or NULL
  int heads, head_dim;      // of a sequence and chunk
  int count;                // heads of the block
} destination;

// States of a block's warps: sums are [WARPS][ROWS][width].
typedef struct {
  SHARED_SPACE float *sums, *max, *total;
} warp_states;

// Adds the sums of two groups of lanes that differ in `mask`: one goes on with the
// first `held` heads, and the other with the next ones. Returns the first of them.
INLINE int halve_heads(float sums[ROWS * VECTOR], const int mask, const int held) {
  const int upper = ((int)thread_idx() & mask) != 0;
  UNROLL for (int i = 0; i < held * VECTOR; ++i) {
    const float low = sums[i], high = sums[held * VECTOR + i];
    sums[i] = (upper ? high : low) + shuffle_xor(upper ? low : high, mask);
  }
  return upper ? held : 0;
}

// Merges the states of a warp's groups of lanes, each of which has a row of the cache
// of its own, and writes them to shared memory. Rows have `width` elements.
INLINE void merge_warp(const float max[ROWS], const float sum[ROWS],
                       float sums[ROWS * VECTOR], const warp_states *to,
                       const int width) {
  const int lanes = width / VECTOR; // that share a row
  const int thread = (int)thread_idx(), warp = thread / WARP;
  const int lane = thread % WARP;
  UNROLL for (int r = 0; r < ROWS; ++r) {
    float most = max[r];
    UNROLL for (int mask = lanes; mask < WARP; mask *= 2)
      most = max_float(most, shuffle_xor(most, mask));
    const float factor = exp2_approx(max[r] - most);
    float total = sum[r] * factor;
    UNROLL for (int mask = lanes; mask < WARP; mask *= 2)
      total += shuffle_xor(total, mask);
    UNROLL for (int e = 0; e < VECTOR; ++e)
      sums[r * VECTOR + e] *= factor;
    if (lane == 0) {
      to->max[warp * ROWS + r] = most;
      to->total[warp * ROWS + r] = total;
    }
  }
  const int held = ROWS * lanes / WARP; // heads that a group is left with
  int first = 0;
  if (lanes <= 16)
    first += halve_heads(sums, 16, ROWS / 2);
  if (lanes <= 8)
    first += halve_heads(sums, 8, ROWS / 4);
  UNROLL for (int r = 0; r < held; ++r)
    UNROLL for (int e = 0; e < VECTOR; ++e)
      to->sums[(warp * ROWS + first + r) * width + lane % lanes * VECTOR + e] =
          sums[r * VECTOR + e];
}

// Two elements of a head's result, and the head's state.
typedef struct {
  float x[2], most, total;
} column;

// Writes a finished result. The sink is one more score, without a value.
INLINE void write_out(const destination *to, int r, int d, column from) {
  const float sink = to->sinks ? to->sinks[r] * LOG2_E : NEGATIVE_INFINITY;
  const float most = max_float(from.most, sink);
  const float factor = exp2_approx(from.most - most);
  const float total = from.total * factor + exp2_approx(sink - most);
  const float first = from.x[0] * (factor / total);
  const float second = from.x[1] * (factor / total);
  const int at = r * to->head_dim + d;
  if (to->out_type == ELEMENT_F32)
    *(float2_t *)((float *)to->out + at) = (float2_t){first, second};
  else
    *(uint32_t *)((uint16_t *)to->out + at) = pack_halves(to->out_type, first, second);
}

INLINE column merge_warps(const warp_states *from, int r, int d, const int width) {
  column merged = {{0.0f, 0.0f}, LOWEST_FLOAT, 0.0f};
  UNROLL for (int w = 0; w < WARPS; ++w)
    merged.most = max_float(merged.most, from->max[w * ROWS + r]);
  UNROLL for (int w = 0; w < WARPS; ++w) {
    const float factor = exp2_approx(from->max[w * ROWS + r] - merged.most);
    merged.total += from->total[w * ROWS + r] * factor;
    UNROLL for (int e = 0; e < 2; ++e)
      merged.x[e] += from->sums[(w * ROWS + r) * width + d + e] * factor;
  }
  return merged;
}

// Merges the states of a block's warps, and writes results if there is one chunk, or
// else this chunk's state.
INLINE void merge_block(const destination *to, const warp_states *from, int chunk,
                        int is_only, const int width) {
  UNROLL for (int i = 0; i < ROWS * width / 2; i += THREADS) {
    const int at = i + (int)thread_idx();
    const int r = at / (width / 2), d = at % (width / 2) * 2;
    if (r < to->count && d < to->head_dim) {
      const column merged = merge_warps(from, r, d, width);
      const int head = chunk * to->heads + r;
      if (is_only) {
        write_out(to, r, d, merged);
      } else {
        UNROLL for (int e = 0; e < 2; ++e)
          to->partial[(index)head * to->head_dim + d + e] = merged.x[e];
        if (d == 0) {
          to->max_sum[head * 2] = merged.most;
          to->max_sum[head * 2 + 1] = merged.total;
        }
      }
    }
  }
}

// Merges two elements of a head over chunks, always in the same order.
INLINE column merge_column(const destination *from, int r, int d, int chunks) {
  column merged = {{0.0f, 0.0f}, LOWEST_FLOAT, 0.0f};
  for (int first = 0; first < chunks; first += AT_ONCE) {
    float max[AT_ONCE], sum[AT_ONCE], x[AT_ONCE][2];
    UNROLL for (int c = 0; c < AT_ONCE; ++c) {
      const int there = first + c < chunks;
      const index head = (index)(there ? first + c : first) * from->heads + r;
      const uint2_t state = *(const uint2_t *)(from->max_sum + head * 2);
      const uint2_t two =
          *(const uint2_t *)(from->partial + head * from->head_dim + d);
      max[c] = float_of(state[0]);
      sum[c] = there ? float_of(state[1]) : 0.0f;
      UNROLL for (int e = 0; e < 2; ++e)
        x[c][e] = there ? float_of(two[e]) : 0.0f;
    }
    const float before = merged.most;
    UNROLL for (int c = 0; c < AT_ONCE; ++c)
      merged.most = max_float(merged.most, max[c]);
    const float kept = exp2_approx(before - merged.most);
    merged.total *= kept;
    UNROLL for (int e = 0; e < 2; ++e)
      merged.x[e] *= kept;
    UNROLL for (int c = 0; c < AT_ONCE; ++c) {
      const float factor = exp2_approx(max[c] - merged.most);
      merged.total = __builtin_fmaf(sum[c], factor, merged.total);
      UNROLL for (int e = 0; e < 2; ++e)
        merged.x[e] = __builtin_fmaf(x[c][e], factor, merged.x[e]);
    }
  }
  return merged;
}

// Merges all chunks of a block's heads.
INLINE void merge_chunks(const destination *to, int chunks, const int width) {
  UNROLL for (int i = 0; i < ROWS * width / 2; i += THREADS) {
    const int at = i + (int)thread_idx();
    const int r = at / (width / 2), d = at % (width / 2) * 2;
    if (r < to->count && d < to->head_dim)
      write_out(to, r, d, merge_column(to, r, d, chunks));
  }
}

#endif
