// Tests products of weights in E4M3 and activations in bf16.

#include <stdint.h>

#define NAME matmul_e4m3_pairs
#define ACTIVATION ELEMENT_BF16
typedef uint16_t activation;
#define ONE 0x3f80
#define INPUTS 2
#include "e4m3_case.h"

int main(void) {
  begin_tests();
  test_codes();
  test_products();
  // More rows than weights are decoded for at once.
  test_case(130, 49, 70);
  test_division(0, 170, 35, 516);
  return end_tests();
}
