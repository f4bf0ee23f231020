// Attention to a cache of bf16.

#include "attention.h"

DEFINE_ATTENTION(bf16, ELEMENT_BF16, 0, const uint16_t *cache)
