// Attention with a cache in q8.

#include "attention.h"

DEFINE_ATTENTION(q8, ELEMENT_Q8, scales, const int8_t *cache,
                 const uint16_t *scales)
