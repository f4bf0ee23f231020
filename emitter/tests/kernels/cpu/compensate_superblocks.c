// Tests that columns are rounded to their targets, in superblocks of 4 and 5 bits.

#include "check.h"
#include "cpu/kernels.h"
#include "compensate_case.h"

#define UNTOUCHED 0x5a

typedef struct {
  int8_t *codes, *s, *t;
  uint16_t *D, *M;
  float *errors;
} results;

static results allocate_all(index n, index k) {
  const index blocks = divide_up(k, 256);
  const results to = {.codes = allocate(n * k), .s = allocate(n * k / 32),
                      .t = allocate(n * k / 32), .D = allocate(n * blocks * 2),
                      .M = allocate(n * blocks * 2),
                      .errors = allocate(divide_up(n, PANEL) * PANEL * k * 4)};
  memset(to.codes, UNTOUCHED, (size_t)(n * k));
  memset(to.s, UNTOUCHED, (size_t)(n * k / 32));
  memset(to.t, UNTOUCHED, (size_t)(n * k / 32));
  return to;
}

static void call(const rounding *r, const factored *by, const results *to,
                 index bits, index begin, index end) {
  compensate_superblocks(r->w, by->factor, by->pivots, to->codes, to->D, to->M,
                         to->s, to->t, to->errors, r->n, r->k, bits, begin, end);
}

static void decode(const rounding *r, const results *from) {
  const index blocks = divide_up(r->k, 256);
  for (index at = 0; at < r->n * r->k; ++at) {
    const index row = at / r->k, column = at % r->k;
    const index block = row * blocks + column / 256, group = at / 32;
    r->values[at] =
        (double)float_from_f16(from->D[block]) * from->s[group] * from->codes[at] -
        (double)float_from_f16(from->M[block]) * from->t[group];
  }
}

static void check_rows(const rounding *r, const results *of, index bits,
                       index begin, index end) {
  const index blocks = divide_up(r->k, 256);
  for (index at = begin * r->k; at < end * r->k; ++at) {
    const index row = at / r->k, column = at % r->k;
    const index s = of->s[at / 32], t = of->t[at / 32];
    if (s < 0 || s > 63 || t < 0 || t > 63)
      fail("scale or minimum", at / 32, (double)s, (double)t);
    const double D = (double)float_from_f16(of->D[row * blocks + column / 256]);
    check_code(r, row, column, of->codes[at], (1 << bits) - 1, D * (double)s);
  }
}

static void test_targets(void) {
  const index widths[] = {32, 96, 256, 288, 576}, rows[] = {1, 15, 16, 19, 48};
  for (int w = 0; w < 5; ++w)
    for (int h = 0; h < 5; ++h) {
      const index n = rows[h], k = widths[w], bits = 4 + (w + h) % 2;
      const index panels = divide_up(n, PANEL), begin = panels > 1;
      at_case("%lld bits, %lld x %lld", (long long)bits, (long long)n,
              (long long)k);
      const rounding r = random_rounding(n, k, 200);
      const results of = allocate_all(n, k), part = allocate_all(n, k);
      call(&r, &r.by, &of, bits, 0, panels);
      decode(&r, &of);
      check_rows(&r, &of, bits, 0, n);
      // Another division of the work gives the same, and nothing else.
      call(&r, &r.by, &part, bits, begin, panels);
      for (index at = 0; at < n * k; ++at)
        check_equal("codes of a part", at, part.codes[at],
                    at < begin * PANEL * k ? UNTOUCHED : of.codes[at]);
      for (index at = 0; at < n * k / 32; ++at)
        check_equal("scales of a part", at, part.s[at],
                    at < begin * PANEL * k / 32 ? UNTOUCHED : of.s[at]);
      release_all();
    }
}

// Tests that products lose less than without moments.
static void test_products(void) {
  for (index bits = 4; bits <= 5; ++bits) {
    at_case("products in %lld bits", (long long)bits);
    const rounding r = random_rounding(16, 320, 2000);
    const results of = allocate_all(16, 320);
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
}

// Tests weights that no code can be near to, and those that are all alike.
static void test_extremes(void) {
  const float values[] = {0, 1, -1, 1e-42f, 1e30f, -3e38f, INFINITY, NAN};
  for (int v = 0; v < 8; ++v) {
    at_case("weights of %g", values[v]);
    const rounding r = random_rounding(16, 64, 100);
    float *w = allocate(16 * 64 * 4);
    for (index i = 0; i < 16 * 64; ++i)
      w[i] = values[v];
    const rounding same = {.n = 16, .k = 64, .w = w, .by = r.by};
    const results of = allocate_all(16, 64);
    call(&same, &same.by, &of, 4, 0, 1);
    for (index at = 0; at < 16 * 64; ++at)
      if (of.codes[at] < 0 || of.codes[at] > 15)
        fail("code", at, of.codes[at], 15);
    for (index at = 0; at < 16; ++at)
      if (!isfinite(float_from_f16(of.D[at])) ||
          !isfinite(float_from_f16(of.M[at])))
        fail("unit", at, float_from_f16(of.D[at]), 0);
    release_all();
  }
}

// Tests that every instruction set gives the same bits.
static void test_bits(void) {
  at_case("bits of every instruction set");
  random_state = 1;
  const rounding r = random_rounding(20, 320, 300);
  const results of = allocate_all(20, 320);
  call(&r, &r.by, &of, 4, 0, 2);
  check_equal("hash of codes", 0, hash_of(of.codes, 20 * 320),
              348273218u);
  check_equal("hash of scales", 0, hash_of(of.s, 20 * 320 / 32),
              2512469597u);
  check_equal("hash of units", 0, hash_of(of.M, 20 * 2 * 2),
              3804722336u);
  release_all();
}

int main(void) {
  begin_tests();
  test_targets();
  test_products();
  test_extremes();
  test_bits();
  return end_tests();
}
