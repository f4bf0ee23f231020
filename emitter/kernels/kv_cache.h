// What attention reads, on CPUs and on GPUs.
#ifndef KERNELS_KV_CACHE_H
#define KERNELS_KV_CACHE_H

#include "common.h"

#define NEGATIVE_INFINITY float_of(0xff800000u)

#define CACHE_GROUP 32 // consecutive dimensions that share a scale

// A part of the cache. Only Q8 has scales: that of element i is scales[i / 32],
// and rows are whole groups.
typedef struct {
  element_type type;
  const void *elements;
  const uint16_t *scales; // f16
} kv_slice;

// The part from element i on, which begins a row.
INLINE kv_slice kv_slice_at(kv_slice all, index i) {
  all.elements = element_at(all.elements, all.type, i);
  if (all.type == ELEMENT_Q8)
    all.scales += i / CACHE_GROUP;
  return all;
}

#endif
