// Products of many rows with weights in 8 bits.

#include "matmul_packed.h"

DEFINE_MATMUL_Q8(q8_large, 128, 128, 32, 4, 2, 2)
DEFINE_MATMUL_Q8(q8_medium, 64, 64, 32, 4, 2, 2)
DEFINE_MATMUL_Q8(q8_small, 32, 64, 32, 6, 1, 4)
