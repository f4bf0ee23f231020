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
  FORM_HALF_MINIMA, // on CPUs
  FORM_E2M1_HALVES  // on CPUs
} group_form;

// Numbers of E2M1, doubled, and those of GGUF's IQ4_NL and IQ4_XS.
#define E2M1 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12
#define IQ4                                                                    \
  -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113

// What codes of 4 bits stand for that are floating-point numbers: E2M1 of OCP's
// Microscaling Formats 1.0, and nf4 (QLoRA, arXiv 2305.14314, appendix E) and fp4 of
// bitsandbytes.
typedef enum { LIST_E2M1, LIST_NF4, LIST_FP4, LISTS } number_list;

#define E2M1_NUMBERS                                                           \
  0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f,  \
      -2.0f, -3.0f, -4.0f, -6.0f
#define NF4_NUMBERS                                                            \
  -1.0f, -0.6961928f, -0.52507305f, -0.3949175f, -0.28444138f, -0.18477343f,   \
      -0.091050036f, 0.0f, 0.0795803f, 0.1609302f, 0.2461123f, 0.33791524f,    \
      0.44070983f, 0.562617f, 0.72295684f, 1.0f
#define FP4_NUMBERS                                                            \
  0.0f, 0.0052083334f, 0.6666667f, 1.0f, 0.33333334f, 0.5f, 0.16666667f,       \
      0.25f, 0.0f, -0.0052083334f, -0.6666667f, -1.0f, -0.33333334f, -0.5f,    \
      -0.16666667f, -0.25f

#endif
