// Products of many rows with weights in bf16.

#include "matmul_halves.h"

DEFINE_MATMUL_BF16(bf16_large, 128, 128, 32, 3, 2, 2)
DEFINE_MATMUL_BF16(bf16_medium, 64, 64, 64, 3, 2, 2)
DEFINE_MATMUL_BF16(bf16_small, 32, 64, 64, 4, 1, 4)
