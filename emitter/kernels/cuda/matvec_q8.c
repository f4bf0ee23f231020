// Fused products of a single row with weights in 8 bits.

#include "matvec.h"

DEFINE_MATVEC(q8, WEIGHT_Q8, SCALED)
