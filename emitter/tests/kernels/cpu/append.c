// Tests rotation of queries and keys, and that keys and values get to their places
// in the cache, and nothing to others.

#include "cpu/kernels.h"
#include "pages_case.h"

typedef struct {
  problem cache; // its contents are those after the call, as expected
  index q_stride, q_offset, k_stride, k_offset, v_stride, v_offset;
  index rope_width, interleaved;
  float q_scale;
  float *q, *k, *v, *cos, *sin;
  float *q_out; // expected
} call;

// ----------------------------------------------------------------- input

// Gives q, k and v buffers of their own, or lets them be parts of one product.
static void place_inputs(call *c, exponents range) {
  const problem *p = &c->cache;
  const index q = p->heads * p->head_dim, k = p->kv_heads * p->head_dim;
  if (random_index(0, 1)) {
    const index stride = q + 2 * k + random_index(0, 3);
    c->q_stride = c->k_stride = c->v_stride = stride;
    c->q_offset = 2 * k;
    c->v_offset = k;
    c->q = c->k = c->v = random_floats(p->rows * stride, range);
    return;
  }
  c->q_stride = q;
  c->k_stride = k + 5;
  c->v_stride = k;
  c->k_offset = 2;
  c->q = random_floats(p->rows * c->q_stride, range);
  c->k = random_floats(p->rows * c->k_stride, range);
  c->v = random_floats(p->rows * c->v_stride, range);
}

static call random_call(element_type type, shape of, exponents range) {
  call c = {.cache = random_problem(type, of)};
  const problem *p = &c.cache;
  c.rope_width = random_index(0, 2) ? p->head_dim / 2 * 2
                                    : random_index(0, p->head_dim / 2) * 2;
  c.interleaved = random_index(0, 1);
  c.q_scale = random_index(0, 1) ? 0.125f * LOG2_E : 1.0f;
  c.cos = random_floats(p->rows * c.rope_width / 2, ORDINARY);
  c.sin = random_floats(p->rows * c.rope_width / 2, ORDINARY);
  place_inputs(&c, range);
  return c;
}

// --------------------------------------------------------------- expected

// Returns one dimension of a rotated head.
static float rotated(const call *c, const float *x, index row, index d) {
  const index half = c->rope_width / 2;
  if (d >= c->rope_width)
    return x[d];
  const index pair = c->interleaved ? d / 2 : d % half;
  const int is_second = c->interleaved ? d % 2 : d >= half;
  const index other = c->interleaved ? d ^ 1 : is_second ? d - half : d + half;
  const float cos = c->cos[row * half + pair], sin = c->sin[row * half + pair];
  const float here = x[d] * cos, there = x[other] * sin;
  return is_second ? here + there : here - there;
}

static void expect_group(problem *p, index half, index s, index h,
                         index position, index group, const float *x) {
  float largest = 0;
  for (index i = 0; i < CACHE_GROUP; ++i)
    if (isnan(x[i]) || fabsf(x[i]) > largest)
      largest = isnan(largest) ? largest : fabsf(x[i]);
  // NaN and inf are their group's scale.
  const int is_zero = !isfinite(largest) || largest < 0x1p-120f;
  const float scale =
      !isfinite(largest) ? largest : is_zero ? 0 : largest / 127;
  p->scales[scale_of(p, p->layer, half, s, h, position, group)] =
      f16_from_float_portable(scale);
  for (index i = 0; i < CACHE_GROUP; ++i)
    ((int8_t *)p->cache)[element_of(p, p->layer, half, s, h, position,
                                    group * CACHE_GROUP + i)] =
        (int8_t)(is_zero ? 0 : nearbyintf(x[i] * (127 / largest)));
}

// Puts a head's keys or values into the cache.
static void expect_half(call *c, index half, index row, index h) {
  problem *p = &c->cache;
  const index s = sequence_of(p, row);
  const index position = p->starts[s] + row - p->begins[s];
  const float *x = half ? c->v + row * c->v_stride + c->v_offset
                        : c->k + row * c->k_stride + c->k_offset;
  float all[256];
  for (index d = 0; d < p->head_dim; ++d) {
    const float value = half ? x[h * p->head_dim + d]
                             : rotated(c, x + h * p->head_dim, row, d);
    const index at = element_of(p, p->layer, half, s, h, position, d);
    all[d] = value;
    if (p->type == ELEMENT_F32)
      ((float *)p->cache)[at] = value;
    else if (p->type != ELEMENT_Q8)
      ((uint16_t *)p->cache)[at] = p->type == ELEMENT_BF16
                                       ? bf16_from_float(value)
                                       : f16_from_float_portable(value);
  }
  for (index g = 0; p->type == ELEMENT_Q8 && g < p->head_dim / CACHE_GROUP; ++g)
    expect_group(p, half, s, h, position, g, all + g * CACHE_GROUP);
}

static void expect(call *c) {
  problem *p = &c->cache;
  c->q_out = allocate_results(p->rows * p->heads * p->head_dim);
  for (index row = 0; row < real_count(p); ++row) {
    for (index h = 0; h < p->kv_heads; ++h) {
      expect_half(c, 0, row, h);
      expect_half(c, 1, row, h);
    }
    for (index i = 0; i < p->heads * p->head_dim; ++i) {
      const index d = i % p->head_dim;
      const float *head = c->q + row * c->q_stride + c->q_offset + i - d;
      c->q_out[row * p->heads * p->head_dim + i] =
          rotated(c, head, row, d) * c->q_scale;
    }
  }
}

// ------------------------------------------------------------------ tests

static void do_items(const call *c, void *cache, uint16_t *scales, float *q_out,
                     index begin, index end) {
  const problem *p = &c->cache;
#define READ c->q, c->k, c->v, c->cos, c->sin, p->begins, p->starts, p->pages
#define ARGUMENTS                                                              \
  q_out, p->layer, p->rows, p->sequences, p->heads, p->kv_heads, p->head_dim,  \
      p->parts, p->table, c->q_stride, c->q_offset, c->k_stride, c->k_offset,  \
      c->v_stride, c->v_offset, c->rope_width, c->interleaved,                 \
      (index)bits_of(c->q_scale), p->items, begin, end
  switch (p->type) {
  case ELEMENT_F32: append_f32(READ, cache, ARGUMENTS); break;
  case ELEMENT_BF16: append_bf16(READ, cache, ARGUMENTS); break;
  case ELEMENT_F16: append_f16(READ, cache, ARGUMENTS); break;
  case ELEMENT_Q8: append_q8(READ, cache, scales, ARGUMENTS); break;
  }
#undef READ
#undef ARGUMENTS
}

// Compares bits, except those of NaN.
static void check_elements(const char *what, element_type type,
                           const void *found, const void *expected,
                           index count) {
  for (index i = 0; i < count; ++i) {
    const float x = load_element(found, type, i);
    const float y = load_element(expected, type, i);
    ++checks;
    if (isnan(x) ? !isnan(y) : bits_of(x) != bits_of(y))
      fail(what, i, x, y);
  }
}

static void *copy_of(const void *from, index bytes) {
  return memcpy(allocate(bytes), from, (size_t)bytes);
}

static void test_call(call c) {
  problem *p = &c.cache;
  const index count = cache_count(p), bytes = count * element_size(p->type);
  const index scales_count = p->scales ? count / CACHE_GROUP : 0;
  void *cache = copy_of(p->cache, bytes);
  uint16_t *scales = p->scales ? copy_of(p->scales, scales_count * 2) : NULL;
  expect(&c);
  const index results = p->rows * p->heads * p->head_dim;
  float *q_out = allocate_results(results);
  for (index end = p->items; end > 0;) {
    const index begin = random_index(0, end - 1);
    do_items(&c, cache, scales, q_out, begin, end);
    end = begin;
  }
  check_elements("cache", p->type, cache, p->cache, count);
  check_elements("scales", ELEMENT_F16, scales, p->scales, scales_count);
  check_elements("q", ELEMENT_F32, q_out, c.q_out, results);
  check_untouched("padding", q_out, real_count(p) * p->heads * p->head_dim,
                  results);
  release_all();
}

static const index head_dims[] = {1,  2,  4,  6,  10, 12,  15,  16,  31, 32,
                                  32, 64, 65, 80, 96, 128, 160, 192, 256};

static void test_shapes(void) {
  const index rows[] = {1, 5, 70, 200};
  for (int i = 0; i < 19; i += ONE_IN)
    for (int t = 0; t < TYPES; ++t)
      for (int r = 0; r < 4; ++r) {
        const element_type type = (element_type)t;
        if (type == ELEMENT_Q8 && head_dims[i] % CACHE_GROUP != 0)
          continue;
        const shape of = {head_dims[i], rows[r], 150, 0};
        // The second range has numbers that f16 has not: subnormal ones and inf.
        test_call(random_call(type, of, ORDINARY));
        test_call(random_call(type, of, (exponents){-30, 18}));
      }
}

// Tests infinity and NaN, and groups that are zero.
static void test_not_finite(void) {
  const float extremes[] = {NAN, INFINITY, -INFINITY, 3e38f};
  for (int t = 0; t < TYPES; ++t)
    for (int i = 0; i < 5; ++i) {
      call c = random_call((element_type)t, (shape){64, 20, 100, 0},
                           i == 4 ? (exponents){-126, -122} : ORDINARY);
      const index k = random_index(0, c.cache.rows * c.k_stride - 1);
      const index v = random_index(0, c.cache.rows * c.v_stride - 1);
      if (i < 4) {
        c.k[k] = extremes[i];
        c.v[v] = extremes[i];
      }
      test_call(c);
    }
}

int main(void) {
  begin_tests();
  test_shapes();
  test_not_finite();
  return end_tests();
}
