// Tests the helpers of all kernels, in common.h and cpu/lanes.h.

#include "check.h"
#include "cpu/lanes.h"

// Converts a half by the definition of the format.
static double half_by_definition(uint16_t half) {
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign * ldexp(mantissa, -24);
  return sign * ldexp(1024 + mantissa, exponent - 25);
}

static void test_halves(void) {
  at_case("every half");
  for (index i = 0; i < 0x10000; ++i) {
    const uint16_t half = (uint16_t)i;
    const double expected = half_by_definition(half);
    check_equal("float_from_f16", i, float_from_f16(half), expected);
    check_equal("float_from_f16_portable", i, float_from_f16_portable(half),
                expected);
    check_equal("load_element", i, load_element(&half, ELEMENT_F16, 0),
                expected);
  }
}

static void test_bfloats(void) {
  const float exact[] = {0, -0.0f, 1, -3.140625f, 0x1p-133f, 0x1.fep127f};
  at_case("bf16");
  for (index i = 0; i < 6; ++i) {
    const uint16_t bits = (uint16_t)(bits_of(exact[i]) >> 16);
    check_equal("float_from_bf16", i, float_from_bf16(bits), exact[i]);
    check_equal("load_element", i, load_element(&bits, ELEMENT_BF16, 0),
                exact[i]);
  }
  check_equal("float_from_bf16", 0x7f80, float_from_bf16(0x7f80), INFINITY);
  check_equal("float_from_bf16", 0x7fc0, float_from_bf16(0x7fc0), NAN);
}

// Checks floats halfway between neighbors of a type, and the floats next to those.
static void check_conversion(index bits, float below, float above,
                             uint16_t (*convert)(float)) {
  const uint16_t here = (uint16_t)bits, next = (uint16_t)(bits + 1);
  const float middle = below + (above - below) / 2;
  check_equal("exact", bits, convert(below), here);
  check_equal("exact, negative", bits, convert(-below), here | 0x8000);
  check_equal("tie", bits, convert(middle), bits % 2 ? next : here);
  check_equal("below a tie", bits, convert(nextafterf(middle, 0)), here);
  check_equal("above a tie", bits, convert(nextafterf(middle, INFINITY)), next);
}

static void test_conversions(void) {
  at_case("conversion to halves");
  for (index i = 0; i < 0x7c00; ++i) {
    const float below = (float)half_by_definition((uint16_t)i);
    // Numbers round to infinity as if it was the next number.
    const float above = i == 0x7bff ? 65536
                                    : (float)half_by_definition((uint16_t)(i + 1));
    check_conversion(i, below, above, f16_from_float);
    check_conversion(i, below, above, f16_from_float_portable);
  }
  at_case("conversion to bf16");
  for (index i = 0; i < 0x7f7f; ++i)
    check_conversion(i, float_from_bf16((uint16_t)i),
                     float_from_bf16((uint16_t)(i + 1)), bf16_from_float);
  const float extremes[] = {INFINITY, -INFINITY, NAN, 0x1.fffffep127f, 1e6f};
  for (index i = 0; i < 5; ++i) {
    const float x = extremes[i];
    const float half = i < 3 ? x : INFINITY;
    check_equal("f16", i, float_from_f16(f16_from_float(x)), half);
    check_equal("f16", i, float_from_f16(f16_from_float_portable(x)), half);
    check_equal("bf16", i, float_from_bf16(bf16_from_float(x)),
                i < 4 ? half : 999424.0f);
  }
}

static void test_rounding(void) {
  at_case("rounding, ties to even");
  for (index i = -1000; i <= 1000; ++i)
    check_equal("round_to_int(i / 4)", i, round_to_int((float)i / 4),
                nearbyint((double)i / 4));
}

static double relative_error(double found, double expected) {
  return fabs(found - expected) / expected;
}

// Computes 2^x by every implementation, and returns their number.
static int exp2_all(float x, double results[2]) {
  const lanes all = exp2_of(x);
  results[0] = exp2_poly(x);
  results[1] = all[LANES - 1];
  return 2;
}

static void test_exp2(void) {
  const index steps = 300000;
  double found[2];
  at_case("2^x");
  for (index i = 0; i <= steps; ++i) {
    const float x = (float)(-126 + 252.0 * (double)i / (double)steps);
    const int ways = exp2_all(x, found);
    for (int way = 0; way < ways; ++way)
      check_near("relative error", i, relative_error(found[way], exp2(x)), 0,
                 2e-7);
  }
  for (index i = 0; i <= 1000; ++i) {
    const float x = -127 + (float)i / 1000;
    const int ways = exp2_all(x, found);
    for (int way = 0; way < ways; ++way)
      check_near("below the normal range", i, found[way], 0x1p-126, 0x1p-126);
  }
  const float vanishing[] = {-127, -1000, -3e38f, -INFINITY};
  for (index i = 0; i < 4; ++i) {
    const int ways = exp2_all(vanishing[i], found);
    for (int way = 0; way < ways; ++way)
      check_equal("of what underflows", i, found[way], 0);
  }
  const uint32_t nans[] = {0x7fc00000, 0x7fc001ff, 0xffc00101, 0xffffffff};
  for (index i = 0; i < 4; ++i) {
    const int ways = exp2_all(float_of(nans[i]), found);
    for (int way = 0; way < ways; ++way)
      check_equal("of NaN", i, found[way], NAN);
  }
}

int main(void) {
  begin_tests();
  test_halves();
  test_bfloats();
  test_conversions();
  test_rounding();
  test_exp2();
  return end_tests();
}
