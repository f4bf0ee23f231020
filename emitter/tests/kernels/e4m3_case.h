// Tests of products with weights in E4M3. A file for each kernel includes this, after it
// has defined what float_codes_case.h does not get from here.

#define CODE_BITS 8
#define KINDS 1
#define KIND_OF(p)
#define STORED_CODE(panel, column, input) panel[input * PANEL + column]
#define NUMBER_OF(kind, code) e4m3_number(code)
#include "float_codes_case.h"

// Tests that every code is its number, and that NaN affects its column alone.
static void test_codes(void) {
  at_case("all codes");
  problem p = random_problem(whole(1), 256, INPUTS);
  p.type = ELEMENT_F32;
  p.group = INPUTS;
  p.groups = 1;
  p.w_scale = (uint8_t *)random_floats(256, ORDINARY);
  for (int input = 0; input < INPUTS; ++input)
    p.a[input] = input ? 0 : ONE;
  for (int code = 0; code < 256; ++code) {
    uint8_t *panel = p.w + code / PANEL * bytes_of_weights(INPUTS);
    ((float *)p.w_scale)[code] = 1;
    for (int input = 0; input < INPUTS; ++input)
      panel[input * PANEL + code % PANEL] = input ? 0 : (uint8_t)code;
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
