// Products of many rows with the experts of a mixture, with weights in 8 bits.

#include "matmul_experts.h"
#include "matmul_packed.h"

#define SHAPE 64, 64, 32, 4, 2, 2
REQUIRE_PAIRS(8, SHAPE);
DEFINE_EXPERTS(q8_medium, WEIGHT_Q8, multiply_q8,
               SHAPE_BYTES(16, 8, SHAPE),
               uint16_t, SCALED_WEIGHTS(int8_t, float), SCALED_MATRIX,
               SCALED_NUMBERS, SCALED_FORMAT, SHAPE)
#undef SHAPE

#define SHAPE 32, 64, 32, 6, 1, 4
REQUIRE_PAIRS(8, SHAPE);
DEFINE_EXPERTS(q8_small, WEIGHT_Q8, multiply_q8,
               SHAPE_BYTES(16, 8, SHAPE),
               uint16_t, SCALED_WEIGHTS(int8_t, float), SCALED_MATRIX,
               SCALED_NUMBERS, SCALED_FORMAT, SHAPE)
#undef SHAPE
