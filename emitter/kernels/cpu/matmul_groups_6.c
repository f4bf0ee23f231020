// Products with weights of 6 bits; matmul_groups.h documents them.

#include "matmul_groups.h"

MATMUL_GROUPS(q6_minima, 6, FORM_MINIMA)
MATMUL_GROUPS(q6_halves, 6, FORM_HALVES)
