// Products with weights of 3 bits; matmul_groups.h documents them.

#include "matmul_groups.h"

MATMUL_GROUPS(q3_zeros, 3, FORM_ZEROS)
MATMUL_GROUPS(q3_minima, 3, FORM_MINIMA)
MATMUL_GROUPS(q3_halves, 3, FORM_HALVES)
