// Products of many rows with the experts of a mixture: see matmul.h.
//
//   tiles        [max_tiles][3]: which sorted rows are multiplied by which expert, see
//                route.c, for tiles of as many rows as the kernel's
//   row_tokens   [rows]: the row of x of each sorted row
//   weights      [experts][rows of an expert][k], quantized as in matvec.h
//   b            [experts][rows of an expert], of bias_type as in matvec.h
//   out          [rows][n], in sorted order
//
// Of a gated product, row i of the gate is row i * step of an expert, and that of up is
// row up + i * step. Others take rows of x in sorted order. Blocks are
// [tiles of n][max_tiles].
#ifndef KERNELS_CUDA_MATMUL_EXPERTS_H
#define KERNELS_CUDA_MATMUL_EXPERTS_H

#include "matmul.h"

typedef struct {
  const int32_t *tiles, *row_tokens;
  int rows, up, step, max_tiles; // rows of an expert
  const void *biases;
  int bias_type;
} expert_rows;

// Returns what is `rows` rows after a matrix' first.
INLINE const void *weights_after(weight_type type, const void *weights, index rows,
                                 int k) {
  return (const char *)weights + rows * weight_bytes(type, k);
}

INLINE const void *scales_after(weight_type type, const void *scales, index rows,
                                int k, const group_format *groups) {
  return type == WEIGHT_Q8   ? (const void *)((const float *)scales + rows)
         : type == WEIGHT_Q4 ? (const void *)((const uint16_t *)scales +
                                              rows * (k / GROUP))
         : is_grouped(type)  ? (const void *)((const uint32_t *)scales +
                                             rows * groups->row_words)
                             : scales;
}

// Returns the work of a block, whose tile has rows.
INLINE product product_of_expert(weight_type type, const void *x, matrix of,
                                 const expert_rows *by, int k,
                                 group_format groups) {
  const int block = (int)block_idx();
  const int32_t *tile = by->tiles + 3 * (block % by->max_tiles);
  const index before = (index)tile[0] * by->rows;
  return (product){
      .x = x,
      .weights = weights_after(type, of.weights, before, k),
      .scales = scales_after(type, of.scales, before, k, &groups),
      .out = of.out,
      .m = tile[2],
      .n = of.n,
      .k = k,
      .splits = 1,
      .step = by->step,
      .biases = {by->bias_type == NO_BIAS ? 0 : by->biases,
                 (element_type)by->bias_type, before, by->step},
      .first_row = tile[1],
      .tile_n = block / by->max_tiles,
      .row_numbers = by->row_tokens,
      .groups = groups,
  };
}

// Returns the same of a gate and of up.
INLINE product gated_product_of_expert(weight_type type, const void *x, matrix gate,
                                       const expert_rows *by, int k,
                                       gated_result result, group_format groups) {
  gate.n *= 2;
  product p = product_of_expert(type, x, gate, by, k, groups);
  p.is_gated = 1;
  p.gated = result;
  p.gated.up_weights = weights_after(type, p.weights, by->up, k);
  p.gated.up_scales = scales_after(type, p.scales, by->up, k, &groups);
  p.gated.up_biases = p.biases;
  p.gated.up_biases.first += by->up;
  return p;
}

INLINE int has_rows(const expert_rows *by) {
  return by->tiles[3 * ((int)block_idx() % by->max_tiles)] >= 0;
}

#define PLAIN_WEIGHTS(element) const element *w
#define SCALED_WEIGHTS(element, scale) const element *w, const scale *s

// Defines the kernels of a shape. `operands` are the parameters for weights, of which `of`
// makes a matrix. `more` are parameters after all others, from which `format_of` makes a format.
#define DEFINE_EXPERTS(name, type, run, bytes, element, operands, of, more,    \
                       format_of, ...)                                         \
  STATED_SHAPE(name, __VA_ARGS__);                                             \
  SHARED_MEMORY uint4_t name##_memory[(bytes) / PIECE];                        \
  KERNEL cuda_matmul_experts_##name(                                           \
      const element *x, operands, const void *b, const int32_t *tiles,         \
      float *out, int n, int max_tiles, int k, int bias_type more) {           \
    const shape shape = {__VA_ARGS__};                                         \
    const expert_rows by = {tiles, 0, n, 0, 1, max_tiles, b, bias_type};       \
    if (!has_rows(&by))                                                        \
      return;                                                                  \
    const matrix m = of(out, n);                                               \
    const product p =                                                          \
        product_of_expert(type, x, m, &by, k, (group_format)format_of(type, k));\
    run(shape, &p, ADDRESS_OF(name##_memory));                                 \
  }                                                                            \
  KERNEL cuda_matmul_experts_gated_##name(                                     \
      const element *x, operands, const void *b, const int32_t *tiles,         \
      const int32_t *row_tokens, element *out, int n, int rows, int up,        \
      int step, int max_tiles, int k, int bias_type, int activation,           \
      uint32_t steepness, uint32_t limit, uint32_t up_offset more) {           \
    const shape shape = {__VA_ARGS__};                                         \
    const expert_rows by = {tiles, row_tokens, rows, up,                       \
                            step,  max_tiles,  b,    bias_type};               \
    if (!has_rows(&by))                                                        \
      return;                                                                  \
    const matrix gate = of(0, n);                                              \
    const product p = gated_product_of_expert(                                 \
        type, x, gate, &by, k, GATED_RESULT(0, 0, 0, out),                     \
        (group_format)format_of(type, k));                                     \
    run(shape, &p, ADDRESS_OF(name##_memory));                                 \
  }

#define PLAIN_MATRIX(out, n) MATRIX(w, 0, 0, out, n)
#define SCALED_MATRIX(out, n) MATRIX(w, s, 0, out, n)

#endif
