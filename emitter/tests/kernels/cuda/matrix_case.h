// Random matrices of weights of every type.
#ifndef TESTS_MATRIX_CASE_H
#define TESTS_MATRIX_CASE_H

#include "check.h"

#include "format_case.h"

SHARED const char *type_name(weight_type type) {
  static const char *const names[] = {"f32", "bf16", "f16", "q8", "q4",
                                      "g4",  "g5",   "g6",  "g8", "e4m3", "f4"};
  return names[type];
}

// Returns whether many rows are multiplied in bf16, by weights that become that.
SHARED int is_packed(weight_type type) { return is_whole(type) || is_grouped(type); }

typedef struct {
  weight_type type;
  int inputs;
  void *weights, *scales;
  random_format format; // of groups
} random_weights;

SHARED element_type element_of(weight_type type) {
  return type == WEIGHT_F32 ? ELEMENT_F32
                            : type == WEIGHT_BF16 ? ELEMENT_BF16 : ELEMENT_F16;
}

// Returns a matrix in buffers that end where it ends. Only of groups, the format matters.
SHARED random_weights random_matrix(weight_type type, index outputs, int inputs,
                                    const random_format *format) {
  const index count = outputs * inputs;
  random_weights made = {type, inputs, NULL, NULL, *format};
  if (is_grouped(type)) {
    made.weights = type == WEIGHT_E4M3
                       ? (int8_t *)random_e4m3(count)
                       : random_bytes(is_byte(type) ? count : count / 2, -128, 127);
    made.scales = random_rows(type, format, outputs, inputs);
  } else if (type == WEIGHT_Q8) {
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
  if (is_grouped(of->type)) {
    const index row_bytes = is_byte(of->type) ? of->inputs : of->inputs / 2;
    return grouped_weight(of->type, &of->format,
                          (const uint8_t *)of->weights + output * row_bytes,
                          (const uint32_t *)of->scales + output * of->format.row_words,
                          of->inputs, (int)input);
  }
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

// The types of weights: those of groups are several formats each.
#define WEIGHT_TYPES (WEIGHT_F4 + 1)

#define FORMAT_ARGUMENTS(f) (f).format, (f).row_words, (f).second

#endif
