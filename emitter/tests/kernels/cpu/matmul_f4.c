// Tests products of weights that are numbers of a list of 16.

#define NAME matmul_f4
#define GATHER gather_f4
#define ACTIVATION ELEMENT_F32
typedef float activation;
#define INPUTS 4
#define CODE_BITS 4
#define KINDS LISTS
#define KIND_OF(p) , (p)->kind
#define STORED_CODE(panel, column, input)                                      \
  (panel[input / 4 * 32 + column % 8 / 4 * 16 + input % 4 * 4 + column % 4] >> \
       column / 8 * 4 &                                                        \
   15)
#define NUMBER_OF(kind, code) number_of((number_list)(kind), code)
#include "float_codes_case.h"

int main(void) {
  begin_tests();
  test_rows();
  test_products();
  return end_tests();
}
