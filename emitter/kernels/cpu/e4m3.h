// Numbers in E4M3 as vectors of floats.
#ifndef KERNELS_CPU_E4M3_H
#define KERNELS_CPU_E4M3_H

#include "e4m3_codes.h"
#include "lanes.h"

#define PARTS (NR / LANES)

// Returns the numbers of a part of the columns.
INLINE lanes e4m3_numbers(const e4m3_codes *stored, int part) {
  return lanes_from_f16(stored->halves + part * LANES);
}

#endif
