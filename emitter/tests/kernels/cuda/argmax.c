// Tests the argmax of rows of all lengths.

#include "check.h"
#include "cuda/argmax.c"

static struct {
  const float *rows;
  int32_t *out;
  int32_t *partial;
  float *scaled, scale, cap;
  int length, parts;
} call;

static void body(void) {
  cuda_argmax(call.rows, call.out, call.partial, call.scaled, call.length, call.parts,
              bits_of(call.scale), bits_of(call.cap));
}

// Checks what the rows become, and takes it for the rows.
static void check_scaled(const float *x, int count) {
  for (int i = 0; i < count; ++i) {
    double to = (double)x[i] * call.scale;
    if (call.cap)
      to = call.cap * tanh(to / call.cap);
    const double size = call.cap ? call.cap : fabs(to);
    if (isfinite(to))
      check_near("scaled", i, call.scaled[i], to, size * 0x1p-20);
    else
      check_equal("scaled", i, isnan(to) ? isnan(call.scaled[i]) : call.scaled[i] == to, 1);
  }
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

static void test_rows(int length, float infinity_or_nan, int ties, float scale,
                      float cap) {
  const int rows = 3;
  at_case("rows of %d, %g, ties %d, times %g up to %g", length, (double)infinity_or_nan,
          ties, (double)scale, (double)cap);
  call.scale = scale, call.cap = cap;
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
  call.scaled = allocate_results(rows * length);
  launch_grid(rows * call.parts, THREADS, body);
  if (scale != 1.0f || cap != 0.0f) {
    check_scaled(x, rows * length);
    x = call.scaled;
  }
  for (int r = 0; r < rows; ++r)
    check_equal("index", r, call.out[r], expected(x + r * length, length));
  release_all();
}

int main(void) {
  begin_tests();
  const int lengths[] = {1, 2, 31, 32, 33, 113, 1000, 1024, 1025, 1536, 5000, 9000};
  for (int i = 0; i < 12; ++i)
    for (int ties = 0; ties < 2; ++ties) {
      test_rows(lengths[i], 0.0f, ties, 1.0f, 0.0f);
      test_rows(lengths[i], -INFINITY, ties, 1.0f, 0.0f);
      test_rows(lengths[i], INFINITY, ties, 1.0f, 0.0f);
      test_rows(lengths[i], NAN, ties, 1.0f, 0.0f);
      test_rows(lengths[i], 0.0f, ties, 0.125f, 0.0f);
      test_rows(lengths[i], 0.0f, ties, 1.0f, 30.0f);
      test_rows(lengths[i], NAN, ties, 3.0f, 0.5f);
      test_rows(lengths[i], INFINITY, ties, 3.0f, 0.5f);
    }
  return end_tests();
}
