// Tests products with weights of 6 bits in groups.

#include "groups_case.h"

int main(void) {
  begin_tests();
  test_form(FORM(q6_minima, 6, FORM_MINIMA));
  test_form(FORM(q6_halves, 6, FORM_HALVES));
  return end_tests();
}
