// Attention with a cache in bf16.

#include "attention.h"

DEFINE_ATTENTION(bf16, ELEMENT_BF16, 0, const uint16_t *cache)
