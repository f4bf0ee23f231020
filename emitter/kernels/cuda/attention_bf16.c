// Attention with a cache in bf16.

#include "attention.h"

DEFINE_ATTENTION(bf16, AHEAD, ELEMENT_BF16, 0, uint16_t *cache)
