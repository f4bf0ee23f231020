// Tests of programs that round by moments, for both kinds of superblocks.
#ifndef TESTS_COMPENSATE_TESTS_H
#define TESTS_COMPENSATE_TESTS_H

#include "compensate_case.h"

#define UNTOUCHED 0x5a

// t and M are those of superblocks with minima.
typedef struct {
  int8_t *codes, *s, *t;
  uint16_t *D, *M;
  float *errors;
} results;

// A program defines how the kernel is called, and what its results stand for.
static void call(const rounding *r, const factored *by, const results *to,
                 index bits, index begin, index end);
static void decode(const rounding *r, const results *from);

// Returns results with a scale for each `group` inputs.
static results allocate_all(index n, index k, index group) {
  const index units = n * divide_up(k, 256) * 2, scales = n * k / group;
  const results to = {allocate(n * k),  allocate(scales), allocate(scales),
                      allocate(units), allocate(units),
                      allocate(divide_up(n, PANEL) * PANEL * k * 4)};
  memset(to.codes, UNTOUCHED, (size_t)(n * k));
  memset(to.s, UNTOUCHED, (size_t)scales);
  memset(to.t, UNTOUCHED, (size_t)scales);
  memset(to.M, 0, (size_t)units);
  return to;
}

// Tests that another division of the work gives the same, and nothing else.
static void check_part(const rounding *r, const results *of, index bits,
                       index group) {
  const index n = r->n, k = r->k;
  const index panels = divide_up(n, PANEL), begin = panels > 1;
  const results part = allocate_all(n, k, group);
  call(r, &r->by, &part, bits, begin, panels);
  for (index at = 0; at < n * k; ++at)
    check_equal("codes of a part", at, part.codes[at],
                at < begin * PANEL * k ? UNTOUCHED : of->codes[at]);
  for (index at = 0; at < n * k / group; ++at)
    check_equal("scales of a part", at, part.s[at],
                at < begin * PANEL * k / group ? UNTOUCHED : of->s[at]);
}

// Tests that products lose less than without moments.
static void test_products(index bits, index group) {
  at_case("products in %lld bits", (long long)bits);
  // Of so few samples, rounding learns enough to be told from what learns nothing.
  const rounding r = random_rounding(16, 320, ONE_IN > 1 ? 250 : 2000);
  const results of = allocate_all(16, 320, group);
  float *none = allocate(320 * 320 * 4);
  for (index i = 0; i < 320 * 320; ++i)
    none[i] = 0;
  const factored plain = reference_factor(none, 320);
  call(&r, &plain, &of, bits, 0, 1);
  decode(&r, &of);
  const double before = error_of_products(&r);
  call(&r, &r.by, &of, bits, 0, 1);
  decode(&r, &of);
  const double after = error_of_products(&r);
  ++checks;
  if (!(after < 0.6 * before))
    fail("error of products", 0, after, 0.6 * before);
  release_all();
}

// Tests weights that no code can be near to, and those that are all alike.
static void test_extremes(index bits, index group) {
  const float values[] = {0, 1, -1, 1e-42f, 1e30f, -3e38f, INFINITY, NAN};
  const index most = (1 << bits) - 1;
  for (int v = 0; v < 8; ++v) {
    at_case("weights of %g", values[v]);
    const rounding r = random_rounding(16, 64, 100);
    float *w = allocate(16 * 64 * 4);
    for (index i = 0; i < 16 * 64; ++i)
      w[i] = values[v];
    const rounding same = {.n = 16, .k = 64, .w = w, .by = r.by};
    const results of = allocate_all(16, 64, group);
    call(&same, &same.by, &of, bits, 0, 1);
    for (index at = 0; at < 16 * 64; ++at)
      if (of.codes[at] < 0 || of.codes[at] > most)
        fail("code", at, of.codes[at], (double)most);
    for (index at = 0; at < 16; ++at)
      if (!isfinite(float_from_f16(of.D[at])) ||
          !isfinite(float_from_f16(of.M[at])))
        fail("unit", at, float_from_f16(of.D[at]), 0);
    release_all();
  }
}

#endif // TESTS_COMPENSATE_TESTS_H
