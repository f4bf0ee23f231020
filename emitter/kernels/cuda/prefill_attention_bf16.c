// Attention of prompts with a cache in bf16.

#include "prefill_attention.h"

DEFINE_PREFILL_ATTENTION(bf16, ELEMENT_BF16, NULL, const uint16_t *cache)
