// Writing of keys and values to a cache in f16.

#include "append.h"

DEFINE_APPEND(f16, ELEMENT_F16, NULL, uint16_t *cache)
