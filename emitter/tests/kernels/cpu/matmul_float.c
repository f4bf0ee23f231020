// Tests products of random weights. The reference reads weights by the definition of
// the layout.

#include "check.h"
#include "cpu/kernels.h"

#define PANEL 16

static const char *const type_names[] = {"f32", "bf16", "f16"};

// Ranges of magnitudes whose products and sums are finite.
typedef struct {
  const char *name;
  exponents weights, activations;
} kind;

static const kind kinds[] = {
    {"ordinary", {-4, 0}, {-4, 0}},
    {"large weights", {100, 110}, {-40, -20}},
    {"subnormal weights", {-127, -127}, {10, 20}},
    {"subnormal activations", {-4, 10}, {-127, -127}},
    {"wide", {-55, 55}, {-55, 55}},
};
#define KINDS (sizeof kinds / sizeof *kinds)

typedef struct {
  element_type type;
  parts rows;
  index m, n, k;
  void *w;
  float *a, *out;
} problem;

static problem random_problem(element_type type, const kind *of, parts rows,
                              index n, index k) {
  const index m = rows.batch * rows.tokens;
  const index weights = divide_up(n, PANEL) * PANEL * k;
  problem p = {.type = type, .rows = rows, .m = m, .n = n, .k = k};
  p.w = random_elements(type, weights, of->weights);
  p.a = random_floats(m * k, of->activations);
  p.out = allocate_results(m * n);
  return p;
}

static void call(const problem *p, index begin, index end) {
  switch (p->type) {
  case ELEMENT_F32:
    matmul_f32(p->w, p->a, p->rows.lengths, p->out, p->rows.batch,
               p->rows.tokens, p->n, p->k, begin, end);
    break;
  case ELEMENT_BF16:
    matmul_bf16(p->w, p->a, p->rows.lengths, p->out, p->rows.batch,
                p->rows.tokens, p->n, p->k, begin, end);
    break;
  case ELEMENT_Q8: // has its own kernels
    break;
  case ELEMENT_F16:
    matmul_f16(p->w, p->a, p->rows.lengths, p->out, p->rows.batch,
               p->rows.tokens, p->n, p->k, begin, end);
    break;
  }
}

static double weight(const problem *p, index row, index at) {
  const index panel = row / PANEL;
  return load_element(p->w, p->type,
                      (panel * p->k + at) * PANEL + row % PANEL);
}

static void check_one(const problem *p, index i, index j) {
  if (is_padding(&p->rows, i)) {
    check_untouched("padding", p->out, i * p->n + j, i * p->n + j + 1);
    return;
  }
  double expected = 0, magnitude = 0;
  for (index at = 0; at < p->k; ++at) {
    const double product = p->a[i * p->k + at] * weight(p, j, at);
    expected += product;
    magnitude += fabs(product);
  }
  // Each of k products and sums may round once, in any order.
  check_near("out", i * p->n + j, p->out[i * p->n + j], expected,
             (magnitude * 0x1p-24 + 0x1p-149) * (double)(p->k + 1));
}

static void test_case(element_type type, const kind *of, index m, index n,
                      index k) {
  at_case("matmul_%s, %s, %lld x %lld x %lld", type_names[type], of->name,
          (long long)m, (long long)n, (long long)k);
  const problem p = random_problem(type, of, random_parts(m), n, k);
  const index panels = divide_up(n, PANEL), split = panels / 2;
  call(&p, split, panels);
  check_columns_untouched(p.out, m, n, 0, split * PANEL);
  call(&p, 0, split);
  for (index i = 0; i < m; ++i)
    for (index j = 0; j < n; ++j)
      check_one(&p, i, j);
  release_all();
}

// Tests that a row's result depends neither on other rows of the call nor on its
// panels: m rows and all panels at once give the same bits as other divisions.
static void test_division(element_type type, const kind *of, int single,
                          index m, index n, index k) {
  at_case("matmul_%s, %s, %lld x %lld x %lld, divided", type_names[type],
          of->name, (long long)m, (long long)n, (long long)k);
  const problem p = random_problem(type, of, whole(m), n, k);
  const index panels = divide_up(n, PANEL);
  float *out = allocate_results(m * n);
  call(&p, 0, panels);
  for (index row = 0; row < m;) {
    const int32_t rows = (int32_t)rows_of_call(single, row, m);
    const index split = random_index(0, panels);
    problem part = p;
    part.rows = (parts){1, rows, (int32_t *)&rows};
    part.a = p.a + row * k;
    part.out = out + row * n;
    call(&part, split, panels);
    call(&part, 0, split);
    row += rows;
  }
  check_same(out, p.out, m * n);
  release_all();
}

// Tests that infinity and NaN affect their row, and no other.
static void test_not_finite(element_type type) {
  const float bad[] = {INFINITY, NAN};
  for (int b = 0; b < 2; ++b) {
    at_case("matmul_%s, an activation of %g", type_names[type], bad[b]);
    const problem p = random_problem(type, &kinds[0], whole(8), 20, 33);
    p.a[5 * p.k + 32] = bad[b];
    call(&p, 0, divide_up(p.n, PANEL));
    for (index i = 0; i < p.m * p.n; ++i)
      check_equal("is finite", i, isfinite(p.out[i]) != 0, i / p.n != 5);
    release_all();
  }
}

static void test_experts(element_type type) {
  const mixture x = random_mixture();
  const index n = random_index(1, 70), k = random_index(1, 300);
  const index lanes = divide_up(n, PANEL) * PANEL;
  const index items = x.segments * divide_up(n, PANEL);
  const index middle = random_index(0, items);
  at_case("experts of type %d, %lld x %lld x %lld of %lld", type,
          (long long)x.rows, (long long)n, (long long)k, (long long)x.count);
  const problem p =
      random_problem(type, &kinds[0], whole(x.rows), x.count * lanes, k);
  float *out = allocate_results(x.rows * n);
  problem part = p;
  part.out = allocate_results(x.rows * n);
  for (int second = 0; second < 2; ++second) {
    const index begin = second ? 0 : middle, end = second ? middle : items;
    if (type == ELEMENT_F32)
      matmul_f32_experts(p.w, p.a, x.experts, x.begins, out, n, k, begin, end);
    else if (type == ELEMENT_BF16)
      matmul_bf16_experts(p.w, p.a, x.experts, x.begins, out, n, k, begin, end);
    else
      matmul_f16_experts(p.w, p.a, x.experts, x.begins, out, n, k, begin, end);
  }
  const float *expected = part.out;
  for (index s = 0; s < x.segments; ++s) {
    const index row = x.begins[s];
    const int32_t rows = x.begins[s + 1] - x.begins[s];
    part.w = (char *)p.w + x.experts[s] * lanes * k * element_size(type);
    part.a = p.a + row * k;
    part.out = (float *)expected + row * n;
    part.n = n;
    part.rows = (parts){1, rows, (int32_t *)&rows};
    call(&part, 0, lanes / PANEL);
  }
  check_same(out, expected, x.rows * n);
  release_all();
}

int main(void) {
  begin_tests();
  for (int type = 0; type < 3; ++type) {
    const element_type of = (element_type)type;
    for (const kind *k = kinds; k < kinds + KINDS; ++k) {
      for (index m = 1; m <= 24; ++m)
        test_case(of, k, m, random_index(1, 70), random_index(1, 130));
      for (index n = 110; n <= 160; n += 5)
        test_case(of, k, 1, n, random_index(1, 130)); // several panels at once
      test_case(of, k, 31, 33, 257);
      test_case(of, k, 7, 35, 4100);
      test_case(of, k, 1, 1, 1);
    }
    for (index m = 1; m <= 40; ++m)
      test_division(of, &kinds[0], m % 2, m, random_index(1, 150),
                    random_index(1, 130));
    test_division(of, &kinds[4], 1, 33, 130, 257);
    test_division(of, &kinds[0], 1, 130, 70, 33);
    test_division(of, &kinds[0], 0, 200, 35, 130);
    test_division(of, &kinds[0], 0, 9, 65, 4100);
    test_not_finite(of);
  }
  for (int i = 0; i < 30; ++i) {
    test_experts(ELEMENT_F32);
    test_experts(ELEMENT_BF16);
    test_experts(ELEMENT_F16);
  }
  return end_tests();
}
