// Attention with a cache in f32.

#include "attention.h"

DEFINE_ATTENTION(f32, ELEMENT_F32, 0, const float *cache)
