// Products of many rows with the experts of a mixture, with weights in f32, without tensor cores.

#include "matmul_experts.h"
#include "matmul_floats.h"

#define SHAPE 64, 64, 16, 4, 2, 1
REQUIRE_PAIRS(32, SHAPE);
DEFINE_EXPERTS(f32_medium, WEIGHT_F32, multiply_f32,
               SHAPE_BYTES(32, 32, SHAPE),
               float, PLAIN_WEIGHTS(float), PLAIN_MATRIX,
               UNSCALED_NUMBERS, UNSCALED_FORMAT, SHAPE)
#undef SHAPE
