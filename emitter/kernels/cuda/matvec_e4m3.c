// Products of a single row with weights in E4M3.

#include "matvec.h"

DEFINE_MATVEC(e4m3, WEIGHT_E4M3, GROUPED)
