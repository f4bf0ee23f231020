// Writing of keys and values to a cache in q8.

#include "append.h"

DEFINE_APPEND(q8, ELEMENT_Q8, scales, int8_t *cache, uint16_t *scales)
