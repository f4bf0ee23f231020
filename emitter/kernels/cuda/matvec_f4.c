// Products of a single row with weights in floating-point numbers of 4 bits.

#include "matvec.h"

DEFINE_MATVEC(f4, WEIGHT_F4, GROUPED)
