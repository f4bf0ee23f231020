// Products of many rows with the experts of a mixture, with weights in 4 bits.

#include "matmul_experts.h"
#include "matmul_packed.h"

#define SHAPE 64, 64, 32, 4, 2, 2
REQUIRE_PAIRS(4, SHAPE);
DEFINE_EXPERTS(q4_medium, WEIGHT_Q4, multiply_q4,
               SHAPE_BYTES(16, 4, SHAPE) +
                   SCALE_STAGES * SHAPE_COLUMNS(SHAPE) * 4,
               uint16_t, SCALED_WEIGHTS(uint8_t, uint16_t), SCALED_MATRIX,
               SCALED_NUMBERS, SCALED_FORMAT, SHAPE)
#undef SHAPE

#define SHAPE 32, 64, 32, 6, 1, 2
REQUIRE_PAIRS(4, SHAPE);
DEFINE_EXPERTS(q4_small, WEIGHT_Q4, multiply_q4,
               SHAPE_BYTES(16, 4, SHAPE) +
                   SCALE_STAGES * SHAPE_COLUMNS(SHAPE) * 4,
               uint16_t, SCALED_WEIGHTS(uint8_t, uint16_t), SCALED_MATRIX,
               SCALED_NUMBERS, SCALED_FORMAT, SHAPE)
#undef SHAPE
