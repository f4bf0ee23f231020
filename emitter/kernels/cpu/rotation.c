// Cosines and sines of the angles by which rotary position embedding rotates.
//
//   positions  [rows]
//   count      [1]; rows from count[0] on are padding, which is not written
//   cos_coarse, sin_coarse  [.][pairs]: of every 64th position
//   cos_fine, sin_fine      [64][pairs]: of the 64 positions from 0 on
//   cos, sin   [rows][pairs]
//
// The angle of position 64 i + j is the sum of two in the tables, so the addition
// theorem gives its cosine and sine.

#include "kernels.h"

#define FINE 64

void rotation(const int32_t *positions, const int32_t *count, const float *cos_coarse,
              const float *sin_coarse, const float *cos_fine, const float *sin_fine,
              float *cos, float *sin, index pairs, index begin, index end) {
  for (index r = begin; r < min_index(end, count[0]); ++r) {
    const index coarse = positions[r] / FINE * pairs, fine = positions[r] % FINE * pairs;
    for (index i = 0; i < pairs; ++i) {
      const float cos_a = cos_coarse[coarse + i], sin_a = sin_coarse[coarse + i];
      const float cos_b = cos_fine[fine + i], sin_b = sin_fine[fine + i];
      cos[r * pairs + i] = cos_a * cos_b - sin_a * sin_b;
      sin[r * pairs + i] = sin_a * cos_b + cos_a * sin_b;
    }
  }
}
