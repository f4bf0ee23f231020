// Products of many rows with weights in groups, with codes of 5 bits.

#include "matmul_groups.h"

DEFINE_ALL_MATMUL_GROUPS(g5, 4, 3)
