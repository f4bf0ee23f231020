// Products of a single row with the experts of a mixture with weights in groups, with codes
// of 5 bits.

#include "experts.h"

DEFINE_EXPERTS(g5, WEIGHT_G5, GROUPED)
