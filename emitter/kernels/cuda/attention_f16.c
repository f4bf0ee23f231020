// Attention with a cache in f16.

#include "attention.h"

DEFINE_ATTENTION(f16, ELEMENT_F16, 0, const uint16_t *cache)
