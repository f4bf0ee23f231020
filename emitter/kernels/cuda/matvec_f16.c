// Fused products of a single row with weights in f16.

#include "matvec.h"

DEFINE_MATVEC(f16, WEIGHT_F16, UNSCALED)
