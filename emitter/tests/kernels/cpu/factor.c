// Tests that factors of moments multiply to the moments.

#include "check.h"
#include "cpu/kernels.h"
#include "compensate_case.h"

// Returns the factor of moments.
static factored factor_of(const float *moments, index k) {
  const factored f = {allocate_results(k * k), allocate_results(k)};
  float *scaled = allocate(k * 32 * 4);
  factor_moments(moments, f.factor, f.pivots, scaled, k, bits_of(DAMPING), 0, 1);
  return f;
}

static double factor_at(const float *factor, index k, index i, index c) {
  return i == c ? 1 : factor[(c / 32 * k + i) * 32 + c % 32];
}

static void check_factor(const float *moments, index k, const factored *f) {
  double trace = 0;
  for (index i = 0; i < k; ++i)
    trace += moments[i * k + i];
  const double scale = trace > 0 ? (double)k / trace : 0;
  for (index i = 0; i < k; ++i)
    for (index j = 0; j <= i; ++j) {
      double sum = 0, magnitude = 0;
      for (index m = i; m < k; ++m) {
        const double product = factor_at(f->factor, k, i, m) * f->pivots[m] *
                               factor_at(f->factor, k, j, m);
        sum += product;
        magnitude += fabs(product);
      }
      const double expected =
          scale * moments[i * k + j] + (i == j ? (double)DAMPING : 0);
      check_near("moment", i * k + j, sum, expected, 1e-5 * magnitude + 1e-12);
    }
  for (index c = 0; c < k; ++c) {
    if (!(f->pivots[c] >= DAMPING))
      fail("pivot", c, f->pivots[c], (double)DAMPING);
    for (index i = c; i < k; ++i)
      check_equal("below the diagonal", i,
                  f->factor[(c / 32 * k + i) * 32 + c % 32], 0);
  }
}

static void test_moments(void) {
  const index sizes[] = {32, 64, 96, 288};
  const index samples[] = {0, 1, 20, 1000};
  for (int s = 0; s < 4; ++s)
    for (int n = 0; n < 4; ++n)
      for (int dead = 0; dead < 2; ++dead) {
        const index k = sizes[s];
        at_case("%lld samples of %lld inputs%s", (long long)samples[n],
                (long long)k, dead ? ", some always zero" : "");
        float *moments = random_moments(k, samples[n]);
        for (index i = 0; dead && i < k; i += 7)
          for (index j = 0; j < k; ++j)
            moments[i * k + j] = moments[j * k + i] = 0;
        const factored f = factor_of(moments, k);
        check_factor(moments, k, &f);
        for (index c = 0; samples[n] == 0 && c < k; ++c) {
          check_equal("pivot without moments", c, f.pivots[c], (double)DAMPING);
          for (index i = 0; i < c; ++i)
            check_equal("factor without moments", i,
                        factor_at(f.factor, k, i, c), 0);
        }
        release_all();
      }
}

// Tests that what is not finite stays within results.
static void test_not_finite(void) {
  const float bad[] = {INFINITY, NAN, 1e38f};
  for (int b = 0; b < 3; ++b) {
    at_case("moments with %g", bad[b]);
    float *moments = random_moments(64, 100);
    moments[5 * 64 + 5] = moments[64 * 64 - 1] = bad[b];
    factor_of(moments, 64);
    release_all();
  }
}

static void test_empty_range(void) {
  at_case("no items");
  const float *moments = random_moments(32, 10);
  float *factor = allocate_results(32 * 32), *pivots = allocate_results(32);
  float *scaled = allocate_results(32 * 32);
  factor_moments(moments, factor, pivots, scaled, 32, bits_of(DAMPING), 1, 1);
  check_untouched("factor", factor, 0, 32 * 32);
  check_untouched("pivots", pivots, 0, 32);
  release_all();
}

// Tests that every instruction set gives the same bits.
static void test_bits(void) {
  at_case("bits of every instruction set");
  random_state = 1;
  const factored f = factor_of(random_moments(160, 500), 160);
  check_equal("hash", 0, hash_of(f.factor, 160 * 160 * 4),
              4140551033u);
  release_all();
}

int main(void) {
  begin_tests();
  test_moments();
  test_not_finite();
  test_empty_range();
  test_bits();
  return end_tests();
}
