// Tests the quantizer of superblocks: codes are the nearest for their scales, and the
// error is at most that of scales from the lowest and the highest number.

#include "quantize_tests.h"

#define GROUP 32
#define IN_BLOCK (BLOCK / GROUP)

static results call(const weights *w, index bits, index begin, index end) {
  const index blocks = divide_up(w->k, BLOCK), groups = w->k / GROUP;
  const results to = {bits, never_written(ROWS * w->k),
                      never_written(ROWS * groups),
                      never_written(ROWS * groups),
                      never_written(ROWS * blocks * 2),
                      never_written(ROWS * blocks * 2)};
#define CALL(name)                                                             \
  quantize_superblocks_##name(w->x, w->importance, to.codes, to.D, to.M, to.s, \
                              to.t, w->k, bits, begin, end)
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
  const index blocks = divide_up(w->k, BLOCK), groups = w->k / GROUP;
  const double D = float_from_f16(of->D[row * blocks + block]);
  const double M = float_from_f16(of->M[row * blocks + block]);
  const double most = (double)((1 << of->bits) - 1);
  double error = 0;
  if (!(isfinite(D) && D >= 0 && isfinite(M) && M >= 0))
    fail("units", row * blocks + block, D, M);
  for (index i = block * BLOCK; i < min_index((block + 1) * BLOCK, w->k); ++i) {
    const index group = row * groups + i / GROUP;
    const double scale = D * of->s[group], least = M * of->t[group];
    const double x = weight_at(w, row, i), c = of->codes[row * w->k + i];
    const double lack = fabs(scale * c - least - x);
    error += w->importance[i] * lack * lack;
    if (c < 0 || c > most || of->s[group] < 0 || of->s[group] > 63 ||
        of->t[group] < 0 || of->t[group] > 63)
      fail("code or scale", i, c, of->s[group]);
    const double nearest = nearest_code(x + least, scale, 0, most);
    const double expected = fabs(scale * nearest - least - x);
    check_near("distance", row * w->k + i, lack, expected,
               (fabs(x) + least + scale * most) * 0x1p-20);
  }
  return error;
}

// Returns the error of scales and minima from the lowest and the highest number.
static double plain_error(const weights *w, index bits, index row,
                          index block) {
  const index first = block * BLOCK, end = min_index(first + BLOCK, w->k);
  const double most = (double)((1 << bits) - 1);
  double low[IN_BLOCK] = {0}, range[IN_BLOCK] = {0}, D = 0, M = 0, error = 0;
  for (index g = 0; first + g * GROUP < end; ++g) {
    double high = -INFINITY;
    for (index i = first + g * GROUP; i < first + (g + 1) * GROUP; ++i) {
      low[g] = fmin(low[g], weight_at(w, row, i));
      high = fmax(high, weight_at(w, row, i));
    }
    range[g] = high - low[g];
    D = fmax(D, range[g] / most / 63);
    M = fmax(M, -low[g] / 63);
  }
  D = as_unit(D), M = as_unit(M);
  for (index i = first; i < end; ++i) {
    const index g = (i - first) / GROUP;
    const double scale = D * nearest_code(range[g] / most, D, 0, 63);
    const double least = M * nearest_code(-low[g], M, 0, 63);
    const double x = weight_at(w, row, i);
    const double c = nearest_code(x + least, scale, 0, most);
    const double lack = scale * c - least - x;
    error += w->importance[i] * lack * lack;
  }
  return error;
}

// Tests that a row's result does not depend on other rows of the call.
static void test_division(index k) {
  at_case("single rows, k = %lld", (long long)k);
  const weights w = random_weights(RANDOM, ELEMENT_F32, k);
  const results all = call(&w, 4, 0, ROWS);
  for (index row = 0; row < ROWS; ++row) {
    const int kept = buffer_count;
    const results one = call(&w, 4, row, row + 1);
    for (index i = row * k; i < (row + 1) * k; ++i)
      check_equal("code", i, one.codes[i], all.codes[i]);
    for (index i = row * k / GROUP; i < (row + 1) * k / GROUP; ++i) {
      check_equal("s", i, one.s[i], all.s[i]);
      check_equal("t", i, one.t[i], all.t[i]);
    }
    release_from(kept);
  }
  release_all();
}

// Tests that results have the same bits on every instruction set.
static void test_bits(void) {
  const index k = 2 * BLOCK + GROUP;
  uint64_t digest = EMPTY_DIGEST;
  at_case("bits");
  random_state = 88172645463325252u;
  const weights w = random_weights(RANDOM, ELEMENT_F32, k);
  for (index bits = 4; bits <= 5; ++bits) {
    const results found = call(&w, bits, 0, ROWS);
    digest = digest_of(found.codes, ROWS * k, digest);
    digest = digest_of(found.D, ROWS * 3 * 2, digest);
    digest = digest_of(found.M, ROWS * 3 * 2, digest);
    digest = digest_of(found.s, ROWS * k / GROUP, digest);
    digest = digest_of(found.t, ROWS * k / GROUP, digest);
  }
  check_equal("digest", 0, (double)(digest >> 32), (double)0xf56e4084u);
  release_all();
}

int main(void) {
  const index sizes[] = {32, 64, 192, 256, 288, 512, 544};
  begin_tests();
  for (kind of = 0; of < KINDS; ++of)
    for (element_type type = ELEMENT_F32; type <= ELEMENT_F16; ++type)
      for (int size = 0; size < 7; ++size)
        for (index bits = 4; bits <= 5; ++bits)
          test_case(of, type, sizes[size], bits, GROUP);
  test_division(192);
  test_division(512);
  test_importance(4, GROUP, 0.9);
  test_bits();
  return end_tests();
}
