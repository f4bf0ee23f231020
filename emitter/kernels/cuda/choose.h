// The choice of a token's experts by their logits: the `active` ones with the largest, of
// equal ones the first.
#ifndef KERNELS_CUDA_CHOOSE_H
#define KERNELS_CUDA_CHOOSE_H

#include "cuda.h"

enum {
  MAX_EXPERTS = 512,
  MAX_ACTIVE = 32, // experts of a token
  LANE_EXPERTS = MAX_EXPERTS / WARP, // whose logits a lane has
};

STATED(max_experts, MAX_EXPERTS);
STATED(max_active, MAX_ACTIVE);

// An expert of a token, and its share of the result.
typedef struct {
  int expert;
  float share;
} choice;

#define LOWEST float_of(0xff800000u)

// Returns the expert of the slot of each lane, for as many lanes as experts are active.
// Shares are the softmax of all logits, or of those of the token's experts if normalized.
// Without any number among the logits, the first expert takes all slots.
INLINE choice choose_experts(const float *from, int count, int normalized, int active,
                             int lane) {
  float logits[LANE_EXPERTS], largest = LOWEST, sum = 0.0f;
  choice own = {0, 0.0f};
  UNROLL for (int i = 0; i < LANE_EXPERTS; ++i) {
    const int expert = i * WARP + lane;
    logits[i] = expert < count ? from[expert] : LOWEST;
    largest = max_float(largest, logits[i]);
  }
  largest = warp_reduce_max(largest);
  if (!normalized) {
    UNROLL for (int i = 0; i < LANE_EXPERTS; ++i)
      sum += exp2_approx((logits[i] - largest) * LOG2_E);
    sum = warp_reduce_sum(sum);
  }
  for (int slot = 0; slot < active; ++slot) {
    float value = LOWEST;
    int at = MAX_EXPERTS;
    UNROLL for (int i = 0; i < LANE_EXPERTS; ++i)
      if (logits[i] > value) {
        value = logits[i];
        at = i * WARP + lane;
      }
    for (int mask = 1; mask < WARP; mask *= 2) {
      const float other = shuffle_xor(value, mask);
      const int place = (int)shuffle_xor_u32((uint32_t)at, mask);
      if (other > value || (other == value && place < at)) {
        value = other;
        at = place;
      }
    }
    UNROLL for (int i = 0; i < LANE_EXPERTS; ++i)
      if (i * WARP + lane == at)
        logits[i] = LOWEST;
    const float weight = exp2_approx((value - largest) * LOG2_E);
    sum += normalized ? weight : 0.0f;
    if (lane == slot)
      own = (choice){at < count ? at : 0, weight};
  }
  own.share /= sum;
  return own;
}

#endif
