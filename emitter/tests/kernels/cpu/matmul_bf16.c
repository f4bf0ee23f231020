// Tests products of random weights and activations. The reference reads weights by
// the definition of the layout. Subnormal numbers may count as zero.

#include "check.h"
#include "cpu/kernels.h"

#define PANEL 16
#define PAIR 2

// Ranges of magnitudes whose products and sums are finite and normal.
typedef struct {
  const char *name;
  exponents weights, activations;
} kind;

static const kind kinds[] = {
    {"ordinary", {-4, 0}, {-4, 0}},
    {"large weights", {100, 110}, {-40, -20}},
    {"wide", {-55, 55}, {-55, 55}},
    {"subnormal weights", {-127, -127}, {10, 20}},
};
#define KINDS (sizeof kinds / sizeof *kinds)

typedef struct {
  parts rows;
  index m, n, k;
  uint16_t *w, *a;
  float *out;
} problem;

static problem random_problem(const kind *of, parts rows, index n, index k) {
  const index m = rows.batch * rows.tokens;
  const index weights = divide_up(n, PANEL) * PANEL * k;
  problem p = {.rows = rows, .m = m, .n = n, .k = k};
  p.w = random_elements(ELEMENT_BF16, weights, of->weights);
  p.a = random_elements(ELEMENT_BF16, m * k, of->activations);
  p.out = allocate_results(m * n);
  return p;
}

static void call(const problem *p, index begin, index end) {
  matmul_bf16_pairs(p->w, p->a, p->rows.lengths, p->out, p->rows.batch,
                    p->rows.tokens, p->n, p->k, begin, end);
}

static double weight(const problem *p, index row, index at) {
  const index pair = row / PANEL * (p->k / PAIR) + at / PAIR;
  return float_from_bf16(
      p->w[(pair * PANEL + row % PANEL) * PAIR + at % PAIR]);
}

static void check_one(const problem *p, index i, index j) {
  if (is_padding(&p->rows, i)) {
    check_untouched("padding", p->out, i * p->n + j, i * p->n + j + 1);
    return;
  }
  double expected = 0, magnitude = 0, vanishing = 0;
  for (index at = 0; at < p->k; ++at) {
    const double a = float_from_bf16(p->a[i * p->k + at]);
    const double w = weight(p, j, at), product = fabs(a * w);
    expected += a * w;
    magnitude += product;
    vanishing += fabs(w) < 0x1p-126 ? product : 0;
  }
  // Each of k products and sums may round once, in any order.
  const double rounding = magnitude * 0x1p-24 + 0x1p-126;
  check_near("out", i * p->n + j, p->out[i * p->n + j], expected,
             vanishing + rounding * (double)(p->k + 1));
}

static void test_case(const kind *of, index m, index n, index k) {
  at_case("matmul_bf16_pairs, %s, %lld x %lld x %lld", of->name, (long long)m,
          (long long)n, (long long)k);
  const problem p = random_problem(of, random_parts(m), n, k);
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
static void test_division(const kind *of, int single, index m, index n,
                          index k) {
  at_case("matmul_bf16_pairs, %s, %lld x %lld x %lld, divided", of->name,
          (long long)m, (long long)n, (long long)k);
  const problem p = random_problem(of, whole(m), n, k);
  const index panels = divide_up(n, PANEL);
  float *out = allocate_results(m * n);
  call(&p, 0, panels);
  for (index row = 0; row < m;) {
    const int32_t rows = (int32_t)rows_of_call(single, row, m);
    const index split = random_index(0, panels);
    const problem part = {.rows = {1, rows, (int32_t *)&rows},
                          .m = rows,
                          .n = n,
                          .k = k,
                          .w = p.w,
                          .a = p.a + row * k,
                          .out = out + row * n};
    call(&part, split, panels);
    call(&part, 0, split);
    row += rows;
  }
  check_same(out, p.out, m * n);
  release_all();
}

// Tests that infinity and NaN affect their row, and no other.
static void test_not_finite(index m) {
  const uint16_t bad[] = {0x7f80, 0x7fc0};
  for (int b = 0; b < 2; ++b) {
    at_case("matmul_bf16_pairs, an activation of %g", float_from_bf16(bad[b]));
    const problem p = random_problem(&kinds[0], whole(m), 20, 34);
    p.a[5 * p.k + 33] = bad[b];
    call(&p, 0, divide_up(p.n, PANEL));
    for (index i = 0; i < p.m * p.n; ++i)
      check_equal("is finite", i, isfinite(p.out[i]) != 0, i / p.n != 5);
    release_all();
  }
}

static void test_experts(void) {
  const mixture x = random_mixture();
  const index n = random_index(1, 70), k = PAIR * random_index(1, 150);
  const index lanes = divide_up(n, PANEL) * PANEL;
  const index items = x.segments * divide_up(n, PANEL);
  const index middle = random_index(0, items);
  at_case("matmul_bf16_pairs_experts, %lld x %lld x %lld of %lld",
          (long long)x.rows, (long long)n, (long long)k, (long long)x.count);
  const problem p =
      random_problem(&kinds[0], whole(x.rows), x.count * lanes, k);
  float *out = allocate_results(x.rows * n);
  float *expected = allocate_results(x.rows * n);
  matmul_bf16_pairs_experts(p.w, p.a, x.experts, x.begins, out, n, k, middle,
                            items);
  matmul_bf16_pairs_experts(p.w, p.a, x.experts, x.begins, out, n, k, 0,
                            middle);
  for (index s = 0; s < x.segments; ++s) {
    const index row = x.begins[s];
    const int32_t rows = x.begins[s + 1] - x.begins[s];
    matmul_bf16_pairs(p.w + x.experts[s] * lanes * k, p.a + row * k, &rows,
                      expected + row * n, 1, rows, n, k, 0, lanes / PANEL);
  }
  check_same(out, expected, x.rows * n);
  release_all();
}

int main(void) {
  begin_tests();
  for (const kind *of = kinds; of < kinds + KINDS; ++of) {
    for (index m = 1; m <= 24; ++m)
      test_case(of, m, random_index(1, 70), PAIR * random_index(1, 65));
    test_case(of, 31, 33, 258);
    test_case(of, 7, 35, 4100);
    test_case(of, 1, 1, 2);
  }
  for (index m = 1; m <= 40; ++m)
    test_division(&kinds[0], m % 2, m, random_index(1, 150),
                  PAIR * random_index(1, 65));
  test_division(&kinds[2], 1, 33, 130, 258);
  test_division(&kinds[0], 1, 130, 70, 34);
  test_division(&kinds[0], 0, 200, 35, 130);
  test_division(&kinds[0], 0, 9, 65, 4100);
  test_not_finite(8);
  test_not_finite(20);
  for (int i = 0; i < 60; ++i)
    test_experts();
  return end_tests();
}
