// Fused products of a single row with weights in 4 bits.

#include "matvec.h"

DEFINE_MATVEC(q4, WEIGHT_Q4, SCALED)
