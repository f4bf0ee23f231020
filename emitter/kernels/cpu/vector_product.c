// Products of a matrix in f32, as its program has it, and a vector.
//
//   product_of_rows     out[i] = sum of a[i][j] * x[j]
//   product_of_columns  out[j] = sum of a[i][j] * x[i]
//
//   a  [rows][columns], with at least 16 columns
//
// The sum of a row has 16 parts, element j belongs to part j % 16 but for the last
// 16, and the parts are added in pairs. The sum of a column has the order of rows.
// Products are added by one rounding, which all instruction sets have. So results have
// the same bits everywhere, however rows and columns are divided among calls.
//
// Items are rows, and vectors of 16 columns, of which the last may overlap the one
// before.

#include "rows.h"

// Rows at once: each has a sum that waits for the product before.
#if defined(__AVX512F__)
#define ROWS 8
#else
#define ROWS 4
#endif
// Rows that are added to a column while its sum is in a register.
#define DEEP 8

INLINE void add_product(const lanes *a, const lanes *b, lanes *sum) {
  *sum = __builtin_elementwise_fma(*a, *b, *sum);
}

// Loads elements of which those below `from` count as zero.
INLINE void load_rest(const float *p, index from, lanes *x) {
  lanes_i32 places;
  for (int lane = 0; lane < LANES; ++lane)
    places[lane] = lane;
  lanes values;
  load_row(p, &values);
  const lanes_i32 bits = (lanes_i32)values & (places >= (int32_t)from);
  *x = (lanes)bits;
}

// Returns the sum of 16 parts.
INLINE float sum_of_parts(const lanes *parts) {
  float part[LANES];
  store_row(part, parts);
#pragma clang loop unroll(full)
  for (index size = LANES / 2; size > 0; size /= 2)
#pragma clang loop unroll(full)
    for (index j = 0; j < size; ++j)
      part[j] += part[j + size];
  return part[0];
}

// Multiplies `count` rows, at most ROWS.
INLINE void product_of_some(const float *a, const float *x, float *out,
                            index columns, index count) {
  lanes sums[ROWS] = {0};
  index j = 0;
  for (; j + LANES <= columns; j += LANES) {
    lanes b;
    load_row(x + j, &b);
#pragma clang loop unroll(full)
    for (index row = 0; row < count; ++row) {
      lanes part;
      load_row(a + row * columns + j, &part);
      add_product(&part, &b, &sums[row]);
    }
  }
  if (j < columns) {
    const index at = columns - LANES;
    lanes b;
    load_rest(x + at, j - at, &b);
#pragma clang loop unroll(full)
    for (index row = 0; row < count; ++row) {
      lanes part;
      load_rest(a + row * columns + at, j - at, &part);
      add_product(&part, &b, &sums[row]);
    }
  }
  for (index row = 0; row < count; ++row)
    out[row] = sum_of_parts(&sums[row]);
}

void product_of_rows(const float *a, const float *x, float *out, index rows,
                     index columns, index begin, index end) {
  (void)rows;
  index row = begin;
  for (; row + ROWS <= end; row += ROWS)
    product_of_some(a + row * columns, x, out + row, columns, ROWS);
  for (; row < end; ++row)
    product_of_some(a + row * columns, x, out + row, columns, 1);
}

// Adds `count` rows, at most DEEP, to the sums of 16 columns; `is_first` begins them.
INLINE void add_rows(const float *a, const float *x, float *out, index columns,
                     index count, int is_first) {
  lanes sum = {0};
  if (!is_first)
    load_row(out, &sum);
#pragma clang loop unroll(full)
  for (index row = 0; row < count; ++row) {
    const lanes factor = (lanes){0} + x[row];
    lanes part;
    load_row(a + row * columns, &part);
    add_product(&part, &factor, &sum);
  }
  store_row(out, &sum);
}

// Adds `count` rows to the sums of vectors of columns, and to those of the rest.
INLINE void add_rows_to_all(const float *a, const float *x, float *out, float *rest,
                            index columns, index begin, index end, index count,
                            int is_first) {
  for (index item = begin; item < min_index(end, columns / LANES); ++item)
    add_rows(a + item * LANES, x, out + item * LANES, columns, count, is_first);
  if (rest)
    add_rows(a + columns - LANES, x, rest, columns, count, is_first);
}

void product_of_columns(const float *a, const float *x, float *out, index rows,
                        index columns, index begin, index end) {
  // Columns that both have are written by the one before, maybe by another thread.
  float rest[LANES];
  const int has_rest = end > columns / LANES;
  float *const sums = has_rest ? rest : NULL;
  index row = 0;
  for (; row + DEEP <= rows; row += DEEP)
    add_rows_to_all(a + row * columns, x + row, out, sums, columns, begin, end,
                    DEEP, row == 0);
  for (; row < rows; ++row)
    add_rows_to_all(a + row * columns, x + row, out, sums, columns, begin, end, 1,
                    row == 0);
  for (index j = columns / LANES * LANES; has_rest && j < columns; ++j)
    out[j] = rest[j - (columns - LANES)];
}
