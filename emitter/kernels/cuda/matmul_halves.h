// Products of many rows with weights in the same type of 16 bits, on tensor cores: see
// matmul.h.
#ifndef KERNELS_CUDA_MATMUL_HALVES_H
#define KERNELS_CUDA_MATMUL_HALVES_H

#include "matmul.h"

enum {
  MAX_ROWS = 4,     // of fragments of a warp
  MAX_COLUMNS = 16, // of outputs of a warp, in eights
};

// ------------------------------------------------------------------ results

typedef float warp_sums[MAX_ROWS][MAX_COLUMNS][4];

// Sets a warp's sums to their outputs' biases. At the end, these would take registers
// beside the sums.
INLINE void begin_sums(shape s, const product *p, const part *of, warp_sums sums) {
  const int lane = (int)thread_idx() % WARP, warp = (int)thread_idx() / WARP;
  const int columns = s.columns / s.warps_n, n = p->is_gated ? p->n / 2 : p->n;
  const int first = of->column + warp % s.warps_n * columns + lane % 4 * 2;
  UNROLL for (int j = 0; j < columns / OUTPUTS; ++j) {
    const int row = first + j * OUTPUTS;
    const int output = p->is_gated ? row_of_pair(row) : row;
    const biases *by = p->is_gated && j % 2 ? &p->gated.up_biases : &p->biases;
    const float bias[] = {load_bias(by, output, n), load_bias(by, output + 1, n)};
    UNROLL for (int i = 0; i < s.rows / s.warps_m / FRAGMENT; ++i)
      UNROLL for (int e = 0; e < 4; ++e)
        sums[i][j][e] = bias[e % 2];
  }
}

// Writes a warp's sums.
INLINE void store_sums(shape s, const product *p, const part *of, warp_sums sums) {
  const int lane = (int)thread_idx() % WARP, warp = (int)thread_idx() / WARP;
  const int rows = s.rows / s.warps_m, columns = s.columns / s.warps_n;
  const int first_row = of->row + warp / s.warps_n * rows + lane / 4;
  const int first_column = of->column + warp % s.warps_n * columns;
  UNROLL for (int j = 0; j < columns / OUTPUTS; ++j) {
    const int column = first_column + j * OUTPUTS + lane % 4 * 2;
    if (first_column + j * OUTPUTS < p->n) {
      UNROLL for (int i = 0; i < rows / (FRAGMENT / 2); ++i) {
        const int row = first_row + i * (FRAGMENT / 2);
        const float *pair = sums[i / 2][j] + i % 2 * 2;
        if (row < p->m)
          *(float2_t *)(of->out + (index)row * p->n + column) =
              (float2_t){pair[0], pair[1]};
      }
    }
  }
}

// Writes a warp's outputs of a gated product. It is a loop that has one row of fragments
// at a time, because all of them would be a lot of code; sums move up in turn, because
// registers have no indices.
INLINE void store_gated_sums(weight_type type, shape s, const product *p,
                             const part *of, warp_sums sums) {
  const int lane = (int)thread_idx() % WARP, warp = (int)thread_idx() / WARP;
  const int fragments = s.rows / s.warps_m / FRAGMENT, n = p->n / 2;
  const int columns = s.columns / s.warps_n / 2, pairs = columns / OUTPUTS;
  const int column = of->column / 2 + warp % s.warps_n * columns + lane % 4 * 2;
  int row = of->row + warp / s.warps_n * fragments * FRAGMENT + lane / 4;
#pragma clang loop unroll(disable)
  for (int i = 0; i < fragments; ++i, row += FRAGMENT) {
    float gates[MAX_COLUMNS / 2 * 4], ups[MAX_COLUMNS / 2 * 4];
    UNROLL for (int j = 0; j < pairs * 4; ++j) {
      gates[j] = sums[0][j / 4 * 2][j % 4];
      ups[j] = sums[0][j / 4 * 2 + 1][j % 4];
    }
    multiply_gates(&p->gated.by, gates, ups, pairs * 4);
    UNROLL for (int j = 0; j < pairs * 2; ++j) {
      const int at_row = row + j % 2 * (FRAGMENT / 2);
      const int at_column = column + j / 2 * OUTPUTS;
      if (at_row < p->m && at_column < n)
        *(uint32_t *)((uint16_t *)p->gated.out + (index)at_row * n + at_column) =
            pack_halves(type == WEIGHT_BF16 ? ELEMENT_BF16 : ELEMENT_F16,
                        gates[2 * j], gates[2 * j + 1]);
    }
    UNROLL for (int next = 1; next < fragments; ++next)
      UNROLL for (int j = 0; j < pairs * 2; ++j)
        UNROLL for (int e = 0; e < 4; ++e)
          sums[next - 1][j][e] = sums[next][j][e];
  }
}

// ---------------------------------------------------------------- products

// Where a lane's rows are in a stage, and what the indices of their pieces are combined
// with.
typedef struct {
  int x, weights, x_swizzle, weights_swizzle, x_piece, weights_piece;
} lane_places;

INLINE lane_places places_of_lane(shape s) {
  const int row_bytes = s.depth * 2;
  const int lane = (int)thread_idx() % WARP, warp = (int)thread_idx() / WARP;
  const int row = lane % FRAGMENT, column = lane / 16 * 8 + lane % 8;
  return (lane_places){
      .x = (warp / s.warps_n * (s.rows / s.warps_m) + row) * row_bytes,
      .weights = s.rows * row_bytes +
                 (warp % s.warps_n * (s.columns / s.warps_n) + column) * row_bytes,
      .x_swizzle = swizzle(row, row_bytes),
      .weights_swizzle = swizzle(column, row_bytes),
      .x_piece = lane / 16,
      .weights_piece = lane / 8 % 2,
  };
}

// The operands of a warp for FRAGMENT inputs.
typedef struct {
  uint32_t x[MAX_ROWS][4], weights[MAX_COLUMNS / 2][4];
} fragments;

INLINE void load_fragments(shape s, const lane_places *at, shared_address stage,
                           const int step, fragments *f) {
  const int row_bytes = s.depth * 2;
  const int x_piece = (step * 2 + at->x_piece) ^ at->x_swizzle;
  const int piece = (step * 2 + at->weights_piece) ^ at->weights_swizzle;
  UNROLL for (int i = 0; i < s.rows / s.warps_m / FRAGMENT; ++i)
    ldmatrix_x4(f->x[i],
                stage + at->x + x_piece * PIECE + i * FRAGMENT * row_bytes);
  UNROLL for (int j = 0; j < s.columns / s.warps_n / 16; ++j)
    ldmatrix_x4(f->weights[j],
                stage + at->weights + piece * PIECE + j * 16 * row_bytes);
}

INLINE void add_products(weight_type type, shape s, const fragments *f,
                         warp_sums sums) {
  UNROLL for (int i = 0; i < s.rows / s.warps_m / FRAGMENT; ++i)
    UNROLL for (int j = 0; j < s.columns / s.warps_n / OUTPUTS; ++j) {
      const uint32_t *weights = f->weights[j / 2] + j % 2 * 2;
      if (type == WEIGHT_BF16)
        mma_bf16(sums[i][j], f->x[i], weights);
      else
        mma_f16(sums[i][j], f->x[i], weights);
    }
}

// Computes what one block does, with weights in bf16 or f16. Fragments are loaded
// while the ones before them are multiplied, also across steps.
INLINE void multiply_halves(weight_type type, shape s, const product *p,
                            shared_address memory) {
  const part of = part_of_block(p, s);
  const lane_places places = places_of_lane(s);
  const int inner = s.depth / FRAGMENT;
  ring r = ring_of(type, s, p, &of, memory);
  fragments f[2];
  warp_sums sums;
  begin_sums(s, p, &of, sums);
  UNROLL for (int stage = 0; stage < s.stages - 1; ++stage)
    fill_stage(type, s, &r, of.begin + stage);
  cp_async_wait(s.stages - 2);
  syncthreads();
  load_fragments(s, &places, memory, 0, &f[0]);
  int from = 0;
  // An odd number of fragments per step needs two steps for f's indices to repeat.
  const int steps = inner % 2 ? 2 : 1;
  for (int step = of.begin; step < of.end; step += steps) {
    UNROLL for (int i = 0; i < inner * steps; ++i) {
      if (i % inner == 0)
        fill_stage(type, s, &r, step + i / inner + s.stages - 1);
      if (i % inner == inner - 1) {
        // The next step is there, and nobody reads this one after the barrier.
        cp_async_wait(s.stages - 2);
        syncthreads();
        from = next_stage(&r, from);
      }
      load_fragments(s, &places, memory + from, (i + 1) % inner, &f[(i + 1) % 2]);
      // A step that was added to have two is past the end.
      if (i < inner || step + 1 < of.end)
        add_products(type, s, &f[i % 2], sums);
    }
  }
  if (p->is_gated)
    store_gated_sums(type, s, p, &of, sums);
  else
    store_sums(s, p, &of, sums);
}

INLINE void multiply_bf16(shape s, const product *p, shared_address memory) {
  multiply_halves(WEIGHT_BF16, s, p, memory);
}

INLINE void multiply_f16(shape s, const product *p, shared_address memory) {
  multiply_halves(WEIGHT_F16, s, p, memory);
}

#define DEFINE_MATMUL_BF16(name, ...)                                          \
  REQUIRE_PAIRS(16, __VA_ARGS__);                                              \
  DEFINE_MATMUL(name, multiply_bf16, SHAPE_BYTES(16, 16, __VA_ARGS__),         \
                uint16_t, __VA_ARGS__)
#define DEFINE_MATMUL_F16(name, ...)                                           \
  REQUIRE_PAIRS(16, __VA_ARGS__);                                              \
  DEFINE_MATMUL(name, multiply_f16, SHAPE_BYTES(16, 16, __VA_ARGS__),          \
                uint16_t, __VA_ARGS__)

#endif
