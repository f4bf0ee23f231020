// Tests products of weights in E4M3.

#define NAME matmul_e4m3
#define GATHER gather_e4m3
#define INPUTS 1
#define CODE_BITS 8
#define KINDS 1
#define KIND_OF(p)
#define STORED_CODE(panel, column, input) panel[input * PANEL + column]
#define NUMBER_OF(kind, code) e4m3_number(code)
#include "float_codes_case.h"

// Tests that every code is its number, and that NaN affects its column alone.
static void test_codes(void) {
  at_case("all codes");
  problem p = random_problem(whole(1), 256, 1);
  p.type = ELEMENT_F32;
  p.group = p.groups = 1;
  p.w_scale = (uint8_t *)random_floats(256, ORDINARY);
  *p.a = 1;
  for (int code = 0; code < 256; ++code) {
    ((float *)p.w_scale)[code] = 1;
    p.w[code] = (uint8_t)code;
  }
  call(&p, 0, 256 / PANEL);
  for (int code = 0; code < 256; ++code) {
    if (is_number((uint8_t)code))
      check_equal("number", code, p.out[code], e4m3_number((uint8_t)code));
    else
      check_equal("is NaN", code, isnan(p.out[code]) != 0, 1);
  }
  release_all();
}


int main(void) {
  begin_tests();
  test_codes();
  test_products();
  return end_tests();
}
