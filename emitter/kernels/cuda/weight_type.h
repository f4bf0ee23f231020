// Types of weights.
#ifndef KERNELS_CUDA_WEIGHT_TYPE_H
#define KERNELS_CUDA_WEIGHT_TYPE_H

enum {
  GROUP = 32,   // inputs that share a scale in Q4, or are packed together
  NO_BIAS = -1, // in place of the type of biases
};

typedef enum {
  WEIGHT_F32,
  WEIGHT_BF16,
  WEIGHT_F16,
  WEIGHT_Q8,
  WEIGHT_Q4,
  WEIGHT_G4, // in groups, see groups.h, as those of 5, 6 and 8 bits
  WEIGHT_G5,
  WEIGHT_G6,
  WEIGHT_G8,
  WEIGHT_E4M3, // likewise, with codes that are floating-point numbers
  WEIGHT_F4,
} weight_type;

#endif
