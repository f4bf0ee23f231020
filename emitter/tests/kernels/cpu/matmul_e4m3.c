// Tests products of weights in E4M3 and activations in f32.

#define NAME matmul_e4m3
#define GATHER gather_e4m3
#define ACTIVATION ELEMENT_F32
typedef float activation;
#define ONE 1.0f
#define INPUTS 1
#include "e4m3_case.h"

int main(void) {
  begin_tests();
  test_codes();
  test_rows();
  test_products();
  return end_tests();
}
