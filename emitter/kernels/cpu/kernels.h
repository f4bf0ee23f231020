// Entry points of the kernels for CPUs. Each file documents its arguments.
#ifndef KERNELS_CPU_KERNELS_H
#define KERNELS_CPU_KERNELS_H

#include "../common.h"
#include "../group_form.h"

// Element type of matmul_q8's activations. AVX2 multiplies 16-bit pairs (vpmaddwd),
// and the dot products of AVX-512 and NEON take bytes.
#if defined(__AVX512VNNI__) || \
    (!defined(__AVX2__) && defined(__ARM_FEATURE_DOTPROD))
typedef int8_t act_q8;
#else
typedef int16_t act_q8;
#endif

// Columns of a panel of weights in groups.
#if defined(__AVX512VNNI__)
#define GROUP_COLUMNS 16
#else
#define GROUP_COLUMNS 8
#endif

// Returns the rows of batch row b that are not padding. Rows of products are
// [batch][tokens]; those from lengths[b] on are padding, whose results are not written.
INLINE index real_rows(const int32_t *lengths, index b, index tokens) {
  return clamp_index(lengths[b], 0, tokens);
}

void quantize_rows(const float *x, act_q8 *q, float *scale, index k,
                   index row_begin, index row_end);

void quantize_groups(const float *x, int8_t *q, float *scale, int16_t *sums,
                     index k, index terms, index row_begin, index row_end);

// Quantizers of weights, by the type of what they read.
#define QUANTIZE_WEIGHTS(name, element)                                        \
  void quantize_superblocks_##name(                                            \
      const element *x, const float *importance, int8_t *codes,                \
      uint16_t *unit, uint16_t *least, int8_t *scales, int8_t *minima,         \
      index k, index bits, index row_begin, index row_end);                    \
  void quantize_halves_##name(const element *x, const float *importance,       \
                              int8_t *codes, uint16_t *unit, int8_t *scales,   \
                              index k, index row_begin, index row_end);

QUANTIZE_WEIGHTS(f32, float)
QUANTIZE_WEIGHTS(bf16, uint16_t)
QUANTIZE_WEIGHTS(f16, uint16_t)

// Packs weights into panels; panels.c documents the arguments.
void panels_f32(const void *w, void *out, index rows, index k, index begin,
                index end);
void panels_bf16(const void *w, void *out, index rows, index k, index begin,
                 index end);
void panels_f16(const void *w, void *out, index rows, index k, index begin,
                index end);
void panels_bf16_pairs(const void *w, void *out, index rows, index k,
                       index begin, index end);

// Factors the moments of a layer's inputs, and rounds its weights by the factor.
// compensate.h documents the arguments.
#define COMPENSATE_READ                                                        \
  const float *w, const float *factor, const float *pivots

void factor_moments(const float *moments, float *factor, float *pivots,
                    float *scaled, index k, index damping, index begin,
                    index end);
void compensate_superblocks(COMPENSATE_READ, int8_t *codes, uint16_t *unit,
                            uint16_t *least, int8_t *scales, int8_t *minima,
                            float *errors, index n, index k, index bits,
                            index begin, index end);
void compensate_halves(COMPENSATE_READ, int8_t *codes, uint16_t *unit,
                       int8_t *scales, float *errors, index n, index k,
                       index begin, index end);

void matmul_q8(const int8_t *w, const float *w_scale, const act_q8 *a,
               const float *a_scale, const int32_t *lengths, float *out,
               index batch, index tokens, index n, index k, index panel_begin,
               index panel_end);

// Products with weights in groups; matmul_groups.h documents the arguments.
#define GROUPS_OPERANDS                                                        \
  const uint8_t *w, const uint8_t *w_scale, const int8_t *a,                   \
      const float *a_scale, const int16_t *a_sums
#define GROUPS_SIZES index group, index scale_type
#define MATMUL_GROUPS_OF(name)                                                 \
  void matmul_##name(GROUPS_OPERANDS, const int32_t *lengths, float *out,      \
                     index batch, index tokens, index n, index k,              \
                     GROUPS_SIZES, index terms, index begin, index end);       \
  void matmul_##name##_experts(                                                \
      GROUPS_OPERANDS, const int32_t *experts, const int32_t *begins,          \
      float *out, index n, index k, GROUPS_SIZES, index terms, index begin,    \
      index end);

MATMUL_GROUPS_OF(q2_zeros)
MATMUL_GROUPS_OF(q2_minima)
MATMUL_GROUPS_OF(q2_half_minima)
MATMUL_GROUPS_OF(q3_zeros)
MATMUL_GROUPS_OF(q3_minima)
MATMUL_GROUPS_OF(q3_halves)
MATMUL_GROUPS_OF(q4_symmetric)
MATMUL_GROUPS_OF(q4_zeros)
MATMUL_GROUPS_OF(q4_minima)
MATMUL_GROUPS_OF(q4_superblocks)
MATMUL_GROUPS_OF(q4_e2m1)
MATMUL_GROUPS_OF(q4_e2m1_halves)
MATMUL_GROUPS_OF(q4_iq4)
MATMUL_GROUPS_OF(q4_iq4_blocks)
MATMUL_GROUPS_OF(q5_symmetric)
MATMUL_GROUPS_OF(q5_minima)
MATMUL_GROUPS_OF(q5_superblocks)
MATMUL_GROUPS_OF(q6_minima)
MATMUL_GROUPS_OF(q6_halves)
MATMUL_GROUPS_OF(q8_symmetric)
MATMUL_GROUPS_OF(q8_zeros)
MATMUL_GROUPS_OF(q8_minima)

// Products with weights in floating-point numbers of 8 and 4 bits; float_codes.h
// documents the arguments.
void matmul_e4m3(const uint8_t *w, const uint8_t *w_scale, const float *a,
                 const int32_t *lengths, float *out, index batch, index tokens,
                 index n, index k, GROUPS_SIZES, index begin, index end);
void matmul_e4m3_experts(const uint8_t *w, const uint8_t *w_scale,
                         const float *a, const int32_t *experts,
                         const int32_t *begins, float *out, index n, index k,
                         GROUPS_SIZES, index begin, index end);
void matmul_e4m3_pairs(const uint8_t *w, const uint8_t *w_scale,
                       const uint16_t *a, const int32_t *lengths, float *out,
                       index batch, index tokens, index n, index k,
                       GROUPS_SIZES, index begin, index end);
void matmul_e4m3_pairs_experts(const uint8_t *w, const uint8_t *w_scale,
                               const uint16_t *a, const int32_t *experts,
                               const int32_t *begins, float *out, index n,
                               index k, GROUPS_SIZES, index begin, index end);

void matmul_f4(const uint8_t *w, const uint8_t *w_scale, const float *a,
               const int32_t *lengths, float *out, index batch, index tokens,
               index n, index k, GROUPS_SIZES, index list, index begin,
               index end);
void matmul_f4_experts(const uint8_t *w, const uint8_t *w_scale, const float *a,
                       const int32_t *experts, const int32_t *begins,
                       float *out, index n, index k, GROUPS_SIZES, index list,
                       index begin, index end);

void matmul_f32(const float *w, const float *a, const int32_t *lengths,
                float *out, index batch, index tokens, index n, index k,
                index panel_begin, index panel_end);
void matmul_bf16(const uint16_t *w, const float *a, const int32_t *lengths,
                 float *out, index batch, index tokens, index n, index k,
                 index panel_begin, index panel_end);
void matmul_f16(const uint16_t *w, const float *a, const int32_t *lengths,
                float *out, index batch, index tokens, index n, index k,
                index panel_begin, index panel_end);

void matmul_bf16_pairs(const uint16_t *w, const uint16_t *a,
                       const int32_t *lengths, float *out, index batch,
                       index tokens, index n, index k, index panel_begin,
                       index panel_end);

// Products of a mixture of experts. matmul.h documents the layout of rows.
#define EXPERTS                                                                \
  const int32_t *experts, const int32_t *begins, float *out, index n, index k, \
      index begin, index end

void matmul_q8_experts(const int8_t *w, const float *w_scale, const act_q8 *a,
                       const float *a_scale, EXPERTS);
void matmul_f32_experts(const float *w, const float *a, EXPERTS);
void matmul_bf16_experts(const uint16_t *w, const float *a, EXPERTS);
void matmul_f16_experts(const uint16_t *w, const float *a, EXPERTS);
void matmul_bf16_pairs_experts(const uint16_t *w, const uint16_t *a, EXPERTS);

// Products of a matrix that is stored as it is and a vector.
void product_of_rows(const float *a, const float *x, float *out, index rows,
                     index columns, index begin, index end);
void product_of_columns(const float *a, const float *x, float *out, index rows,
                        index columns, index begin, index end);

// Norms of rows, by the type of their weights.
#define NORM_PART index heads, index weights, index stride, index first
#define NORM_SIZES                                                             \
  index batch, index tokens, index width, index biased, index centered,        \
      index epsilon, index offset, index begin, index end

void norm_f32(const float *x, const float *weight, const float *bias,
              const int32_t *lengths, float *out, NORM_PART, NORM_SIZES);
void norm_bf16(const float *x, const uint16_t *weight, const uint16_t *bias,
               const int32_t *lengths, float *out, NORM_PART, NORM_SIZES);
void norm_f16(const float *x, const uint16_t *weight, const uint16_t *bias,
              const int32_t *lengths, float *out, NORM_PART, NORM_SIZES);

// The same after an addition, and quantized for the product that follows.
#define ADD_NORM_OPERANDS(element)                                             \
  const float *x, const float *y, const element *weight, const element *bias,  \
      const int32_t *lengths, float *sum, float *out
#define ADD_NORM_SIZES index scale, NORM_SIZES
#define ADD_NORMS(name, element)                                               \
  void add_norm_##name(ADD_NORM_OPERANDS(element), ADD_NORM_SIZES);            \
  void add_norm_q8_##name(ADD_NORM_OPERANDS(element), act_q8 *q,               \
                          float *q_scale, ADD_NORM_SIZES);                     \
  void add_norm_q4_##name(ADD_NORM_OPERANDS(element), int8_t *q,               \
                          float *q_scale, int16_t *q_sums, index terms,        \
                          ADD_NORM_SIZES);

ADD_NORMS(f32, float)
ADD_NORMS(bf16, uint16_t)
ADD_NORMS(f16, uint16_t)

// Activations of rows.
#define ACTIVATE_SIZES                                                         \
  index batch, index tokens, index width, index chunk, index kind,             \
      index steepness, index begin, index end

void activate(const float *x, const int32_t *lengths, float *out, index stride,
              index first, ACTIVATE_SIZES);

#define GATED_OPERANDS                                                         \
  const float *gate, const float *up, const int32_t *lengths, float *out
#define GATED_SIZES                                                            \
  index gate_stride, index gate_first, index up_stride, index up_first,        \
      index limit, index up_offset, ACTIVATE_SIZES

void activate_gated(GATED_OPERANDS, GATED_SIZES);
void activate_gated_q8(GATED_OPERANDS, act_q8 *q, float *q_scale, GATED_SIZES);
void activate_gated_q4(GATED_OPERANDS, int8_t *q, float *q_scale,
                       int16_t *q_sums, index terms, GATED_SIZES);

void route(const float *logits, const int32_t *lengths, float *weights,
           int32_t *slots, int32_t *row_tokens, int32_t *row_experts,
           int32_t *segment_experts, int32_t *segment_begins, index batch,
           index tokens, index experts, index active, index normalized,
           index begin, index end);

// Rows of tables: of plain ones, and of weights that are packed for products.
#define GATHER_ROWS                                                            \
  const int32_t *ids, const int32_t *count, float *out, index width
#define GATHER_RANGE index begin, index end

void gather_rows(const float *table, GATHER_ROWS, GATHER_RANGE);
void gather_panels_f32(const float *w, GATHER_ROWS, index step, GATHER_RANGE);
void gather_panels_bf16(const uint16_t *w, GATHER_ROWS, index step, GATHER_RANGE);
void gather_panels_f16(const uint16_t *w, GATHER_ROWS, index step, GATHER_RANGE);
void gather_panels_q8(const int8_t *w, const float *w_scale, GATHER_ROWS,
                      index step, GATHER_RANGE);
void gather_groups(const uint8_t *w, const uint8_t *w_scale, GATHER_ROWS,
                   index bits, index form, GROUPS_SIZES, GATHER_RANGE);

void gather_e4m3(const uint8_t *w, const uint8_t *w_scale, GATHER_ROWS,
                 GROUPS_SIZES, GATHER_RANGE);
void gather_f4(const uint8_t *w, const uint8_t *w_scale, GATHER_ROWS,
               GROUPS_SIZES, index list, GATHER_RANGE);

// Cosines and sines of positions.
void rotation(const int32_t *positions, const int32_t *count,
              const float *cos_coarse, const float *sin_coarse,
              const float *cos_fine, const float *sin_fine, float *cos,
              float *sin, index pairs, index begin, index end);

// The best token of rows of logits, and the best ones.
void best_token(const float *logits, const int32_t *count, int32_t *next,
                index vocab, index begin, index end);
void best_tokens(const float *logits, const int32_t *count, int32_t *tokens,
                 float *best_logits, float *log_sum_exp, index vocab, index best,
                 index begin, index end);

// Attention over pages of a cache of each type: complete, and in chunks of positions
// that attention_combine() merges.
#define ATTENTION_READ                                                         \
  const float *sinks, const int32_t *begins, const int32_t *starts,            \
      const int32_t *pages
#define ATTENTION_SIZES                                                        \
  index layer, index rows, index sequences, index heads, index kv_heads,       \
      index head_dim, index parts, index table, index window, index soft_cap,  \
      index causal
#define ATTENTION_WHOLE                                                        \
  ATTENTION_READ, float *out, ATTENTION_SIZES, index has_sinks, index items,   \
      index begin, index end
#define ATTENTION_CHUNKS                                                       \
  const int32_t *begins, const int32_t *starts, const int32_t *pages,          \
      float *partial, float *max_sum, ATTENTION_SIZES, index chunks,           \
      index items, index begin, index end

void attention_f32(const float *q, const float *cache, ATTENTION_WHOLE);
void attention_bf16(const float *q, const uint16_t *cache, ATTENTION_WHOLE);
void attention_f16(const float *q, const uint16_t *cache, ATTENTION_WHOLE);
void attention_q8(const float *q, const int8_t *cache, const uint16_t *scales,
                  ATTENTION_WHOLE);
void attention_chunks_f32(const float *q, const float *cache, ATTENTION_CHUNKS);
void attention_chunks_bf16(const float *q, const uint16_t *cache,
                           ATTENTION_CHUNKS);
void attention_chunks_f16(const float *q, const uint16_t *cache,
                          ATTENTION_CHUNKS);
void attention_chunks_q8(const float *q, const int8_t *cache,
                         const uint16_t *scales, ATTENTION_CHUNKS);
void attention_combine(const float *partial, const float *max_sum,
                       const float *sinks, const int32_t *begins,
                       const int32_t *starts, float *out, index chunks,
                       index rows, index sequences, index heads,
                       index head_dim, index window, index causal,
                       index has_sinks, index begin, index end);

// Rotates queries and keys, and writes keys and values to pages of a cache of each
// type.
#define APPEND_READ                                                            \
  const float *q, const float *k, const float *v, const float *cos,            \
      const float *sin, const int32_t *begins, const int32_t *starts,          \
      const int32_t *pages
#define APPEND_SIZES                                                           \
  float *q_out, index layer, index rows, index sequences, index heads,         \
      index kv_heads, index head_dim, index parts, index table,                \
      index q_stride, index q_offset, index k_stride, index k_offset,          \
      index v_stride, index v_offset, index rope_width, index interleaved,     \
      index q_scale, index items, index begin, index end

void append_f32(APPEND_READ, float *cache, APPEND_SIZES);
void append_bf16(APPEND_READ, uint16_t *cache, APPEND_SIZES);
void append_f16(APPEND_READ, uint16_t *cache, APPEND_SIZES);
void append_q8(APPEND_READ, int8_t *cache, uint16_t *scales, APPEND_SIZES);

#endif // KERNELS_CPU_KERNELS_H
