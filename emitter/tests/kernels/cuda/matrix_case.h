// Matrices of weights as products of a single row read them.
#ifndef TESTS_MATRIX_CASE_H
#define TESTS_MATRIX_CASE_H

#include "check.h"

#include "cuda/row_input.h"

SHARED const char *type_name(weight_type type) {
  static const char *const names[] = {"f32", "bf16", "f16", "q8", "q4"};
  return names[type];
}

typedef struct {
  weight_type type;
  int inputs;
  void *weights, *scales;
} random_weights;

SHARED element_type element_of(weight_type type) {
  return type == WEIGHT_F32 ? ELEMENT_F32
                            : type == WEIGHT_BF16 ? ELEMENT_BF16 : ELEMENT_F16;
}

// Returns a matrix in buffers that end where it ends.
SHARED random_weights random_matrix(weight_type type, index outputs, int inputs) {
  const index count = outputs * inputs;
  random_weights made = {type, inputs, NULL, NULL};
  if (type == WEIGHT_Q8) {
    made.weights = random_bytes(count, -128, 127);
    made.scales = random_floats(outputs, (exponents){-12, -8});
  } else if (type == WEIGHT_Q4) {
    made.weights = random_bytes(count / 2, -128, 127);
    made.scales = random_elements(ELEMENT_F16, count / GROUP, (exponents){-8, -4});
  } else {
    made.weights = random_elements(element_of(type), count, ORDINARY);
  }
  return made;
}

SHARED double weight_at(const random_weights *of, index output, index input) {
  const index at = output * of->inputs + input;
  if (of->type == WEIGHT_Q8)
    return (double)((int8_t *)of->weights)[at] * ((float *)of->scales)[output];
  if (of->type == WEIGHT_Q4) {
    const index group = at / GROUP, place = at % GROUP;
    const uint8_t byte = ((uint8_t *)of->weights)[group * 16 + place % 16];
    const int step = (place < 16 ? byte & 15 : byte >> 4) - 8;
    return step *
           (double)float_from_f16_portable(((uint16_t *)of->scales)[group]);
  }
  return load_element(of->weights, element_of(of->type), at);
}

// Returns by how much an input of a row may be rounded: those of weights that are whole
// numbers have 15 bits and a sign, of the largest of as many as 16 bytes of weights hold.
SHARED double rounding_of(weight_type type, const double *row, int input) {
  const int size = inputs_in_16_bytes(type), first = input / size * size;
  double most = 0;
  for (int i = first; i < first + size; ++i)
    most = fmax(most, fabs(row[i]));
  return is_whole(type) ? most * 0x1p-16 : 0;
}

#endif
