// What attention reads, on CPUs and on GPUs.
#ifndef KERNELS_CACHED_H
#define KERNELS_CACHED_H

#include "common.h"

#define NEGATIVE_INFINITY float_of(0xff800000u)

#define CACHE_GROUP 32 // consecutive dimensions that share a scale

// A part of the cache. Only Q8 has scales: that of element i is scales[i / 32],
// and rows are whole groups.
typedef struct {
  element_type type;
  const void *elements;
  const uint16_t *scales; // f16
} cached;

// The part from element i on, which begins a row.
INLINE cached cached_from(cached all, index i) {
  all.elements = element_at(all.elements, all.type, i);
  if (all.type == ELEMENT_Q8)
    all.scales += i / CACHE_GROUP;
  return all;
}

#endif
