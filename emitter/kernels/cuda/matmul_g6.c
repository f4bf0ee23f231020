// Products of many rows with weights in groups, with codes of 6 bits.

#include "matmul_groups.h"

DEFINE_ALL_MATMUL_GROUPS(g6, 4, 5)
