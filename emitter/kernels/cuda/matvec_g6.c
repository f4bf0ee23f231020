// Products of a single row with weights in groups, with codes of 6 bits.

#include "matvec.h"

DEFINE_MATVEC(g6, WEIGHT_G6, GROUPED)
