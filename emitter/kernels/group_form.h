// Forms of weights in groups of inputs, on CPUs and on GPUs. cpu/groups.h has their
// formulas.
#ifndef KERNELS_GROUP_FORM_H
#define KERNELS_GROUP_FORM_H

typedef enum {
  FORM_SYMMETRIC,
  FORM_ZEROS,
  FORM_MINIMA,
  FORM_SUPERBLOCKS,
  FORM_HALVES,
  FORM_E2M1,
  FORM_IQ4,
  FORM_IQ4_BLOCKS,
  FORM_HALF_MINIMA // on CPUs
} group_form;

// Numbers of E2M1, doubled, and those of GGUF's IQ4_NL and IQ4_XS.
#define E2M1 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12
#define IQ4                                                                    \
  -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113

#endif
