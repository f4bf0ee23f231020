// Products with weights of 5 bits; matmul_groups.h documents them.

#include "matmul_groups.h"

MATMUL_GROUPS(q5_symmetric, 5, FORM_SYMMETRIC)
MATMUL_GROUPS(q5_minima, 5, FORM_MINIMA)
MATMUL_GROUPS(q5_superblocks, 5, FORM_SUPERBLOCKS)
