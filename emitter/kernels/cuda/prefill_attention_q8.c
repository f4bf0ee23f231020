// Attention of prompts with a cache in q8.

#include "prefill_attention.h"

DEFINE_PREFILL_ATTENTION(q8, ELEMENT_Q8, scales, const int8_t *cache,
                         const uint16_t *scales)
