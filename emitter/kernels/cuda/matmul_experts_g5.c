// Products of many rows with the experts of a mixture, with weights in groups, with codes
// of 5 bits.

#include "matmul_experts.h"
#include "matmul_groups.h"

#define SHAPE 64, 64, 32, 4, 2, 2
REQUIRE_PAIRS(4, SHAPE);
DEFINE_EXPERTS(g5_medium, WEIGHT_G5, multiply_g5,
               GROUPED_BYTES(4, 3, SHAPE), uint16_t,
               SCALED_WEIGHTS(uint8_t, int32_t), SCALED_MATRIX, GROUPED_NUMBERS,
               GROUPED_FORMAT, SHAPE)
#undef SHAPE

#define SHAPE 32, 64, 32, 6, 1, 2
REQUIRE_PAIRS(4, SHAPE);
DEFINE_EXPERTS(g5_small, WEIGHT_G5, multiply_g5,
               GROUPED_BYTES(4, 3, SHAPE), uint16_t,
               SCALED_WEIGHTS(uint8_t, int32_t), SCALED_MATRIX, GROUPED_NUMBERS,
               GROUPED_FORMAT, SHAPE)
#undef SHAPE
