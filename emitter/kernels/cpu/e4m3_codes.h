// Floating-point numbers of 8 bits, E4M3 (OCP 8-bit Floating Point Specification 1.0).
#ifndef KERNELS_CPU_E4M3_CODES_H
#define KERNELS_CPU_E4M3_CODES_H

#include "../common.h"

#ifndef NR
#define NR 16 // columns of a panel
#endif

typedef int8_t panel_bytes __attribute__((ext_vector_type(NR)));
typedef int16_t panel_halves __attribute__((ext_vector_type(NR)));

// What loaded numbers are multiplied by: an f16's exponent is 8 more than an E4M3's.
#define E4M3_UNIT 256.0f

// Numbers of NR columns as f16, without their unit: that has all bits of an E4M3, whose
// subnormal numbers no CPU takes for zeros when it converts them.
typedef struct {
  uint16_t halves[NR];
} e4m3_codes;

INLINE e4m3_codes load_e4m3(const uint8_t *p) {
  panel_bytes bytes;
  __builtin_memcpy(&bytes, p, NR);
  // The sign is there twice.
  panel_halves halves = __builtin_convertvector(bytes, panel_halves) << 7;
  halves &= (int16_t)0xbf80;
  // All ones are NaN.
  halves |= (panel_halves)((halves | (int16_t)0x8000) == (int16_t)0xbf80);
  e4m3_codes stored;
  __builtin_memcpy(&stored, &halves, sizeof stored);
  return stored;
}

#endif
