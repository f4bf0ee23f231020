// The input of a product of a single row: x, or its norm (see norm.h), in shared memory.
//
// Every block computes the norm for itself: x is short and in L2, and a kernel of its own
// would take longer.
//
// Inputs of weights that are whole numbers are whole numbers too, of 16 bits, with a
// scale for as many as 16 bytes of weights hold: the largest is 32767 times the scale.
// So products are dot products of bytes, of both halves of each input, with exact sums.
//
// Longer rows than fit are staged in slices, one after the other.
#ifndef KERNELS_CUDA_ROW_INPUT_H
#define KERNELS_CUDA_ROW_INPUT_H

#include "norm.h"
#include "weights.h"

enum {
  // Floats that fit into shared memory, beside sums of warps. Longer rows have no norm
  // here.
  CAPACITY = 12032,
  // Fours of a thread whose loads are under way, with and without a norm.
  AHEAD = 2,
  MAX_AHEAD = 8,
};

STATED(capacity, CAPACITY);

// What products read of an input at once, in parts of 16 bytes: part p of what belongs
// to a vector of weights is at [p * vectors + vector]. So lanes, which multiply
// consecutive vectors, read consecutive addresses and do not conflict.
//
// Floats are four inputs in a part. Of whole numbers, parts have the upper bytes of 16
// inputs, signed, and then come as many with the lower bytes; after all parts, there is
// a `whole_scale` for each vector.
SHARED_MEMORY uint4_t staged[CAPACITY / 4];

// The scale of the inputs of a vector, and their sum, by which zero points of weights are
// multiplied.
typedef struct {
  float scale;
  int32_t sum;
} whole_scale;

// Returns how many vectors' inputs fit into shared memory: whole numbers take two bytes
// and their share of a scale.
INLINE int vectors_of_shared(weight_type type) {
  const int inputs = inputs_in_16_bytes(type);
  const int bytes = is_whole(type) ? 2 * inputs + (int)sizeof(whole_scale) : 4 * inputs;
  return CAPACITY * 4 / bytes;
}

// What is in shared memory of a row: so many vectors from the first one on.
typedef struct {
  int first, vectors;
} slice;

INLINE SHARED_SPACE whole_scale *whole_scales(weight_type type, int vectors) {
  return (SHARED_SPACE whole_scale *)(staged +
                                      inputs_in_16_bytes(type) / 8 * vectors);
}

// The mean of a layer norm's input, and the inverse of its deviation.
typedef struct {
  float mean, scale;
} layer_statistics;

INLINE layer_statistics statistics_of(const float *x, const norm *by, int inputs,
                                      int thread) {
  float sum = 0.0f, squares = 0.0f;
  for (int i = thread; i < inputs / 4; i += THREADS) {
    const four row = four_of(load_written_16_bytes(x + 4 * i, 1));
    UNROLL for (int e = 0; e < 4; ++e)
      sum += row.of[e];
  }
  const float mean = block_sum(sum, thread) / (float)inputs;
  for (int i = thread; i < inputs / 4; i += THREADS) {
    const four row = four_of(load_written_16_bytes(x + 4 * i, 1));
    UNROLL for (int e = 0; e < 4; ++e)
      squares = __builtin_fmaf(row.of[e] - mean, row.of[e] - mean, squares);
  }
  syncthreads(); // until all have read the sums before
  squares = block_sum(squares, thread);
  return (layer_statistics){mean,
                            rsqrt_approx(squares / (float)inputs + by->epsilon)};
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
                                 by->kind != NORM_NONE && at < inputs / 4);
  }
  return found;
}

// Returns a word of the bytes of four numbers, `byte` of each.
INLINE uint32_t gather_bytes(const uint32_t of[4], const uint32_t byte) {
  const uint32_t choice = byte | (byte + 4) << 4;
  const uint32_t low = permute_bytes(of[0], of[1], choice);
  return permute_bytes(low, permute_bytes(of[2], of[3], choice), 0x5410);
}

// Stages four consecutive inputs as whole numbers. All lanes of a warp call it, those
// past the last input without `there`. Inputs with inf or NaN become zeros with that scale,
// as on CPUs, so that products are NaN: as integers, magnitudes order like the floats, with
// NaN as the largest.
INLINE void stage_whole(weight_type type, int i, int vectors, four x, int there) {
  const int fours = inputs_in_16_bytes(type) / 4, parts = fours / 4;
  uint32_t bits = 0;
  UNROLL for (int e = 0; e < 4; ++e)
    bits = max_u32(bits, bits_of(x.of[e]) & 0x7fffffffu);
  UNROLL for (int mask = 1; mask < fours; mask *= 2)
    bits = max_u32(bits, shuffle_xor_u32(bits, mask));
  const float most = float_of(bits);
  // Below 2^-112, 32767 / most would overflow.
  const int is_finite = bits < 0x7f800000u, is_zero = bits < 0x07800000u;
  const float inverse = is_finite && !is_zero ? 32767.0f / most : 0.0f;
  uint32_t whole[4];
  int32_t sum = 0;
  UNROLL for (int e = 0; e < 4; ++e) {
    // Next to 1.5 * 2^23, the lowest bits of a float are those of a whole number.
    whole[e] = bits_of(__builtin_fmaf(is_finite ? x.of[e] : 0.0f, inverse, 0x1.8p23f));
    sum += (int16_t)whole[e];
  }
  if (type != WEIGHT_Q8)
    UNROLL for (int mask = 1; mask < fours; mask *= 2)
      sum += (int32_t)shuffle_xor_u32((uint32_t)sum, mask);
  if (!there)
    return;
  const int vector = i / fours, word = i % fours;
  SHARED_SPACE uint32_t *to =
      (SHARED_SPACE uint32_t *)(staged + word / 4 * vectors + vector) + word % 4;
  to[0] = gather_bytes(whole, 1);
  to[parts * vectors * 4] = gather_bytes(whole, 0);
  if (word == 0) {
    SHARED_SPACE whole_scale *scale = whole_scales(type, vectors) + vector;
    scale->scale = most * (1.0f / 32767.0f);
    scale->sum = sum;
  }
}

// Stages four consecutive inputs, number `i`, as products with a type of weights read
// them.
INLINE void stage_four(weight_type type, int i, int vectors, four x, int there) {
  const int parts = inputs_in_16_bytes(type) / 4;
  if (is_whole(type))
    stage_whole(type, i, vectors, x, there);
  else if (there)
    staged[i % parts * vectors + i / parts] = words_of(x);
}

// Returns the norm of four consecutive inputs, number `i`, by weights as loaded. The RMS
// norm's scale is left out, and for it squares are added to `sum`.
INLINE four normed(const norm *by, const layer_statistics *of, four x,
                   raw_four weights, int i, int inputs, float *sum) {
  const four w = four_of_raw(by->type, weights);
  if (by->kind == NORM_RMS)
    UNROLL for (int e = 0; e < 4; ++e) {
      *sum = __builtin_fmaf(x.of[e], x.of[e], *sum);
      x.of[e] *= by->offset + w.of[e];
    }
  if (is_layer_norm(by->kind)) {
    const int has_bias = by->kind == NORM_LAYER && i < inputs / 4;
    const four b = four_of_raw(by->type, load_raw_four(by->bias, by->type, i, has_bias));
    UNROLL for (int e = 0; e < 4; ++e)
      x.of[e] = (x.of[e] - of->mean) * of->scale * (by->offset + w.of[e]) + b.of[e];
  }
  return x;
}

// Stages x or its norm. `weights` are this thread's first ones. Returns a factor for the
// products: the RMS norm's scale, so that nobody waits for it before multiplying.
INLINE float stage(weight_type type, const float *x, const norm *by,
                   norm_weights weights, int inputs, const int ahead) {
  const int thread = (int)thread_idx();
  const int vectors = inputs / inputs_in_16_bytes(type);
  layer_statistics of = {0.0f, 1.0f};
  if (is_layer_norm(by->kind))
    of = statistics_of(x, by, inputs, thread);
  float sum = 0.0f;
  // The threads of a warp make the same number of steps.
#pragma clang loop unroll(disable)
  for (int i = thread; i - thread % WARP < inputs / 4; i += ahead * THREADS) {
    uint4_t rows[MAX_AHEAD];
    UNROLL for (int a = 0; a < ahead; ++a)
      rows[a] = load_written_16_bytes(x + 4 * (i + a * THREADS),
                                      i + a * THREADS < inputs / 4);
    UNROLL for (int a = 0; a < ahead; ++a) {
      const int at = i + a * THREADS;
      if (at - thread % WARP < inputs / 4) {
        const four row = normed(by, &of, four_of(rows[a]), weights.of[a % AHEAD], at,
                                inputs, &sum);
        stage_four(type, at, vectors, row, at < inputs / 4);
      }
    }
    weights = load_norm_weights(by, inputs, i + ahead * THREADS);
  }
  if (by->kind != NORM_RMS) {
    syncthreads();
    return 1.0f;
  }
  return rsqrt_approx(block_sum(sum, thread) / (float)inputs + by->epsilon);
}

#endif
