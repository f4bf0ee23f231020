// Products with weights of 2 bits; matmul_groups.h documents them.

#include "matmul_groups.h"

MATMUL_GROUPS(q2_zeros, 2, FORM_ZEROS)
MATMUL_GROUPS(q2_minima, 2, FORM_MINIMA)
MATMUL_GROUPS(q2_half_minima, 2, FORM_HALF_MINIMA)
