// Products of many rows with the experts of a mixture, with weights in floating-point
// numbers of 4 bits.

#include "matmul_experts.h"
#include "matmul_groups.h"

#define SHAPE 64, 64, 32, 4, 2, 2
REQUIRE_PAIRS(4, SHAPE);
DEFINE_EXPERTS(f4_medium, WEIGHT_F4, multiply_f4,
               GROUPED_BYTES(4, 3, SHAPE), uint16_t,
               SCALED_WEIGHTS(uint8_t, int32_t), SCALED_MATRIX, GROUPED_NUMBERS,
               GROUPED_FORMAT, SHAPE)
#undef SHAPE

#define SHAPE 32, 64, 32, 6, 1, 2
REQUIRE_PAIRS(4, SHAPE);
DEFINE_EXPERTS(f4_small, WEIGHT_F4, multiply_f4,
               GROUPED_BYTES(4, 3, SHAPE), uint16_t,
               SCALED_WEIGHTS(uint8_t, int32_t), SCALED_MATRIX, GROUPED_NUMBERS,
               GROUPED_FORMAT, SHAPE)
#undef SHAPE
