// Tests the best token and the best ones of rows against a plain search, sums of exponentials against
// doubles, and that the bits of a row do not depend on other rows or on the division
// into calls.

#include "check.h"
#include "cpu/kernels.h"

typedef struct {
  const float *logits;
  int32_t count;
  index rows, vocab, best;
} best_case;

typedef struct {
  int32_t *tokens;
  float *logits, *log_sum;
} answers;

static answers allocate_answers(const best_case *c) {
  answers a = {allocate(c->rows * c->best * (index)sizeof(int32_t)),
               allocate_results(c->rows * c->best), allocate_results(c->rows)};
  for (index i = 0; i < c->rows * c->best; ++i)
    a.tokens[i] = -7;
  return a;
}

static void call(const best_case *c, answers a, index begin, index end) {
  best_tokens(c->logits, &c->count, a.tokens, a.logits, a.log_sum, c->vocab,
              c->best, begin, end);
}

static float without_nan(float x) { return isnan(x) ? -INFINITY : x; }

// Returns the best id that is not taken.
static index next_best(const float *x, index n, const char *taken) {
  index best = -1;
  for (index i = 0; i < n; ++i)
    if (!taken[i] &&
        (best < 0 || without_nan(x[i]) > without_nan(x[best])))
      best = i;
  return best;
}

static double expected_log_sum(const float *x, index n) {
  double largest = -INFINITY, sum = 0;
  for (index i = 0; i < n; ++i) {
    if (isnan(x[i]))
      return NAN;
    largest = fmax(largest, (double)x[i]);
  }
  if (isinf(largest))
    return largest;
  for (index i = 0; i < n; ++i)
    sum += exp((double)x[i] - largest);
  return largest + log(sum);
}

static void check_row(const best_case *c, const float *x, const int32_t *tokens,
                      const float *logits, float log_sum) {
  char *taken = calloc((size_t)c->vocab, 1);
  for (index i = 0; i < c->best; ++i) {
    const index expected = next_best(x, c->vocab, taken);
    taken[expected] = 1;
    check_equal("token", i, tokens[i], (double)expected);
    check_equal("logit", i, (double)logits[i],
                (double)without_nan(x[expected]));
  }
  free(taken);
  // The sum's error, and that of the result's rounding.
  const double expected = expected_log_sum(x, c->vocab);
  check_near("log_sum", 0, (double)log_sum, expected,
             1e-6 + fabs(expected) * 6e-8);
}

static void check_next(const best_case *c, index begin, index end) {
  int32_t *next = allocate(c->rows * (index)sizeof(int32_t));
  for (index row = 0; row < c->rows; ++row)
    next[row] = -7;
  best_token(c->logits, &c->count, next, c->vocab, begin, end);
  for (index row = 0; row < c->rows; ++row) {
    const float *x = c->logits + row * c->vocab;
    index expected = 0;
    for (index i = 0; i < c->vocab; ++i) {
      if (expected < c->vocab && x[i] > x[expected])
        expected = i;
      if (isnan(x[i]))
        expected = c->vocab;
    }
    const int wanted = row >= begin && row < end && row < c->count;
    check_equal("next", row, next[row], wanted ? (double)expected : -7);
  }
  release_from(buffer_count - 1);
}

static void check_case(const best_case *c, index begin, index end) {
  check_next(c, begin, end);
  const answers a = allocate_answers(c);
  call(c, a, begin, end);
  check_untouched("another call's row", a.logits, 0, begin * c->best);
  check_untouched("another call's row", a.logits, end * c->best,
                  c->rows * c->best);
  check_untouched("another call's row", a.log_sum, 0, begin);
  check_untouched("another call's row", a.log_sum, end, c->rows);
  for (index i = 0; i < c->rows * c->best; ++i)
    if (i < begin * c->best || i >= end * c->best)
      check_equal("another call's token", i, a.tokens[i], -7);
  for (index row = begin; row < end; ++row) {
    const index at = row * c->best;
    if (row >= c->count) {
      for (index i = at; i < at + c->best; ++i)
        check_equal("padding", i, a.tokens[i], -7);
      check_untouched("padding", a.logits, at, at + c->best);
      check_untouched("padding", a.log_sum, row, row + 1);
      continue;
    }
    const float *x = c->logits + row * c->vocab;
    check_row(c, x, a.tokens + at, a.logits + at, a.log_sum[row]);
    // The same row alone.
    const best_case alone = {x, 1, 1, c->vocab, c->best};
    const answers single = allocate_answers(&alone);
    call(&alone, single, 0, 1);
    check_equal("bits", row, bits_of(a.log_sum[row]), bits_of(*single.log_sum));
    release_from(buffer_count - 3);
  }
}

// The values of a row.
enum { SPREAD, TIES, EQUAL, ASCENDING, FAR, SPECIAL, KINDS };

static float value(int kind, index i, index n) {
  const float special[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1e-40f, 3e38f};
  const float ordinary =
      (float)random_index(-1000000, 1000000) * 1e-5f;
  switch (kind) {
  case TIES:
    return (float)random_index(-3, 3);
  case EQUAL:
    return -2.5f;
  case ASCENDING:
    return (float)(i - n) * 1e-3f;
  case FAR:
    return ordinary * (random_index(0, 9) ? 1.0f : 1e4f);
  case SPECIAL:
    return random_index(0, 3) ? ordinary : special[random_index(0, 6)];
  default:
    return ordinary;
  }
}

static void test_rows(void) {
  const index vocabs[] = {1,   2,   5,   15,  16,  17,   63,   64,   65,  100,
                          127, 128, 129, 511, 512, 513, 1000, 1024, 5000, 32003};
  for (int v = 0; v < 20; ++v)
    for (int kind = 0; kind < KINDS; ++kind) {
      const index n = vocabs[v], rows = random_index(1, 4);
      best_case c = {NULL, (int32_t)random_index(0, rows + 1), rows, n,
                     min_index(n, 64)};
      if (random_index(0, 3) == 0)
        c.best = random_index(1, c.best);
      at_case("%lld best of %lld, kind %d", (long long)c.best, (long long)n, kind);
      float *x = allocate(rows * n * 4);
      for (index i = 0; i < rows * n; ++i)
        x[i] = value(kind, i % n, n);
      c.logits = x;
      const index begin = random_index(0, rows - 1);
      check_case(&c, begin, random_index(begin, rows));
      check_case(&c, 0, rows);
      release_all();
    }
}

// Tests rows that are of one special value, or have one.
static void test_special_rows(void) {
  const float special[] = {INFINITY, -INFINITY, NAN};
  for (int s = 0; s < 3; ++s)
    for (int all = 0; all < 2; ++all)
      for (index n = 1; n < 200; n += 7) {
        at_case("%s %g among %lld", all ? "all" : "one", (double)special[s],
                (long long)n);
        float *x = random_floats(n, ORDINARY);
        for (index i = 0; all && i < n; ++i)
          x[i] = special[s];
        x[n / 2] = special[s];
        const best_case c = {x, 1, 1, n, min_index(n, 64)};
        check_case(&c, 0, 1);
        release_all();
      }
  // A NaN whose low bits would be taken for an exponent.
  at_case("NaN with other bits");
  float *x = random_floats(100, ORDINARY);
  x[3] = float_of(0x7fc001ffu);
  x[4] = float_of(0xffc00101u);
  const best_case c = {x, 1, 1, 100, 64};
  check_case(&c, 0, 1);
  release_all();
}

// Tests sums of as many terms as a vocabulary has, whose errors could add up.
static void test_long_sums(void) {
  const float differences[] = {0.0f, -1.0f, -5.3f, -11.8f, -16.7f};
  for (int d = 0; d < 5; ++d) {
    at_case("one logit above others by %g", (double)differences[d]);
    const index n = 262144;
    float *x = allocate(n * 4);
    for (index i = 0; i < n; ++i)
      x[i] = 7.1f + differences[d];
    x[12345] = 7.1f;
    const best_case c = {x, 1, 1, n, 3};
    check_case(&c, 0, 1);
    release_all();
  }
}

// Tests that every instruction set gives the same bits.
static void test_bits(void) {
  at_case("bits of every instruction set");
  random_state = 1;
  uint32_t hash = 2166136261u;
  for (index n = 1; n < 700; ++n) {
    float *x = allocate(n * 4);
    for (index i = 0; i < n; ++i)
      x[i] = value(SPREAD, i, n);
    const best_case c = {x, 1, 1, n, 1};
    const answers a = allocate_answers(&c);
    call(&c, a, 0, 1);
    hash = (hash ^ bits_of(*a.log_sum)) * 16777619u;
    release_all();
  }
  check_equal("hash", 0, hash, 783731720u);
}

int main(void) {
  begin_tests();
  test_rows();
  test_special_rows();
  test_long_sums();
  test_bits();
  return end_tests();
}
