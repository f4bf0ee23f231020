// What activations are, in doubles.
#ifndef TESTS_ACTIVATION_CASE_H
#define TESTS_ACTIVATION_CASE_H

#include "cuda/activation.h"

static double expected_activation(activation by, double x) {
  switch (by.kind) {
  case ACTIVATION_SILU: return x / (1 + exp(-x));
  case ACTIVATION_SWISH: return x / (1 + exp(-by.steepness * x));
  case ACTIVATION_GELU: return x * (1 + erf(x / sqrt(2))) / 2;
  default:
    return x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))) / 2;
  }
}

static gating random_gating(void) {
  return (gating){{(activation_kind)random_index(0, ACTIVATIONS - 1), 1.702f},
                  random_u32() & 1 ? 1.5f : float_of(0x7f800000u),
                  random_u32() & 1 ? 1.0f : 0.0f};
}

// Returns the product of a gate. Its error is `slope` times that of gate and up.
static double expected_gated(const gating *by, double gate, double up,
                             double *slope) {
  const double limit = by->limit;
  const double activated = expected_activation(by->activation, fmin(gate, limit));
  up = fmax(fmin(up, limit), -limit) + by->up_offset;
  *slope = 1.2 * fabs(up) + fabs(activated);
  return activated * up;
}

#endif
