// Products of a single row with the experts of a mixture with weights in groups, with codes
// of 6 bits.

#include "experts.h"

DEFINE_EXPERTS(g6, WEIGHT_G6, GROUPED)
