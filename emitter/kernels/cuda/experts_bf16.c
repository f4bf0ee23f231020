// Products of a single row with the experts of a mixture with weights in bf16.

#include "experts.h"

DEFINE_EXPERTS(bf16, WEIGHT_BF16, UNSCALED)
