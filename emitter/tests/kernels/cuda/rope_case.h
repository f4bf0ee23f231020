// Random rotations, and what they give.
#ifndef TESTS_CUDA_ROPE_CASE_H
#define TESTS_CUDA_ROPE_CASE_H

#include "check.h"

typedef struct {
  index pairs, interleaved;
  float *cos, *sin; // [rows][pairs]
} rope_case;

// Rotates all dimensions, some or none.
SHARED rope_case random_rope(index rows, index head_dim) {
  const index kind = random_index(0, 5);
  rope_case r = {.pairs = kind == 0   ? 0
                          : kind == 1 ? random_index(0, head_dim / 2)
                          : kind == 2 ? random_index(0, head_dim / 8) * 4
                                      : head_dim / 2,
                 .interleaved = random_index(0, 1)};
  r.cos = allocate(rows * r.pairs * 4);
  r.sin = allocate(rows * r.pairs * 4);
  for (index i = 0; i < rows * r.pairs; ++i) {
    const double angle = (double)random_index(-1000, 1000) / 100;
    r.cos[i] = (float)cos(angle);
    r.sin[i] = (float)sin(angle);
  }
  return r;
}

// Returns dimension d of the head x.
SHARED float expected_rotated(const rope_case *r, const float *x, index row,
                              index d) {
  if (d >= 2 * r->pairs)
    return x[d];
  const index pair = r->interleaved ? d / 2 : d % r->pairs;
  const index first = r->interleaved ? 2 * pair : pair;
  const index second = r->interleaved ? first + 1 : first + r->pairs;
  const float cos = r->cos[row * r->pairs + pair];
  const float sin = r->sin[row * r->pairs + pair];
  return d == first ? x[first] * cos - x[second] * sin
                    : x[second] * cos + x[first] * sin;
}

#endif
