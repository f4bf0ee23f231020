// Random weights in groups, and a reader that follows the definition of their layout in
// kernels/cuda/groups.h.
#ifndef TESTS_FORMAT_CASE_H
#define TESTS_FORMAT_CASE_H

#include "check.h"

#include "cuda/groups.h"
#include "floats_case.h"

enum { IN_BLOCK = 8 }; // groups of superblocks, halves and blocks

// Whether prompts multiply by weights, which round lists of numbers to bf16.
static int rounds_lists;

// What groups of all matrices of a call have.
typedef struct {
  group_form form;
  element_type type;
  int run; // inputs
  int row_words, second;
  number_list list;
  int format; // as kernels get it
} random_format;

SHARED int words_of_bytes(index bytes) { return (int)divide_up(bytes, 4); }

SHARED int log_of(int bytes) { return bytes == 4 ? 2 : bytes == 2 ? 1 : 0; }

SHARED group_form random_form(weight_type type) {
  const index of_4[] = {FORM_SYMMETRIC, FORM_ZEROS, FORM_MINIMA, FORM_SUPERBLOCKS,
                        FORM_E2M1,      FORM_IQ4,   FORM_IQ4_BLOCKS};
  const index of_5[] = {FORM_SYMMETRIC, FORM_MINIMA, FORM_SUPERBLOCKS};
  const index of_6[] = {FORM_MINIMA, FORM_HALVES};
  const index of_8[] = {FORM_SYMMETRIC, FORM_ZEROS, FORM_MINIMA};
  const index of_f4[] = {FORM_SYMMETRIC, FORM_HALVES};
  if (has_floats(type))
    return type == WEIGHT_F4 ? (group_form)PICK(of_f4) : FORM_SYMMETRIC;
  return (group_form)(type == WEIGHT_G4   ? PICK(of_4)
                      : type == WEIGHT_G5 ? PICK(of_5)
                      : type == WEIGHT_G6 ? PICK(of_6)
                                          : PICK(of_8));
}

SHARED int has_blocks(group_form form) {
  return form == FORM_SUPERBLOCKS || form == FORM_HALVES || form == FORM_IQ4_BLOCKS;
}

// Returns the bytes of a first and of a second number.
SHARED int first_size(const random_format *f) {
  return f->form == FORM_SUPERBLOCKS ? 4 : (int)element_size(f->type);
}

SHARED int second_size(const random_format *f) {
  return f->form == FORM_MINIMA                                     ? (int)element_size(f->type)
         : f->form == FORM_SUPERBLOCKS || f->form == FORM_HALVES ? 2
                                                                    : 1;
}

// Returns a format for rows of so many inputs.
SHARED random_format random_groups(weight_type type, int inputs) {
  const index types[] = {ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16};
  const int groups = inputs / GROUP, planes = planes_of(type);
  random_format f = {.form = random_form(type),
                     .type = (element_type)PICK(types),
                     .list = (number_list)random_index(0, LISTS - 1)};
  if (f.form == FORM_E2M1 && random_u32() % 2)
    f.type = IN_E8M0;
  int shift = (int)random_index(0, 3);
  while (groups % (1 << shift))
    --shift;
  if (has_blocks(f.form))
    f.type = type == WEIGHT_F4 ? ELEMENT_F32 : ELEMENT_F16;
  const int is_whole_row = random_u32() % 4 == 0;
  const int blocks = (int)divide_up(groups, IN_BLOCK);
  f.run = has_blocks(f.form) ? IN_BLOCK * GROUP : is_whole_row ? inputs : GROUP << shift;
  shift = has_blocks(f.form) ? 3 : is_whole_row ? 31 : shift;
  const int runs = has_blocks(f.form) ? blocks : inputs / f.run;
  const int second_shift = has_blocks(f.form) ? 0 : shift;
  const int seconds = has_blocks(f.form) ? groups : runs;
  f.second = groups * planes + words_of_bytes((index)runs * first_size(&f));
  f.row_words = f.second +
                (has_seconds(f.form) ? words_of_bytes((index)seconds * second_size(&f)) : 0);
  f.row_words += f.row_words % 2;
  f.format = (int)f.form | (int)f.type << 4 | shift << 6 | log_of(first_size(&f)) << 11 |
             second_shift << 13 | log_of(second_size(&f)) << 18 | (int)f.list << 20;
  return f;
}

SHARED void fill_numbers(void *to, element_type type, int count) {
  for (int i = 0; i < count; ++i)
    if (type == IN_E8M0)
      ((uint8_t *)to)[i] = (uint8_t)random_index(119, 123);
    else
      store_bits(to, type, i, random_bits(type, (exponents){-8, -4}));
}

// Returns what groups of so many rows have, in a buffer that ends where it ends.
SHARED uint32_t *random_rows(weight_type type, const random_format *f, index rows,
                             int inputs) {
  const int groups = inputs / GROUP, planes = groups * planes_of(type);
  uint32_t *words = (uint32_t *)random_bytes(rows * f->row_words * 4, -128, 127);
  const int runs = (int)divide_up(inputs, f->run);
  for (index row = 0; row < rows; ++row) {
    uint32_t *own = words + row * f->row_words;
    if (f->form == FORM_SUPERBLOCKS)
      fill_numbers(own + planes, ELEMENT_F16, 2 * runs);
    else
      fill_numbers(own + planes, f->type, runs);
    if (f->form == FORM_MINIMA)
      fill_numbers(own + f->second, f->type, runs);
    if (type == WEIGHT_F4 && f->form == FORM_HALVES)
      for (int i = 0; i < 2 * groups; ++i)
        ((uint8_t *)(own + f->second))[i] = random_e4m3_code();
  }
  return words;
}

// Returns a weight, from its code and its row's words.
SHARED double grouped_weight(weight_type type, const random_format *f,
                             const uint8_t *codes, const uint32_t *own, int inputs,
                             int input) {
  const int8_t e2m1[] = {E2M1}, iq4[] = {IQ4};
  const int groups = inputs / GROUP, group = input / GROUP, place = input % GROUP;
  const int half = place / 16, v = place % 16 / 4, b = place % 4;
  const void *firsts = own + groups * planes_of(type), *seconds = own + f->second;
  const int run = input / f->run;
  int code;
  if (is_byte(type)) {
    code = (int8_t)codes[input] + 128;
  } else {
    const uint8_t byte = codes[group * 16 + place % 16];
    code = half ? byte >> 4 : byte & 15;
  }
  if (type == WEIGHT_G5)
    code |= (int)(own[group] >> (8 * b + 4 * half + v) & 1) << 4;
  if (type == WEIGHT_G6)
    code |= (int)(own[2 * group + half] >> (8 * b + 2 * v) & 3) << 4;
  const double d =
      f->type == IN_E8M0
          ? ldexp(1, ((const uint8_t *)firsts)[run] - 127)
          : load_element(firsts, f->type, f->form == FORM_SUPERBLOCKS ? 2 * run : run);
  const int8_t *bytes = seconds;
  if (type == WEIGHT_E4M3)
    return e4m3_number(codes[input]) * d;
  if (type == WEIGHT_F4) {
    const float number = (float)number_of(f->list, code);
    const double s =
        f->form == FORM_HALVES ? e4m3_number((uint8_t)bytes[2 * group + half]) : 1;
    return (rounds_lists ? float_from_bf16(bf16_from_float(number)) : number) * d * s;
  }
  switch (f->form) {
  case FORM_SYMMETRIC:
    return (code - (type == WEIGHT_G8 ? 128 : type == WEIGHT_G5 ? 16 : 8)) * d;
  case FORM_ZEROS: return (code - (uint8_t)bytes[run]) * d;
  case FORM_MINIMA: return code * d + (double)load_element(seconds, f->type, run);
  case FORM_SUPERBLOCKS:
    return code * d * (uint8_t)bytes[2 * group] +
           (double)load_element(firsts, ELEMENT_F16, 2 * run + 1) *
               (uint8_t)bytes[2 * group + 1];
  case FORM_HALVES: return (code - 32) * d * bytes[2 * group + half];
  case FORM_E2M1: return e2m1[code] * d;
  case FORM_IQ4: return iq4[code] * d;
  case FORM_IQ4_BLOCKS: return iq4[code] * d * bytes[group];
  case FORM_HALF_MINIMA:
  case FORM_E2M1_HALVES:
    break; // on CPUs
  }
  return 0;
}

#endif
