// Tests activations against doubles, and that the bits of a row do not depend on the
// other rows or on the division into calls.

#include "check.h"
#include "cpu/kernels.h"

enum { SIGMOID, ERF, TANH, KINDS };

static const char *const kind_names[KINDS] = {"sigmoid", "erf", "tanh"};

static double by_definition(index kind, double steepness, double x) {
  if (kind == SIGMOID)
    return x / (1 + exp(-steepness * x));
  if (kind == ERF)
    return x * erfc(-x * sqrt(0.5)) / 2;
  const double u = 2 * sqrt(2 / 3.14159265358979323846) *
                   (x + 0.044715 * x * x * x);
  return x / (1 + exp(-u));
}

// Returns by how much results may differ. Where they fall off exponentially, rounding
// an exponent changes them by a multiple of it: one or two roundings, and several for
// the cubic. What is smaller than e^-80 need only be small.
static double tolerance(index kind, double steepness, double x, double y) {
  const double exponent = kind == SIGMOID ? fabs(steepness * x)
                          : kind == ERF   ? x * x / 2
                          : fabs(1.6 * x + 0.0714 * x * x * x);
  const double rounding = kind == TANH ? 0x1p-22 : 0x1p-23;
  return fabs(y) * (6e-7 + (x < 0 ? exponent * rounding : 0)) + 1e-35;
}

static float *numbers(index count, float largest) {
  float *x = allocate(count * 4);
  for (index i = 0; i < count; ++i)
    x[i] = ((float)random_u32() / 0x1p31f - 1.0f) * largest;
  return x;
}

typedef struct {
  index kind, batch, tokens, width, chunk;
  index gate_stride, gate_first, up_stride, up_first;
  float steepness, limit, up_offset;
  const float *gate, *up;
  const int32_t *lengths;
  int gated;
} activate_case;

static void call(const activate_case *c, float *out, index begin, index end) {
  if (c->gated)
    activate_gated(c->gate, c->up, c->lengths, out, c->gate_stride,
                   c->gate_first, c->up_stride, c->up_first,
                   (index)bits_of(c->limit), (index)bits_of(c->up_offset),
                   c->batch, c->tokens, c->width, c->chunk, c->kind,
                   (index)bits_of(c->steepness), begin, end);
  else
    activate(c->gate, c->lengths, out, c->gate_stride, c->gate_first, c->batch,
             c->tokens, c->width, c->chunk, c->kind,
             (index)bits_of(c->steepness), begin, end);
}

static void check_row(const activate_case *c, index row, const float *out) {
  const float *gate = c->gate + row * c->gate_stride + c->gate_first;
  const float *up = c->up + row * c->up_stride + c->up_first;
  for (index i = 0; i < c->width; ++i) {
    const double x = c->gated ? fminf(gate[i], c->limit) : gate[i];
    const double y = by_definition(c->kind, c->steepness, x);
    const double clipped = fmaxf(fminf(up[i], c->limit), -c->limit);
    const double factor = c->gated ? clipped + c->up_offset : 1;
    check_near("out", i, out[i], y * factor,
               tolerance(c->kind, c->steepness, x, y) * fabs(factor) +
                   fabs(y) * 0x1p-23);
  }
}

// Quantizes whole rows, or groups as the sum of some terms.
static void call_quantized(const activate_case *c, index terms, float *out,
                           void *q, float *scale, int16_t *sums, index end) {
#define OPERANDS c->gate, c->up, c->lengths, out
#define SIZES                                                                  \
  c->gate_stride, c->gate_first, c->up_stride, c->up_first,                    \
      (index)bits_of(c->limit), (index)bits_of(c->up_offset), c->batch,        \
      c->tokens, c->width, c->chunk, c->kind, (index)bits_of(c->steepness), 0, \
      end
  if (terms)
    activate_gated_q4(OPERANDS, (int8_t *)q, scale, sums, terms, SIZES);
  else
    activate_gated_q8(OPERANDS, (act_q8 *)q, scale, SIZES);
}

// Tests that quantized results are the results, as quantize.c's test defines them.
static void check_quantized(activate_case c) {
  const index width = c.width, rows = c.batch * c.tokens;
  c.gated = 1;
  for (index terms = 0; terms < (width % 32 ? 1 : 3); ++terms) {
    const int kept = buffer_count;
    const index size = terms ? 32 : width, all = terms ? terms : 1;
    const index count = rows * all * width / size;
    c.chunk = terms ? 32 * random_index(1, 3) : width;
    const index end = rows * divide_up(width, c.chunk);
    float *expected = allocate_results(rows * width);
    float *found = allocate_results(rows * width);
    float *scale = allocate_results(count);
    int16_t *sums = allocate(count * 2 * (index)sizeof *sums);
    act_q8 *q = allocate(rows * all * width * (index)sizeof *q);
    call(&c, expected, 0, end);
    call_quantized(&c, terms, found, q, scale, sums, end);
    for (index i = 0; i < rows * width; ++i)
      check_equal("bits", i, bits_of(found[i]), bits_of(expected[i]));
    for (index part = 0; part < count; ++part) {
      const index term = part * size / width, row = term / all;
      if (row % c.tokens >= c.lengths[row / c.tokens]) {
        check_untouched("padding", scale, part, part + 1);
        continue;
      }
      float *x = expected + row * width + part * size % width, largest = 0;
      for (index i = 0; i < size; ++i)
        largest = fmaxf(largest, fabsf(x[i]));
      // A smaller row counts as zero.
      largest = largest < 0x1p-120f ? 0 : largest;
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
      check_equal("scale", part, scale[part], largest / 127.0f);
      for (int half = 0; terms && half < 2; ++half)
        check_equal("sums", 2 * part + half, sums[2 * part + half],
                    (double)expected_sums[half]);
    }
    release_from(kept);
  }
}

static activate_case random_case(index width, index rows) {
  const index chunks[] = {1, 16, 20, 32, 2048};
  const float steepnesses[] = {1, 1.702f};
  activate_case c = {.kind = random_index(0, KINDS - 1), .width = width};
  const parts p = random_parts(rows);
  c.batch = p.batch, c.tokens = p.tokens, c.lengths = p.lengths;
  c.chunk = PICK(chunks), c.gated = (int)random_index(0, 1);
  c.steepness = steepnesses[random_index(0, 1)];
  c.limit = random_index(0, 1) ? 2.5f : INFINITY;
  c.up_offset = (float)random_index(0, 1);
  // Both are parts of one product, or neither is.
  const int shared = (int)random_index(0, 1);
  c.gate_first = random_index(0, 5);
  c.up_first = shared ? c.gate_first + width : random_index(0, 5);
  c.gate_stride = c.gate_first + width * (shared ? 2 : 1) + random_index(0, 5);
  c.up_stride = shared ? c.gate_stride : c.up_first + width;
  c.gate = numbers(rows * c.gate_stride, random_index(0, 1) ? 4.0f : 60.0f);
  c.up = shared ? c.gate : numbers(rows * c.up_stride, 4.0f);
  return c;
}

static void test_rows(void) {
  const index widths[] = {1, 5, 15, 16, 17, 31, 32, 33, 2048, 2050};
  for (int w = 0; w < 10; ++w)
    for (int repeat = 0; repeat < 40; ++repeat) {
      const index width = widths[w], rows = random_index(1, 6);
      const activate_case c = random_case(width, rows);
      const index chunks = divide_up(width, c.chunk);
      const index first = random_index(0, rows - 1);
      const index last = random_index(first, rows);
      at_case("%s, width %lld, chunk %lld%s", kind_names[c.kind],
              (long long)width, (long long)c.chunk, c.gated ? ", gated" : "");
      float *out = allocate_results(rows * width);
      call(&c, out, first * chunks, last * chunks);
      check_untouched("another call's row", out, 0, first * width);
      check_untouched("another call's row", out, last * width, rows * width);
      for (index row = first; row < last; ++row) {
        const float *found = out + row * width;
        if (row % c.tokens >= c.lengths[row / c.tokens]) {
          check_untouched("padding", found, 0, width);
          continue;
        }
        check_row(&c, row, found);
        // The same row alone, as one part.
        const int32_t one = 1;
        activate_case alone = c;
        alone.batch = alone.tokens = 1, alone.chunk = width;
        alone.gate += row * c.gate_stride, alone.up += row * c.up_stride;
        alone.lengths = &one;
        float *single = allocate_results(width);
        call(&alone, single, 0, 1);
        for (index i = 0; i < width; ++i)
          check_equal("bits", i, bits_of(found[i]), bits_of(single[i]));
        release_from(buffer_count - 1);
      }
      check_quantized(c);
      release_all();
    }
}

static void test_extremes(void) {
  const float extremes[] = {NAN,  -NAN,   INFINITY, 3e38f, -3e38f, 1e-40f,
                            0.0f, -1e-3f, 1e-30f,   90.0f, -90.0f, -200.0f};
  for (index kind = 0; kind < KINDS; ++kind) {
    at_case("%s of extremes", kind_names[kind]);
    const int32_t one = 1;
    float *x = allocate(12 * 4), *out = allocate_results(12);
    memcpy(x, extremes, sizeof extremes);
    activate_case c = {.kind = kind, .batch = 1, .tokens = 1, .width = 12,
                       .chunk = 12, .gate_stride = 12, .steepness = 1,
                       .gate = x, .up = x, .lengths = &one};
    call(&c, out, 0, 1);
    for (index i = 0; i < 12; ++i) {
      if (x[i] == -3e38f)
        continue; // NaN or any finite number: nothing computes with it
      const double y = isfinite(x[i]) ? by_definition(kind, 1, x[i]) : x[i];
      check_near("out", i, out[i], y, fabs(y) * 1e-6 + 1e-35);
    }
    release_all();
  }
}

// Tests that every instruction set gives the same bits.
static void test_bits(void) {
  at_case("bits of every instruction set");
  random_state = 1;
  uint32_t hash = 2166136261u;
  for (index width = 1; width < 300; ++width) {
    const activate_case c = random_case(width, 4);
    float *out = allocate_results(4 * width);
    call(&c, out, 0, 4 * divide_up(width, c.chunk));
    for (index i = 0; i < 4 * width; ++i)
      hash = (hash ^ bits_of(out[i])) * 16777619u;
    release_all();
  }
  check_equal("hash", 0, hash, 3157023932u);
}

int main(void) {
  begin_tests();
  test_rows();
  test_bits();
  test_extremes();
  return end_tests();
}
