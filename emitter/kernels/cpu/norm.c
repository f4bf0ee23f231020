// RMS norm and layer norm of rows, alone or after an addition.
//
//   norm_*      out = norm(x), with x [batch][tokens][stride], of which each row has
//               `heads` parts of `width` elements from element `first` on; each part
//               has a norm of its own; out is [batch][tokens][heads][width]
//   add_norm_*  sum = x + y * scale and out = norm(sum), [batch][tokens][width] all
//   add_norm_q8_*, add_norm_q4_*
//               the same, and out as quantize_rows() and quantize_groups() give it
//
//   norm(x) = (x - mean) / sqrt(variance + epsilon) * (offset + weight) + bias
//
//   weight      [weights][width], one for each head or one for all
//   bias        [width]; not read unless `biased`
//   lengths     [batch]; rows from lengths[b] on are padding, whose results are not
//               written
//   centered    0 for an RMS norm: the mean counts as 0
//   epsilon, offset, scale
//               bits of floats
//
// Items are rows.

#include "quantize.h"
#include "rows.h"

typedef struct {
  const void *weight, *bias;
  index width, biased, centered;
  float epsilon, offset;
} norm_parameters;

// Returns the sum of x - shift, or of its squares.
INLINE float sum_parts(const float *x, index width, float shift, int squares) {
  lanes sums[SUMS] = {0};
  index i = 0;
  for (; i + STEP <= width; i += STEP)
#pragma clang loop unroll(full)
    for (int j = 0; j < SUMS; ++j) {
      lanes part;
      load_row(x + i + j * LANES, &part);
      part -= shift;
      sums[j] += squares ? part * part : part;
    }
  // The rest goes to the lanes that it would have in a whole step.
  for (int j = 0; i < width; ++j, i += LANES) {
    float rest[LANES];
#pragma clang loop vectorize(disable) unroll(disable)
    for (index lane = 0; lane < LANES; ++lane)
      rest[lane] = i + lane < width ? x[i + lane] - shift : 0.0f;
    lanes part;
    load_row(rest, &part);
    sums[j] += squares ? part * part : part;
  }
  return sum_of_sums(sums);
}

// Not inlined, because every norm would have a copy.
static __attribute__((noinline)) float sum_row(const float *x, index width) {
  return sum_parts(x, width, 0.0f, 0);
}

static __attribute__((noinline)) float sum_squares(const float *x, index width,
                                                   float mean) {
  return sum_parts(x, width, mean, 1);
}

INLINE void norm_row(const norm_parameters *by, element_type type, const float *x,
                     index weights_at, float *out) {
  const index width = by->width;
  const float mean =
      by->centered ? sum_row(x, width) / (float)width : 0.0f;
  const float variance = sum_squares(x, width, mean) / (float)width;
  const float inverse =
      1.0f / __builtin_elementwise_sqrt(variance + by->epsilon);
  const void *weight = element_at(by->weight, type, weights_at);
  index i = 0;
  for (; i + LANES <= width; i += LANES) {
    lanes y, factor, bias;
    load_row(x + i, &y);
    load_row_of(weight, type, i, &factor);
    y = (y - mean) * inverse * (by->offset + factor);
    if (by->biased) {
      load_row_of(by->bias, type, i, &bias);
      y += bias;
    }
    store_row(out + i, &y);
  }
  for (; i < width; ++i) {
    const float factor = by->offset + load_element(weight, type, i);
    out[i] = (x[i] - mean) * inverse * factor;
    if (by->biased)
      out[i] += load_element(by->bias, type, i);
  }
}

static __attribute__((noinline)) void add_row(const float *x, const float *y,
                                              float scale, float *sum,
                                              index width) {
  index i = 0;
  for (; i + LANES <= width; i += LANES) {
    lanes a, b;
    load_row(x + i, &a);
    load_row(y + i, &b);
    a += b * scale;
    store_row(sum + i, &a);
  }
  for (; i < width; ++i)
    sum[i] = x[i] + y[i] * scale;
}

#define NORM_PARAMETERS                                                        \
  const norm_parameters by = {weight,                                          \
                              bias,                                            \
                              width,                                           \
                              biased,                                          \
                              centered,                                        \
                              float_of((uint32_t)epsilon),                     \
                              float_of((uint32_t)offset)};                     \
  (void)batch

#define NORM(name, pointer, element)                                           \
  static __attribute__((noinline)) void norm_row_##name(                       \
      const norm_parameters *by, const float *x, index weights_at,             \
      float *out) {                                                            \
    norm_row(by, element, x, weights_at, out);                                 \
  }                                                                            \
  void norm_##name(const float *x, const pointer *weight, const pointer *bias, \
                   const int32_t *lengths, float *out, NORM_PART,              \
                   NORM_SIZES) {                                               \
    NORM_PARAMETERS;                                                           \
    for (index row = begin; row < end; ++row) {                                \
      float *target = out + row * heads * width;                               \
      if (is_padding_row(lengths, tokens, row))                                \
        continue;                                                              \
      for (index head = 0; head < heads; ++head)                               \
        norm_row_##name(&by, x + row * stride + first + head * width,          \
                        weights > 1 ? head * width : 0,                        \
                        target + head * width);                                \
    }                                                                          \
  }

// Computes rows of a sum and of its norm, and calls after(row) for each.
#define ADD_NORM_ROWS(name, after)                                             \
  NORM_PARAMETERS;                                                             \
  for (index row = begin; row < end; ++row) {                                  \
    const index at = row * width;                                              \
    if (is_padding_row(lengths, tokens, row))                                  \
      continue;                                                                \
    add_row(x + at, y + at, float_of((uint32_t)scale), sum + at, width);       \
    norm_row_##name(&by, sum + at, 0, out + at);                               \
    after(row);                                                                \
  }

#define NOTHING(row) (void)0
#define QUANTIZE_ROW(row)                                                      \
  q_scale[row] = quantize_whole_row(out + (row) * width, q + (row) * width, width)
#define QUANTIZE_GROUPS(row)                                                   \
  quantize_groups_of(out + (row) * width, &to, row, 0, width)

#define ADD_NORM(name, pointer)                                                \
  void add_norm_##name(ADD_NORM_OPERANDS(pointer), ADD_NORM_SIZES) {           \
    ADD_NORM_ROWS(name, NOTHING)                                            \
  }                                                                            \
  void add_norm_q8_##name(ADD_NORM_OPERANDS(pointer), act_q8 *q,               \
                          float *q_scale, ADD_NORM_SIZES) {                    \
    ADD_NORM_ROWS(name, QUANTIZE_ROW)                                       \
  }                                                                            \
  void add_norm_q4_##name(ADD_NORM_OPERANDS(pointer), int8_t *q,               \
                          float *q_scale, int16_t *q_sums, index terms,        \
                          ADD_NORM_SIZES) {                                    \
    const quantized_rows to = {q, q_scale, q_sums, width, terms};              \
    ADD_NORM_ROWS(name, QUANTIZE_GROUPS)                                    \
  }

NORM(f32, float, ELEMENT_F32)
NORM(bf16, uint16_t, ELEMENT_BF16)
NORM(f16, uint16_t, ELEMENT_F16)

ADD_NORM(f32, float)
ADD_NORM(bf16, uint16_t)
ADD_NORM(f16, uint16_t)
