// Attention with a cache in f16.

#include "attention.h"

DEFINE_ATTENTION(f16, AHEAD, ELEMENT_F16, 0, uint16_t *cache)
