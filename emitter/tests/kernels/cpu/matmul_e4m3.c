// Tests products of weights in E4M3. The reference decodes them by their definition.

#include "check.h"
#include "cpu/kernels.h"

#define PANEL 16

typedef struct {
  parts rows;
  index m, n, k, group, groups;
  element_type type; // of scales
  uint8_t *w, *w_scale;
  float *a, *out;
} problem;

// Returns the number of a code: OCP's specification of 8-bit floats.
static double number_of(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double magnitude =
      exponent == 15 && mantissa == 7 ? NAN
      : exponent == 0                 ? ldexp(mantissa, -9)
                                      : ldexp(8 + mantissa, exponent - 10);
  return code & 128 ? -magnitude : magnitude;
}

static int is_number(uint8_t code) { return (code & 127) != 127; }

static problem random_problem(parts rows, index n, index k) {
  const index types[] = {ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16};
  const index sizes[] = {32, 128, 130, k};
  const index panels = divide_up(n, PANEL);
  problem p = {.rows = rows, .m = rows.batch * rows.tokens, .n = n, .k = k};
  p.type = (element_type)PICK(types);
  p.group = min_index(PICK(sizes), k);
  p.groups = divide_up(k, p.group);
  p.w = (uint8_t *)random_bytes(panels * PANEL * k, -128, 127);
  for (index i = 0; i < panels * PANEL * k; ++i)
    if (!is_number(p.w[i]))
      p.w[i] = 0;
  p.w_scale = random_elements(p.type, panels * PANEL * p.groups, ORDINARY);
  p.a = random_floats(p.m * k, ORDINARY);
  p.out = allocate_results(p.m * n);
  return p;
}

static void call(const problem *p, index begin, index end) {
  matmul_e4m3(p->w, p->w_scale, p->a, p->rows.lengths, p->out, p->rows.batch,
              p->rows.tokens, p->n, p->k, p->group, p->type, begin, end);
}

static void check_one(const problem *p, index i, index j) {
  if (is_padding(&p->rows, i)) {
    check_untouched("padding", p->out, i * p->n + j, i * p->n + j + 1);
    return;
  }
  const index panel = j / PANEL, lane = j % PANEL;
  double expected = 0, magnitude = 0;
  for (index at = 0; at < p->k; ++at) {
    const uint8_t code = p->w[(panel * p->k + at) * PANEL + lane];
    const index group = panel * p->groups + at / p->group;
    const double scale =
        load_element(p->w_scale, p->type, group * PANEL + lane);
    const double product = p->a[i * p->k + at] * number_of(code) * scale;
    expected += product;
    magnitude += fabs(product);
  }
  check_near("out", i * p->n + j, p->out[i * p->n + j], expected,
             (magnitude * 0x1p-24 + 0x1p-149) * (double)(p->k + 4));
}

static void test_case(index m, index n, index k) {
  const problem p = random_problem(random_parts(m), n, k);
  const index panels = divide_up(n, PANEL), split = panels / 2;
  at_case("matmul_e4m3, %lld x %lld x %lld, groups of %lld, scales of type %d",
          (long long)m, (long long)n, (long long)k, (long long)p.group, p.type);
  call(&p, split, panels);
  check_columns_untouched(p.out, m, n, 0, split * PANEL);
  call(&p, 0, split);
  for (index i = 0; i < m; ++i)
    for (index j = 0; j < n; ++j)
      check_one(&p, i, j);
  release_all();
}

// Tests that every code is its number, and that NaN affects its column alone.
static void test_codes(void) {
  at_case("all codes");
  problem p = random_problem(whole(1), 256, 1);
  p.type = ELEMENT_F32;
  p.group = p.groups = 1;
  p.w_scale = (uint8_t *)random_floats(256, ORDINARY);
  *p.a = 1;
  for (int code = 0; code < 256; ++code) {
    ((float *)p.w_scale)[code] = 1;
    p.w[code] = (uint8_t)code;
  }
  call(&p, 0, 256 / PANEL);
  for (int code = 0; code < 256; ++code) {
    if (is_number((uint8_t)code))
      check_equal("number", code, p.out[code], number_of((uint8_t)code));
    else
      check_equal("is NaN", code, isnan(p.out[code]) != 0, 1);
  }
  release_all();
}

// Tests that a row's result depends neither on other rows of the call nor on its
// panels.
static void test_division(int single, index m, index n, index k) {
  const problem p = random_problem(whole(m), n, k);
  const index panels = divide_up(n, PANEL);
  float *out = allocate_results(m * n);
  at_case("matmul_e4m3, %lld x %lld x %lld, divided", (long long)m, (long long)n,
          (long long)k);
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

static void test_experts(void) {
  const mixture x = random_mixture();
  const index n = random_index(1, 70), k = random_index(1, 300);
  const index panels = divide_up(n, PANEL), items = x.segments * panels;
  const index middle = random_index(0, items);
  const problem p = random_problem(whole(x.rows), x.count * panels * PANEL, k);
  float *out = allocate_results(x.rows * n);
  problem part = p;
  part.out = allocate_results(x.rows * n);
  const float *expected = part.out;
  at_case("experts, %lld x %lld x %lld of %lld", (long long)x.rows, (long long)n,
          (long long)k, (long long)x.count);
  for (int second = 0; second < 2; ++second)
    matmul_e4m3_experts(p.w, p.w_scale, p.a, x.experts, x.begins, out, n, k,
                        p.group, p.type, second ? 0 : middle,
                        second ? middle : items);
  for (index s = 0; s < x.segments; ++s) {
    const index row = x.begins[s], first = x.experts[s] * panels * PANEL;
    const int32_t rows = x.begins[s + 1] - x.begins[s];
    part.w = p.w + first * k;
    part.w_scale = p.w_scale + first * p.groups * element_size(p.type);
    part.a = p.a + row * k;
    part.out = (float *)expected + row * n;
    part.n = n;
    part.rows = (parts){1, rows, (int32_t *)&rows};
    call(&part, 0, panels);
  }
  check_same(out, expected, x.rows * n);
  release_all();
}

int main(void) {
  begin_tests();
  test_codes();
  for (index m = 1; m <= 24; ++m)
    test_case(m, random_index(1, 70), random_index(1, 300));
  for (index n = 110; n <= 160; n += 5)
    test_case(1, n, random_index(1, 300)); // several panels at once
  test_case(31, 33, 257);
  test_case(7, 35, 4100);
  test_case(1, 1, 1);
  for (index m = 1; m <= 20; ++m)
    test_division(m % 2, m, random_index(1, 150), random_index(1, 300));
  test_division(1, 40, 70, 257);
  test_division(0, 60, 35, 130);
  test_division(0, 9, 65, 4100);
  for (int i = 0; i < 30; ++i)
    test_experts();
  return end_tests();
}
