// Tests products with weights of 3 bits in groups.

#include "groups_case.h"

int main(void) {
  begin_tests();
  test_form(FORM(q3_zeros, 3, FORM_ZEROS));
  test_form(FORM(q3_minima, 3, FORM_MINIMA));
  test_form(FORM(q3_halves, 3, FORM_HALVES));
  return end_tests();
}
