// Tests that columns are rounded to their targets, in superblocks of 6 bits.

#include "compensate_tests.h"

#define GROUP 16 // inputs with scales of their own

static void call(const rounding *r, const factored *by, const results *to,
                 index bits, index begin, index end) {
  (void)bits;
  compensate_halves(r->w, by->factor, by->pivots, to->codes, to->D, to->s,
                    to->errors, r->n, r->k, begin, end);
}

static double scale_at(const rounding *r, const results *of, index at) {
  const index blocks = divide_up(r->k, 256);
  const index block = at / r->k * blocks + at % r->k / 256;
  return (double)float_from_f16(of->D[block]) * of->s[at / 16];
}

static void decode(const rounding *r, const results *from) {
  for (index at = 0; at < r->n * r->k; ++at)
    r->values[at] = scale_at(r, from, at) * (from->codes[at] - 32);
}

static void test_targets(void) {
  const index widths[] = {288, 32, 96, 256, 576}, rows[] = {1, 15, 16, 19, 48};
  for (int w = 0; w < 5; w += ONE_IN)
    for (int h = 0; h < 5; ++h) {
      const index n = rows[h], k = widths[w];
      at_case("%lld x %lld", (long long)n, (long long)k);
      const rounding r = random_rounding(n, k, 200);
      const results of = allocate_all(n, k, GROUP);
      call(&r, &r.by, &of, 6, 0, divide_up(n, PANEL));
      decode(&r, &of);
      for (index at = 0; at < n * k; ++at)
        check_code(&r, at / k, at % k, of.codes[at], 63, scale_at(&r, &of, at));
      check_part(&r, &of, 6, GROUP);
      release_all();
    }
}

// Tests that every instruction set gives the same bits.
static void test_bits(void) {
  at_case("bits of every instruction set");
  random_state = 1;
  const rounding r = random_rounding(20, 320, 300);
  const results of = allocate_all(20, 320, GROUP);
  call(&r, &r.by, &of, 6, 0, 2);
  check_equal("hash of codes", 0, hash_of(of.codes, 20 * 320),
              4279273812u);
  check_equal("hash of scales", 0, hash_of(of.s, 20 * 320 / 16),
              2104342935u);
  check_equal("hash of units", 0, hash_of(of.D, 20 * 2 * 2),
              2735702665u);
  release_all();
}

int main(void) {
  begin_tests();
  test_targets();
  test_products(6, GROUP);
  test_extremes(6, GROUP);
  test_bits();
  return end_tests();
}
