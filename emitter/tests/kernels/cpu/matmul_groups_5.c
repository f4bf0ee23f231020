// Tests products with weights of 5 bits in groups.

#include "groups_case.h"

int main(void) {
  begin_tests();
  test_form(FORM(q5_symmetric, 5, FORM_SYMMETRIC));
  test_form(FORM(q5_minima, 5, FORM_MINIMA));
  test_form(FORM(q5_superblocks, 5, FORM_SUPERBLOCKS));
  return end_tests();
}
