// Products with weights of 8 bits; matmul_groups.h documents them.

#include "matmul_groups.h"

MATMUL_GROUPS(q8_symmetric, 8, FORM_SYMMETRIC)
MATMUL_GROUPS(q8_zeros, 8, FORM_ZEROS)
MATMUL_GROUPS(q8_minima, 8, FORM_MINIMA)
