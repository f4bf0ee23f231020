// Tests products of matrices and vectors against doubles, and that bits do not depend
// on the division into calls.

#include "check.h"
#include "cpu/kernels.h"

typedef void product(const float *, const float *, float *, index, index, index,
                     index);

typedef struct {
  const float *a, *x; // [rows][columns], and as many as are summed over
  index rows, columns;
  int of_columns;
} product_case;

static product *function_of(const product_case *c) {
  return c->of_columns ? product_of_columns : product_of_rows;
}

// The number of results, and of items of the kernel.
static index results_of(const product_case *c) {
  return c->of_columns ? c->columns : c->rows;
}
static index items_of(const product_case *c) {
  return c->of_columns ? divide_up(c->columns, 16) : c->rows;
}

static void check_results(const product_case *c, const float *out) {
  const index count = c->of_columns ? c->rows : c->columns;
  for (index i = 0; i < results_of(c); ++i) {
    double sum = 0, size = 0;
    for (index k = 0; k < count; ++k) {
      const index at = c->of_columns ? k * c->columns + i : i * c->columns + k;
      const double term = (double)c->a[at] * (double)c->x[k];
      sum += term;
      size += fabs(term);
    }
    check_near("out", i, out[i], sum, size * (double)(count + 4) * 0x1p-24);
  }
}

static void test_case(int of_columns, int has_infinity) {
  product_case c = {.rows = random_index(1, 70), .columns = random_index(16, 150)};
  c.of_columns = of_columns;
  at_case("%s of %lld x %lld%s", of_columns ? "columns" : "rows", (long long)c.rows,
          (long long)c.columns, has_infinity ? " with infinity" : "");
  float *a = random_floats(c.rows * c.columns, ORDINARY);
  const index row = random_index(0, c.rows - 1), column = random_index(0, c.columns - 1);
  if (has_infinity)
    a[row * c.columns + column] = INFINITY;
  c.a = a;
  c.x = random_floats(of_columns ? c.rows : c.columns, ORDINARY);
  const index count = results_of(&c), items = items_of(&c);
  float *whole = allocate_results(count), *parts = allocate_results(count);
  function_of(&c)(c.a, c.x, whole, c.rows, c.columns, 0, items);
  check_results(&c, whole);
  // From the end, as threads may be.
  for (index end = items; end > 0;) {
    const index begin = random_index(0, end - 1);
    function_of(&c)(c.a, c.x, parts, c.rows, c.columns, begin, end);
    check_untouched("before", parts, 0, of_columns ? begin * 16 : begin);
    end = begin;
  }
  for (index i = 0; i < count; ++i)
    check_equal("bits", i, bits_of(parts[i]), bits_of(whole[i]));
  release_all();
}

int main(void) {
  begin_tests();
  for (int repeat = 0; repeat < 400; ++repeat)
    test_case(repeat % 2, repeat % 4 > 1);
  return end_tests();
}
