// Tests products of bytes. Their sums are exact, so that only the two scales round.

#include "check.h"
#include "cpu/kernels.h"

#define PANEL 16
#define STEP (sizeof(act_q8) == 1 ? 4 : 2)

typedef enum { RANDOM, ZERO, HIGHEST, LOWEST, EXTREME, KINDS } kind;

static const char *const kind_names[KINDS] = {"random", "zero", "highest",
                                              "lowest", "extreme"};

// Returns bytes of a kind. Quantization gives activations no -128, but weights may
// be any byte.
static int8_t *input(kind of, index count, int8_t lowest) {
  switch (of) {
  case RANDOM: return random_bytes(count, lowest, 127);
  case ZERO: return extreme_bytes(count, 0, 0);
  case HIGHEST: return extreme_bytes(count, 127, 127);
  case LOWEST: return extreme_bytes(count, lowest, lowest);
  default: return extreme_bytes(count, lowest, 127);
  }
}

// Packs weights as [panels][k / STEP][PANEL][STEP], whose rows past n are zero.
static int8_t *pack(const int8_t *w, index n, index k) {
  const index step = STEP, rows = divide_up(n, PANEL) * PANEL;
  int8_t *packed = allocate(rows * k);
  memset(packed, 0, (size_t)(rows * k));
  for (index j = 0; j < n; ++j)
    for (index p = 0; p < k; ++p)
      packed[((j / PANEL * (k / step) + p / step) * PANEL + j % PANEL) * step +
             p % step] = w[j * k + p];
  return packed;
}

static act_q8 *widen(const int8_t *bytes, index count) {
  act_q8 *a = allocate(count * (index)sizeof *a);
  for (index i = 0; i < count; ++i)
    a[i] = bytes[i];
  return a;
}

static double dot(const int8_t *a, const int8_t *w, index k) {
  int64_t sum = 0;
  for (index p = 0; p < k; ++p)
    sum += (int64_t)a[p] * w[p];
  return (double)sum;
}

static void test_case(kind of, index m, index n, index k) {
  const index panels = divide_up(n, PANEL), split = panels / 2;
  at_case("matmul_q8, %s, %lld x %lld x %lld", kind_names[of], (long long)m,
          (long long)n, (long long)k);
  const int8_t *w = input(of, n * k, -128), *bytes = input(of, m * k, -127);
  const int8_t *packed = pack(w, n, k);
  const act_q8 *a = widen(bytes, m * k);
  const parts rows = random_parts(m);
  const float *w_scale = random_floats(n, ORDINARY);
  const float *a_scale = random_floats(m, ORDINARY);
  float *out = allocate_results(m * n);
  matmul_q8(packed, w_scale, a, a_scale, rows.lengths, out, rows.batch,
            rows.tokens, n, k, split, panels);
  check_columns_untouched(out, m, n, 0, split * PANEL);
  matmul_q8(packed, w_scale, a, a_scale, rows.lengths, out, rows.batch,
            rows.tokens, n, k, 0, split);
  for (index i = 0; i < m; ++i) {
    if (is_padding(&rows, i)) {
      check_untouched("padding", out, i * n, (i + 1) * n);
      continue;
    }
    for (index j = 0; j < n; ++j) {
      const double expected =
          dot(bytes + i * k, w + j * k, k) * a_scale[i] * w_scale[j];
      check_near("out", i * n + j, out[i * n + j], expected,
                 fabs(expected) * 0x1p-22);
    }
  }
  release_all();
}

// Tests that a row's result depends neither on other rows of the call nor on its
// panels: m rows and all panels at once give the same bits as other divisions.
static void test_division(int single, index m, index n, index k) {
  const index panels = divide_up(n, PANEL);
  at_case("matmul_q8, %lld x %lld x %lld, divided", (long long)m, (long long)n,
          (long long)k);
  const int8_t *w = pack(random_bytes(n * k, -128, 127), n, k);
  const act_q8 *a = widen(random_bytes(m * k, -127, 127), m * k);
  const parts all = whole(m);
  const float *w_scale = random_floats(n, ORDINARY);
  const float *a_scale = random_floats(m, ORDINARY);
  float *out = allocate_results(m * n), *expected = allocate_results(m * n);
  matmul_q8(w, w_scale, a, a_scale, all.lengths, expected, 1, m, n, k, 0,
            panels);
  for (index row = 0; row < m;) {
    const int32_t rows = (int32_t)rows_of_call(single, row, m);
    const index split = random_index(0, panels);
    matmul_q8(w, w_scale, a + row * k, a_scale + row, &rows, out + row * n, 1,
              rows, n, k, split, panels);
    matmul_q8(w, w_scale, a + row * k, a_scale + row, &rows, out + row * n, 1,
              rows, n, k, 0, split);
    row += rows;
  }
  check_same(out, expected, m * n);
  release_all();
}

// Tests rows with infinity or NaN, as quantize.c returns them.
static void test_not_finite(index m) {
  const float bad[] = {INFINITY, NAN};
  const index n = 20, k = 8;
  for (int b = 0; b < 2; ++b) {
    at_case("matmul_q8, a scale of %g", bad[b]);
    const int8_t *w = random_bytes(n * k, -128, 127);
    int8_t *bytes = random_bytes(m * k, -127, 127);
    float *w_scale = random_floats(n, ORDINARY);
    float *a_scale = random_floats(m, ORDINARY), *out = allocate_results(m * n);
    memset(bytes + 3 * k, 0, (size_t)k);
    a_scale[3] = bad[b];
    const parts rows = whole(m);
    matmul_q8(pack(w, n, k), w_scale, widen(bytes, m * k), a_scale,
              rows.lengths, out, rows.batch, rows.tokens, n, k, 0,
              divide_up(n, PANEL));
    for (index i = 0; i < m * n; ++i)
      check_equal("is NaN", i, isnan(out[i]) != 0, i / n == 3);
    release_all();
  }
}

static void test_experts(void) {
  const mixture x = random_mixture();
  const index n = random_index(1, 70), k = 4 * random_index(1, 40);
  const index lanes = divide_up(n, PANEL) * PANEL;
  const index items = x.segments * divide_up(n, PANEL);
  const index middle = random_index(0, items);
  at_case("matmul_q8_experts, %lld x %lld x %lld of %lld", (long long)x.rows,
          (long long)n, (long long)k, (long long)x.count);
  const int8_t *w = random_bytes(x.count * lanes * k, -128, 127);
  const act_q8 *a = widen(random_bytes(x.rows * k, -127, 127), x.rows * k);
  const float *w_scale = random_floats(x.count * lanes, ORDINARY);
  const float *a_scale = random_floats(x.rows, ORDINARY);
  float *out = allocate_results(x.rows * n);
  float *expected = allocate_results(x.rows * n);
  matmul_q8_experts(w, w_scale, a, a_scale, x.experts, x.begins, out, n, k,
                    middle, items);
  matmul_q8_experts(w, w_scale, a, a_scale, x.experts, x.begins, out, n, k, 0,
                    middle);
  for (index s = 0; s < x.segments; ++s) {
    const index row = x.begins[s], e = x.experts[s];
    const int32_t rows = x.begins[s + 1] - x.begins[s];
    matmul_q8(w + e * lanes * k, w_scale + e * lanes, a + row * k,
              a_scale + row, &rows, expected + row * n, 1, rows, n, k, 0,
              lanes / PANEL);
  }
  check_same(out, expected, x.rows * n);
  release_all();
}

int main(void) {
  begin_tests();
  for (kind of = 0; of < KINDS; ++of) {
    for (index m = 1; m <= 24; ++m)
      test_case(of, m, random_index(1, 70), 4 * random_index(1, 40));
    for (index n = 110; n <= 160; n += 5)
      test_case(of, 1, n, 4 * random_index(1, 40)); // several panels at once
    test_case(of, 61, 35, 516);
    test_case(of, 7, 17, 14336);
    test_case(of, 1, 16, 4);
    if (STEP == 2) {
      test_case(of, 8, 33, 1030);
      test_case(of, 1, 3, 2);
    }
  }
  for (index m = 1; m <= 40; ++m)
    test_division(m % 2, m, random_index(1, 150), 4 * random_index(1, 40));
  test_division(1, 130, 70, 36);
  test_division(0, 200, 35, 132);
  test_division(0, 9, 65, 4100);
  for (int i = 0; i < 60; ++i)
    test_experts();
  test_not_finite(7);
  test_not_finite(20);
  return end_tests();
}
