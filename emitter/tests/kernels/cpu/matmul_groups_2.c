// Tests products with weights of 2 bits in groups.

#include "groups_case.h"

int main(void) {
  begin_tests();
  test_form(FORM(q2_zeros, 2, FORM_ZEROS));
  test_form(FORM(q2_minima, 2, FORM_MINIMA));
  test_form(FORM(q2_half_minima, 2, FORM_HALF_MINIMA));
  return end_tests();
}
