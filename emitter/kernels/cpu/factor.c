// The factor of the second moments of inputs, with which compensate.c spreads errors.
//
// The moments, scaled to a mean of 1 on the diagonal and with the damping added there,
// are F * diag(D) * F^T, where F is upper triangular with ones on the diagonal. The
// last column comes first: with columns after c known, what is left of the moments is
// D[c] at [c][c] and F[i][c] * D[c] above it. Sums have one order, and one thread
// computes them.

#include "rows.h"

#define GROUP 32
#define ROWS 2 // whose sums a tile has at once

// Subtracts what the columns from `first` on explain of rows `row` to `row` + count - 1
// of a strip of GROUP columns. `scaled`, [k][GROUP], has D[m] * F[c][m].
INLINE void subtract_known(int count, const float *factor, const float *scaled,
                           float *strip, index k, index row, index first) {
  lanes sums[ROWS][2];
#pragma clang loop unroll(full)
  for (int r = 0; r < count; ++r)
    for (int v = 0; v < 2; ++v)
      load_row(strip + (row + r) * GROUP + v * LANES, &sums[r][v]);
  for (index m = first; m < k; ++m) {
    const float *known = factor + (m / GROUP * k + row) * GROUP + m % GROUP;
    lanes column[2];
    load_row(scaled + m * GROUP, &column[0]);
    load_row(scaled + m * GROUP + LANES, &column[1]);
#pragma clang loop unroll(full)
    for (int r = 0; r < count; ++r)
      for (int v = 0; v < 2; ++v)
        sums[r][v] -= known[r * GROUP] * column[v];
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < count; ++r)
    for (int v = 0; v < 2; ++v)
      store_row(strip + (row + r) * GROUP + v * LANES, &sums[r][v]);
}

// Factors the square of a strip that is on the diagonal, [GROUP][GROUP]. `products`
// gets F[i][c] * D[c] at [c][i], with zeros where i is not before c.
static void factor_square(float *square, float *pivots, float *products,
                          float damping) {
  for (index c = GROUP - 1; c >= 0; --c) {
    const float found = square[c * GROUP + c];
    // No pivot is below the damping, were it not for rounding.
    pivots[c] = found > damping ? found : damping;
    for (index i = 0; i < GROUP; ++i)
      products[c * GROUP + i] = i < c ? square[i * GROUP + c] : 0.0f;
    for (index i = 0; i < c; ++i) {
      const float quotient = square[i * GROUP + c] / pivots[c];
      for (index j = i; j < c; ++j)
        square[i * GROUP + j] -= quotient * products[c * GROUP + j];
      square[i * GROUP + c] = quotient;
    }
    for (index i = c; i < GROUP; ++i)
      square[i * GROUP + c] = 0.0f;
  }
}

// Divides a row above the square by its factor.
INLINE void solve_row(float *row, const float *pivots, const float *products) {
  for (index c = GROUP - 1; c >= 0; --c) {
    const float quotient = row[c] / pivots[c];
    for (index v = 0; v < GROUP; v += LANES) {
      lanes left, product;
      load_row(row + v, &left);
      load_row(products + c * GROUP + v, &product);
      left -= quotient * product;
      store_row(row + v, &left);
    }
    row[c] = quotient;
  }
}

// Copies a strip of the moments, scaled and damped. Below the diagonal it is zero.
INLINE void load_strip(const float *moments, float *strip, index k, index first,
                       float scale, float damping) {
  for (index row = 0; row < k; ++row)
    for (index c = 0; c < GROUP; ++c) {
      const float moment = scale * moments[row * k + first + c];
      const int is_diagonal = row == first + c;
      strip[row * GROUP + c] = row >= first + GROUP ? 0.0f
                               : is_diagonal        ? moment + damping
                                                    : moment;
    }
}

// Factors moments, [k][k], into F by strips of columns, factor [k / 32][k][32] with
// zeros on and below the diagonal, and D, pivots [k]. scaled, [k][32], is scratch
// memory, and k is a multiple of 32. Without moments, F is the identity.
void factor_moments(const float *moments, float *factor, float *pivots,
                    float *scaled, index k, index damping, index begin,
                    index end) {
  if (begin >= end)
    return;
  const float damp = float_of((uint32_t)damping);
  double sum = 0;
  for (index c = 0; c < k; ++c)
    sum += moments[c * k + c];
  const float scale = sum > 0 ? (float)((double)k / sum) : 0.0f;
  for (index first = k - GROUP; first >= 0; first -= GROUP) {
    float *strip = factor + first * k;
    load_strip(moments, strip, k, first, scale, damp);
    for (index m = first + GROUP; m < k; ++m)
      for (index c = 0; c < GROUP; ++c)
        scaled[m * GROUP + c] =
            pivots[m] *
            factor[(m / GROUP * k + first + c) * GROUP + m % GROUP];
    for (index row = 0; row < first + GROUP; row += ROWS)
      subtract_known(ROWS, factor, scaled, strip, k, row, first + GROUP);
    float products[GROUP * GROUP];
    factor_square(strip + first * GROUP, pivots + first, products, damp);
    for (index row = 0; row < first; ++row)
      solve_row(strip + row * GROUP, pivots + first, products);
  }
}
