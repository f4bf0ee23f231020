// Products with weights of 4 bits; matmul_groups.h documents them.

#include "matmul_groups.h"

MATMUL_GROUPS(q4_symmetric, 4, FORM_SYMMETRIC)
MATMUL_GROUPS(q4_zeros, 4, FORM_ZEROS)
MATMUL_GROUPS(q4_minima, 4, FORM_MINIMA)
MATMUL_GROUPS(q4_superblocks, 4, FORM_SUPERBLOCKS)
