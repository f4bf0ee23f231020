// Products of a single row with the experts of a mixture with weights in E4M3.

#include "experts.h"

DEFINE_EXPERTS(e4m3, WEIGHT_E4M3, GROUPED)
