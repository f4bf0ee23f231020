// Inputs of products of a single row.
#ifndef TESTS_ROW_CASE_H
#define TESTS_ROW_CASE_H

#include "matrix_case.h"

#include "cuda/row_product.h"

// Returns how many warps share a unit, as the emitter may choose it: a slice has a chunk
// of each.
SHARED int random_split(weight_type type, int is_sliced) {
  int most = 3;
  while (is_sliced && vectors_of_shared(type) < (VECTORS * WARP) << most)
    --most;
  return 1 << random_index(0, most);
}

#define MAX_ROW 49152
static double row[MAX_ROW], roundings[MAX_ROW];

// Computes by how much inputs of a row may be rounded: those of weights that are whole
// numbers have 15 bits and a sign, of the largest of as many as 16 bytes of weights hold.
SHARED void find_roundings(weight_type type, int inputs) {
  const int size = inputs_in_16_bytes(type);
  for (int first = 0; first < inputs; first += size) {
    double most = 0;
    for (int i = first; i < first + size; ++i)
      most = fmax(most, fabs(row[i]));
    for (int i = first; i < first + size; ++i)
      roundings[i] = is_whole(type) ? most * 0x1p-16 : 0;
  }
}

#endif
