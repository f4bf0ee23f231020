// Products of many rows with the experts of a mixture, with weights in bf16.

#include "matmul_experts.h"
#include "matmul_halves.h"

#define SHAPE 64, 64, 64, 3, 2, 2
REQUIRE_PAIRS(16, SHAPE);
DEFINE_EXPERTS(bf16_medium, WEIGHT_BF16, multiply_bf16,
               SHAPE_BYTES(16, 16, SHAPE),
               uint16_t, PLAIN_WEIGHTS(uint16_t), PLAIN_MATRIX,
               UNSCALED_NUMBERS, UNSCALED_FORMAT, SHAPE)
#undef SHAPE

#define SHAPE 32, 64, 64, 4, 1, 4
REQUIRE_PAIRS(16, SHAPE);
DEFINE_EXPERTS(bf16_small, WEIGHT_BF16, multiply_bf16,
               SHAPE_BYTES(16, 16, SHAPE),
               uint16_t, PLAIN_WEIGHTS(uint16_t), PLAIN_MATRIX,
               UNSCALED_NUMBERS, UNSCALED_FORMAT, SHAPE)
#undef SHAPE
