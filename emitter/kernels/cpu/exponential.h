// The exponential function of rows, the same on all instruction sets.
#ifndef KERNELS_CPU_EXPONENTIAL_H
#define KERNELS_CPU_EXPONENTIAL_H

#include "rows.h"

// ln 2 in two parts, of which the first has few bits: its products are exact.
#define LN2_HIGH 0.693359375f
#define LN2_LOW (-2.12194440e-4f)

// Replaces the lanes of x where `mask` is set. NaN compares as false.
INLINE void replace(lanes *x, lanes_i32 mask, float value) {
  const lanes other = {0};
  lanes_i32 bits;
  const lanes values = other + value;
  lanes_i32 value_bits;
  __builtin_memcpy(&bits, x, sizeof bits);
  __builtin_memcpy(&value_bits, &values, sizeof value_bits);
  bits = (bits & ~mask) | (value_bits & mask);
  __builtin_memcpy(x, &bits, sizeof bits);
}

// Computes e^x, with a relative error below 4e-7 where it is normal. Below it is
// between 0 and 2^-125, and above 2^126.
INLINE void exponential(lanes *x) {
  const float low = -87.6f, high = 87.3f;
  replace(x, *x < low, low);
  replace(x, *x > high, high);
  const lanes shifted = *x * LOG2_E + ROUNDING_MAGIC;
  const lanes whole = shifted - ROUNDING_MAGIC;
  const lanes r = ((*x - whole * LN2_HIGH) - whole * LN2_LOW) * LOG2_E;
  lanes p = r * EXP2_C6 + EXP2_C5;
  p = p * r + EXP2_C4;
  p = p * r + EXP2_C3;
  p = p * r + EXP2_C2;
  p = p * r + EXP2_C1;
  p = p * r + 1.0f;
  lanes_u32 bits, exponent;
  __builtin_memcpy(&bits, &p, sizeof bits);
  __builtin_memcpy(&exponent, &shifted, sizeof exponent);
  // The low bits of NaN would get into the exponent.
  bits += (exponent << 23) & (lanes_u32)(p == p);
  __builtin_memcpy(x, &bits, sizeof bits);
}

#endif // KERNELS_CPU_EXPONENTIAL_H
