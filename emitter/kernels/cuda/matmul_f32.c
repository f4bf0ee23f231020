// Products of many rows with weights in f32, without tensor cores.

#include "matmul_floats.h"

DEFINE_MATMUL_F32(f32_large, 128, 64, 16, 4, 4, 1)
DEFINE_MATMUL_F32(f32_medium, 64, 64, 16, 4, 2, 1)
