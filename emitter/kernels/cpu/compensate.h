// Rounds weights so that later inputs make up for the errors of earlier ones, as GPTQ
// does.
//
// With the moments of the inputs H = F * diag(D) * F^T, of factor.c, the error of a
// row's products is the sum over c of D[c] * (t[c] - q[c])^2, where q is the rounded
// weight and
//
//   t[c] = w[c] + sum over i < c of (w[i] - q[i]) * F[i][c]
//
// is the target of column c. So each column is rounded to the value nearest to its
// target, after all columns before it. Its scales are chosen just before, for these
// targets and with D as importance.
//
// w is [n][k], with k a multiple of 32. factor and pivots are F and D, as factor.c
// writes them. errors, [panels of 16 rows][k][16], is scratch memory. Items are
// panels, and lanes are rows, so that each sum has one order.
#ifndef KERNELS_CPU_COMPENSATE_H
#define KERNELS_CPU_COMPENSATE_H

#include "quantize_weights.h"

#define ROWS 16   // lanes
#define STRIP 32  // columns of a strip of factor
#define COLUMNS 4 // whose sums a tile has at once
#define CHUNK 256 // columns whose errors stay in the nearest cache

typedef floats __attribute__((aligned(4), may_alias)) unaligned_floats;

INLINE floats load_floats(const float *p) {
  return *(const unaligned_floats *)p;
}

INLINE void store_floats(float *p, floats x) { *(unaligned_floats *)p = x; }

// Rows of a weight that are rounded together.
typedef struct {
  const float *factor, *pivots;
  float *errors; // [k][ROWS]: weights, and errors where they are rounded
  index first, count, k;
} panel;

static panel load_panel(const float *w, const float *factor,
                        const float *pivots, float *errors, index n, index k,
                        index number) {
  const index first = number * ROWS;
  const panel p = {.factor = factor, .pivots = pivots,
                   .errors = errors + first * k, .first = first,
                   .count = min_index(ROWS, n - first), .k = k};
  for (index c = 0; c < k; ++c)
    for (index row = 0; row < ROWS; ++row)
      p.errors[c * ROWS + row] =
          row < p.count ? w[(first + row) * k + c] : 0.0f;
  return p;
}

// Adds what the errors of columns from begin to end mean for the targets of a strip.
static void add_errors(const panel *p, floats *targets, index strip, index begin,
                       index end) {
  const float *factor = p->factor + strip * STRIP * p->k;
  for (index first = begin; first < end; first += CHUNK) {
    const index last = min_index(end, first + CHUNK);
    for (index c = 0; c < STRIP; c += COLUMNS) {
      floats sums[COLUMNS];
#pragma clang loop unroll(full)
      for (int j = 0; j < COLUMNS; ++j)
        sums[j] = targets[c + j];
      for (index i = first; i < last; ++i) {
        const floats error = load_floats(p->errors + i * ROWS);
#pragma clang loop unroll(full)
        for (int j = 0; j < COLUMNS; ++j)
          sums[j] += factor[i * STRIP + c + j] * error;
      }
#pragma clang loop unroll(full)
      for (int j = 0; j < COLUMNS; ++j)
        targets[c + j] = sums[j];
    }
  }
}

// Computes the targets of a superblock's columns, as far as the columns before the
// superblock determine them.
static void load_targets(const panel *p, floats *targets, index begin,
                         index columns) {
  for (index c = 0; c < columns; ++c)
    targets[c] = load_floats(p->errors + (begin + c) * ROWS);
  for (index c = 0; c < columns; c += STRIP)
    add_errors(p, targets + c, (begin + c) / STRIP, 0, begin);
}

// Adds to the target of a column what the columns of its strip mean for it.
INLINE floats completed(const panel *p, floats target, index column) {
  const index begin = column / STRIP * STRIP;
  for (index i = begin; i < column; ++i)
    target += p->factor[begin * p->k + i * STRIP + column % STRIP] *
              load_floats(p->errors + i * ROWS);
  return target;
}

// Limits targets to magnitudes that the choice of scales can square.
INLINE void limit(weight_groups *groups, index size) {
  for (index i = 0; i < size; ++i)
    groups->x[i] = clamped(groups->x[i], -LARGEST_WEIGHT, LARGEST_WEIGHT);
}

// Stores the codes of a column, and the errors of the values that they stand for.
INLINE void store_column(const panel *p, index column, floats codes,
                         floats values, int8_t *to) {
  float *errors = p->errors + column * ROWS;
  store_floats(errors, load_floats(errors) - values);
  const bytes coded = bytes_of(codes);
  for (index row = 0; row < p->count; ++row)
    to[(p->first + row) * p->k + column] = coded[row];
}

#endif // KERNELS_CPU_COMPENSATE_H
