// Floating-point numbers of 8 and 4 bits, by their definitions.
#ifndef TESTS_FLOATS_CASE_H
#define TESTS_FLOATS_CASE_H

#include "check.h"

#include "group_form.h"

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

// Returns a random number in E4M3.
SHARED uint8_t random_e4m3_code(void) {
  const uint8_t code = (uint8_t)random_u32();
  return is_number(code) ? code : 0;
}

SHARED uint8_t *random_e4m3(index count) {
  uint8_t *codes = allocate(count);
  for (index i = 0; i < count; ++i)
    codes[i] = random_e4m3_code();
  return codes;
}

// The numbers of nf4: QLoRA (arXiv 2305.14314), appendix E.
static const double nf4[] = {
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
};

// The magnitudes of bitsandbytes' fp4, before it divides by the largest.
static const double fp4[] = {0, 0.0625, 8, 12, 4, 6, 2, 3};

// Returns the number that a code stands for.
SHARED double number_of(number_list list, int code) {
  if (list == LIST_NF4)
    return nf4[code];
  const int exponent = code >> 1 & 3, mantissa = code & 1;
  const double e2m1 =
      exponent ? ldexp(2 + mantissa, exponent - 2) : mantissa / 2.0;
  const double magnitude = list == LIST_E2M1 ? e2m1 : (double)(float)(fp4[code & 7] / 12);
  return code & 8 ? -magnitude : magnitude;
}

#endif
