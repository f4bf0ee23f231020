// Products of a single row with the experts of a mixture with weights in groups, with codes
// of 8 bits.

#include "experts.h"

DEFINE_EXPERTS(g8, WEIGHT_G8, GROUPED)
