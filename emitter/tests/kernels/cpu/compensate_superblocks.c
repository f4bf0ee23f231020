// Tests that columns are rounded to their targets, in superblocks of 4 and 5 bits.

#include "compensate_tests.h"

#define GROUP 32 // inputs with scales of their own

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
  const index widths[] = {288, 32, 96, 256, 576}, rows[] = {1, 15, 16, 19, 48};
  for (int w = 0; w < 5; w += ONE_IN)
    for (int h = 0; h < 5; ++h) {
      const index n = rows[h], k = widths[w], bits = 4 + (w + h) % 2;
      at_case("%lld bits, %lld x %lld", (long long)bits, (long long)n,
              (long long)k);
      const rounding r = random_rounding(n, k, 200);
      const results of = allocate_all(n, k, GROUP);
      call(&r, &r.by, &of, bits, 0, divide_up(n, PANEL));
      decode(&r, &of);
      check_rows(&r, &of, bits, 0, n);
      check_part(&r, &of, bits, GROUP);
      release_all();
    }
}

// Tests that every instruction set gives the same bits.
static void test_bits(void) {
  at_case("bits of every instruction set");
  random_state = 1;
  const rounding r = random_rounding(20, 320, 300);
  const results of = allocate_all(20, 320, GROUP);
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
  test_products(4, GROUP);
  test_products(5, GROUP);
  test_extremes(4, GROUP);
  test_bits();
  return end_tests();
}
