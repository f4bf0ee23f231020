// Products of a single row with the experts of a mixture with weights in floating-point
// numbers of 4 bits.

#include "experts.h"

DEFINE_EXPERTS(f4, WEIGHT_F4, GROUPED)
