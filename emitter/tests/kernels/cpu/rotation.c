// Tests cosines and sines of positions against doubles.

#include "check.h"
#include "cpu/kernels.h"

#define FINE 64

typedef double function(double);

// Returns a table of `of` every `step` positions.
static float *table(function of, const double *frequencies, index rows, index pairs,
                    index step) {
  float *x = allocate(rows * pairs * 4);
  for (index row = 0; row < rows; ++row)
    for (index i = 0; i < pairs; ++i)
      x[row * pairs + i] = (float)of((double)(row * step) * frequencies[i]);
  return x;
}

static void test_case(void) {
  const index rows = random_index(1, 40), pairs = random_index(1, 70);
  const index capacity = random_index(1, 50) * FINE;
  at_case("%lld rows of %lld below %lld", (long long)rows, (long long)pairs,
          (long long)capacity);
  double *frequencies = allocate(pairs * 8);
  for (index i = 0; i < pairs; ++i)
    frequencies[i] = pow(10000, -(double)i / (double)pairs);
  int32_t *positions = allocate(rows * 4), *count = allocate(4);
  for (index row = 0; row < rows; ++row)
    positions[row] = (int32_t)random_index(0, capacity - 1);
  *count = (int32_t)random_index(0, rows + 1);
  const index begin = random_index(0, rows - 1), end = random_index(begin, rows);
  float *cosines = allocate_results(rows * pairs);
  float *sines = allocate_results(rows * pairs);
  rotation(positions, count, table(cos, frequencies, capacity / FINE, pairs, FINE),
           table(sin, frequencies, capacity / FINE, pairs, FINE),
           table(cos, frequencies, FINE, pairs, 1),
           table(sin, frequencies, FINE, pairs, 1), cosines, sines, pairs, begin, end);
  const index last = max_index(begin, min_index(end, *count));
  float *both[] = {cosines, sines};
  function *of[] = {cos, sin};
  for (int f = 0; f < 2; ++f) {
    check_untouched("before", both[f], 0, begin * pairs);
    check_untouched("after", both[f], last * pairs, rows * pairs);
    for (index i = begin * pairs; i < last * pairs; ++i) {
      const double angle = positions[i / pairs] * frequencies[i % pairs];
      check_near("angle", i, both[f][i], of[f](angle), 2.5e-7);
    }
  }
  release_all();
}

int main(void) {
  begin_tests();
  for (int repeat = 0; repeat < 60; ++repeat)
    test_case();
  return end_tests();
}
