// Tests products with weights of 4 bits in groups.

#include "groups_case.h"

int main(void) {
  begin_tests();
  test_form(FORM(q4_symmetric, 4, FORM_SYMMETRIC));
  test_form(FORM(q4_zeros, 4, FORM_ZEROS));
  test_form(FORM(q4_minima, 4, FORM_MINIMA));
  test_form(FORM(q4_superblocks, 4, FORM_SUPERBLOCKS));
  test_form(FORM(q4_e2m1, 4, FORM_E2M1));
  test_form(FORM(q4_e2m1_halves, 4, FORM_E2M1_HALVES));
  test_form(FORM(q4_iq4, 4, FORM_IQ4));
  test_form(FORM(q4_iq4_blocks, 4, FORM_IQ4_BLOCKS));
  return end_tests();
}
