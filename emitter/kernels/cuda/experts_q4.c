// Products of a single row with the experts of a mixture with weights in 4 bits.

#include "experts.h"

DEFINE_EXPERTS(q4, WEIGHT_Q4, SCALED)
