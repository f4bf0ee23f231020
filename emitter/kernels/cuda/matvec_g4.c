// Products of a single row with weights in groups, with codes of 4 bits.

#include "matvec.h"

DEFINE_MATVEC(g4, WEIGHT_G4, GROUPED)
