// Types of weights.
#ifndef KERNELS_CUDA_WEIGHT_TYPE_H
#define KERNELS_CUDA_WEIGHT_TYPE_H

enum {
  GROUP = 32,   // inputs that share a scale in Q4
  NO_BIAS = -1, // in place of the type of biases
};

typedef enum {
  WEIGHT_F32,
  WEIGHT_BF16,
  WEIGHT_F16,
  WEIGHT_Q8,
  WEIGHT_Q4,
} weight_type;

#endif
