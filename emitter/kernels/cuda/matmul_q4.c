// Products of many rows with weights in 4 bits.

#include "matmul_packed.h"

DEFINE_MATMUL_Q4(q4_large, 128, 64, 32, 4, 2, 2)
DEFINE_MATMUL_Q4(q4_medium, 64, 64, 32, 4, 2, 2)
DEFINE_MATMUL_Q4(q4_small, 32, 64, 32, 6, 1, 2)
