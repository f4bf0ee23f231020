// Attention of prompts with a cache in f16.

#include "prefill_attention.h"

DEFINE_PREFILL_ATTENTION(f16, ELEMENT_F16, NULL, const uint16_t *cache)
