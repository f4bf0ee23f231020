// Products of a single row on NVIDIA GPUs, with what comes before and after them.
//
//   cuda_norm_matvec_T_N     out_m = norm(x) * w_m + b_m for N matrices
//   cuda_norm_activated_T    out = f(norm(x) * w + b)
//   cuda_norm_gated_T        out = f(min(gate, limit)) *
//                                  (clamp(up, -limit, limit) + up_offset),
//                            where gate and up are the products by w0 and w1
//   cuda_matvec_add_T        out = residual + factor * (x * w + b)
//
//   x            [inputs], which are whole 16 bytes of weights; x, weights and norms'
//                weights are aligned to 16 bytes
//   norm_weight, norm_bias
//                [inputs], see norm.h; the bias only of norm 2
//   w, s         weights and their scales, see weights.h
//   b            [outputs], of bias_type
//   n, first     outputs of a matrix, and the first of them in w, s and b, which may have
//                those of other matrices too
//   residual     [outputs]; out may be the same buffer
//   split        how many warps share an output: 1, 2, 4 or 8, of Q4 up to 4 if a row is
//                staged in slices
//   norm         see norm.h; 0 if inputs exceed CAPACITY
//   norm_type, bias_type
//                0 f32, 1 bf16, 2 f16; a bias_type of -1 is no bias
//   activation   see activation.h
//   epsilon, offset, steepness, limit, up_offset, factor
//                bits of floats; the limit may be infinite
//
// Pointers that are not needed may be anything. Any number of blocks computes all.
#ifndef KERNELS_CUDA_MATVEC_H
#define KERNELS_CUDA_MATVEC_H

#include "activation.h"
#include "row_product.h"

typedef enum { STORE, STORE_SUM, STORE_ACTIVATED, STORE_GATED } store_kind;

// What becomes of the products.
typedef struct {
  store_kind kind;
  int bias_type;
  const float *residual;
  float factor;
  gating gating; // with the activation of all kinds that have one
} result;

// What a lane needs for its output, loaded while the products are computed.
typedef struct {
  float scale, up_scale; // of Q8
  raw_element bias, up_bias;
  float share; // of a mixture's result
  float residual;
  float *out; // null if the lane has no output
} epilogue;

// Loads what no kernel writes. `lane` is the output's place in the unit.
INLINE epilogue load_epilogue(const product *p, const result *to, int number,
                              int lane) {
  const unit u = unit_at(p, number);
  const int output = u.first + lane, has_bias = to->bias_type != NO_BIAS;
  const int exists = lane < outputs_of(p) && output < u.of.outputs;
  const matrix *up = &p->matrices[1];
  epilogue e = {
      1.0f, 1.0f, {0, 0}, {0, 0}, 1.0f, 0.0f, exists ? u.of.out + output : 0};
  if (p->experts.in_row)
    return e;
  const index row = row_at(p, &u, &u.of, output), up_row = row_at(p, &u, up, output);
  if (p->type == WEIGHT_Q8) {
    e.scale = float_of(load_4_bytes((const float *)u.of.scales + row, exists));
    if (p->paired)
      e.up_scale = float_of(load_4_bytes((const float *)up->scales + up_row, exists));
  }
  const element_type type = (element_type)to->bias_type;
  e.bias = load_raw(u.of.bias, type, row, exists && has_bias);
  if (p->paired)
    e.up_bias = load_raw(up->bias, type, up_row, exists && has_bias);
  if (is_by_expert(p))
    e.share = shares[u.slot];
  return e;
}

// Returns the sum of the biases of the token's experts, each times its share.
INLINE float bias_of_experts(const product *p, const result *to, index output) {
  const element_type type = (element_type)to->bias_type;
  float sum = 0.0f;
  for (int slot = 0; to->bias_type != NO_BIAS && slot < p->experts.active; ++slot) {
    const index row = (index)chosen[slot] * p->experts.rows + output;
    const raw_element bias = load_raw(p->matrices[0].bias, type, row, 1);
    sum = __builtin_fmaf(shares[slot], float_of_raw(type, bias), sum);
  }
  return sum;
}

// Loads what an earlier kernel may have written.
INLINE void load_residual(const product *p, const result *to, epilogue *e) {
  if (to->kind != STORE_SUM || !e->out)
    return;
  const index output = e->out - p->matrices[0].out;
  e->residual = to->residual[output];
  if (p->experts.in_row)
    e->residual = __builtin_fmaf(to->factor, bias_of_experts(p, to, output), e->residual);
}

// Adds a bias. Without any, its bits are zeros.
INLINE float with_bias(const result *to, float x, raw_element bias) {
  return x + float_of_raw((element_type)to->bias_type, bias);
}

// Stores an output. `up` is only of pairs.
INLINE void store(const result *to, const epilogue *e, float x, float up) {
  x = with_bias(to, x * e->scale, e->bias);
  switch (to->kind) {
  case STORE: break;
  case STORE_SUM: x = __builtin_fmaf(to->factor, x, e->residual); break;
  case STORE_ACTIVATED: x = activate(to->gating.activation, x); break;
  case STORE_GATED:
    up = with_bias(to, up * e->up_scale, e->up_bias);
    x = gated(&to->gating, x, up) * e->share;
    break;
  }
  *e->out = x;
}

// Stores a unit's outputs, each by a lane of the first of its warps.
INLINE void store_unit(const product *p, const result *to, const epilogue *e,
                       int thread, float factor, four products) {
  if (share_of(p, thread / WARP) != 0 || !e->out)
    return;
  float x = 0.0f, up = 0.0f;
  UNROLL for (int i = 0; i < outputs_of(p); ++i)
    if (thread % WARP == i) {
      x = products.of[p->paired ? 2 * i : i];
      up = p->paired ? products.of[2 * i + 1] : 0.0f;
    }
  store(to, e, x * factor, up * factor);
}

// Returns how many fours of the input a thread loads at once. Without a norm, registers
// are left for more.
INLINE int ahead_of(const product *p, const result *to) {
  return to->kind != STORE_SUM ? AHEAD : is_whole(p->type) ? MAX_AHEAD / 2 : MAX_AHEAD;
}

// Replaces what is staged by the slice that begins with vector `first`.
INLINE slice stage_slice(const product *p, const result *to, int first, int size) {
  const int inputs = inputs_in_16_bytes(p->type);
  const int vectors = min_int(p->inputs / inputs - first, size);
  syncthreads(); // until all have multiplied what is there
  const norm_weights none = load_norm_weights(&p->norm, 0, 0);
  stage(p->type, p->x + first * inputs, &p->norm, none, vectors * inputs,
        ahead_of(p, to));
  return (slice){first, vectors};
}

// Multiplies all units of this block. The loads of the first one are under way, `e` too.
// The input is staged, unless it is so by slices.
INLINE void multiply_units(stream *s, const product *p, const result *to,
                           epilogue e, int number, float factor,
                           const int is_sliced) {
  const int thread = (int)thread_idx(), in_block = by_split(p, WARPS);
  const int vectors = p->inputs / inputs_in_16_bytes(p->type);
  const int chunk = p->split * (VECTORS * WARP);
  const int own = by_split(p, thread / WARP), units = unit_count(p);
  const int stride = (int)grid_dim() * in_block;
  // Whole chunks: all warps are in the same slice.
  const int size = vectors_of_shared(p->type) / chunk * chunk;
  slice in = {0, vectors};
  if (p->type == WEIGHT_F4)
    share_numbers(p->groups.list);
#pragma clang loop unroll(disable)
  for (int parity = 0; number < units; number += stride, parity ^= 1) {
    sums of = {{{0.0f}}};
    // All warps make the same number of steps, for they meet at barriers.
#pragma clang loop unroll(disable)
    for (int done = 0; done < vectors; done += chunk) {
      const int at = done + first_vector(p, thread);
      if (is_sliced && done % size == 0)
        in = stage_slice(p, to, done, size);
      if (done + chunk < vectors)
        s->at += chunk;
      else
        begin_unit(s, p, number + stride + own, thread);
      UNROLL for (int v = 0; v < VECTORS; ++v) {
        // All lanes of a warp may be past the end.
        if (at - thread % WARP + v * WARP < vectors)
          add_vector(s, p, v, at + v * WARP, in, &of);
        load_vector(s, p, v);
      }
    }
    store_unit(p, to, &e, thread, factor, unit_products(p, &of, parity, thread));
    e = load_epilogue(p, to, number + stride + own, thread % WARP);
    load_residual(p, to, &e);
  }
}

// Stages the input, at once if it fits, and multiplies all units of this block by it.
INLINE void multiply_input(stream *s, const product *p, const result *to, epilogue e,
                           int number, norm_weights weights) {
  if (p->inputs / inputs_in_16_bytes(p->type) <= vectors_of_shared(p->type)) {
    const float factor =
        stage(p->type, p->x, &p->norm, weights, p->inputs, ahead_of(p, to));
    multiply_units(s, p, to, e, number, factor, 0);
  } else {
    multiply_units(s, p, to, e, number, 1.0f, 1);
  }
}

// Computes a product. Blocks have consecutive units, of all matrices one after the
// other.
INLINE void compute(const product *p, const result *to) {
  const int thread = (int)thread_idx();
  const int number = (int)block_idx() * by_split(p, WARPS);
  const int own = number + by_split(p, thread / WARP);
  stream s;
  begin_unit(&s, p, own, thread);
  UNROLL for (int v = 0; v < VECTORS; ++v)
    load_vector(&s, p, v);
  const norm_weights weights = load_norm_weights(&p->norm, p->inputs, thread);
  epilogue e = load_epilogue(p, to, own, thread % WARP);
  // Attention, which follows plain products, reads what kernels before them have
  // written. All others read this kernel's results alone, and can start right now.
  if (to->kind != STORE)
    start_next_kernel();
  wait_for_previous_kernel();
  if (to->kind == STORE)
    start_next_kernel();
  load_residual(p, to, &e);
  multiply_input(&s, p, to, e, number, weights);
}

// A matrix's operands, as parameters and as an initializer.
#define UNSCALED_OPERANDS(m) const void *w##m, const void *b##m
#define SCALED_OPERANDS(m) const void *w##m, const void *s##m, const void *b##m
#define GROUPED_OPERANDS(m) SCALED_OPERANDS(m)
#define UNSCALED_MATRIX(m, out, n) {w##m, 0, b##m, out, n, first##m}
#define SCALED_MATRIX(m, out, n) {w##m, s##m, b##m, out, n, first##m}
#define GROUPED_MATRIX(m, out, n) SCALED_MATRIX(m, out, n)
#define NO_MATRIX {0, 0, 0, 0, 0, 0}
#define NO_EXPERTS {0, 0, 1, 0}

#define NORM_OPERANDS                                                          \
  const float *x, const void *norm_weight, const void *norm_bias
#define NORM_NUMBERS                                                           \
  int inputs, int split, int norm, int norm_type, uint32_t epsilon,            \
      uint32_t offset, int bias_type
#define NORM                                                                   \
  {(norm_kind)norm, (element_type)norm_type, norm_weight, norm_bias,           \
   float_of(epsilon), float_of(offset)}
#define WITHOUT_NORM {NORM_NONE, ELEMENT_F32, 0, 0, 0.0f, 0.0f}

#define PLAIN_RESULT {.kind = STORE, .bias_type = bias_type}

// Defines the kernels of a type. `form` is UNSCALED, SCALED or GROUPED.
#define DEFINE_NORM_MATVEC(name, type, form)                                   \
  KERNEL cuda_norm_matvec_##name##_1(NORM_OPERANDS, form##_OPERANDS(0),        \
                                     float *out0, int n0, int first0,          \
                                     NORM_NUMBERS form##_NUMBERS) {            \
    const product p = {                                                        \
        type, x, NORM, {form##_MATRIX(0, out0, n0), NO_MATRIX, NO_MATRIX},     \
        1,    0, inputs, split, NO_EXPERTS, form##_FORMAT(type, inputs)};      \
    const result to = PLAIN_RESULT;                                            \
    compute(&p, &to);                                                          \
  }                                                                            \
  KERNEL cuda_norm_matvec_##name##_2(                                          \
      NORM_OPERANDS, form##_OPERANDS(0), form##_OPERANDS(1), float *out0,      \
      float *out1, int n0, int first0, int n1, int first1, NORM_NUMBERS form##_NUMBERS) {\
    const product p = {type, x, NORM,                                          \
                       {form##_MATRIX(0, out0, n0),                            \
                        form##_MATRIX(1, out1, n1), NO_MATRIX},                \
                       2, 0, inputs, split, NO_EXPERTS, form##_FORMAT(type, inputs)};\
    const result to = PLAIN_RESULT;                                            \
    compute(&p, &to);                                                          \
  }                                                                            \
  KERNEL cuda_norm_matvec_##name##_3(                                          \
      NORM_OPERANDS, form##_OPERANDS(0), form##_OPERANDS(1),                   \
      form##_OPERANDS(2), float *out0, float *out1, float *out2, int n0,       \
      int first0, int n1, int first1, int n2, int first2, NORM_NUMBERS form##_NUMBERS) {\
    const product p = {type, x, NORM,                                          \
                       {form##_MATRIX(0, out0, n0),                            \
                        form##_MATRIX(1, out1, n1),                            \
                        form##_MATRIX(2, out2, n2)},                           \
                       3, 0, inputs, split, NO_EXPERTS, form##_FORMAT(type, inputs)};\
    const result to = PLAIN_RESULT;                                            \
    compute(&p, &to);                                                          \
  }

#define DEFINE_NORM_ACTIVATED(name, type, form)                                \
  KERNEL cuda_norm_activated_##name(                                           \
      NORM_OPERANDS, form##_OPERANDS(0), float *out, int n, int first0,        \
      NORM_NUMBERS, int activation, uint32_t steepness form##_NUMBERS) {       \
    const product p = {                                                        \
        type, x, NORM, {form##_MATRIX(0, out, n), NO_MATRIX, NO_MATRIX},       \
        1,    0, inputs, split, NO_EXPERTS, form##_FORMAT(type, inputs)};      \
    const result to = {                                                        \
        .kind = STORE_ACTIVATED,                                               \
        .bias_type = bias_type,                                                \
        .gating = {{(activation_kind)activation, float_of(steepness)}, 0, 0}}; \
    compute(&p, &to);                                                          \
  }                                                                            \
  KERNEL cuda_norm_gated_##name(                                               \
      NORM_OPERANDS, form##_OPERANDS(0), form##_OPERANDS(1), float *out,       \
      int n, int first0, int first1, NORM_NUMBERS, int activation,             \
      uint32_t steepness, uint32_t limit, uint32_t up_offset form##_NUMBERS) { \
    const product p = {                                                        \
        type, x, NORM,                                                         \
        {form##_MATRIX(0, out, n), form##_MATRIX(1, out, n), NO_MATRIX},       \
        2,    1, inputs, split, NO_EXPERTS, form##_FORMAT(type, inputs)};      \
    const result to = {                                                        \
        .kind = STORE_GATED,                                                   \
        .bias_type = bias_type,                                                \
        .gating = {{(activation_kind)activation, float_of(steepness)},         \
                   float_of(limit),                                            \
                   float_of(up_offset)}};                                      \
    compute(&p, &to);                                                          \
  }

#define DEFINE_MATVEC_ADD(name, type, form)                                    \
  KERNEL cuda_matvec_add_##name(const float *x, form##_OPERANDS(0),            \
                                const float *residual, float *out, int n,      \
                                int first0, int inputs, int split,             \
                                int bias_type,                                 \
                                uint32_t factor form##_NUMBERS) {              \
    const product p = {type, x, WITHOUT_NORM,                                  \
                       {form##_MATRIX(0, out, n), NO_MATRIX, NO_MATRIX},       \
                       1, 0, inputs, split, NO_EXPERTS, form##_FORMAT(type, inputs)};\
    const result to = {.kind = STORE_SUM,                                      \
                       .bias_type = bias_type,                                 \
                       .residual = residual,                                   \
                       .factor = float_of(factor)};                            \
    compute(&p, &to);                                                          \
  }

#define DEFINE_MATVEC(name, type, form)                                        \
  STATED(name##_rows, ROWS(type));                                             \
  DEFINE_NORM_MATVEC(name, type, form)                                         \
  DEFINE_NORM_ACTIVATED(name, type, form)                                      \
  DEFINE_MATVEC_ADD(name, type, form)

#endif
