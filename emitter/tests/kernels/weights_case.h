// Weights to quantize, and a digest of results.
#ifndef TESTS_WEIGHTS_CASE_H
#define TESTS_WEIGHTS_CASE_H

#include "check.h"
#include "cpu/kernels.h"

#define BLOCK 256
#define ROWS 5
#define NEVER_WRITTEN 99
#define LARGEST_WEIGHT 0x1p30 // beyond what superblocks can hold

typedef enum {
  RANDOM,
  ZERO,
  ONE_HUGE, // in every row
  EQUAL,    // except for their signs
  NEGATIVE,
  ALL_EQUAL_NEGATIVE,
  FAR, // in a narrow range far from zero
  SUBNORMAL,
  SMALLEST, // around the magnitudes that halves can hold
  LARGEST,
  WIDE,
  KINDS
} kind;

static const char *const kind_names[KINDS] = {
    "random",    "zero", "one huge",  "equal",    "negative", "all equal negative",
    "far",       "subnormal", "smallest", "largest",  "wide"};

typedef struct {
  element_type type;
  index k;
  void *x;
  float *importance;
} weights;

static void store_float(void *base, element_type type, index i, float x) {
  if (type == ELEMENT_F32)
    ((float *)base)[i] = x;
  else
    ((uint16_t *)base)[i] =
        type == ELEMENT_BF16 ? bf16_from_float(x) : f16_from_float(x);
}

// Returns random weights of a kind, which all inputs have the same importance for.
static weights random_weights(kind of, element_type type, index k) {
  const exponents ranges[KINDS] = {[SUBNORMAL] = {-127, -127},
                                   [SMALLEST] = {-42, -18},
                                   [LARGEST] = {120, 126},
                                   [WIDE] = {-60, 20}};
  const int has_range = ranges[of].low != 0;
  weights w = {type, k, NULL, allocate(k * 4)};
  w.x = random_elements(type, ROWS * k, has_range ? ranges[of] : ORDINARY);
  for (index i = 0; i < ROWS * k; ++i) {
    const float x = load_element(w.x, type, i);
    const float changed = of == ZERO       ? x * 0.0f // of both signs
                          : of == EQUAL    ? copysignf(3.0f, x)
                          : of == NEGATIVE ? -fabsf(x)
                          : of == ALL_EQUAL_NEGATIVE ? -0.375f
                          : of == FAR                ? 8.0f + x * 0x1p-5f
                                                     : x;
    store_float(w.x, type, i, changed);
  }
  if (of == ONE_HUGE)
    for (index row = 0; row < ROWS; ++row)
      store_float(w.x, type, row * k + random_index(0, k - 1), -6e4f);
  for (index i = 0; i < k; ++i)
    w.importance[i] = 1.0f;
  return w;
}

static double weight_at(const weights *w, index row, index i) {
  const double x = load_element(w->x, w->type, row * w->k + i);
  return fmin(fmax(x, -LARGEST_WEIGHT), LARGEST_WEIGHT);
}

static void *never_written(index bytes) {
  return memset(allocate(bytes), NEVER_WRITTEN, (size_t)bytes);
}

// Checks that only the rows from begin to end of a result are written.
static void check_other_rows(const char *what, const void *result,
                             index row_bytes, index begin, index end) {
  const uint8_t *bytes = result;
  for (index i = 0; i < ROWS * row_bytes; ++i)
    if (i < begin * row_bytes || i >= end * row_bytes)
      check_equal(what, i, bytes[i], NEVER_WRITTEN);
}

// Returns an error that rounding a unit to half precision can make in a superblock.
static double rounding_error(const weights *w, index row, index block) {
  const index first = block * BLOCK, end = min_index(first + BLOCK, w->k);
  double largest = 0;
  for (index i = first; i < end; ++i)
    largest = fmax(largest, fabs(weight_at(w, row, i)));
  return (double)(end - first) * largest * largest * 0x1p-22 + 1e-20;
}

static double as_unit(double x) {
  const double most = 65504.0;
  return float_from_f16(f16_from_float((float)fmin(fmax(x, -most), most)));
}

static double nearest_code(double x, double scale, double low, double high) {
  return scale == 0 ? 0 : fmin(fmax(nearbyint(x / scale), low), high);
}

static uint64_t digest_of(const void *bytes, index count, uint64_t digest) {
  for (index i = 0; i < count; ++i) // FNV-1a
    digest = (digest ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
  return digest;
}

#define EMPTY_DIGEST 0xcbf29ce484222325u

#endif // TESTS_WEIGHTS_CASE_H
