// Products of a single row with weights in groups, with codes of 8 bits.

#include "matvec.h"

DEFINE_MATVEC(g8, WEIGHT_G8, GROUPED)
