// Products of a single row with the experts of a mixture with weights in 8 bits.

#include "experts.h"

DEFINE_EXPERTS(q8, WEIGHT_Q8, SCALED)
