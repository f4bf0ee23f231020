// Tests products of random weights. The reference reads weights by the definition of
// the layout. Bytes without a meaning in it are random too.

#include "check.h"
#include "cpu/kernels.h"

#define PANEL Q4_COLUMNS
#define GROUP 32
#define BLOCK (PANEL * GROUP / 2) // bytes of a group of a panel

typedef enum { RANDOM, ZERO, HIGHEST, LOWEST, SUBNORMAL, KINDS } kind;

static const char *const kind_names[KINDS] = {"random", "zero", "highest",
                                              "lowest", "subnormal scales"};

typedef struct {
  parts rows;
  index m, n, k, groups;
  uint8_t *w;
  uint16_t *w_scale;
  int8_t *a;
  float *a_scale, *out;
  int16_t *a_sums;
} problem;

static int nibble(const problem *p, index row, index at) {
  const index block = row / PANEL * p->groups + at / GROUP;
  const index quad = at % 16 / 4, element = at % 4;
  const uint8_t both =
      p->w[block * BLOCK + (quad * PANEL + row % PANEL) * 4 + element];
  return at % GROUP < 16 ? both & 15 : both >> 4;
}

static problem random_problem(kind of, parts rows, index n, index k) {
  const index m = rows.batch * rows.tokens;
  const index panels = divide_up(n, PANEL), groups = k / GROUP;
  const index bytes = panels * groups * BLOCK;
  const exponents scales = of == SUBNORMAL ? (exponents){-15, -15} : ORDINARY;
  problem p = {.rows = rows, .m = m, .n = n, .k = k, .groups = groups};
  p.w = (uint8_t *)(of == ZERO      ? extreme_bytes(bytes, 0, 0)
                    : of == HIGHEST ? extreme_bytes(bytes, -1, -1)
                                    : random_bytes(bytes, -128, 127));
  p.w_scale = random_elements(ELEMENT_F16, panels * groups * PANEL, scales);
  p.a = of == HIGHEST  ? extreme_bytes(m * k, 127, 127)
        : of == LOWEST ? extreme_bytes(m * k, -127, -127)
                       : random_bytes(m * k, -127, 127);
  p.a_scale = random_floats(m * groups, ORDINARY);
  p.a_sums = allocate(m * groups * 4);
  for (index half = 0; half < 2 * m * groups; ++half) {
    p.a_sums[half] = 0;
    for (index i = 0; i < 16; ++i)
      p.a_sums[half] += p.a[half * 16 + i];
  }
  p.out = allocate_results(m * n);
  return p;
}

static void call(const problem *p, index begin, index end) {
  matmul_q4(p->w, p->w_scale, p->a, p->a_scale, p->a_sums, p->rows.lengths,
            p->out, p->rows.batch, p->rows.tokens, p->n, p->k, begin, end);
}

static void check_one(const problem *p, index i, index j) {
  if (is_padding(&p->rows, i)) {
    check_untouched("padding", p->out, i * p->n + j, i * p->n + j + 1);
    return;
  }
  double expected = 0, magnitude = 0;
  for (index g = 0; g < p->groups; ++g) {
    index dot = 0, largest = 0;
    for (index at = g * GROUP; at < g * GROUP + GROUP; ++at) {
      const index a = p->a[i * p->k + at];
      dot += a * (nibble(p, j, at) - 8);
      largest += llabs(a) * 8;
    }
    const index panel = j / PANEL * p->groups + g;
    const double scale =
        (double)p->a_scale[i * p->groups + g] *
        float_from_f16_portable(p->w_scale[panel * PANEL + j % PANEL]);
    expected += (double)dot * scale;
    magnitude += (double)largest * fabs(scale);
  }
  check_near("out", i * p->n + j, p->out[i * p->n + j], expected,
             magnitude * (double)(p->groups + 4) * 0x1p-24);
}

static void test_case(kind of, index m, index n, index k) {
  at_case("matmul_q4, %s, %lld x %lld x %lld", kind_names[of], (long long)m,
          (long long)n, (long long)k);
  const problem p = random_problem(of, random_parts(m), n, k);
  const index panels = divide_up(n, PANEL), split = panels / 2;
  // The kernel may multiply panels in pairs; neither call may write the other half.
  if (m % 2) {
    call(&p, split, panels);
    check_columns_untouched(p.out, m, n, 0, split * PANEL);
    call(&p, 0, split);
  } else {
    call(&p, 0, split);
    check_columns_untouched(p.out, m, n, split * PANEL, n);
    call(&p, split, panels);
  }
  for (index i = 0; i < m; ++i)
    for (index j = 0; j < n; ++j)
      check_one(&p, i, j);
  release_all();
}

// Tests that a row's result depends neither on other rows of the call nor on its
// panels: m rows and all panels at once give the same bits as other divisions.
static void test_division(int single, index m, index n, index k) {
  at_case("matmul_q4, %lld x %lld x %lld, divided", (long long)m, (long long)n,
          (long long)k);
  const problem p = random_problem(RANDOM, whole(m), n, k);
  const index panels = divide_up(n, PANEL);
  float *out = allocate_results(m * n);
  call(&p, 0, panels);
  for (index row = 0; row < m;) {
    const int32_t rows = (int32_t)rows_of_call(single, row, m);
    const index split = random_index(0, panels);
    problem part = p;
    part.rows = (parts){1, rows, (int32_t *)&rows};
    part.a = p.a + row * k;
    part.a_scale = p.a_scale + row * p.groups;
    part.a_sums = p.a_sums + row * 2 * p.groups;
    part.out = out + row * n;
    call(&part, split, panels);
    call(&part, 0, split);
    row += rows;
  }
  check_same(out, p.out, m * n);
  release_all();
}

// Tests groups with infinity or NaN, as quantize.c returns them.
static void test_not_finite(index m) {
  const float bad[] = {INFINITY, NAN};
  for (int b = 0; b < 2; ++b) {
    at_case("matmul_q4, a scale of %g", bad[b]);
    const problem p = random_problem(RANDOM, whole(m), 20, 64);
    const index row = 2, group = row * p.groups + 1;
    memset(p.a + group * GROUP, 0, GROUP);
    p.a_scale[group] = bad[b];
    p.a_sums[2 * group] = p.a_sums[2 * group + 1] = 0;
    call(&p, 0, divide_up(p.n, PANEL));
    for (index i = 0; i < p.m * p.n; ++i)
      check_equal("is NaN", i, isnan(p.out[i]) != 0, i / p.n == row);
    release_all();
  }
}

static void test_experts(void) {
  const mixture x = random_mixture();
  const index n = random_index(1, 70), k = GROUP * random_index(1, 9);
  const index panels = divide_up(n, PANEL), groups = k / GROUP;
  const index items = x.segments * divide_up(n, PANEL);
  const index middle = random_index(0, items);
  at_case("matmul_q4_experts, %lld x %lld x %lld of %lld", (long long)x.rows,
          (long long)n, (long long)k, (long long)x.count);
  const problem p = random_problem(RANDOM, whole(x.rows),
                                   x.count * panels * PANEL, k);
  float *out = allocate_results(x.rows * n);
  float *expected = allocate_results(x.rows * n);
  matmul_q4_experts(p.w, p.w_scale, p.a, p.a_scale, p.a_sums, x.experts,
                    x.begins, out, n, k, middle, items);
  matmul_q4_experts(p.w, p.w_scale, p.a, p.a_scale, p.a_sums, x.experts,
                    x.begins, out, n, k, 0, middle);
  for (index s = 0; s < x.segments; ++s) {
    const index row = x.begins[s], first = x.experts[s] * panels;
    const int32_t rows = x.begins[s + 1] - x.begins[s];
    matmul_q4(p.w + first * groups * BLOCK, p.w_scale + first * groups * PANEL,
              p.a + row * k, p.a_scale + row * groups,
              p.a_sums + row * 2 * groups, &rows, expected + row * n, 1, rows, n,
              k, 0, panels);
  }
  check_same(out, expected, x.rows * n);
  release_all();
}

int main(void) {
  begin_tests();
  for (kind of = 0; of < KINDS; ++of) {
    for (index m = 1; m <= 20; ++m)
      test_case(of, m, random_index(1, 70), GROUP * random_index(1, 6));
    for (index n = 55; n <= 80; n += 3)
      test_case(of, 1, n, GROUP * random_index(1, 6)); // several panels at once
    test_case(of, 61, 9, 544);
    test_case(of, 5, 17, 4128);
    test_case(of, 1, 8, 32);
  }
  for (index m = 1; m <= 40; ++m)
    test_division(m % 2, m, random_index(1, 150), GROUP * random_index(1, 6));
  test_division(1, 130, 70, 64);
  test_division(0, 300, 35, 96);
  test_division(0, 9, 65, 4128);
  test_not_finite(4);
  test_not_finite(20);
  for (int i = 0; i < 60; ++i)
    test_experts();
  return end_tests();
}
