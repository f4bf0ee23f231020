// Products of a single row with weights in 8 bits.

#include "matvec.h"

DEFINE_SCALED_MATVEC(q8, WEIGHT_Q8, int8_t, float)
