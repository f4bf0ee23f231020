// Products of a single row with the experts of a mixture with weights in f16.

#include "experts.h"

DEFINE_EXPERTS(f16, WEIGHT_F16, UNSCALED)
