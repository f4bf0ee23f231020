// Products of many rows with weights in groups, with codes of 8 bits.

#include "matmul_groups.h"

DEFINE_ALL_MATMUL_GROUPS(g8, 8, 2)
