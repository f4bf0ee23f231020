// Products of many rows on NVIDIA GPUs, with tensor cores.
//
//   x        [m][k], in bf16 or f16 (for Q8 and Q4: bf16), or in f32
//   weights  [n][k], in the type of x, in the checkpoint's layout; or quantized as in
//            matvec.h
//   out      [splits][m][n], in f32: sums over one of `splits` equal parts of k, which
//            matmul_sum.c adds in order
//
// Up to three matrices of weights share x, and have each their own out. k is a multiple
// of 32 and n of 8. A block computes a tile of the result. It copies
// tiles of x and of the weights to shared memory, some steps ahead of the one that it
// multiplies. Blocks are [splits][tiles of n of all matrices][tiles of m], so that those
// which run at the same time share weights in the L2 cache.
#ifndef KERNELS_CUDA_MATMUL_H
#define KERNELS_CUDA_MATMUL_H

#include "tensor.h"

enum {
  PIECE = 16,       // bytes that a copy has
  GROUP = 32,       // inputs that share a scale in Q4
  FRAGMENT = 16,    // rows of x, and inputs, of an instruction
  OUTPUTS = 8,      // of an instruction
  MAX_MATRICES = 3,
  MAX_COPIES = 16,  // of a thread, for one step of one tile
};

typedef enum {
  WEIGHT_F32,
  WEIGHT_BF16,
  WEIGHT_F16,
  WEIGHT_Q8,
  WEIGHT_Q4,
} weight_type;

// How a kernel divides its work. All are constants.
typedef struct {
  int rows, columns;           // of a block's tile of the result
  int depth;                   // inputs of a step
  int stages;                  // steps in shared memory
  int warps_m, warps_n;        // that share a tile's rows and its columns
} shape;

typedef struct {
  const void *weights, *scales;
  float *out;
  int n;
} matrix;

// The product by the matrix that a block works on.
typedef struct {
  const void *x, *weights, *scales;
  float *out;
  int m, n, k, splits;
  int tile_m, tile_n, split;
} product;

// What a block computes.
typedef struct {
  int row, column; // the tile's first
  int begin, end;  // steps
  float *out;      // of its part of k
} part;

INLINE int weight_bytes(weight_type type, int inputs) {
  return type == WEIGHT_F32  ? inputs * 4
         : type == WEIGHT_Q8 ? inputs
         : type == WEIGHT_Q4 ? inputs / 2
                             : inputs * 2;
}

INLINE int x_bytes(weight_type type, int inputs) {
  return inputs * (type == WEIGHT_F32 ? 4 : 2);
}

INLINE int ceiling(int a, int b) { return (a + b - 1) / b; }

INLINE int threads_of(shape s) { return s.warps_m * s.warps_n * WARP; }

INLINE product product_of_block(const void *x, const matrix matrices[MAX_MATRICES],
                                const int count, shape s, int m, int k,
                                int splits) {
  const int tiles_m = ceiling(m, s.rows), block = (int)block_idx();
  int tiles = 0;
  UNROLL for (int i = 0; i < count; ++i)
    tiles += ceiling(matrices[i].n, s.columns);
  product p = {
      .x = x,
      .m = m,
      .k = k,
      .splits = splits,
      .tile_m = block % tiles_m,
      .tile_n = block / tiles_m % tiles,
      .split = block / tiles_m / tiles,
  };
  int found = 0;
  UNROLL for (int i = 0; i < count; ++i) {
    const matrix *of = &matrices[i];
    const int own = ceiling(of->n, s.columns);
    if (!found && p.tile_n < own) {
      found = 1;
      p.weights = of->weights;
      p.scales = of->scales;
      p.out = of->out;
      p.n = of->n;
    }
    p.tile_n -= found ? 0 : own;
  }
  return p;
}

INLINE part part_of_block(const product *p, shape s) {
  const int steps = ceiling(p->k, s.depth), share = ceiling(steps, p->splits);
  return (part){
      .row = p->tile_m * s.rows,
      .column = p->tile_n * s.columns,
      .begin = min_int(p->split * share, steps),
      .end = min_int(p->split * share + share, steps),
      .out = p->out + (index)p->split * p->m * p->n,
  };
}

// ------------------------------------------------------------------ copies

// Returns what the index of a row's pieces is combined with in shared memory, by xor.
// Eight rows' pieces of the same index are in different banks, and so are two
// consecutive pieces of four rows.
INLINE int swizzle(int row, const int row_bytes) {
  switch (row_bytes) {
  case 32: return row >> 2 & 1;
  case 64: return (row & 2) | (row >> 2 & 1);
  case 128: return row & 7;
  default: return 0;
  }
}

// A thread's pieces of the tiles of a matrix: each step has the next columns.
typedef struct {
  const char *from;
  uint32_t offsets[MAX_COPIES]; // bytes
  int place;                    // in a tile in shared memory
} tile_copy;

// Past a matrix' last row, that row is copied again.
INLINE tile_copy copy_of_tile(const void *matrix, int stride, int first, int end,
                              const int rows, const int row_bytes,
                              const int threads) {
  const int pieces = row_bytes / PIECE, thread = (int)thread_idx();
  const int row = thread / pieces, piece = thread % pieces;
  tile_copy copy = {
      .from = (const char *)matrix + (index)first * stride + piece * PIECE,
      .place = row * row_bytes + (piece ^ swizzle(row, row_bytes)) * PIECE,
  };
  UNROLL for (int i = 0; i < ceiling(rows * pieces, threads); ++i)
    copy.offsets[i] =
        (uint32_t)(min_int(row + i * (threads / pieces), end - 1 - first) * stride);
  return copy;
}

// Begins the copy of a step's tile. `columns_end` is the size of a row in bytes: what
// is past it is zero.
INLINE void begin_copy(const tile_copy *copy, shared_address to, int step,
                       const int rows, const int row_bytes, const int threads,
                       const int has_tail, int columns_end) {
  const int pieces = row_bytes / PIECE, thread = (int)thread_idx();
  const char *from = copy->from + (index)step * row_bytes;
  const int column = step * row_bytes + thread % pieces * PIECE;
  const int there = column < columns_end;
  UNROLL for (int i = 0; i < ceiling(rows * pieces, threads); ++i) {
    const shared_address place = to + copy->place + i * threads * PIECE;
    // Only the last of them may be past the tile.
    if ((i + 1) * threads <= rows * pieces || thread + i * threads < rows * pieces) {
      if (has_tail)
        copy_async(place, there ? from + copy->offsets[i] : copy->from,
                   there ? PIECE : 0);
      else
        copy_async_all(place, from + copy->offsets[i]);
    }
  }
}

// The copies of both tiles, in a ring of stages in shared memory. A stage has x's
// tile, then the weights'.
typedef struct {
  tile_copy x, weights;
  shared_address memory;
  int stage_bytes, ring_bytes, x_tile_bytes;
  int to, end; // the next stage, in bytes, and the last step
  int k;
} ring;

INLINE ring ring_of(weight_type type, shape s, const product *p, const part *of,
                    shared_address memory) {
  const int threads = threads_of(s);
  const int x_row = x_bytes(type, s.depth), row = weight_bytes(type, s.depth);
  const int stage_bytes = s.rows * x_row + s.columns * row;
  return (ring){
      .x = copy_of_tile(p->x, x_bytes(type, p->k), of->row, p->m, s.rows, x_row,
                        threads),
      .weights = copy_of_tile(p->weights, weight_bytes(type, p->k), of->column,
                              p->n, s.columns, row, threads),
      .memory = memory,
      .stage_bytes = stage_bytes,
      .ring_bytes = s.stages * stage_bytes,
      .x_tile_bytes = s.rows * x_row,
      .to = 0,
      .end = of->end,
      .k = p->k,
  };
}

INLINE int next_stage(const ring *r, int at) {
  return at + r->stage_bytes == r->ring_bytes ? 0 : at + r->stage_bytes;
}

// Begins the copies of a step. Past the last step there are none, but a group.
INLINE void fill_stage(weight_type type, shape s, ring *r, int step) {
  const int threads = threads_of(s), has_tail = s.depth > GROUP;
  if (step < r->end) {
    const shared_address to = r->memory + r->to;
    begin_copy(&r->x, to, step, s.rows, x_bytes(type, s.depth), threads, has_tail,
               x_bytes(type, r->k));
    begin_copy(&r->weights, to + r->x_tile_bytes, step, s.columns,
               weight_bytes(type, s.depth), threads, has_tail,
               weight_bytes(type, r->k));
  }
  commit_copies();
  r->to = next_stage(r, r->to);
}

// ---------------------------------------------------------------- kernels

// Returns the bytes of all stages of a shape, where x and weights have so many bits
// per input.
#define SHAPE_BYTES_(x_bits, weight_bits, rows, columns, depth, stages, ...)   \
  (((rows) * (x_bits) + (columns) * (weight_bits)) * (depth) / 8 * (stages))
#define SHAPE_BYTES(...) SHAPE_BYTES_(__VA_ARGS__)

#define STATED_SHAPE_(name, rows, columns, depth, stages, warps_m, warps_n)    \
  STATED(name##_rows, rows);                                                   \
  STATED(name##_columns, columns);                                             \
  STATED(name##_threads, (warps_m) * (warps_n) * WARP)
#define STATED_SHAPE(...) STATED_SHAPE_(__VA_ARGS__)

#define MATRIX(w, s, o, n) {w, s, o, n}
#define NO_MATRIX MATRIX(0, 0, 0, 0)

// Defines what blocks of kernels with tiles of a shape do: `run`, which gets shared
// memory of `bytes`.
#define DEFINE_BLOCK(name, run, bytes, ...)                                    \
  STATED_SHAPE(name, __VA_ARGS__);                                             \
  SHARED_MEMORY uint4_t name##_memory[(bytes) / PIECE];                        \
  INLINE void name##_block(const void *x, const matrix matrices[MAX_MATRICES], \
                           const int count, int m, int k, int splits) {        \
    const shape s = {__VA_ARGS__};                                             \
    const product p = product_of_block(x, matrices, count, s, m, k, splits);   \
    run(s, &p, SHARED_ADDRESS(name##_memory));                                 \
  }

// Defines the kernels for one, two and three matrices without scales.
#define DEFINE_MATMUL(name, run, bytes, element, ...)                          \
  DEFINE_BLOCK(name, run, bytes, __VA_ARGS__)                                  \
  KERNEL cuda_matmul_##name##_1(const element *x, const element *w0,           \
                                float *out0, int n0, int m, int k,             \
                                int splits) {                                  \
    const matrix matrices[] = {MATRIX(w0, 0, out0, n0), NO_MATRIX, NO_MATRIX}; \
    name##_block(x, matrices, 1, m, k, splits);                                \
  }                                                                            \
  KERNEL cuda_matmul_##name##_2(const element *x, const element *w0,           \
                                const element *w1, float *out0, float *out1,   \
                                int n0, int n1, int m, int k, int splits) {    \
    const matrix matrices[] = {MATRIX(w0, 0, out0, n0),                        \
                               MATRIX(w1, 0, out1, n1), NO_MATRIX};            \
    name##_block(x, matrices, 2, m, k, splits);                                \
  }                                                                            \
  KERNEL cuda_matmul_##name##_3(                                               \
      const element *x, const element *w0, const element *w1,                  \
      const element *w2, float *out0, float *out1, float *out2, int n0,        \
      int n1, int n2, int m, int k, int splits) {                              \
    const matrix matrices[] = {MATRIX(w0, 0, out0, n0),                        \
                               MATRIX(w1, 0, out1, n1),                        \
                               MATRIX(w2, 0, out2, n2)};                       \
    name##_block(x, matrices, 3, m, k, splits);                                \
  }

#endif
