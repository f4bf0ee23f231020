// Tests products with weights of 8 bits in groups.

#include "groups_case.h"

int main(void) {
  begin_tests();
  test_form(FORM(q8_symmetric, 8, FORM_SYMMETRIC));
  test_form(FORM(q8_zeros, 8, FORM_ZEROS));
  test_form(FORM(q8_minima, 8, FORM_MINIMA));
  return end_tests();
}
