// Tests products with weights of 4 bits in groups.

#include "groups_case.h"

int main(void) {
  begin_tests();
  test_form(FORM(q4_symmetric, 4, FORM_SYMMETRIC));
  test_form(FORM(q4_zeros, 4, FORM_ZEROS));
  test_form(FORM(q4_minima, 4, FORM_MINIMA));
  test_form(FORM(q4_superblocks, 4, FORM_SUPERBLOCKS));
  return end_tests();
}
