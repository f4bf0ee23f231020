// The best token of rows of logits; and the best ones of each row with the logarithm
// of the sum of its exponentials.
//
//   logits       [rows][vocab]
//   count        [1]; rows from count[0] on are not wanted, whose results are not
//                written
//   next         [rows]: the id of the largest logit, the lowest of equal ones; vocab
//                if a logit is NaN
//   tokens       [rows][best]: ids of the largest logits, best first. Of equal logits
//                the lower id comes first, and NaN counts as -inf
//   best_logits  [rows][best]: their logits
//   log_sum_exp  [rows]: NaN if a logit is NaN, otherwise infinite if the largest is
//
// best is at most MAX_BEST and at most vocab. Items are rows.
//
// The first pass finds the largest logit of each of 64 classes, those of ids equal
// modulo 64. The least of these is a bound: at least 64 logits reach it, and in most
// rows some 300. The second pass collects them while it adds exponentials: blocks in
// vectors, and the blocks in double precision.

#include "exponential.h"

#define MAX_BEST 64
#define CLASSES STEP
#define BLOCK 512 // elements that are added in single precision

_Static_assert(CLASSES >= MAX_BEST, "as many logits as are wanted reach the bound");

// The best logits so far: keys in descending order.
//
// A key has a logit in its upper half, as a number in the order of logits, and its
// complemented id in the lower one. So all keys differ, and the larger is better.
typedef struct {
  uint64_t keys[MAX_BEST];
  index best;
  float bound; // logits below it are not among the best
} list;

INLINE uint64_t key_of(float x, index id) {
  // Adding zero gives both zeros one sign.
  const uint32_t bits = bits_of(x == x ? x + 0.0f : -__builtin_inff());
  const uint32_t ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
  return (uint64_t)ordered << 32 | (uint32_t)~(uint32_t)id;
}

// Returns the logit whose number in the order of logits is `ordered`.
INLINE float logit_of(uint32_t ordered) {
  return float_of(ordered >> 31 ? ordered & 0x7fffffffu : ~ordered);
}

INLINE index id_of(uint64_t key) { return (index)(uint32_t)~(uint32_t)key; }

// Inserts those of `count` logits, the first of which is that of `id`, that are among
// the best so far. Not inlined, because it is rarely called.
static __attribute__((noinline)) void collect(list *to, const float *x,
                                              index count, index id) {
  const index last = to->best - 1;
  for (index i = 0; i < count; ++i) {
    if (x[i] < to->bound)
      continue;
    const uint64_t key = key_of(x[i], id + i);
    if (key <= to->keys[last])
      continue;
    index at = last;
    for (; at > 0 && to->keys[at - 1] < key; --at)
      to->keys[at] = to->keys[at - 1];
    to->keys[at] = key;
    // Later ids must be above the last one.
    if (to->keys[last])
      to->bound = logit_of((uint32_t)(to->keys[last] >> 32) + 1);
  }
}

// Loads 64 logits from element i on, and -inf beyond the end.
INLINE void load_step(const float *x, index i, index n, lanes parts[SUMS]) {
  if (i + STEP <= n) {
#pragma clang loop unroll(full)
    for (int j = 0; j < SUMS; ++j)
      load_row(x + i + j * LANES, &parts[j]);
    return;
  }
  float rest[STEP];
#pragma clang loop vectorize(disable) unroll(disable)
  for (index j = 0; j < STEP; ++j)
    rest[j] = i + j < n ? x[i + j] : -__builtin_inff();
#pragma clang loop unroll(full)
  for (int j = 0; j < SUMS; ++j)
    load_row(rest + j * LANES, &parts[j]);
}

// Replaces lanes of x by larger ones of y. NaN is not larger.
INLINE void raise_to(lanes *x, const lanes *y) {
  const lanes_i32 larger = *y > *x;
  lanes_i32 a, b;
  __builtin_memcpy(&a, x, sizeof a);
  __builtin_memcpy(&b, y, sizeof b);
  a = (a & ~larger) | (b & larger);
  __builtin_memcpy(x, &a, sizeof a);
}

typedef struct {
  float largest, bound; // of the row, and the least of those of the classes
  int has_nan;
} extremes;

static __attribute__((noinline)) extremes find_extremes(const float *x, index n) {
  lanes largest[SUMS];
  lanes_i32 nan = {0};
  for (int j = 0; j < SUMS; ++j)
    largest[j] = (lanes){0} - __builtin_inff();
  for (index i = 0; i < n; i += STEP) {
    lanes parts[SUMS];
    load_step(x, i, n, parts);
#pragma clang loop unroll(full)
    for (int j = 0; j < SUMS; ++j) {
      nan |= parts[j] != parts[j];
      raise_to(&largest[j], &parts[j]);
    }
  }
  float classes[CLASSES];
  extremes found = {.has_nan = __builtin_reduce_or(nan) != 0};
  for (int j = 0; j < SUMS; ++j)
    store_row(classes + j * LANES, &largest[j]);
  found.largest = found.bound = classes[0];
  for (index j = 1; j < CLASSES; ++j) {
    found.largest = classes[j] > found.largest ? classes[j] : found.largest;
    found.bound = classes[j] < found.bound ? classes[j] : found.bound;
  }
  return found;
}

// Collects the best of a row, and returns the sum of e^(x - largest).
static __attribute__((noinline)) double collect_and_sum(const float *x, index n,
                                                        float largest, list *to) {
  double total = 0;
  for (index block = 0; block < n; block += BLOCK) {
    lanes sums[SUMS] = {0};
    for (index i = block; i < min_index(block + BLOCK, n); i += STEP) {
      lanes parts[SUMS];
      load_step(x, i, n, parts);
      lanes_i32 below = parts[0] < to->bound;
#pragma clang loop unroll(full)
      for (int j = 1; j < SUMS; ++j)
        below &= parts[j] < to->bound;
      if (!__builtin_reduce_and(below))
        collect(to, x + i, min_index(STEP, n - i), i);
#pragma clang loop unroll(full)
      for (int j = 0; j < SUMS; ++j) {
        parts[j] -= largest;
        exponential(&parts[j]);
        sums[j] += parts[j];
      }
    }
    total += (double)sum_of_sums(sums);
  }
  return total;
}

// Returns the natural logarithm of a normal number, with a relative error below
// 1e-13 beyond 2.
INLINE double logarithm(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  // The exponent for a mantissa from sqrt(1/2) to sqrt(2).
  const int64_t exponent =
      (int64_t)(bits - 0x3fe6a09e667f3bcdu) >> 52;
  bits -= (uint64_t)exponent << 52;
  double mantissa;
  __builtin_memcpy(&mantissa, &bits, sizeof mantissa);
  const double t = (mantissa - 1) / (mantissa + 1), square = t * t;
  double series = 0;
  for (int i = 17; i >= 1; i -= 2)
    series = series * square + 1.0 / i;
  return 2 * t * series + (double)exponent * 0.69314718055994531;
}

// Returns the logarithm of the sum of a row's exponentials, and fills the list.
INLINE float log_sum_of(const float *x, index n, list *to) {
  const extremes by = find_extremes(x, n);
  to->bound = by.bound;
  const double sum = collect_and_sum(x, n, by.largest, to);
  if (by.has_nan)
    return __builtin_nanf("");
  // Otherwise infinities would be subtracted from each other.
  if (by.largest - by.largest != 0.0f)
    return by.largest;
  return (float)((double)by.largest + logarithm(sum));
}

void best_tokens(const float *logits, const int32_t *count, int32_t *tokens,
                 float *best_logits, float *log_sum_exp, index vocab, index best,
                 index begin, index end) {
  for (index row = begin; row < min_index(end, count[0]); ++row) {
    int32_t *ids = tokens + row * best;
    float *values = best_logits + row * best;
    list found;
    found.best = best;
    for (index i = 0; i < best; ++i)
      found.keys[i] = 0;
    log_sum_exp[row] = log_sum_of(logits + row * vocab, vocab, &found);
    for (index i = 0; i < best; ++i) {
      ids[i] = (int32_t)id_of(found.keys[i]);
      values[i] = logit_of((uint32_t)(found.keys[i] >> 32));
    }
  }
}

void best_token(const float *logits, const int32_t *count, int32_t *next, index vocab,
                index begin, index end) {
  for (index row = begin; row < min_index(end, count[0]); ++row) {
    const float *x = logits + row * vocab;
    const extremes by = find_extremes(x, vocab);
    index id = by.has_nan ? vocab : 0;
    while (id < vocab && x[id] < by.largest)
      ++id;
    next[row] = (int32_t)id;
  }
}
