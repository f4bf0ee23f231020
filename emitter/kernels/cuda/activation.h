// Activations of single elements, and of gates, on GPUs.
//
//   kind 0  x * sigmoid(x)
//        1  x * sigmoid(steepness * x)
//        2  x * (1 + erf(x / sqrt(2))) / 2
//        3  x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2
#ifndef KERNELS_CUDA_ACTIVATION_H
#define KERNELS_CUDA_ACTIVATION_H

#include "cuda.h"

typedef enum {
  ACTIVATION_SILU,
  ACTIVATION_SWISH,
  ACTIVATION_GELU,
  ACTIVATION_GELU_TANH,
} activation_kind;

enum { ACTIVATIONS = ACTIVATION_GELU_TANH + 1 };

typedef struct {
  activation_kind kind;
  float steepness;
} activation;

// Computes x * sigmoid(s).
INLINE float times_sigmoid(float x, float s) {
  return x / (1.0f + exp2_approx(-s * LOG2_E));
}

// The normal distribution's tail beyond x >= 0 is exp(-x^2 / 2) * t * p(t), with
// t = 1 / (1 + x / 4). The polynomial p has a relative error of 9e-9 up to x = 14, as
// in cpu/activate.c.
INLINE float gelu(float x) {
  const float t = 1.0f / (float_of(bits_of(x) & 0x7fffffffu) * 0.25f + 1.0f);
  float p = 1.6579615924e-02f;
  p = p * t - 6.2791949147e-02f;
  p = p * t + 5.1651772910e-02f;
  p = p * t + 2.8436750833e-02f;
  p = p * t + 1.2710925733e-02f;
  p = p * t + 8.6657477062e-02f;
  p = p * t + 7.1999178885e-02f;
  p = p * t + 9.5515779646e-02f;
  p = p * t + 9.9492548198e-02f;
  p = p * t + 9.9747904029e-02f;
  const float tail = exp2_approx(x * x * (-0.5f * LOG2_E)) * t * p;
  return x * (x > 0.0f ? 1.0f - tail : tail);
}

INLINE float activate(activation by, float x) {
  switch (by.kind) {
  case ACTIVATION_SILU: return times_sigmoid(x, x);
  case ACTIVATION_SWISH: return times_sigmoid(x, by.steepness * x);
  case ACTIVATION_GELU: return gelu(x);
  case ACTIVATION_GELU_TANH:
    // (1 + tanh(u)) / 2 is the sigmoid of 2u.
    return times_sigmoid(
        x, (x * x * x * 0.044715f + x) * 1.5957691216057308f);
  }
  return x;
}

// A gate's product: f(min(gate, limit)) * (clamp(up, -limit, limit) + up_offset).
typedef struct {
  activation activation; // f
  float limit, up_offset;
} gating;

INLINE float gated(const gating *by, float gate, float up) {
  const float clamped = max_float(min_float(up, by->limit), -by->limit);
  return activate(by->activation, min_float(gate, by->limit)) *
         (clamped + by->up_offset);
}

// Replaces gates by their products. There is a branch for all of them, rather than one
// for each, so that they are computed at the same time.
INLINE void multiply_gates(const gating *by, float gates[], const float ups[],
                           const int count) {
  UNROLL for (int kind = 0; kind < ACTIVATIONS; ++kind)
    if (by->activation.kind == (activation_kind)kind) {
      gating same = *by;
      same.activation.kind = (activation_kind)kind; // constant
      UNROLL for (int i = 0; i < count; ++i)
        gates[i] = gated(&same, gates[i], ups[i]);
    }
}

#endif
