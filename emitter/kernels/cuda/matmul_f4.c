// Products of many rows with weights in floating-point numbers of 4 bits.

#include "matmul_groups.h"

DEFINE_SMALL_MATMUL_GROUPS(f4, 4, 3)
