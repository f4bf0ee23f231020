// Attention with a cache in q8.

#include "attention.h"

DEFINE_ATTENTION(q8, AHEAD, ELEMENT_Q8, scales, int8_t *cache,
                 uint16_t *scales)
