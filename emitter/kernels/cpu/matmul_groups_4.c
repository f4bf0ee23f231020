// Products with weights of 4 bits; matmul_groups.h documents them.

#include "matmul_groups.h"

MATMUL_GROUPS(q4_symmetric, 4, FORM_SYMMETRIC)
MATMUL_GROUPS(q4_zeros, 4, FORM_ZEROS)
MATMUL_GROUPS(q4_minima, 4, FORM_MINIMA)
MATMUL_GROUPS(q4_superblocks, 4, FORM_SUPERBLOCKS)
MATMUL_GROUPS(q4_e2m1, 4, FORM_E2M1)
MATMUL_GROUPS(q4_e2m1_halves, 4, FORM_E2M1_HALVES)
MATMUL_GROUPS(q4_iq4, 4, FORM_IQ4)
MATMUL_GROUPS(q4_iq4_blocks, 4, FORM_IQ4_BLOCKS)
