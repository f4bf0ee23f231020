// Products of a single row with the experts of a mixture on NVIDIA GPUs, with what comes
// before and after them.
//
//   cuda_experts_gated_T    out[slot] = share * f(min(gate, limit)) *
//                             (clamp(up, -limit, limit) + up_offset),
//                           where gate and up are products of norm(x) by the weights of
//                           the token's experts, as in matvec.h
//   cuda_experts_add_T      out = residual + factor * the sum over all slots of
//                             x[slot] * w + share * b
//
//   logits        [experts], of the router. The token's experts are the `active` ones
//                 with the largest logits, of equal ones the first. Their shares of the
//                 result are the softmax of all logits, or of theirs if normalized
//   token_experts, token_shares
//                 [active], in the order of slots
//   w, s, b       [experts][rows][...]: each expert has the rows of both matrices, where
//                 row i of the gate is i * step and that of up is up + i * step
//   x             [active][inputs / active], for cuda_experts_add_T
//   out           [active][n], or [n]
//
// Others are as in matvec.h. There are up to MAX_EXPERTS experts, and MAX_ACTIVE of a
// token.
#ifndef KERNELS_CUDA_EXPERTS_H
#define KERNELS_CUDA_EXPERTS_H

#include "matvec.h"

// What a token's experts are chosen by, or have been.
typedef struct {
  const float *logits;
  int32_t *experts;
  float *shares;
  int count, normalized; // experts of all
} routing;

// Begins the first unit of the token's experts, which are known, and computes all.
INLINE void compute_by_experts(const product *p, const result *to,
                               norm_weights weights) {
  const int thread = (int)thread_idx();
  const int number = (int)block_idx() * by_split(p, WARPS);
  const int own = number + by_split(p, thread / WARP);
  stream s;
  begin_unit(&s, p, own, thread);
  UNROLL for (int v = 0; v < VECTORS; ++v)
    load_vector(&s, p, v);
  epilogue e = load_epilogue(p, to, own, thread % WARP);
  load_residual(p, to, &e);
  multiply_input(&s, p, to, e, number, weights);
}

// Chooses the token's experts, and computes their gated products. Every block chooses for
// itself, and the first one for the next kernel.
INLINE void compute_gated(const product *p, const result *to, const routing *by) {
  const int thread = (int)thread_idx(), active = p->experts.active;
  const norm_weights weights = load_norm_weights(&p->norm, p->inputs, thread);
  start_next_kernel();
  wait_for_previous_kernel();
  if (thread < WARP) {
    const choice own =
        choose_experts(by->logits, by->count, by->normalized, active, thread);
    if (thread < active) {
      chosen[thread] = own.expert;
      shares[thread] = own.share;
    }
  }
  syncthreads();
  if (block_idx() == 0 && thread < active) {
    by->experts[thread] = chosen[thread];
    by->shares[thread] = shares[thread];
  }
  compute_by_experts(p, to, weights);
}

// Adds the products of the experts that the kernel before has chosen.
INLINE void compute_sum(const product *p, const result *to, const routing *by) {
  const int thread = (int)thread_idx();
  const norm_weights weights = load_norm_weights(&p->norm, p->inputs, thread);
  start_next_kernel();
  wait_for_previous_kernel();
  if (thread < p->experts.active) {
    chosen[thread] = by->experts[thread];
    shares[thread] = by->shares[thread];
  }
  syncthreads();
  compute_by_experts(p, to, weights);
}

#define UNSCALED_PART(out, n, first) {w, 0, b, out, n, first}
#define SCALED_PART(out, n, first) {w, s, b, out, n, first}
#define UNSCALED_WEIGHTS const void *w, const void *b
#define SCALED_WEIGHTS const void *w, const void *s, const void *b
#define GROUPED_PART(out, n, first) SCALED_PART(out, n, first)
#define GROUPED_WEIGHTS SCALED_WEIGHTS

// Defines the kernels of a type. `form` is UNSCALED, SCALED or GROUPED.
#define DEFINE_EXPERTS(name, type, form)                                       \
  KERNEL cuda_experts_gated_##name(                                            \
      NORM_OPERANDS, const float *logits, form##_WEIGHTS, float *out,          \
      int32_t *token_experts, float *token_shares, int n, int rows, int up,    \
      int step, int experts, int active, int normalized, NORM_NUMBERS,         \
      int activation, uint32_t steepness, uint32_t limit,                      \
      uint32_t up_offset form##_NUMBERS) {                                     \
    const product p = {                                                        \
        type,   x,                                                             \
        NORM,   {form##_PART(out, n, 0), form##_PART(out, n, up), NO_MATRIX},  \
        2,      1,                                                             \
        inputs, split,                                                         \
        {active, rows, step, 0}, form##_FORMAT(type, inputs)};                 \
    const result to = {                                                        \
        .kind = STORE_GATED,                                                   \
        .bias_type = bias_type,                                                \
        .gating = {{(activation_kind)activation, float_of(steepness)},         \
                   float_of(limit),                                            \
                   float_of(up_offset)}};                                      \
    const routing by = {logits, token_experts, token_shares, experts,          \
                        normalized};                                           \
    compute_gated(&p, &to, &by);                                               \
  }                                                                            \
  KERNEL cuda_experts_add_##name(                                              \
      const float *x, const int32_t *token_experts, const float *token_shares, \
      form##_WEIGHTS, const float *residual, float *out, int n, int active,    \
      int inputs, int split, int bias_type, uint32_t factor form##_NUMBERS) {  \
    const product p = {                                                        \
        type,         x,                                                       \
        WITHOUT_NORM, {form##_PART(out, n, 0), NO_MATRIX, NO_MATRIX},          \
        1,            0,                                                       \
        inputs,       split,                                                   \
        {active, n, 1, 1}, form##_FORMAT(type, inputs / active)};              \
    const result to = {.kind = STORE_SUM,                                      \
                       .bias_type = bias_type,                                 \
                       .residual = residual,                                   \
                       .factor = float_of(factor)};                            \
    const routing by = {0, (int32_t *)token_experts, (float *)token_shares, 0, 0};\
    compute_sum(&p, &to, &by);                                                 \
  }

#endif
