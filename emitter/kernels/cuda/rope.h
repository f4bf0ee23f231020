// Rotary position embedding on NVIDIA GPUs.
#ifndef KERNELS_CUDA_ROPE_H
#define KERNELS_CUDA_ROPE_H

#include "cuda.h"

// Dimensions that a thread rotates at once.
enum { ROPE_DIMS = 4 };

// How a row is rotated: the first 2 * pairs dimensions of every head, by pairs (x, y) to
// (x * cos - y * sin, y * cos + x * sin). If interleaved is 0, pair i is dimensions i and
// i + pairs, or else it is dimensions 2 * i and 2 * i + 1.
typedef struct {
  const float *cos, *sin; // [pairs]
  int pairs, interleaved;
} rotation;

INLINE rotation rotation_of_row(const float *cos, const float *sin, index row,
                                int pairs, int interleaved) {
  return (rotation){cos + row * pairs, sin + row * pairs, pairs, interleaved};
}

INLINE void load_four(float x[4], const float *from) {
  const uint4_t four = *(const uint4_t *)from;
  UNROLL for (int e = 0; e < 4; ++e)
    x[e] = float_of(four[e]);
}

// Returns dimension d of the head x.
INLINE float rotated(const rotation *r, const float *x, int d) {
  if (d >= 2 * r->pairs)
    return x[d];
  const int is_second = r->interleaved ? d % 2 : d >= r->pairs;
  const int pair = r->interleaved ? d / 2 : is_second ? d - r->pairs : d;
  const int step = r->interleaved ? 1 : r->pairs;
  const float here = x[d] * r->cos[pair];
  const float there = x[is_second ? d - step : d + step] * r->sin[pair];
  return is_second ? here + there : here - there;
}

// Which loads a rotation needs. Rows of cos and sin are aligned if `pairs` is a multiple
// of four.
typedef enum { ROPE_NONE, ROPE_HALVES, ROPE_INTERLEAVED, ROPE_UNALIGNED } rope_kind;

// Does CALL(kind), each kind in a branch of its own.
#define WITH_ROPE_KIND(pairs, interleaved, CALL)                               \
  if ((pairs) == 0) {                                                          \
    CALL(ROPE_NONE);                                                           \
  } else if ((pairs) % 4 != 0) {                                               \
    CALL(ROPE_UNALIGNED);                                                      \
  } else if (interleaved) {                                                    \
    CALL(ROPE_INTERLEAVED);                                                    \
  } else {                                                                     \
    CALL(ROPE_HALVES);                                                         \
  }

// Computes dimensions d to d + 3 of the head x. d is a multiple of 4, and x is aligned
// for a load of 16 bytes. There are no branches but in ROPE_UNALIGNED, so that the loads
// of several calls run at the same time.
INLINE void rotate_four(float out[4], const rotation *r, const float *x, int d,
                        const rope_kind kind) {
  if (kind == ROPE_UNALIGNED) {
    UNROLL for (int e = 0; e < 4; ++e)
      out[e] = rotated(r, x, d + e);
    return;
  }
  load_four(out, x + d);
  if (kind == ROPE_NONE)
    return;
  const int pairs = r->pairs, is_rotated = d < 2 * pairs;
  if (kind == ROPE_INTERLEAVED) {
    const int pair = is_rotated ? d / 2 : 0;
    UNROLL for (int e = 0; e < 4; e += 2) {
      const float cos = r->cos[pair + e / 2], sin = r->sin[pair + e / 2];
      const float first = out[e] * cos - out[e + 1] * sin;
      const float second = out[e + 1] * cos + out[e] * sin;
      out[e] = is_rotated ? first : out[e];
      out[e + 1] = is_rotated ? second : out[e + 1];
    }
    return;
  }
  const int is_second = d >= pairs;
  const int pair = !is_rotated ? 0 : is_second ? d - pairs : d;
  const int other = !is_rotated ? d : is_second ? d - pairs : d + pairs;
  float there[4], cos[4], sin[4];
  load_four(there, x + other);
  load_four(cos, r->cos + pair);
  load_four(sin, r->sin + pair);
  UNROLL for (int e = 0; e < 4; ++e) {
    const float product = there[e] * sin[e];
    const float sum = out[e] * cos[e] + (is_second ? product : -product);
    out[e] = is_rotated ? sum : out[e];
  }
}

#endif
