// Products of a single row with the experts of a mixture with weights in groups, with codes
// of 4 bits.

#include "experts.h"

DEFINE_EXPERTS(g4, WEIGHT_G4, GROUPED)
