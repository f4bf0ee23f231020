// Products of many rows with the experts of a mixture, with weights in E4M3.

#include "matmul_experts.h"
#include "matmul_groups.h"

#define SHAPE 64, 64, 32, 4, 2, 2
REQUIRE_PAIRS(8, SHAPE);
DEFINE_EXPERTS(e4m3_medium, WEIGHT_E4M3, multiply_e4m3,
               GROUPED_BYTES(8, 2, SHAPE), uint16_t,
               SCALED_WEIGHTS(uint8_t, int32_t), SCALED_MATRIX, GROUPED_NUMBERS,
               GROUPED_FORMAT, SHAPE)
#undef SHAPE

#define SHAPE 32, 64, 32, 6, 1, 2
REQUIRE_PAIRS(8, SHAPE);
DEFINE_EXPERTS(e4m3_small, WEIGHT_E4M3, multiply_e4m3,
               GROUPED_BYTES(8, 2, SHAPE), uint16_t,
               SCALED_WEIGHTS(uint8_t, int32_t), SCALED_MATRIX, GROUPED_NUMBERS,
               GROUPED_FORMAT, SHAPE)
#undef SHAPE
