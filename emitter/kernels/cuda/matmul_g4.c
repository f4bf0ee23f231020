// Products of many rows with weights in groups, with codes of 4 bits.

#include "matmul_groups.h"

DEFINE_ALL_MATMUL_GROUPS(g4, 4, 2)
