// Moments of inputs, and what rounding by them must give.
#ifndef TESTS_COMPENSATE_CASE_H
#define TESTS_COMPENSATE_CASE_H

#include "check.h"
#include "cpu/kernels.h"

#define DAMPING 0.01f
#define PANEL 16

// Returns the moments of inputs that depend on each other, [k][k].
SHARED float *random_moments(index k, index samples) {
  float *moments = allocate(k * k * 4);
  double *sums = calloc((size_t)(k * k), sizeof *sums);
  double *x = calloc((size_t)k, sizeof *x);
  for (index sample = 0; sample < samples; ++sample) {
    double before = 0;
    for (index i = 0; i < k; ++i) {
      const double own = (double)random_u32() / 0x1p31 - 1;
      x[i] = before = 0.9 * before + own * (i % 11 == 3 ? 6 : 1);
    }
    for (index i = 0; i < k; ++i)
      for (index j = 0; j <= i; ++j)
        sums[i * k + j] += x[i] * x[j];
  }
  for (index i = 0; i < k; ++i)
    for (index j = 0; j <= i; ++j)
      moments[i * k + j] = moments[j * k + i] = (float)sums[i * k + j];
  free(sums);
  free(x);
  return moments;
}

typedef struct {
  float *factor, *pivots;
} factored;

// Returns the factor of moments, computed as it is defined.
SHARED factored reference_factor(const float *moments, index k) {
  const factored f = {allocate(k * k * 4), allocate(k * 4)};
  double *left = calloc((size_t)(k * k), sizeof *left), trace = 0;
  for (index i = 0; i < k; ++i)
    trace += moments[i * k + i];
  for (index i = 0; i < k * k; ++i) {
    left[i] = trace > 0 ? moments[i] * (double)k / trace : 0;
    left[i] += i % (k + 1) == 0 ? (double)DAMPING : 0;
  }
  for (index c = k - 1; c >= 0; --c) {
    const double pivot = left[c * k + c];
    f.pivots[c] = (float)pivot;
    for (index i = 0; i < k; ++i)
      f.factor[(c / 32 * k + i) * 32 + c % 32] =
          i < c ? (float)(left[i * k + c] / pivot) : 0.0f;
    for (index i = 0; i < c; ++i)
      for (index j = 0; j <= i; ++j) {
        left[i * k + j] -= left[i * k + c] * left[c * k + j] / pivot;
        left[j * k + i] = left[i * k + j];
      }
  }
  free(left);
  return f;
}

SHARED uint32_t hash_of(const void *data, index bytes) {
  const unsigned char *p = data;
  uint32_t hash = 2166136261u;
  for (index i = 0; i < bytes; ++i)
    hash = (hash ^ p[i]) * 16777619u;
  return hash;
}

// A weight, [n][k], and its rounded values.
typedef struct {
  index n, k;
  const float *w, *moments;
  factored by;
  double *values;
} rounding;

SHARED rounding random_rounding(index n, index k, index samples) {
  rounding r = {.n = n, .k = k};
  float *w = random_floats(n * k, (exponents){-9, -5});
  for (index i = 0; i < n * k; ++i)
    w[i] += 0.01f; // so that minima matter
  r.w = w;
  r.moments = random_moments(k, samples);
  r.by = reference_factor(r.moments, k);
  r.values = allocate(n * k * (index)sizeof *r.values);
  return r;
}

// Returns the target of a column of a row.
SHARED double target_of(const rounding *r, index row, index column) {
  double target = r->w[row * r->k + column];
  const float *strip = r->by.factor + column / 32 * r->k * 32;
  for (index i = 0; i < column; ++i)
    target += (r->w[row * r->k + i] - r->values[row * r->k + i]) *
              strip[i * 32 + column % 32];
  return target;
}

// Checks that a code, from 0 to `most`, is the nearest to its target.
SHARED void check_code(const rounding *r, index row, index column, index code,
                       index most, double scale) {
  const index at = row * r->k + column;
  if (code < 0 || code > most)
    fail("code", at, (double)code, (double)most);
  const double above = target_of(r, row, column) - r->values[at];
  const double slack = 1e-4 * fabs(scale) + 1e-7;
  // Where the scale is negative, codes ascend as values descend.
  const double steps = scale < 0 ? -above : above;
  ++checks;
  if (code < most && steps > fabs(scale) / 2 + slack)
    fail("distance", at, steps, fabs(scale) / 2);
  if (code > 0 && -steps > fabs(scale) / 2 + slack)
    fail("distance", at, -steps, fabs(scale) / 2);
}

// Returns the error of the products of all rows, by the moments.
SHARED double error_of_products(const rounding *r) {
  double total = 0;
  for (index row = 0; row < r->n; ++row)
    for (index i = 0; i < r->k; ++i) {
      double sum = 0;
      for (index j = 0; j < r->k; ++j)
        sum += r->moments[i * r->k + j] *
               (r->w[row * r->k + j] - r->values[row * r->k + j]);
      total += sum * (r->w[row * r->k + i] - r->values[row * r->k + i]);
    }
  return total;
}

#endif // TESTS_COMPENSATE_CASE_H
