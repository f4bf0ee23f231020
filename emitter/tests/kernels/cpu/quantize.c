// Tests that quantization is exact to the bit: a difference of one step would be a
// difference between machines.

#include "check.h"
#include "cpu/kernels.h"

#define GROUP 32
#define NEVER_WRITTEN 99

typedef enum {
  RANDOM,
  ZERO,
  ONE_HUGE, // in every row
  EQUAL,    // except for their signs
  SUBNORMAL,
  SMALLEST, // around the magnitude below which a row counts as zero
  LARGEST,
  WIDE,
  KINDS
} kind;

static const char *const kind_names[KINDS] = {
    "random",    "zero",     "one huge", "equal",
    "subnormal", "smallest", "largest",  "wide"};

static float *input(kind of, index rows, index k) {
  const exponents ranges[KINDS] = {
      [SUBNORMAL] = {-127, -127}, [SMALLEST] = {-122, -119},
      [LARGEST] = {120, 127},     [WIDE] = {-60, 60}};
  const int has_range = ranges[of].low != 0;
  float *x = random_floats(rows * k, has_range ? ranges[of] : ORDINARY);
  for (index i = 0; i < rows * k; ++i) {
    if (of == ZERO)
      x[i] *= 0.0f; // of both signs
    if (of == EQUAL)
      x[i] = copysignf(3.0f, x[i]);
  }
  if (of == ONE_HUGE)
    for (index row = 0; row < rows; ++row)
      x[row * k + random_index(0, k - 1)] = -1e30f;
  return x;
}

static float largest_magnitude(const float *x, index count) {
  float largest = 0;
  for (index i = 0; i < count; ++i)
    largest = fmaxf(largest, fabsf(x[i]));
  return largest < 0x1p-120f ? 0 : largest;
}

static double quantized(float x, float largest) {
  const float scaled = x * (127.0f / largest);
  return largest > 0 ? nearbyint(scaled) : 0;
}

static void check_rows(const float *x, const act_q8 *q, const float *scale,
                       index k, index begin, index end) {
  for (index row = begin; row < end; ++row) {
    const float largest = largest_magnitude(x + row * k, k);
    check_equal("scale", row, scale[row], largest / 127.0f);
    for (index i = row * k; i < row * k + k; ++i)
      check_equal("q", i, q[i], quantized(x[i], largest));
  }
}

static void test_rows(void) {
  const index sizes[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 100, 2048, 2050};
  const index rows = 5, begin = 1, end = 4;
  for (kind of = 0; of < KINDS; ++of) {
    for (int s = 0; s < 12; ++s) {
      const index k = sizes[s];
      at_case("quantize_rows, %s, k = %lld", kind_names[of], (long long)k);
      const float *x = input(of, rows, k);
      float *scale = allocate_results(rows);
      act_q8 *q = allocate(rows * k * (index)sizeof *q);
      for (index i = 0; i < rows * k; ++i)
        q[i] = NEVER_WRITTEN;
      quantize_rows(x, q, scale, k, begin, end);
      check_rows(x, q, scale, k, begin, end);
      check_untouched("another call's scale", scale, 0, begin);
      check_untouched("another call's scale", scale, end, rows);
      for (index i = 0; i < rows * k; ++i)
        if (i < begin * k || i >= end * k)
          check_equal("another call's q", i, q[i], NEVER_WRITTEN);
      release_all();
    }
  }
}

static void check_groups(const float *x, const int8_t *q, const float *scale,
                         const int16_t *sums, index begin, index end) {
  for (index group = begin; group < end; ++group) {
    const float largest = largest_magnitude(x + group * GROUP, GROUP);
    index expected[2] = {0, 0};
    for (index i = 0; i < GROUP; ++i) {
      const index at = group * GROUP + i;
      check_equal("q", at, q[at], quantized(x[at], largest));
      expected[i / 16] += q[at];
    }
    check_equal("scale", group, scale[group], largest / 127.0f);
    for (int half = 0; half < 2; ++half)
      check_equal("sums", 2 * group + half, sums[2 * group + half],
                  (double)expected[half]);
  }
}

// Tests that the second of two terms is what the first leaves.
static void test_terms(void) {
  const index rows = 3, k = 96, groups = k / GROUP;
  for (kind of = 0; of < KINDS; ++of) {
    at_case("quantize_groups, two terms, %s", kind_names[of]);
    const float *x = input(of, rows * groups, GROUP);
    float *rest = allocate(rows * k * (index)sizeof *rest);
    float *scale = allocate_results(2 * rows * groups);
    int16_t *sums = allocate(2 * rows * groups * 4);
    int8_t *q = allocate(2 * rows * k);
    quantize_groups(x, q, scale, sums, k, 2, 0, rows);
    for (index row = 0; row < rows; ++row) {
      const index first = 2 * row * groups, second = first + groups;
      check_groups(x + row * k, q + first * GROUP, scale + first,
                   sums + 2 * first, 0, groups);
      for (index i = 0; i < k; ++i) {
        const float taken = scale[first + i / GROUP] * (float)q[first * GROUP + i];
        rest[row * k + i] = x[row * k + i] - taken;
      }
      check_groups(rest + row * k, q + second * GROUP, scale + second,
                   sums + 2 * second, 0, groups);
    }
    release_all();
  }
}

static void test_groups(void) {
  const index sizes[] = {32, 64, 96, 2048};
  const index rows = 4, begin = 1, end = 3;
  for (kind of = 0; of < KINDS; ++of) {
    for (int s = 0; s < 4; ++s) {
      const index k = sizes[s], groups = k / GROUP;
      at_case("quantize_groups, %s, k = %lld", kind_names[of], (long long)k);
      const float *x = input(of, rows * groups, GROUP);
      float *scale = allocate_results(rows * groups);
      int16_t *sums = allocate(rows * groups * 4);
      for (index half = 0; half < 2 * rows * groups; ++half)
        sums[half] = NEVER_WRITTEN;
      int8_t *q = allocate(rows * k);
      memset(q, NEVER_WRITTEN, (size_t)(rows * k));
      quantize_groups(x, q, scale, sums, k, 1, begin, end);
      check_groups(x, q, scale, sums, begin * groups, end * groups);
      check_untouched("another call's scale", scale, 0, begin * groups);
      check_untouched("another call's scale", scale, end * groups,
                      rows * groups);
      for (index half = 0; half < 2 * rows * groups; ++half)
        if (half < 2 * begin * groups || half >= 2 * end * groups)
          check_equal("another call's sums", half, sums[half], NEVER_WRITTEN);
      for (index i = 0; i < rows * k; ++i)
        if (i < begin * k || i >= end * k)
          check_equal("another call's q", i, q[i], NEVER_WRITTEN);
      release_all();
    }
  }
}

static void check_damaged(const act_q8 *q, const float *scale) {
  if (isfinite(scale[0]))
    fail("scale", 0, scale[0], NAN);
  check_equal("product", 0, scale[0] * 0.0f, NAN);
  for (index i = 0; i < GROUP; ++i)
    check_equal("q", i, q[i], 0);
}

// Tests that infinity and NaN propagate, and only in their row or group.
static void test_not_finite(void) {
  const float bad[] = {INFINITY, -INFINITY, NAN, -NAN};
  for (int b = 0; b < 4; ++b) {
    for (index at = 0; at < GROUP; ++at) {
      at_case("%g among 32 numbers", bad[b]);
      float *x = random_floats(2 * GROUP, ORDINARY);
      float *scale = allocate_results(2);
      int16_t *sums = allocate(2 * 4);
      act_q8 *q = allocate(2 * GROUP * (index)sizeof *q);
      int8_t *bytes = allocate(2 * GROUP);
      x[at] = bad[b];
      quantize_rows(x, q, scale, GROUP, 0, 2);
      check_damaged(q, scale);
      check_rows(x, q, scale, GROUP, 1, 2);
      quantize_groups(x, bytes, scale, sums, 2 * GROUP, 1, 0, 1);
      check_groups(x, bytes, scale, sums, 1, 2);
      for (index i = 0; i < GROUP; ++i)
        q[i] = bytes[i];
      check_damaged(q, scale);
      release_all();
    }
  }
}

int main(void) {
  begin_tests();
  test_rows();
  test_groups();
  test_terms();
  test_not_finite();
  return end_tests();
}
