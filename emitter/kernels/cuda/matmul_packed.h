// Products of many rows in bf16 with quantized weights, on tensor cores: see matmul.h.
//
// Weights are whole numbers of at most 8 bits, which bf16 has exactly. They stay packed
// in shared memory, and lanes turn them into bf16 between loading and multiplying.
//
// Instructions compute the transposed result: weights are their first operand, of 16
// outputs, and x is their second one, of 8 rows. So a lane's elements of x are
// consecutive registers when they are loaded.
//
// A lane's four consecutive bytes of 16 are four consecutive inputs: of Q8, or of Q4's
// low or high halves. An instruction wants inputs 2 l, 2 l + 1, 2 l + 8 and 2 l + 9
// from lane l of four. As the order of inputs in a sum does not matter, it gets inputs
// 4 l to 4 l + 3, in x as well as in the weights.
#ifndef KERNELS_CUDA_MATMUL_PACKED_H
#define KERNELS_CUDA_MATMUL_PACKED_H

#include "matmul.h"

enum {
  STEPS = GROUP / FRAGMENT, // instructions for a group
  ROWS = 8,                 // of x, of an instruction
  MAX_OUTPUT_TILES = 4,     // of 16 outputs of a warp
  MAX_ROW_TILES = 16,       // of ROWS of a warp
  SCALE_STAGES = 2,         // of Q4's scales
};

#define BF16_ONE 0x3f803f80u
#define BF16_MINUS_ONE 0xbf80bf80u
#define BF16_MINUS_136 0xc308c308u
#define BF16_MINUS_144 0xc310c310u
#define BF16_MINUS_160 0xc320c320u

typedef float transposed_sums[MAX_OUTPUT_TILES][MAX_ROW_TILES][4];

// ---------------------------------------------------------------- operands

// Constants for unpacking. Were they known to be constant, ptxas would copy them to
// registers before each use: so they depend on k, although it is a multiple of 32.
typedef struct {
  uint32_t exponents, minus; // 128, and what is subtracted from unsigned codes
} constants;

INLINE constants constants_of(weight_type type, const product *p) {
  const uint32_t zero = (uint32_t)p->k * (uint32_t)thread_idx() & 1;
  const uint32_t minus = type == WEIGHT_G5   ? BF16_MINUS_144
                         : type == WEIGHT_G6 ? BF16_MINUS_160
                                             : BF16_MINUS_136;
  return (constants){0x43434343u ^ zero, minus ^ zero};
}

// Puts bytes 0x43 over two bytes: a bf16 of 128 and the lowest 7 bits.
INLINE uint32_t spread_lower(const constants *c, uint32_t bytes) {
  return permute_bytes(bytes, c->exponents, 0x4140);
}

INLINE uint32_t spread_upper(const constants *c, uint32_t bytes) {
  return permute_bytes(bytes, c->exponents, 0x4342);
}

// Returns two signed bytes, spread, as bf16: (128 + lowest bits) - (128 or 256).
INLINE uint32_t from_signed(uint32_t spread) {
  return fma_bf16x2(spread & 0x43804380u, BF16_MINUS_ONE, spread & 0x437f437fu);
}

// Turns four signed bytes into bf16.
INLINE void unpack_signed(const constants *c, uint32_t bytes, uint32_t *first,
                          uint32_t *second) {
  *first = from_signed(spread_lower(c, bytes));
  *second = from_signed(spread_upper(c, bytes));
}

// Turns four unsigned codes, less their middle, into bf16.
INLINE void unpack_unsigned(const constants *c, uint32_t codes, uint32_t *first,
                            uint32_t *second) {
  *first = fma_bf16x2(spread_lower(c, codes), BF16_ONE, c->minus);
  *second = fma_bf16x2(spread_upper(c, codes), BF16_ONE, c->minus);
}

// Turns a lane's weights for one of the instructions of a group into bf16.
INLINE void unpack(weight_type type, const constants *c, uint32_t word,
                   const int step, uint32_t *first, uint32_t *second) {
  if (type == WEIGHT_Q8)
    unpack_signed(c, word, first, second);
  else
    unpack_unsigned(c, word >> 4 * step & 0x0f0f0f0fu, first, second);
}

// Loads a lane's part of x for an instruction, of all its rows.
INLINE void load_x(shape s, shared_address stage, const int step,
                   uint2_t x[MAX_ROW_TILES]) {
  const int row_bytes = GROUP * 2;
  const int lane = (int)thread_idx() % WARP, warp = (int)thread_idx() / WARP;
  const int row = warp / s.warps_n * (s.rows / s.warps_m) + lane / 4;
  const int piece = (step * 2 + lane % 4 / 2) ^ swizzle(lane / 4, row_bytes);
  const shared_address from =
      stage + row * row_bytes + piece * PIECE + lane % 2 * 8;
  UNROLL for (int j = 0; j < s.rows / s.warps_m / ROWS; ++j)
    x[j] = load_shared_8(from + j * ROWS * row_bytes);
}

// Loads a lane's packed weights of a group. For 16 outputs, Q8 has four words: both
// steps of output lane / 4, then of the one 8 after it. Q4 has a word for each.
INLINE void load_packed(weight_type type, shape s, shared_address stage,
                        uint32_t words[MAX_OUTPUT_TILES][4]) {
  const int row_bytes = weight_bytes(type, GROUP);
  const int outputs = type == WEIGHT_Q8 ? 16 : 32; // of four matrices
  const int lane = (int)thread_idx() % WARP, warp = (int)thread_idx() / WARP;
  const int columns = s.columns / s.warps_n;
  const int row = type == WEIGHT_Q8 ? lane / 16 * 8 + lane % 8 : lane;
  const int piece =
      type == WEIGHT_Q8 ? (lane / 8 % 2) ^ swizzle(row, row_bytes) : 0;
  const shared_address from = stage + s.rows * GROUP * 2 +
                              (warp % s.warps_n * columns + row) * row_bytes +
                              piece * PIECE;
  UNROLL for (int i = 0; i < columns / outputs; ++i)
    ldmatrix_x4(words[i], from + i * outputs * row_bytes);
}

// ------------------------------------------------------------- Q4's scales

// A thread's output of a tile, whose scales it passes on to all.
typedef struct {
  const uint16_t *from;
  shared_address to;
  int is_needed, columns;
  float next; // scale of the step after the one that is being computed
} scale_copy;

INLINE scale_copy copy_of_scales(shape s, const product *p, const part *of,
                                 shared_address memory) {
  const int thread = (int)thread_idx();
  const int column = min_int(of->column + thread, p->n - 1);
  const int own = p->is_gated ? row_of_pair(column) : column;
  const uint16_t *scales =
      p->is_gated && is_of_up(column) ? p->gated.up_scales : p->scales;
  return (scale_copy){
      .from = scales + (index)own * p->step * (p->k / GROUP),
      .to = memory + thread * 4,
      .is_needed = thread < s.columns,
      .columns = s.columns,
  };
}

INLINE float load_scale(const scale_copy *c, int step, int end) {
  return c->is_needed && step < end ? float_from_f16(c->from[step]) : 0.0f;
}

// Others see the scale after the next barrier.
INLINE void share_scale(const scale_copy *c, int step, float scale) {
  if (c->is_needed)
    store_shared_4(c->to + step % SCALE_STAGES * c->columns * 4, bits_of(scale));
}

// ---------------------------------------------------------------- products

// Multiplies the tiles of a group. `scales` are this lane's first of Q4.
INLINE void multiply_group(weight_type type, shape s, const constants *c,
                           shared_address stage, shared_address scales,
                           transposed_sums sums) {
  uint32_t words[MAX_OUTPUT_TILES][4];
  uint2_t x[STEPS][MAX_ROW_TILES];
  load_packed(type, s, stage, words);
  UNROLL for (int step = 0; step < STEPS; ++step)
    load_x(s, stage, step, x[step]);
  UNROLL for (int i = 0; i < s.columns / s.warps_n / 16; ++i) {
    uint32_t weights[STEPS][4];
    float scale[2];
    UNROLL for (int half = 0; half < 2; ++half) {
      UNROLL for (int step = 0; step < STEPS; ++step)
        unpack(type, c,
               type == WEIGHT_Q8 ? words[i][half * 2 + step]
                                 : words[i / 2][i % 2 * 2 + half],
               step, &weights[step][half], &weights[step][half + 2]);
      if (type == WEIGHT_Q4)
        scale[half] = float_of(load_shared_4(scales + (i * 16 + half * 8) * 4));
    }
    UNROLL for (int j = 0; j < s.rows / s.warps_m / ROWS; ++j) {
      float group[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      UNROLL for (int step = 0; step < STEPS; ++step) {
        const uint32_t pairs[2] = {x[step][j][0], x[step][j][1]};
        mma_bf16(type == WEIGHT_Q4 ? group : sums[i][j], weights[step], pairs);
      }
      if (type == WEIGHT_Q4)
        UNROLL for (int e = 0; e < 4; ++e)
          sums[i][j][e] =
              __builtin_fmaf(group[e], scale[e / 2], sums[i][j][e]);
    }
  }
}

// Writes a warp's sums, of Q8 multiplied by the scales of their outputs.
INLINE void store_transposed(weight_type type, shape s, const product *p,
                             const part *of, transposed_sums sums) {
  const int lane = (int)thread_idx() % WARP, warp = (int)thread_idx() / WARP;
  const int rows = s.rows / s.warps_m, columns = s.columns / s.warps_n;
  const int first_row = of->row + warp / s.warps_n * rows + lane % 4 * 2;
  const int first_column = of->column + warp % s.warps_n * columns + lane / 4;
  UNROLL for (int i = 0; i < columns / 8; ++i) {
    const int column = first_column + i * 8;
    if (column < p->n) {
      const float scale =
          type == WEIGHT_Q8 ? ((const float *)p->scales)[column] : 1.0f;
      const float bias = load_bias(&p->biases, column, p->n);
      UNROLL for (int j = 0; j < rows / ROWS; ++j)
        UNROLL for (int e = 0; e < 2; ++e) {
          const int row = first_row + j * ROWS + e;
          if (row < p->m)
            of->out[(index)row * p->n + column] =
                add_bias(&p->biases, sums[i / 2][j][i % 2 * 2 + e] * scale, bias);
        }
    }
  }
}

// Writes a warp's outputs of a gated product, in a loop as in matmul_halves.h. Of a
// tile's 16 outputs, eight are up's.
INLINE void store_gated_transposed(weight_type type, shape s, const product *p,
                                   const part *of, transposed_sums sums) {
  const int lane = (int)thread_idx() % WARP, warp = (int)thread_idx() / WARP;
  const int rows = s.rows / s.warps_m, count = rows / ROWS * 2, n = p->n / 2;
  const int columns = s.columns / s.warps_n / 2, tiles = columns / OUTPUTS;
  const int first_row = of->row + warp / s.warps_n * rows + lane % 4 * 2;
  int column = of->column / 2 + warp % s.warps_n * columns + lane / 4;
#pragma clang loop unroll(disable)
  for (int i = 0; i < tiles; ++i, column += OUTPUTS) {
    const int has_scale = type == WEIGHT_Q8 && column < n;
    const int at = column * p->step;
    const float scale = has_scale ? ((const float *)p->scales)[at] : 1.0f;
    const float up_scale =
        has_scale ? ((const float *)p->gated.up_scales)[at] : 1.0f;
    const float bias = load_bias(&p->biases, column, n);
    const float up_bias = load_bias(&p->gated.up_biases, column, n);
    float gates[MAX_ROW_TILES * 2], ups[MAX_ROW_TILES * 2];
    UNROLL for (int j = 0; j < count; ++j) {
      gates[j] = add_bias(&p->biases, sums[0][j / 2][j % 2] * scale, bias);
      ups[j] = add_bias(&p->gated.up_biases, sums[0][j / 2][j % 2 + 2] * up_scale,
                        up_bias);
    }
    multiply_gates(&p->gated.by, gates, ups, count);
    UNROLL for (int j = 0; j < count; ++j) {
      const int row = first_row + j / 2 * ROWS + j % 2;
      if (row < p->m && column < n)
        ((uint16_t *)p->gated.out)[(index)row * n + column] =
            (uint16_t)pack_bf16(gates[j], 0.0f);
    }
    UNROLL for (int next = 1; next < tiles; ++next)
      UNROLL for (int j = 0; j < count * 2; ++j)
        sums[next - 1][j / 4][j % 4] = sums[next][j / 4][j % 4];
  }
}

// Computes what one block does, with quantized weights. The depth is a group.
INLINE void multiply_packed(weight_type type, shape s, const product *p,
                            shared_address memory, shared_address scale_memory) {
  const part of = part_of_block(p, s);
  const constants c = constants_of(type, p);
  const int lane = (int)thread_idx() % WARP, warp = (int)thread_idx() / WARP;
  const int is_q4 = type == WEIGHT_Q4;
  const shared_address lane_scales =
      scale_memory + (warp % s.warps_n * (s.columns / s.warps_n) + lane / 4) * 4;
  ring r = ring_of(type, s, p, &of, memory);
  scale_copy scales = copy_of_scales(s, p, &of, scale_memory);
  transposed_sums sums;
  UNROLL for (int i = 0; i < s.columns / s.warps_n / 16; ++i)
    UNROLL for (int j = 0; j < s.rows / s.warps_m / ROWS; ++j)
      UNROLL for (int e = 0; e < 4; ++e)
        sums[i][j][e] = 0.0f;
  UNROLL for (int stage = 0; stage < s.stages - 1; ++stage)
    fill_stage(type, s, &r, of.begin + stage);
  if (is_q4) {
    share_scale(&scales, of.begin, load_scale(&scales, of.begin, of.end));
    scales.next = load_scale(&scales, of.begin + 1, of.end);
  }
  int from = 0;
  for (int step = of.begin; step < of.end; ++step) {
    cp_async_wait(s.stages - 2);
    syncthreads();
    fill_stage(type, s, &r, step + s.stages - 1);
    if (is_q4) {
      share_scale(&scales, step + 1, scales.next);
      scales.next = load_scale(&scales, step + 2, of.end);
    }
    multiply_group(type, s, &c, memory + from,
                   lane_scales + step % SCALE_STAGES * s.columns * 4, sums);
    from = next_stage(&r, from);
  }
  if (p->is_gated)
    store_gated_transposed(type, s, p, &of, sums);
  else
    store_transposed(type, s, p, &of, sums);
}

INLINE void multiply_q8(shape s, const product *p, shared_address memory) {
  multiply_packed(WEIGHT_Q8, s, p, memory, memory);
}

// The scales follow the stages.
INLINE void multiply_q4(shape s, const product *p, shared_address memory) {
  const int bytes = s.stages * GROUP * (s.rows * 2 + s.columns / 2);
  multiply_packed(WEIGHT_Q4, s, p, memory, memory + bytes);
}

// Defines the kernels for one, two and three matrices with scales, and for gated
// products. `more` are parameters after all others, from which `groups` is made.
#define DEFINE_SCALED_MATMUL(name, run, bytes, element, scale, more, groups, ...)\
  DEFINE_BLOCK(name, run, bytes, __VA_ARGS__)                                  \
  KERNEL cuda_matmul_##name##_1(const uint16_t *x, const element *w0,          \
                                const scale *s0, const void *b0, float *out0,  \
                                int n0, NUMBERS more) {                        \
    const matrix matrices[] = {MATRIX(w0, s0, b0, out0, n0), NO_MATRIX,        \
                               NO_MATRIX};                                     \
    name##_block(x, matrices, 1, m, k, splits, bias_type,                      \
                 (group_format)groups);                                        \
  }                                                                            \
  KERNEL cuda_matmul_##name##_2(                                               \
      const uint16_t *x, const element *w0, const scale *s0, const void *b0,   \
      const element *w1, const scale *s1, const void *b1, float *out0,         \
      float *out1, int n0, int n1, NUMBERS more) {                             \
    const matrix matrices[] = {MATRIX(w0, s0, b0, out0, n0),                   \
                               MATRIX(w1, s1, b1, out1, n1), NO_MATRIX};       \
    name##_block(x, matrices, 2, m, k, splits, bias_type,                      \
                 (group_format)groups);                                        \
  }                                                                            \
  KERNEL cuda_matmul_##name##_3(                                               \
      const uint16_t *x, const element *w0, const scale *s0, const void *b0,   \
      const element *w1, const scale *s1, const void *b1, const element *w2,   \
      const scale *s2, const void *b2, float *out0, float *out1, float *out2,  \
      int n0, int n1, int n2, NUMBERS more) {                                  \
    const matrix matrices[] = {MATRIX(w0, s0, b0, out0, n0),                   \
                               MATRIX(w1, s1, b1, out1, n1),                   \
                               MATRIX(w2, s2, b2, out2, n2)};                  \
    name##_block(x, matrices, 3, m, k, splits, bias_type,                      \
                 (group_format)groups);                                        \
  }                                                                            \
  KERNEL cuda_matmul_gated_##name(                                             \
      const uint16_t *x, const element *w0, const scale *s0, const void *b0,   \
      const element *w1, const scale *s1, const void *b1, uint16_t *out,       \
      GATED_NUMBERS more) {                                                    \
    const matrix gate = MATRIX(w0, s0, b0, 0, n);                              \
    name##_gated_block(x, gate, GATED_RESULT(w1, s1, b1, out), m, k,           \
                       bias_type, (group_format)groups);                       \
  }

#define SHAPE_COLUMNS_(rows, columns, ...) (columns)
#define SHAPE_COLUMNS(...) SHAPE_COLUMNS_(__VA_ARGS__)

#define DEFINE_MATMUL_Q8(name, ...)                                            \
  REQUIRE_PAIRS(8, __VA_ARGS__);                                               \
  DEFINE_SCALED_MATMUL(name, multiply_q8, SHAPE_BYTES(16, 8, __VA_ARGS__),     \
                       int8_t, float, SCALED_NUMBERS,                          \
                       SCALED_FORMAT(, k), __VA_ARGS__)
#define DEFINE_MATMUL_Q4(name, ...)                                            \
  REQUIRE_PAIRS(4, __VA_ARGS__);                                               \
  DEFINE_SCALED_MATMUL(name, multiply_q4,                                      \
                       SHAPE_BYTES(16, 4, __VA_ARGS__) +                       \
                           SCALE_STAGES * SHAPE_COLUMNS(__VA_ARGS__) * 4,      \
                       uint8_t, uint16_t, SCALED_NUMBERS,                      \
                       SCALED_FORMAT(, k), __VA_ARGS__)

#endif
