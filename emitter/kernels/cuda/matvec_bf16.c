// Fused products of a single row with weights in bf16.

#include "matvec.h"

DEFINE_MATVEC(bf16, WEIGHT_BF16, UNSCALED)
