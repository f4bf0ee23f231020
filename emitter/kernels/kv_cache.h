// The key/value cache, on CPUs and on GPUs.
#ifndef KERNELS_KV_CACHE_H
#define KERNELS_KV_CACHE_H

#include "common.h"

#define NEGATIVE_INFINITY float_of(0xff800000u)

#define CACHE_GROUP 32 // consecutive dimensions that share a scale
#define PAGE 64        // positions in a page

// A part of the cache. Only Q8 has scales: element i has scales[i / 32], and rows
// consist of whole groups.
typedef struct {
  element_type type;
  const void *elements;
  const uint16_t *scales; // f16
} kv_slice;

// Returns the part from element i on, which is the first of a row.
INLINE kv_slice kv_slice_at(kv_slice all, index i) {
  all.elements = element_at(all.elements, all.type, i);
  if (all.type == ELEMENT_Q8)
    all.scales += i / CACHE_GROUP;
  return all;
}

#endif
