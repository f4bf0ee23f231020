// Tests the argmax of rows of all lengths.

#include "check.h"
#include "cuda/argmax.c"

static struct {
  const float *rows;
  int32_t *out;
  int32_t *partial;
  int length, parts;
} call;

static void body(void) {
  cuda_argmax(call.rows, call.out, call.partial, call.length, call.parts);
}

static int32_t expected(const float *row, int length) {
  int best = 0;
  for (int i = 0; i < length; ++i) {
    if (isnan(row[i]))
      return length;
    if (row[i] > row[best])
      best = i;
  }
  return best;
}

static void test_rows(int length, float infinity_or_nan, int ties) {
  const int rows = 3;
  at_case("rows of %d, %g, ties %d", length, (double)infinity_or_nan, ties);
  float *x = random_floats(rows * length, ORDINARY);
  for (int i = 0; ties && i < rows * length; ++i)
    x[i] = (float)random_index(-1, 1);
  if (infinity_or_nan != 0.0f)
    for (int i = 0; i < 2 * length; ++i) // all of the first row, some of the second
      if (i < length || random_index(0, 9) == 0)
        x[i] = infinity_or_nan;
  call.rows = x;
  call.length = length;
  call.out = (int32_t *)allocate(rows * 4);
  call.parts = (int)random_index(1, divide_up(length, PART) + 1);
  call.partial = (int32_t *)allocate(rows * call.parts * 8);
  launch_grid(rows * call.parts, THREADS, body);
  for (int r = 0; r < rows; ++r)
    check_equal("index", r, call.out[r], expected(x + r * length, length));
  release_all();
}

int main(void) {
  begin_tests();
  const int lengths[] = {1, 2, 31, 32, 33, 113, 1000, 1024, 1025, 1536, 5000, 9000};
  for (int i = 0; i < 12; ++i)
    for (int ties = 0; ties < 2; ++ties) {
      test_rows(lengths[i], 0.0f, ties);
      test_rows(lengths[i], -INFINITY, ties);
      test_rows(lengths[i], INFINITY, ties);
      test_rows(lengths[i], NAN, ties);
    }
  return end_tests();
}
