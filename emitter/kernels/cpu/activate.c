// Activations of rows, alone or with a second factor.
//
//   activate        out = f(x)
//   activate_gated  out = f(min(gate, limit)) * (clamp(up, -limit, limit) + up_offset)
//   activate_gated_q8, activate_gated_q4
//                   the same, and out as quantize_rows() and quantize_groups() give
//                   it; for q8 a part is a whole row, for q4 whole groups
//
// Rows are `width` elements of rows of `stride`, from element `first` on: results of
// layers that are computed as one product are parts of its rows.
//
//   lengths     [batch]; rows from lengths[b] on are padding, whose results are not
//               written
//   out         [batch][tokens][width]
//   kind        0: x * sigmoid(steepness * x)
//               1: x * (1 + erf(x / sqrt(2))) / 2
//               2: x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2
//   steepness, limit, up_offset
//               bits of floats; the limit may be infinite
//
// Items are parts of rows, of `chunk` elements.

#include "exponential.h"
#include "quantize.h"

enum { SIGMOID, ERF, TANH };

// The normal distribution's tail beyond x >= 0 is exp(-x^2 / 2) * t * p(t), with
// t = 1 / (1 + x / 4) and these coefficients of p. They are the polynomial with the
// least relative error up to x = 14, 9e-9.
#define TAIL_DEGREE 9
static const float tail_coefficients[TAIL_DEGREE + 1] = {
    9.9747904029e-02f, 9.9492548198e-02f,  9.5515779646e-02f, 7.1999178885e-02f,
    8.6657477062e-02f, 1.2710925733e-02f,  2.8436750833e-02f, 5.1651772910e-02f,
    -6.2791949147e-02f, 1.6579615924e-02f,
};

typedef struct {
  index kind;
  float steepness;
} activation;

// Computes x / (1 + e^-s), which is x * sigmoid(s).
INLINE void times_sigmoid(lanes *x, const lanes *s) {
  lanes e = -*s;
  exponential(&e);
  *x = *x / (e + 1.0f);
}

INLINE void gelu_erf(lanes *x) {
  lanes magnitude = *x, tail = *x * *x * -0.5f;
  lanes_u32 bits;
  __builtin_memcpy(&bits, x, sizeof bits);
  bits &= 0x7fffffffu;
  __builtin_memcpy(&magnitude, &bits, sizeof bits);
  exponential(&tail);
  const lanes t = 1.0f / (magnitude * 0.25f + 1.0f);
  lanes p = t * tail_coefficients[TAIL_DEGREE];
  for (int i = TAIL_DEGREE - 1; i >= 0; --i)
    p = (p + tail_coefficients[i]) * t;
  tail *= p;
  // The part of the distribution below x.
  const lanes_i32 positive = *x > 0.0f;
  const lanes rest = 1.0f - tail;
  lanes_i32 low, high;
  __builtin_memcpy(&low, &tail, sizeof low);
  __builtin_memcpy(&high, &rest, sizeof high);
  low = (low & ~positive) | (high & positive);
  lanes below;
  __builtin_memcpy(&below, &low, sizeof below);
  *x *= below;
}

// Inlined, so that vectors stay in registers, and CPUs compute several at a time.
INLINE void activate_lanes(const activation *by, lanes *x) {
  if (by->kind == ERF) {
    gelu_erf(x);
    return;
  }
  lanes s = *x * by->steepness;
  if (by->kind == TANH)
    // (1 + tanh(u)) / 2 is the sigmoid of 2u.
    s = (*x * *x * *x * 0.044715f + *x) * 1.5957691216057308f;
  times_sigmoid(x, &s);
}

// Loads up to sixteen elements, with zeros in place of the missing ones.
INLINE void load_some(const float *p, index count, lanes *x) {
  if (count >= LANES) {
    load_row(p, x);
    return;
  }
  float some[LANES];
#pragma clang loop vectorize(disable) unroll(disable)
  for (index i = 0; i < LANES; ++i)
    some[i] = i < count ? p[i] : 0.0f;
  load_row(some, x);
}

INLINE void store_some(float *p, index count, const lanes *x) {
  if (count >= LANES) {
    store_row(p, x);
    return;
  }
  float some[LANES];
  store_row(some, x);
#pragma clang loop vectorize(disable) unroll(disable)
  for (index i = 0; i < count; ++i)
    p[i] = some[i];
}

// The elements that an item computes.
typedef struct {
  index row, first, count;
  int padding;
} part;

INLINE part part_of(const int32_t *lengths, index tokens, index width,
                    index chunk, index item) {
  const index chunks = divide_up(width, chunk);
  const index row = item / chunks, first = item % chunks * chunk;
  return (part){row, first, min_index(chunk, width - first),
                is_padding_row(lengths, tokens, row)};
}

void activate(const float *x, const int32_t *lengths, float *out, index stride,
              index first, ACTIVATE_SIZES) {
  const activation by = {kind, float_of((uint32_t)steepness)};
  (void)batch;
  for (index item = begin; item < end; ++item) {
    const part at = part_of(lengths, tokens, width, chunk, item);
    const float *source = x + at.row * stride + first + at.first;
    float *target = out + at.row * width + at.first;
    if (at.padding)
      continue;
    for (index i = 0; i < at.count; i += LANES) {
      lanes y;
      load_some(source + i, at.count - i, &y);
      activate_lanes(&by, &y);
      store_some(target + i, at.count - i, &y);
    }
  }
}

typedef struct {
  activation function;
  index gate_stride, gate_first, up_stride, up_first;
  float limit, up_offset;
} gated;

static __attribute__((noinline)) void
activate_part(const gated *by, const part *at, const float *gate,
              const float *up, float *out) {
  const float *gates = gate + at->row * by->gate_stride + by->gate_first;
  const float *ups = up + at->row * by->up_stride + by->up_first;
  const int has_limit = bits_of(by->limit) < 0x7f800000u;
  for (index i = 0; i < at->count; i += LANES) {
    lanes y, factor;
    load_some(gates + at->first + i, at->count - i, &y);
    load_some(ups + at->first + i, at->count - i, &factor);
    if (has_limit) {
      replace(&y, y > by->limit, by->limit);
      replace(&factor, factor > by->limit, by->limit);
      replace(&factor, factor < -by->limit, -by->limit);
    }
    activate_lanes(&by->function, &y);
    y *= factor + by->up_offset;
    store_some(out + i, at->count - i, &y);
  }
}

// Computes parts, and calls after(at, first) for each, where `first` is its first
// element in `out`.
#define ACTIVATE_PARTS(after)                                                  \
  const gated by = {{kind, float_of((uint32_t)steepness)},                     \
                    gate_stride,                                               \
                    gate_first,                                                \
                    up_stride,                                                 \
                    up_first,                                                  \
                    float_of((uint32_t)limit),                                 \
                    float_of((uint32_t)up_offset)};                            \
  (void)batch;                                                                 \
  for (index item = begin; item < end; ++item) {                               \
    const part at = part_of(lengths, tokens, width, chunk, item);              \
    if (at.padding)                                                            \
      continue;                                                                \
    const index first = at.row * width + at.first;                             \
    activate_part(&by, &at, gate, up, out + first);                            \
    after(at, first);                                                          \
  }

#define NOTHING(at, first) (void)0
#define QUANTIZE_ROW(at, first)                                                \
  q_scale[at.row] = quantize_whole_row(out + first, q + first, width)
#define QUANTIZE_GROUPS(at, first)                                             \
  quantize_groups_of(out + first, &to, at.row, at.first, at.count)

void activate_gated(GATED_OPERANDS, GATED_SIZES) { ACTIVATE_PARTS(NOTHING) }

void activate_gated_q8(GATED_OPERANDS, act_q8 *q, float *q_scale, GATED_SIZES) {
  ACTIVATE_PARTS(QUANTIZE_ROW)
}

void activate_gated_q4(GATED_OPERANDS, int8_t *q, float *q_scale,
                       int16_t *q_sums, index terms, GATED_SIZES) {
  const quantized_rows to = {q, q_scale, q_sums, width, terms};
  ACTIVATE_PARTS(QUANTIZE_GROUPS)
}
