// Tests products of weights that are numbers of a list of 16.

static double number_of(long long list, int code);

#define NAME matmul_f4
#define GATHER gather_f4
#define INPUTS 4
#define CODE_BITS 4
#define KINDS 3
#define KIND_OF(p) , (p)->kind
#define STORED_CODE(panel, column, input)                                      \
  (panel[input / 4 * 32 + column % 8 / 4 * 16 + input % 4 * 4 + column % 4] >> \
       column / 8 * 4 &                                                        \
   15)
#define NUMBER_OF(kind, code) number_of(kind, code)
#include "float_codes_case.h"

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

static double number_of(long long list, int code) {
  if (list == 1)
    return nf4[code];
  const int exponent = code >> 1 & 3, mantissa = code & 1;
  const double e2m1 =
      exponent ? ldexp(2 + mantissa, exponent - 2) : mantissa / 2.0;
  const double magnitude = list == 0 ? e2m1 : (double)(float)(fp4[code & 7] / 12);
  return code & 8 ? -magnitude : magnitude;
}

int main(void) {
  begin_tests();
  test_products();
  return end_tests();
}
