// RMS norm and layer norm of rows, alone or after an addition.
//
//   norm_*      out = norm(x), with x [batch][tokens][stride], of which each row has
//               `heads` parts of `width` elements from element `first` on; each part
//               has a norm of its own; out is [batch][tokens][heads][width]
//   add_norm_*  sum = x + y * scale and out = norm(sum), [batch][tokens][width] all
//
//   norm(x) = (x - mean) / sqrt(variance + epsilon) * (offset + weight) + bias
//
//   weight      [weights][width], one for each head or one for all
//   bias        [width]; not read unless `biased`
//   lengths     [batch]; rows from lengths[b] on are padding, whose results are zeros
//   centered    0 for an RMS norm: the mean counts as 0
//   epsilon, offset, scale
//               bits of floats
//
// Items are rows.

#include "rows.h"

typedef struct {
  const void *weight, *bias;
  element_type type;
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

INLINE void norm_row(const norm_parameters *by, const float *x, index weights_at,
                     float *out) {
  const index width = by->width;
  const float mean =
      by->centered ? sum_row(x, width) / (float)width : 0.0f;
  const float variance = sum_squares(x, width, mean) / (float)width;
  const float inverse =
      1.0f / __builtin_elementwise_sqrt(variance + by->epsilon);
  const void *weight = element_at(by->weight, by->type, weights_at);
  index i = 0;
  for (; i + LANES <= width; i += LANES) {
    lanes y, factor, bias;
    load_row(x + i, &y);
    load_row_of(weight, by->type, i, &factor);
    y = (y - mean) * inverse * (by->offset + factor);
    if (by->biased) {
      load_row_of(by->bias, by->type, i, &bias);
      y += bias;
    }
    store_row(out + i, &y);
  }
  for (; i < width; ++i) {
    const float factor = by->offset + load_element(weight, by->type, i);
    out[i] = (x[i] - mean) * inverse * factor;
    if (by->biased)
      out[i] += load_element(by->bias, by->type, i);
  }
}

static void add_row(const float *x, const float *y, float scale, float *sum,
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

#define NORM_PARAMETERS(element)                                               \
  const norm_parameters by = {                                                 \
      weight, bias,     element,           width,                              \
      biased, centered, float_of((uint32_t)epsilon), float_of((uint32_t)offset)}

#define NORM(name, pointer, element)                                           \
  void norm_##name(const float *x, const pointer *weight, const pointer *bias, \
                   const int32_t *lengths, float *out, NORM_PART,              \
                   NORM_SIZES) {                                               \
    NORM_PARAMETERS(element);                                                  \
    (void)batch;                                                               \
    for (index row = begin; row < end; ++row) {                                \
      float *target = out + row * heads * width;                               \
      if (is_padding_row(lengths, tokens, row)) {                              \
        clear_row(target, heads * width);                                      \
        continue;                                                              \
      }                                                                        \
      for (index head = 0; head < heads; ++head)                               \
        norm_row(&by, x + row * stride + first + head * width,                 \
                 weights > 1 ? head * width : 0, target + head * width);       \
    }                                                                          \
  }                                                                            \
  void add_norm_##name(const float *x, const float *y, const pointer *weight,  \
                       const pointer *bias, const int32_t *lengths,            \
                       float *sum, float *out, index scale, NORM_SIZES) {      \
    NORM_PARAMETERS(element);                                                  \
    (void)batch;                                                               \
    for (index row = begin; row < end; ++row) {                                \
      const index at = row * width;                                            \
      if (is_padding_row(lengths, tokens, row)) {                              \
        clear_row(sum + at, width);                                            \
        clear_row(out + at, width);                                            \
        continue;                                                              \
      }                                                                        \
      add_row(x + at, y + at, float_of((uint32_t)scale), sum + at, width);     \
      norm_row(&by, sum + at, 0, out + at);                                    \
    }                                                                          \
  }

NORM(f32, float, ELEMENT_F32)
NORM(bf16, uint16_t, ELEMENT_BF16)
NORM(f16, uint16_t, ELEMENT_F16)
