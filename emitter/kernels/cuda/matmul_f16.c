// Products of many rows with weights in f16.

#include "matmul_halves.h"

DEFINE_MATMUL_F16(f16_large, 128, 128, 32, 3, 2, 2)
DEFINE_MATMUL_F16(f16_medium, 64, 64, 64, 3, 2, 2)
DEFINE_MATMUL_F16(f16_small, 32, 64, 64, 4, 1, 4)
