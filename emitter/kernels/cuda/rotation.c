// Cosines and sines of positions, for rotary position embedding. A block has a row.
//
//   positions     [rows]
//   coarse, fine  [positions / FINE][pairs] and [FINE][pairs]: cosines and sines of
//                 the multiples of FINE and of what is left
//   cos, sin      [rows][pairs]

#include "cuda.h"

enum { THREADS = 128, FINE = 64 };

STATED(threads, THREADS);

KERNEL cuda_rotation(const int32_t *positions, const float *cos_coarse,
                     const float *sin_coarse, const float *cos_fine,
                     const float *sin_fine, float *cos, float *sin, int pairs) {
  const index row = block_idx();
  wait_for_previous_kernel();
  start_next_kernel();
  const index position = positions[row];
  const index coarse = position / FINE * pairs, fine = position % FINE * pairs;
  for (index i = thread_idx(); i < pairs; i += THREADS) {
    const float cos_a = cos_coarse[coarse + i], sin_a = sin_coarse[coarse + i];
    const float cos_b = cos_fine[fine + i], sin_b = sin_fine[fine + i];
    cos[row * pairs + i] = cos_a * cos_b - sin_a * sin_b;
    sin[row * pairs + i] = sin_a * cos_b + cos_a * sin_b;
  }
}
