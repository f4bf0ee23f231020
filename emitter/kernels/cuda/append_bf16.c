// Writing of keys and values to a cache in bf16.

#include "append.h"

DEFINE_APPEND(bf16, ELEMENT_BF16, NULL, uint16_t *cache)
