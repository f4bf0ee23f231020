// Tests cosines and sines of positions against those of their angles.

#include "check.h"
#include "cuda/rotation.c"

static struct {
  int32_t *positions;
  float *tables[4], *cos, *sin;
  int pairs;
} call;

static void body(void) {
  cuda_rotation(call.positions, call.tables[0], call.tables[1], call.tables[2],
                call.tables[3], call.cos, call.sin, call.pairs);
}

static double frequency(int pair) { return pow(10000.0, -pair / 16.0); }

// Fills a table of cosines and one of sines with the multiples of `step`.
static void fill_tables(float **tables, int rows, int step) {
  for (int t = 0; t < 2; ++t)
    tables[t] = allocate(rows * call.pairs * 4);
  for (int i = 0; i < rows * call.pairs; ++i) {
    const double angle = i / call.pairs * step * frequency(i % call.pairs);
    tables[0][i] = (float)cos(angle);
    tables[1][i] = (float)sin(angle);
  }
}

static void test_rows(int rows, int pairs) {
  enum { COARSE = 40 };
  at_case("%d rows, %d pairs", rows, pairs);
  call.pairs = pairs;
  fill_tables(call.tables, COARSE, FINE);
  fill_tables(call.tables + 2, FINE, 1);
  call.positions = allocate(rows * 4);
  for (int r = 0; r < rows; ++r)
    call.positions[r] = (int32_t)random_index(0, COARSE * FINE - 1);
  call.cos = allocate_results(rows * pairs);
  call.sin = allocate_results(rows * pairs);
  launch_grid(rows, THREADS, body);
  for (int i = 0; i < rows * pairs; ++i) {
    const double angle = call.positions[i / pairs] * frequency(i % pairs);
    check_near("cosine", i, call.cos[i], cos(angle), 3e-7);
    check_near("sine", i, call.sin[i], sin(angle), 3e-7);
  }
  release_all();
}

int main(void) {
  begin_tests();
  const int pairs[] = {1, 4, 32, 128, 130};
  for (int i = 0; i < 5; ++i) {
    test_rows(1, pairs[i]);
    test_rows(7, pairs[i]);
  }
  return end_tests();
}
