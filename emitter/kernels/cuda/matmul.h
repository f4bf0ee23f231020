// Products of many rows on NVIDIA GPUs, with tensor cores.
//
//   x        [m][k], in bf16 or f16 (for Q8 and Q4: bf16), or in f32
//   weights  [n][k], in the type of x, in the checkpoint's layout; or quantized as in
//            matvec.h
//   out      [splits][m][n], in f32: sums over one of `splits` equal parts of k, which
//            matmul_sum.c adds in order
//   biases   [n], of bias_type as in matvec.h: the first part of k has them in its sums
//
// Up to three matrices of weights share x, and have each their own out. k is a multiple
// of 32, and n of 8 unless weights are packed, in one part and without a gate.
//
// Gated products have two matrices, a gate's and up's, of [n][k] both, and a result
// [m][n] in the type of x, which activation.h makes of both products. They are computed
// as one matrix of 2n rows, which are eight of the gate and eight of up in turn. So a
// thread has both products of an output. There are no parts of k.
//
// A block computes a tile of the result. It copies
// tiles of x and of the weights to shared memory, some steps ahead of the one that it
// multiplies. Blocks are [splits][tiles of n of all matrices][tiles of m], so that those
// which run at the same time share weights in the L2 cache.
#ifndef KERNELS_CUDA_MATMUL_H
#define KERNELS_CUDA_MATMUL_H

#include "activation.h"
#include "groups.h"
#include "tensor_cores.h"

enum {
  PIECE = 16,       // bytes that a copy has
  FRAGMENT = 16,    // rows of x, and inputs, of an instruction
  OUTPUTS = 8,      // of an instruction
  MAX_MATRICES = 3,
  MAX_COPIES = 16,  // of a thread, for one step of one tile
};

// How a kernel divides its work. All are constants.
typedef struct {
  int rows, columns;           // of a block's tile of the result
  int depth;                   // inputs of a step
  int stages;                  // steps in shared memory
  int warps_m, warps_n;        // that share a tile's rows and its columns
} shape;

typedef struct {
  const void *weights, *scales, *biases;
  float *out;
  int n;
} matrix;

// Biases: output i has element first + i * step of the table.
typedef struct {
  const void *table; // null if there are none
  element_type type;
  index first;
  int step;
} biases;

// What a gated product has besides the gate's matrix.
typedef struct {
  const void *up_weights, *up_scales;
  void *out;
  gating by;
  biases up_biases;
} gated_result;

// The product by the matrix that a block works on.
typedef struct {
  const void *x, *weights, *scales;
  float *out;
  int m, n, k, splits;
  int first_row, tile_n, split;
  int step; // rows of weights, and scales, from one output to the next
  biases biases;
  const int32_t *row_numbers; // of x in each row of the result; null if the same
  int is_gated; // constant; then n is the rows of both matrices, and out is not used
  gated_result gated;
  group_format groups;
} product;

// What a block computes.
typedef struct {
  int row, column; // the tile's first
  int begin, end;  // steps
  float *out;      // of its part of k
} part;

INLINE int weight_bytes(weight_type type, int inputs) {
  switch (type) {
  case WEIGHT_F32: return inputs * 4;
  case WEIGHT_BF16:
  case WEIGHT_F16: return inputs * 2;
  case WEIGHT_Q8:
  case WEIGHT_G8:
  case WEIGHT_E4M3: return inputs;
  case WEIGHT_Q4:
  case WEIGHT_G4:
  case WEIGHT_G5:
  case WEIGHT_G6:
  case WEIGHT_F4: return inputs / 2;
  }
  return 0;
}

INLINE int x_bytes(weight_type type, int inputs) {
  return inputs * (type == WEIGHT_F32 ? 4 : 2);
}

INLINE int ceiling(int a, int b) { return (a + b - 1) / b; }

INLINE int threads_of(shape s) { return s.warps_m * s.warps_n * WARP; }

// Returns the biases of a matrix, which a part of k adds to its sums.
INLINE biases biases_of(const matrix *of, int bias_type, int split) {
  const int has_biases = bias_type != NO_BIAS && split == 0;
  return (biases){has_biases ? of->biases : 0, (element_type)bias_type, 0, 1};
}

INLINE product product_of_block(const void *x, const matrix matrices[MAX_MATRICES],
                                const int count, shape s, int m, int k,
                                int splits, int bias_type) {
  const int tiles_m = ceiling(m, s.rows), block = (int)block_idx();
  int tiles = 0;
  UNROLL for (int i = 0; i < count; ++i)
    tiles += ceiling(matrices[i].n, s.columns);
  product p = {
      .x = x,
      .m = m,
      .k = k,
      .splits = splits,
      .first_row = block % tiles_m * s.rows,
      .tile_n = block / tiles_m % tiles,
      .split = block / tiles_m / tiles,
      .step = 1,
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
      p.biases = biases_of(of, bias_type, p.split);
    }
    p.tile_n -= found ? 0 : own;
  }
  return p;
}

// Returns the product of the only matrix, for the gate, and up's.
INLINE product gated_product_of_block(const void *x, matrix gate, gated_result result,
                                      shape s, int m, int k, int bias_type) {
  gate.n *= 2;
  const matrix matrices[MAX_MATRICES] = {gate};
  product p = product_of_block(x, matrices, 1, s, m, k, 1, bias_type);
  p.is_gated = 1;
  p.gated = result;
  return p;
}

INLINE part part_of_block(const product *p, shape s) {
  const int steps = ceiling(p->k, s.depth), share = ceiling(steps, p->splits);
  return (part){
      .row = p->first_row,
      .column = p->tile_n * s.columns,
      .begin = min_int(p->split * share, steps),
      .end = min_int(p->split * share + share, steps),
      .out = p->out + (index)p->split * p->m * p->n,
  };
}

// Returns which row of its own matrix a row of both is.
INLINE int row_of_pair(int row) {
  return row / (2 * OUTPUTS) * OUTPUTS + row % OUTPUTS;
}

// Returns whether a row of both is up's.
INLINE int is_of_up(int row) { return row / OUTPUTS % 2; }

// Loads the bias of one of a result's outputs, of which there are `outputs`. Past them,
// and without biases, it is zero.
INLINE float load_bias(const biases *b, int output, int outputs) {
  return b->table && output < outputs
             ? load_element(b->table, b->type, b->first + (index)output * b->step)
             : 0.0f;
}

// Adds what load_bias() returned.
INLINE float add_bias(const biases *b, float x, float bias) {
  return b->table ? x + bias : x;
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

// Rows in global memory: of a matrix, or of the two of a gated product in turn.
typedef struct {
  const void *matrix, *up;
  int is_gated;      // constant: whether there is up
  int stride, count; // bytes from a row to the next, and rows of all
  const int32_t *numbers; // of rows, or null
} row_source;

INLINE row_source x_rows(weight_type type, const product *p) {
  return (row_source){p->x, 0, 0, x_bytes(type, p->k), p->m, p->row_numbers};
}

INLINE row_source weight_rows(weight_type type, const product *p) {
  return (row_source){p->weights, p->gated.up_weights, p->is_gated,
                      weight_bytes(type, p->k) * p->step, p->n, 0};
}

// Past a matrix' last row, that row is copied again. Of two matrices, a thread copies
// rows of one: see REQUIRE_PAIRS.
INLINE tile_copy copy_of_tile(row_source of, int first, const int rows,
                              const int row_bytes, const int threads) {
  const int pieces = row_bytes / PIECE, thread = (int)thread_idx();
  const int row = thread / pieces, piece = thread % pieces;
  const int matrices = of.is_gated ? 2 : 1, apart = threads / pieces / matrices;
  const int own_row = of.is_gated ? row_of_pair(row) : row;
  const char *matrix = of.is_gated && is_of_up(row) ? of.up : of.matrix;
  first /= matrices;
  const int last = of.count / matrices - 1 - first;
  tile_copy copy = {
      .from = matrix + (of.numbers ? 0 : (index)first * of.stride) + piece * PIECE,
      .place = row * row_bytes + (piece ^ swizzle(row, row_bytes)) * PIECE,
  };
  UNROLL for (int i = 0; i < ceiling(rows * pieces, threads); ++i) {
    const int at = min_int(own_row + i * apart, last);
    copy.offsets[i] = (uint32_t)((of.numbers ? of.numbers[first + at] : at) * of.stride);
  }
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
        cp_async_16_of_128(place, there ? from + copy->offsets[i] : copy->from,
                   there ? PIECE : 0);
      else
        cp_async_16_of_128_all(place, from + copy->offsets[i]);
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
      .x = copy_of_tile(x_rows(type, p), of->row, s.rows, x_row, threads),
      .weights =
          copy_of_tile(weight_rows(type, p), of->column, s.columns, row, threads),
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
  cp_async_commit();
  r->to = next_stage(r, r->to);
}

// ---------------------------------------------------------------- kernels

// Returns the bytes of all stages of a shape, where x and weights have so many bits
// per input.
#define SHAPE_BYTES_(x_bits, weight_bits, rows, columns, depth, stages, ...)   \
  (((rows) * (x_bits) + (columns) * (weight_bits)) * (depth) / 8 * (stages))
#define SHAPE_BYTES(...) SHAPE_BYTES_(__VA_ARGS__)

// Requires that a shape fits gated products: the rows of a tile of weights that a thread
// copies are a multiple of 16 apart, and so of one matrix, and a warp has both products
// of an output. Weights have so many bits.
#define REQUIRE_PAIRS_(bits, rows, columns, depth, stages, warps_m, warps_n)   \
  _Static_assert((warps_m) * (warps_n) * WARP * PIECE * 8 /                    \
                             ((bits) * (depth)) % 16 == 0 &&                   \
                     (columns) / (warps_n) % 16 == 0,                          \
                 "the shape does not fit gated products")
#define REQUIRE_PAIRS(...) REQUIRE_PAIRS_(__VA_ARGS__)

#define STATED_SHAPE_(name, rows, columns, depth, stages, warps_m, warps_n)    \
  STATED(name##_rows, rows);                                                   \
  STATED(name##_columns, columns);                                             \
  STATED(name##_threads, (warps_m) * (warps_n) * WARP)
#define STATED_SHAPE(...) STATED_SHAPE_(__VA_ARGS__)

#define MATRIX(w, s, b, o, n) {w, s, b, o, n}
#define NO_MATRIX MATRIX(0, 0, 0, 0, 0)

// Defines what blocks of kernels with tiles of a shape do: `run`, which gets shared
// memory of `bytes`.
#define DEFINE_BLOCK(name, run, bytes, ...)                                    \
  STATED_SHAPE(name, __VA_ARGS__);                                             \
  SHARED_MEMORY uint4_t name##_memory[(bytes) / PIECE];                        \
  INLINE void name##_block(const void *x, const matrix matrices[MAX_MATRICES], \
                           const int count, int m, int k, int splits,          \
                           int bias_type, group_format groups) {               \
    const shape s = {__VA_ARGS__};                                             \
    product p =                                                                \
        product_of_block(x, matrices, count, s, m, k, splits, bias_type);      \
    p.groups = groups;                                                         \
    run(s, &p, ADDRESS_OF(name##_memory));                                     \
  }                                                                            \
  INLINE void name##_gated_block(const void *x, matrix gate,                   \
                                 gated_result result, int m, int k,            \
                                 int bias_type, group_format groups) {         \
    const shape s = {__VA_ARGS__};                                             \
    product p =                                                                \
        gated_product_of_block(x, gate, result, s, m, k, bias_type);           \
    p.groups = groups;                                                         \
    run(s, &p, ADDRESS_OF(name##_memory));                                     \
  }

// The numbers of products and of gated ones, and what the latter say: floats are their
// bits.
#define NUMBERS int m, int k, int splits, int bias_type
#define GATED_NUMBERS                                                          \
  int n, int m, int k, int bias_type, int activation, uint32_t steepness,      \
      uint32_t limit, uint32_t up_offset
#define GATED_RESULT(w, s, b, out)                                             \
  (gated_result) {                                                             \
    .up_weights = w, .up_scales = s, .out = out, .by = {                       \
      {(activation_kind)activation, float_of(steepness)},                      \
      float_of(limit),                                                         \
      float_of(up_offset)                                                      \
    },                                                                         \
    .up_biases = {bias_type == NO_BIAS ? 0 : (const void *)(b),                \
                  (element_type)bias_type, 0, 1}                               \
  }

// Defines the kernels for one, two and three matrices without scales, and for gated
// products.
#define DEFINE_MATMUL(name, run, bytes, element, ...)                          \
  DEFINE_BLOCK(name, run, bytes, __VA_ARGS__)                                  \
  KERNEL cuda_matmul_##name##_1(const element *x, const element *w0,           \
                                const void *b0, float *out0, int n0,           \
                                NUMBERS) {                                     \
    const matrix matrices[] = {MATRIX(w0, 0, b0, out0, n0), NO_MATRIX,         \
                               NO_MATRIX};                                     \
    name##_block(x, matrices, 1, m, k, splits, bias_type,                      \
                 (group_format)NO_FORMAT);                                     \
  }                                                                            \
  KERNEL cuda_matmul_##name##_2(const element *x, const element *w0,           \
                                const void *b0, const element *w1,             \
                                const void *b1, float *out0, float *out1,      \
                                int n0, int n1, NUMBERS) {                     \
    const matrix matrices[] = {MATRIX(w0, 0, b0, out0, n0),                    \
                               MATRIX(w1, 0, b1, out1, n1), NO_MATRIX};        \
    name##_block(x, matrices, 2, m, k, splits, bias_type,                      \
                 (group_format)NO_FORMAT);                                     \
  }                                                                            \
  KERNEL cuda_matmul_##name##_3(                                               \
      const element *x, const element *w0, const void *b0, const element *w1,  \
      const void *b1, const element *w2, const void *b2, float *out0,          \
      float *out1, float *out2, int n0, int n1, int n2, NUMBERS) {             \
    const matrix matrices[] = {MATRIX(w0, 0, b0, out0, n0),                    \
                               MATRIX(w1, 0, b1, out1, n1),                    \
                               MATRIX(w2, 0, b2, out2, n2)};                   \
    name##_block(x, matrices, 3, m, k, splits, bias_type,                      \
                 (group_format)NO_FORMAT);                                     \
  }                                                                            \
  KERNEL cuda_matmul_gated_##name(                                             \
      const element *x, const element *w0, const void *b0, const element *w1,  \
      const void *b1, element *out, GATED_NUMBERS) {                           \
    const matrix gate = MATRIX(w0, 0, b0, 0, n);                               \
    name##_gated_block(x, gate, GATED_RESULT(w1, 0, b1, out), m, k,            \
                       bias_type, (group_format)NO_FORMAT);                    \
  }

#endif
