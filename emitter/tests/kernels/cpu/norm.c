// Tests norms against doubles, and that the bits of a row do not depend on the other
// rows or on the division into calls.

#include "check.h"
#include "cpu/kernels.h"

typedef struct {
  element_type type;
  index batch, tokens, heads, width, weights, stride, first;
  int biased, centered;
  float epsilon, offset, scale;
  const float *x, *y; // [batch][tokens][stride], [batch][tokens][width]
  const void *weight, *bias;
  const int32_t *lengths;
} norm_case;

static index rows_of(const norm_case *c) { return c->batch * c->tokens; }

static void call_norm(const norm_case *c, float *out, index begin, index end) {
#define CALL(name, pointer)                                                    \
  norm_##name(c->x, (const pointer *)c->weight, (const pointer *)c->bias,      \
              c->lengths, out, c->heads, c->weights, c->stride, c->first,      \
              c->batch, c->tokens, c->width, c->biased, c->centered,           \
              (index)bits_of(c->epsilon), (index)bits_of(c->offset), begin,    \
              end)
  if (c->type == ELEMENT_F32)
    CALL(f32, float);
  else if (c->type == ELEMENT_BF16)
    CALL(bf16, uint16_t);
  else
    CALL(f16, uint16_t);
#undef CALL
}

static void call_add_norm(const norm_case *c, float *sum, float *out,
                          index begin, index end) {
#define CALL(name, pointer)                                                    \
  add_norm_##name(c->x, c->y, (const pointer *)c->weight,                      \
                  (const pointer *)c->bias, c->lengths, sum, out,              \
                  (index)bits_of(c->scale), c->batch, c->tokens, c->width,     \
                  c->biased, c->centered, (index)bits_of(c->epsilon),          \
                  (index)bits_of(c->offset), begin, end)
  if (c->type == ELEMENT_F32)
    CALL(f32, float);
  else if (c->type == ELEMENT_BF16)
    CALL(bf16, uint16_t);
  else
    CALL(f16, uint16_t);
#undef CALL
}

// Compares the norm of one part of a row with doubles.
static void check_part(const norm_case *c, const float *x, index head,
                       const float *out) {
  const index at = c->weights > 1 ? head * c->width : 0;
  double mean = 0, variance = 0;
  for (index i = 0; c->centered && i < c->width; ++i)
    mean += (double)x[i] / (double)c->width;
  for (index i = 0; i < c->width; ++i)
    variance += (x[i] - mean) * (x[i] - mean) / (double)c->width;
  const double inverse = 1 / sqrt(variance + (double)c->epsilon);
  for (index i = 0; i < c->width; ++i) {
    const double factor =
        (double)c->offset + (double)load_element(c->weight, c->type, at + i);
    const double bias =
        c->biased ? (double)load_element(c->bias, c->type, i) : 0;
    const double y = (x[i] - mean) * inverse * factor;
    // Errors of the mean are relative to the mean.
    const double size =
        fabs(y) + fabs(bias) + fabs(mean * inverse * factor);
    check_near("out", i, out[i], y + bias, size * 1e-6);
  }
}

static void check_norm(const norm_case *c, index begin, index end) {
  const index width = c->heads * c->width, rows = rows_of(c);
  float *out = allocate_results(rows * width);
  call_norm(c, out, begin, end);
  check_untouched("another call's row", out, 0, begin * width);
  check_untouched("another call's row", out, end * width, rows * width);
  for (index row = begin; row < end; ++row) {
    const float *found = out + row * width;
    if (row % c->tokens >= c->lengths[row / c->tokens]) {
      check_untouched("padding", found, 0, width);
      continue;
    }
    const float *x = c->x + row * c->stride + c->first;
    for (index head = 0; head < c->heads; ++head)
      check_part(c, x + head * c->width, head, found + head * c->width);
    // The same row alone.
    const int32_t one = 1;
    norm_case alone = *c;
    alone.batch = alone.tokens = 1;
    alone.x = c->x + row * c->stride;
    alone.lengths = &one;
    float *single = allocate_results(width);
    call_norm(&alone, single, 0, 1);
    for (index i = 0; i < width; ++i)
      check_equal("bits", i, bits_of(found[i]), bits_of(single[i]));
    release_from(buffer_count - 1);
  }
}

static void check_add_norm(const norm_case *c, index begin, index end) {
  const index width = c->width, rows = rows_of(c);
  float *sum = allocate_results(rows * width);
  float *out = allocate_results(rows * width);
  call_add_norm(c, sum, out, begin, end);
  for (int which = 0; which < 2; ++which) {
    const float *x = which ? out : sum;
    check_untouched("another call's row", x, 0, begin * width);
    check_untouched("another call's row", x, end * width, rows * width);
  }
  // The norm of a sum is that of its rows alone.
  norm_case after = *c;
  after.x = sum;
  float *expected = allocate_results(rows * width);
  call_norm(&after, expected, begin, end);
  for (index row = begin; row < end; ++row) {
    const int padding = row % c->tokens >= c->lengths[row / c->tokens];
    for (index i = row * width; i < (row + 1) * width; ++i) {
      const float scaled = c->y[i] * c->scale;
      if (!padding)
        check_equal("sum", i, sum[i], c->x[i] + scaled);
      check_equal("bits", i, bits_of(out[i]), bits_of(expected[i]));
    }
    if (padding)
      check_untouched("padding", sum, row * width, (row + 1) * width);
  }
}

// Quantizes whole rows, or groups as the sum of some terms.
static void call_quantized(const norm_case *c, index terms, float *sum,
                           float *out, void *q, float *q_scale, int16_t *q_sums,
                           index end) {
#define ARGUMENTS(pointer)                                                     \
  c->x, c->y, (const pointer *)c->weight, (const pointer *)c->bias,            \
      c->lengths, sum, out
#define SIZES                                                                  \
  (index)bits_of(c->scale), c->batch, c->tokens, c->width, c->biased,          \
      c->centered, (index)bits_of(c->epsilon), (index)bits_of(c->offset), 0,   \
      end
#define CALL(name, pointer)                                                    \
  do {                                                                         \
    if (terms)                                                                 \
      add_norm_q4_##name(ARGUMENTS(pointer), (int8_t *)q, q_scale, q_sums,     \
                         terms, SIZES);                                        \
    else                                                                       \
      add_norm_q8_##name(ARGUMENTS(pointer), (act_q8 *)q, q_scale, SIZES);     \
  } while (0)
  if (c->type == ELEMENT_F32)
    CALL(f32, float);
  else if (c->type == ELEMENT_BF16)
    CALL(bf16, uint16_t);
  else
    CALL(f16, uint16_t);
#undef CALL
}

// Tests that quantized results are the results, as quantize.c's test defines them.
static void check_quantized(const norm_case *c) {
  const index width = c->width, rows = rows_of(c);
  for (index terms = 0; terms < (width % 32 ? 1 : 3); ++terms) {
    const int kept = buffer_count;
    const index size = terms ? 32 : width, all = terms ? terms : 1;
    const index count = rows * all * width / size;
    float *expected[2], *found[2];
    for (int i = 0; i < 2; ++i) {
      expected[i] = allocate_results(rows * width);
      found[i] = allocate_results(rows * width);
    }
    float *scale = allocate_results(count);
    int16_t *sums = allocate(count * 2 * (index)sizeof *sums);
    act_q8 *q = allocate(rows * all * width * (index)sizeof *q);
    call_add_norm(c, expected[0], expected[1], 0, rows);
    call_quantized(c, terms, found[0], found[1], q, scale, sums, rows);
    for (index i = 0; i < rows * width; ++i)
      for (int j = 0; j < 2; ++j)
        check_equal("bits", i, bits_of(found[j][i]), bits_of(expected[j][i]));
    for (index part = 0; part < count; ++part) {
      const index term = part * size / width, row = term / all;
      if (row % c->tokens >= c->lengths[row / c->tokens]) {
        check_untouched("padding", scale, part, part + 1);
        continue;
      }
      const index first = row * width + part * size % width;
      float *x = expected[1] + first, largest = 0;
      for (index i = 0; i < size; ++i)
        largest = fmaxf(largest, fabsf(x[i]));
      index expected_sums[2] = {0, 0};
      for (index i = 0; i < size; ++i) {
        const index at = part * size + i;
        const int step = terms ? ((const int8_t *)q)[at] : q[at];
        const float scaled = largest > 0 ? x[i] * (127.0f / largest) : 0;
        check_equal("q", at, step, nearbyint(scaled));
        const float taken = scale[part] * (float)step;
        x[i] -= taken; // what is left for the next term
        expected_sums[i / 16 % 2] += step;
      }
      check_equal("q_scale", part, scale[part], largest / 127.0f);
      for (int half = 0; terms && half < 2; ++half)
        check_equal("sums", 2 * part + half, sums[2 * part + half],
                    (double)expected_sums[half]);
    }
    release_from(kept);
  }
}

static norm_case random_case(index width, index rows, int add) {
  const element_type types[] = {ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16};
  const float offsets[] = {0, 1}, epsilons[] = {1e-5f, 1e-6f};
  norm_case c = {.type = types[random_index(0, 2)], .width = width};
  const parts p = random_parts(rows);
  c.batch = p.batch, c.tokens = p.tokens, c.lengths = p.lengths;
  c.heads = add ? 1 : random_index(1, 3);
  c.weights = random_index(0, 1) ? c.heads : 1;
  c.first = add ? 0 : random_index(0, 5);
  c.stride = c.first + c.heads * width + (add ? 0 : random_index(0, 5));
  c.biased = (int)random_index(0, 1), c.centered = (int)random_index(0, 1);
  c.epsilon = epsilons[random_index(0, 1)];
  c.offset = offsets[random_index(0, 1)];
  c.scale = random_index(0, 1) ? 1.0f : 0.22f;
  c.x = random_floats(rows * c.stride, ORDINARY);
  c.y = random_floats(rows * width, ORDINARY);
  c.weight = random_elements(c.type, c.weights * width, ORDINARY);
  c.bias = c.biased ? random_elements(c.type, width, ORDINARY) : c.weight;
  return c;
}

static void test_norms(void) {
  const index widths[] = {1,  5,  15,  16,  17,  63,  64,   65,
                          80, 96, 127, 128, 255, 320, 2048, 2050};
  for (int w = 0; w < 16; ++w)
    for (int repeat = 0; repeat < 24; ++repeat) {
      const index rows = random_index(1, 8), begin = random_index(0, rows - 1);
      const index end = random_index(begin, rows);
      const int add = repeat % 2;
      const norm_case c = random_case(widths[w], rows, add);
      at_case("%s of %lld, type %d, %lld heads, %s%s", add ? "add_norm" : "norm",
              (long long)c.width, (int)c.type, (long long)c.heads,
              c.centered ? "centered" : "rms", c.biased ? ", biased" : "");
      if (add)
        check_add_norm(&c, begin, end);
      else
        check_norm(&c, begin, end);
      if (add)
        check_quantized(&c);
      release_all();
    }
}

// Tests values that are far from each other, and those that are not finite.
static void test_extremes(void) {
  const float huge[] = {1e15f, INFINITY, NAN};
  for (int h = 0; h < 3; ++h) {
    at_case("norm with %g", huge[h]);
    const int32_t length = 2;
    float *x = random_floats(2 * 100, ORDINARY);
    norm_case c = {.batch = 1, .tokens = 2, .heads = 1, .width = 100,
                   .weights = 1, .stride = 100, .epsilon = 1e-5f,
                   .lengths = &length, .x = x};
    c.weight = c.bias = random_floats(100, ORDINARY);
    x[70] = huge[h];
    float *out = allocate_results(200);
    call_norm(&c, out, 0, 2);
    if (h == 0)
      check_part(&c, x, 0, out);
    else
      check_equal("out", 70, out[70], NAN);
    check_part(&c, x + 100, 0, out + 100);
    release_all();
  }
}

// Tests that every instruction set gives the same bits.
static void test_bits(void) {
  at_case("bits of every instruction set");
  random_state = 1;
  uint32_t hash = 2166136261u;
  for (index width = 1; width < 300; ++width) {
    const norm_case c = random_case(width, 4, 0);
    float *out = allocate_results(4 * c.heads * width);
    call_norm(&c, out, 0, 4);
    for (index i = 0; i < 4 * c.heads * width; ++i)
      hash = (hash ^ bits_of(out[i])) * 16777619u;
    release_all();
  }
  check_equal("hash", 0, hash, 4017446289u);
}

int main(void) {
  begin_tests();
  test_norms();
  test_bits();
  test_extremes();
  return end_tests();
}
