// Writing of keys and values to a cache in f32.

#include "append.h"

DEFINE_APPEND(f32, ELEMENT_F32, NULL, float *cache)
