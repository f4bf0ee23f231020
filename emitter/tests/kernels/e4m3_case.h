// Numbers in E4M3, by their definition.
#ifndef TESTS_E4M3_CASE_H
#define TESTS_E4M3_CASE_H

#include "check.h"

// Returns the number of a code: OCP's specification of 8-bit floats.
SHARED double e4m3_number(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double magnitude =
      exponent == 15 && mantissa == 7 ? NAN
      : exponent == 0                 ? ldexp(mantissa, -9)
                                      : ldexp(8 + mantissa, exponent - 10);
  return code & 128 ? -magnitude : magnitude;
}

SHARED int is_number(uint8_t code) { return (code & 127) != 127; }

// Returns random bytes that are numbers in E4M3.
SHARED uint8_t *random_e4m3(index count) {
  uint8_t *codes = (uint8_t *)random_bytes(count, -128, 127);
  for (index i = 0; i < count; ++i)
    if (!is_number(codes[i]))
      codes[i] = 0;
  return codes;
}

#endif
