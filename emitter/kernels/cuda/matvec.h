// Products of a single row on NVIDIA GPUs, by up to three matrices at once.
//
//   x        [inputs]
//   weights  [outputs][inputs] of each matrix, in the checkpoint's layout, or
//            quantized: Q8 is int8_t with a float scale per output; Q4 is groups
//            of 32 inputs in 16 bytes, where byte i holds input i low and 16 + i
//            high, plus 8, with an f16 scale per group
//   out      [outputs] of each matrix
//
// Reading the weights takes most of the time. A warp computes OUTPUTS rows at a
// time. Its lanes read 16 consecutive bytes each, so that each load of the warp is
// 512 contiguous bytes. Sums are in f32.
#ifndef KERNELS_CUDA_MATVEC_H
#define KERNELS_CUDA_MATVEC_H

#include "cuda.h"

enum {
  THREADS = 256,
  OUTPUTS = 2,
  GROUP = 32, // inputs that share a scale in Q4
  MAX_MATRICES = 3,
  MAX_INPUTS = 32, // in 16 bytes
};

STATED(threads, THREADS);
STATED(outputs, OUTPUTS);
STATED(matrices, MAX_MATRICES);

typedef enum {
  WEIGHT_F32,
  WEIGHT_BF16,
  WEIGHT_F16,
  WEIGHT_Q8,
  WEIGHT_Q4,
} weight_type;

typedef struct {
  const void *weights, *scales;
  float *out;
  int outputs;
} matrix;

// Returns how many inputs 16 bytes hold.
INLINE int inputs_in_16_bytes(weight_type type) {
  switch (type) {
  case WEIGHT_F32: return 4;
  case WEIGHT_BF16:
  case WEIGHT_F16: return 8;
  case WEIGHT_Q8: return 16;
  case WEIGHT_Q4: return 32;
  }
  return 0;
}

// Returns `bits` - `zero` as a float. Adding `bits` to the lowest bits of 2^23 needs
// no conversion.
INLINE float whole_number(uint32_t bits, float zero) {
  return float_of(0x4b000000u | bits) - (0x1p23f + zero);
}

INLINE void widen(weight_type type, uint4_t words, float w[MAX_INPUTS]) {
  UNROLL for (int i = 0; i < 4; ++i) {
    switch (type) {
    case WEIGHT_F32: w[i] = float_of(words[i]); break;
    case WEIGHT_BF16:
      w[2 * i] = float_of(words[i] << 16);
      w[2 * i + 1] = float_of(words[i] & 0xffff0000u);
      break;
    case WEIGHT_F16:
      w[2 * i] = float_from_f16((uint16_t)words[i]);
      w[2 * i + 1] = float_from_f16((uint16_t)(words[i] >> 16));
      break;
    case WEIGHT_Q8: {
      const uint32_t bytes = words[i] ^ 0x80808080u;
      UNROLL for (int e = 0; e < 4; ++e)
        w[4 * i + e] = whole_number(bytes >> 8 * e & 0xff, 128.0f);
      break;
    }
    case WEIGHT_Q4:
      UNROLL for (int e = 0; e < 4; ++e) {
        w[4 * i + e] = whole_number(words[i] >> 8 * e & 0xf, 8.0f);
        w[16 + 4 * i + e] = whole_number(words[i] >> (8 * e + 4) & 0xf, 8.0f);
      }
      break;
    }
  }
}

SHARED_MEMORY float of_warps[THREADS / WARP * OUTPUTS];

// Multiplies x by the rows of all matrices, one after the other. `split` divides
// the warps of a block: so many warps share OUTPUTS rows, to have work for the whole
// GPU.
INLINE void multiply(weight_type type, const float *x,
                     const matrix matrices[MAX_MATRICES], const int count,
                     int inputs, int split) {
  const int size = inputs_in_16_bytes(type), groups = inputs / GROUP;
  const int warps = THREADS / WARP;
  const int thread = (int)thread_idx(), lane = thread % WARP;
  const int warp = thread / WARP, share = warp % split;
  const int first =
      ((int)block_idx() * (warps / split) + warp / split) * OUTPUTS;
  const uint4_t *rows[OUTPUTS];
  const uint16_t *group_scales[OUTPUTS];
  float *outs[OUTPUTS], scales[OUTPUTS], sums[OUTPUTS];
  UNROLL for (int r = 0; r < OUTPUTS; ++r) {
    int at = first + r, found = 0;
    rows[r] = 0, group_scales[r] = 0, outs[r] = 0, scales[r] = 1.0f;
    sums[r] = 0.0f;
    UNROLL for (int m = 0; m < count; ++m) {
      const matrix *of = &matrices[m];
      if (!found && at < of->outputs) {
        found = 1;
        rows[r] = (const uint4_t *)of->weights + (index)at * (inputs / size);
        outs[r] = of->out + at;
        if (type == WEIGHT_Q8)
          scales[r] = ((const float *)of->scales)[at];
        if (type == WEIGHT_Q4)
          group_scales[r] = (const uint16_t *)of->scales + (index)at * groups;
      }
      at -= found ? 0 : of->outputs;
    }
    // Past the last row, the first one is computed again.
    if (!found) {
      rows[r] = (const uint4_t *)matrices[0].weights;
      group_scales[r] = (const uint16_t *)matrices[0].scales;
    }
  }

#pragma clang loop unroll_count(4)
  for (int i = share * WARP + lane; i < inputs / size; i += split * WARP) {
    float values[MAX_INPUTS];
    UNROLL for (int v = 0; v < size / 4; ++v) {
      const uint4_t four = ((const uint4_t *)x)[i * (size / 4) + v];
      UNROLL for (int e = 0; e < 4; ++e)
        values[4 * v + e] = float_of(four[e]);
    }
    UNROLL for (int r = 0; r < OUTPUTS; ++r) {
      float w[MAX_INPUTS], sum = type == WEIGHT_Q4 ? 0.0f : sums[r];
      widen(type, rows[r][i], w);
      UNROLL for (int e = 0; e < size; ++e)
        sum = __builtin_fmaf(w[e], values[e], sum);
      sums[r] = type == WEIGHT_Q4
                    ? __builtin_fmaf(sum, float_from_f16(group_scales[r][i]),
                                     sums[r])
                    : sum;
    }
  }
  UNROLL for (int r = 0; r < OUTPUTS; ++r) {
    const float sum = warp_reduce_sum(sums[r]);
    if (lane == 0)
      of_warps[warp * OUTPUTS + r] = sum;
  }
  syncthreads();
  if (share == 0 && lane == 0)
    UNROLL for (int r = 0; r < OUTPUTS; ++r) {
      float sum = 0.0f;
      for (int s = 0; s < split; ++s)
        sum += of_warps[(warp + s) * OUTPUTS + r];
      if (outs[r])
        *outs[r] = sum * scales[r];
    }
}

#define MATRIX(w, s, o, n) {w, s, o, n}
#define NO_MATRIX MATRIX(0, 0, 0, 0)

// Defines the kernels of a type for one, two and three matrices.
#define DEFINE_MATVEC(name, type, element)                                     \
  KERNEL cuda_matvec_##name##_1(const float *x, const element *w0,             \
                                float *out0, int n0, int inputs, int split) {  \
    const matrix matrices[] = {MATRIX(w0, 0, out0, n0), NO_MATRIX, NO_MATRIX}; \
    multiply(type, x, matrices, 1, inputs, split);                             \
  }                                                                            \
  KERNEL cuda_matvec_##name##_2(const float *x, const element *w0,             \
                                const element *w1, float *out0, float *out1,   \
                                int n0, int n1, int inputs, int split) {       \
    const matrix matrices[] = {MATRIX(w0, 0, out0, n0),                        \
                               MATRIX(w1, 0, out1, n1), NO_MATRIX};            \
    multiply(type, x, matrices, 2, inputs, split);                             \
  }                                                                            \
  KERNEL cuda_matvec_##name##_3(                                               \
      const float *x, const element *w0, const element *w1, const element *w2, \
      float *out0, float *out1, float *out2, int n0, int n1, int n2,           \
      int inputs, int split) {                                                 \
    const matrix matrices[] = {MATRIX(w0, 0, out0, n0),                        \
                               MATRIX(w1, 0, out1, n1),                        \
                               MATRIX(w2, 0, out2, n2)};                       \
    multiply(type, x, matrices, 3, inputs, split);                             \
  }

// Defines the kernels of a type with scales for one, two and three matrices.
#define DEFINE_SCALED_MATVEC(name, type, element, scale)                       \
  KERNEL cuda_matvec_##name##_1(const float *x, const element *w0,             \
                                const scale *s0, float *out0, int n0,          \
                                int inputs, int split) {                       \
    const matrix matrices[] = {MATRIX(w0, s0, out0, n0), NO_MATRIX,            \
                               NO_MATRIX};                                     \
    multiply(type, x, matrices, 1, inputs, split);                             \
  }                                                                            \
  KERNEL cuda_matvec_##name##_2(                                               \
      const float *x, const element *w0, const scale *s0, const element *w1,   \
      const scale *s1, float *out0, float *out1, int n0, int n1, int inputs,   \
      int split) {                                                             \
    const matrix matrices[] = {MATRIX(w0, s0, out0, n0),                       \
                               MATRIX(w1, s1, out1, n1), NO_MATRIX};           \
    multiply(type, x, matrices, 2, inputs, split);                             \
  }                                                                            \
  KERNEL cuda_matvec_##name##_3(                                               \
      const float *x, const element *w0, const scale *s0, const element *w1,   \
      const scale *s1, const element *w2, const scale *s2, float *out0,        \
      float *out1, float *out2, int n0, int n1, int n2, int inputs,            \
      int split) {                                                             \
    const matrix matrices[] = {MATRIX(w0, s0, out0, n0),                       \
                               MATRIX(w1, s1, out1, n1),                       \
                               MATRIX(w2, s2, out2, n2)};                      \
    multiply(type, x, matrices, 3, inputs, split);                             \
  }

#endif
