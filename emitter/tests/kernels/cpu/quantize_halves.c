// Tests the quantizer of 6 bits with scales of halves of groups: codes are the nearest
// for their scales, and the error is at most that of scales from the largest numbers.

#include "quantize_tests.h"

#define HALF 16
#define IN_BLOCK (BLOCK / HALF)

static results call(const weights *w, index bits, index begin, index end) {
  const results to = {.bits = bits,
                      .codes = never_written(ROWS * w->k),
                      .s = never_written(ROWS * w->k / HALF),
                      .D = never_written(ROWS * divide_up(w->k, BLOCK) * 2)};
#define CALL(name)                                                             \
  quantize_halves_##name(w->x, w->importance, to.codes, to.D, to.s, w->k,      \
                         begin, end)
  if (w->type == ELEMENT_F32)
    CALL(f32);
  else if (w->type == ELEMENT_BF16)
    CALL(bf16);
  else
    CALL(f16);
  return to;
}

// Returns the error of a superblock, and checks its codes.
static double error_of(const weights *w, const results *of, index row,
                       index block) {
  const index unit = row * divide_up(w->k, BLOCK) + block;
  const double D = float_from_f16(of->D[unit]);
  double error = 0;
  if (!isfinite(D))
    fail("unit", unit, D, 0);
  for (index i = block * BLOCK; i < min_index((block + 1) * BLOCK, w->k); ++i) {
    const double scale = D * of->s[(row * w->k + i) / HALF];
    const double x = weight_at(w, row, i), c = of->codes[row * w->k + i] - 32;
    const double lack = fabs(scale * c - x);
    error += w->importance[i] * lack * lack;
    if (c < -32 || c > 31)
      fail("code", i, c, 0);
    const double nearest = nearest_code(x, scale, -32, 31);
    check_near("distance", row * w->k + i, lack, fabs(scale * nearest - x),
               (fabs(x) + fabs(scale) * 32) * 0x1p-20);
  }
  return error;
}

// Returns the error of scales from the largest numbers.
static double plain_error(const weights *w, index bits, index row, index block) {
  (void)bits;
  const index first = block * BLOCK, end = min_index(first + BLOCK, w->k);
  double extreme[IN_BLOCK] = {0}, largest = 0, error = 0;
  for (index i = first; i < end; ++i) {
    const double x = weight_at(w, row, i);
    double *of = &extreme[(i - first) / HALF];
    *of = fabs(x) > fabs(*of) ? x : *of;
    largest = fabs(x) > fabs(largest) ? x : largest;
  }
  const double D = as_unit(largest / 32 / 128);
  for (index i = first; i < end; ++i) {
    const double step = extreme[(i - first) / HALF] / -32;
    const double scale = D * nearest_code(step, D, -128, 127);
    const double x = weight_at(w, row, i);
    const double lack = scale * nearest_code(x, scale, -32, 31) - x;
    error += w->importance[i] * lack * lack;
  }
  return error;
}

// Tests that results have the same bits on every instruction set.
static void test_bits(void) {
  const index k = 2 * BLOCK + 2 * HALF;
  at_case("bits");
  random_state = 88172645463325252u;
  const weights w = random_weights(RANDOM, ELEMENT_F32, k);
  const results found = call(&w, 6, 0, ROWS);
  uint64_t digest = digest_of(found.codes, ROWS * k, EMPTY_DIGEST);
  digest = digest_of(found.D, ROWS * 3 * 2, digest);
  digest = digest_of(found.s, ROWS * k / HALF, digest);
  check_equal("digest", 0, (double)(digest >> 32), (double)0x3f785958u);
  release_all();
}

int main(void) {
  const index sizes[] = {32, 64, 192, 256, 288, 512, 544};
  begin_tests();
  for (kind of = 0; of < KINDS; ++of)
    for (element_type type = ELEMENT_F32; type <= ELEMENT_F16; ++type)
      for (int size = 0; size < 7; ++size)
        test_case(of, type, sizes[size], 6, HALF);
  test_importance(6, HALF, 1);
  test_bits();
  return end_tests();
}
