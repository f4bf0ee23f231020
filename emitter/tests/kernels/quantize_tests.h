// Tests of quantizers to superblocks of both kinds.
#ifndef TESTS_QUANTIZE_TESTS_H
#define TESTS_QUANTIZE_TESTS_H

#include "weights_case.h"

// t and M are those of superblocks with minima; others have none.
typedef struct {
  index bits;
  int8_t *codes, *s, *t;
  uint16_t *D, *M;
} results;

// A program defines how the kernel is called for a number of bits, the error of a
// superblock, whose codes it checks, and the error that a plain choice of scales makes.
static results call(const weights *w, index bits, index begin, index end);
static double error_of(const weights *w, const results *of, index row,
                       index block);
static double plain_error(const weights *w, index bits, index row, index block);

// Tests some rows of weights with a scale for each `group` inputs.
static void test_case(kind of, element_type type, index k, index bits,
                      index group) {
  const index begin = 1, end = 4, blocks = divide_up(k, BLOCK);
  at_case("%s of type %d, k = %lld, %lld bits", kind_names[of], type,
          (long long)k, (long long)bits);
  const weights w = random_weights(of, type, k);
  const results found = call(&w, bits, begin, end);
  check_other_rows("another row's codes", found.codes, k, begin, end);
  check_other_rows("another row's D", found.D, blocks * 2, begin, end);
  check_other_rows("another row's s", found.s, k / group, begin, end);
  if (found.M) {
    check_other_rows("another row's M", found.M, blocks * 2, begin, end);
    check_other_rows("another row's t", found.t, k / group, begin, end);
  }
  for (index row = begin; row < end; ++row) {
    for (index block = 0; block < blocks; ++block) {
      const double error = error_of(&w, &found, row, block);
      const double plain = plain_error(&w, bits, row, block);
      ++checks;
      if (!(error <= plain * (1 + 1e-5) + rounding_error(&w, row, block)))
        fail("error", row * blocks + block, error, plain);
    }
  }
  release_all();
}

static double whole_error(const weights *w, const results *of) {
  double error = 0;
  for (index row = 0; row < ROWS; ++row)
    for (index block = 0; block < divide_up(w->k, BLOCK); ++block)
      error += error_of(w, of, row, block);
  return error;
}

// Tests that inputs of importance get smaller errors, by `most` of those without, and
// that some may have none.
static void test_importance(index bits, index group, double most) {
  at_case("importance");
  weights w = random_weights(RANDOM, ELEMENT_F32, 2 * BLOCK);
  const results plain = call(&w, bits, 0, ROWS);
  for (index i = 0; i < w.k; ++i)
    w.importance[i] = i / group == 3 ? 0.0f
                                     : float_of(random_bits(
                                           ELEMENT_F32, (exponents){-6, 2}) &
                                           0x7fffffffu);
  const results weighted = call(&w, bits, 0, ROWS);
  const double found = whole_error(&w, &weighted);
  const double without = whole_error(&w, &plain);
  ++checks;
  if (!(found < without * most))
    fail("error", 0, found, without);
  release_all();
}

#endif // TESTS_QUANTIZE_TESTS_H
