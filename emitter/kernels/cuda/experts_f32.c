// Products of a single row with the experts of a mixture with weights in f32.

#include "experts.h"

DEFINE_EXPERTS(f32, WEIGHT_F32, UNSCALED)
