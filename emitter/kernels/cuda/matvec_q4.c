// Products of a single row with weights in 4 bits.

#include "matvec.h"

DEFINE_SCALED_MATVEC(q4, WEIGHT_Q4, uint8_t, uint16_t)
