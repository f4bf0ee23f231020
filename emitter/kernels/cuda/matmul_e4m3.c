// Products of many rows with weights in E4M3.

#include "matmul_groups.h"

DEFINE_ALL_MATMUL_GROUPS(e4m3, 8, 2)
