// Attention with a cache in f32.

#include "attention.h"

DEFINE_ATTENTION(f32, AHEAD_F32, ELEMENT_F32, 0, float *cache)
