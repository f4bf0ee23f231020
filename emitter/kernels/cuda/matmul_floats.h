// Products of many rows with weights in f32, without tensor cores, which would round
// the operands: see matmul.h.
//
// Each thread computes 8 x 8 results. Its rows and its columns are as far apart as the
// lanes of a warp have different ones, so that lanes read consecutive rows of a tile.
#ifndef KERNELS_CUDA_MATMUL_FLOATS_H
#define KERNELS_CUDA_MATMUL_FLOATS_H

#include "matmul.h"

enum {
  TILE = 8,    // rows and columns of a thread
  LANES_M = 4, // lanes of a warp that have different rows
  LANES_N = WARP / LANES_M,
  VECTOR = PIECE / 4, // inputs that a lane loads at once
};

typedef float thread_sums[TILE][TILE];

// Loads VECTOR inputs of each of a thread's rows of a tile, which are `apart`. `row` is
// the first, in shared memory at `from`.
INLINE void load_vectors(shared_address from, int row, const int apart,
                         const int row_bytes, const int v, uint4_t vectors[TILE]) {
  UNROLL for (int i = 0; i < TILE; ++i) {
    const int piece = v ^ swizzle(row + i * apart, row_bytes);
    vectors[i] = load_shared_16(from + i * apart * row_bytes + piece * PIECE);
  }
}

INLINE void add_vectors(const uint4_t x[TILE], const uint4_t w[TILE],
                        thread_sums sums) {
  UNROLL for (int e = 0; e < VECTOR; ++e)
    UNROLL for (int i = 0; i < TILE; ++i)
      UNROLL for (int j = 0; j < TILE; ++j)
        sums[i][j] =
            __builtin_fmaf(float_of(x[i][e]), float_of(w[j][e]), sums[i][j]);
}

// Sets a thread's sums to their outputs' biases.
INLINE void begin_thread_sums(const product *p, const part *of, int column,
                              thread_sums sums) {
  const int n = p->is_gated ? p->n / 2 : p->n;
  UNROLL for (int j = 0; j < TILE; ++j) {
    const int row = of->column + column + j * LANES_N;
    const int output = p->is_gated ? row_of_pair(row) : row;
    const biases *by = p->is_gated && j % 2 ? &p->gated.up_biases : &p->biases;
    const float bias = load_bias(by, output, n);
    UNROLL for (int i = 0; i < TILE; ++i)
      sums[i][j] = bias;
  }
}

INLINE void store_thread_sums(const product *p, const part *of, int row, int column,
                              thread_sums sums) {
  UNROLL for (int i = 0; i < TILE; ++i)
    UNROLL for (int j = 0; j < TILE; ++j) {
      const int r = of->row + row + i * LANES_M;
      const int c = of->column + column + j * LANES_N;
      if (r < p->m && c < p->n)
        of->out[(index)r * p->n + c] = sums[i][j];
    }
}

// Writes a thread's outputs of a gated product, in a loop as in matmul_halves.h. Columns
// are eight apart, so that every other one is up's.
INLINE void store_gated_thread_sums(const product *p, const part *of, int row,
                                    int column, thread_sums sums) {
  const int n = p->n / 2, first = of->column / 2 + row_of_pair(column);
#pragma clang loop unroll(disable)
  for (int r = of->row + row, i = 0; i < TILE; ++i, r += LANES_M) {
    float gates[TILE / 2], ups[TILE / 2];
    UNROLL for (int j = 0; j < TILE / 2; ++j) {
      gates[j] = sums[0][2 * j];
      ups[j] = sums[0][2 * j + 1];
    }
    multiply_gates(&p->gated.by, gates, ups, TILE / 2);
    UNROLL for (int j = 0; j < TILE / 2; ++j) {
      const int c = first + j * LANES_N;
      if (r < p->m && c < n)
        ((float *)p->gated.out)[(index)r * n + c] = gates[j];
    }
    UNROLL for (int next = 1; next < TILE; ++next)
      UNROLL for (int j = 0; j < TILE; ++j)
        sums[next - 1][j] = sums[next][j];
  }
}

// A warp has LANES_M * TILE rows and LANES_N * TILE columns of the tile.
INLINE void multiply_f32(shape s, const product *p, shared_address memory) {
  const part of = part_of_block(p, s);
  const int row_bytes = s.depth * 4;
  const int lane = (int)thread_idx() % WARP, warp = (int)thread_idx() / WARP;
  const int row = warp / s.warps_n * (LANES_M * TILE) + lane / LANES_N;
  const int column = warp % s.warps_n * (LANES_N * TILE) + lane % LANES_N;
  ring r = ring_of(WEIGHT_F32, s, p, &of, memory);
  thread_sums sums;
  begin_thread_sums(p, &of, column, sums);
  UNROLL for (int stage = 0; stage < s.stages - 1; ++stage)
    fill_stage(WEIGHT_F32, s, &r, of.begin + stage);
  int from = 0;
  for (int step = of.begin; step < of.end; ++step) {
    cp_async_wait(s.stages - 2);
    syncthreads();
    fill_stage(WEIGHT_F32, s, &r, step + s.stages - 1);
    const shared_address x_rows = memory + from + row * row_bytes;
    const shared_address w_rows =
        memory + from + r.x_tile_bytes + column * row_bytes;
    UNROLL for (int v = 0; v < s.depth / VECTOR; ++v) {
      uint4_t x[TILE], w[TILE];
      load_vectors(x_rows, row, LANES_M, row_bytes, v, x);
      load_vectors(w_rows, column, LANES_N, row_bytes, v, w);
      add_vectors(x, w, sums);
    }
    from = next_stage(&r, from);
  }
  if (p->is_gated)
    store_gated_thread_sums(p, &of, row, column, sums);
  else
    store_thread_sums(p, &of, row, column, sums);
}

#define DEFINE_MATMUL_F32(name, ...)                                           \
  REQUIRE_PAIRS(32, __VA_ARGS__);                                              \
  DEFINE_MATMUL(name, multiply_f32, SHAPE_BYTES(32, 32, __VA_ARGS__), float,   \
                __VA_ARGS__)

#endif
