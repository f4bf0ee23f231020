// Products of a single row with weights in groups, with codes of 5 bits.

#include "matvec.h"

DEFINE_MATVEC(g5, WEIGHT_G5, GROUPED)
