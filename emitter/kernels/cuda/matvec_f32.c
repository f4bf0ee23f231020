// Fused products of a single row with weights in f32.

#include "matvec.h"

DEFINE_MATVEC(f32, WEIGHT_F32, UNSCALED)
