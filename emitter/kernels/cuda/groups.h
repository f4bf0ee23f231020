// Weights in groups of 32 inputs on GPUs: codes of 4, 5, 6 or 8 bits, and what groups
// have, see cpu/groups.h for the formulas of all forms. E4M3 and F4 have the symmetric
// form, and F4 also that of halves, where d is an f32 and s are E4M3.
//
//   w  [outputs][inputs * 4 / 8] bytes, the low four bits of all codes: as Q4 in
//      weights.h. Codes of 8 bits are [outputs][inputs] bytes, less 128, or E4M3. F4 has
//      places in a number_list
//   s  [outputs][row_words] words of 32 bits, which have in turn
//      planes   of 5 bits, a word for each group: bit 8 b + 4 h + v is bit 4 of the code
//               of input 16 h + 4 v + b. Of 6 bits, two words: bits 8 b + 2 v and the
//               next one of word h are bits 4 and 5 of that code
//      firsts   a number d for each run of groups, of `type`. Of superblocks, D and -M in
//               f16 for each eight groups; of halves and iq4_blocks, D. Of E2M1, d may be
//               the exponent of a power of two, in a byte: IN_E8M0
//      seconds  zeros: a byte z for each run; minima: a number m for each run.
//               superblocks: for each group the bytes s and t; halves: the two signed
//               bytes s; iq4_blocks: the signed byte s
//      Each part is padded to whole words, and rows to pairs of them.
//
// A run has 32 << shift inputs, or all of a row.
#ifndef KERNELS_CUDA_GROUPS_H
#define KERNELS_CUDA_GROUPS_H

#include "../group_form.h"
#include "stream.h"
#include "weight_type.h"

#define IN_E8M0 ELEMENT_Q8 // a type of firsts, which have no others of a byte

// How one of two numbers is found: that of group g is element g >> shift, of 1 << log
// bytes.
typedef struct {
  int shift, log;
} group_place;

typedef struct {
  group_form form;
  element_type type;
  int row_words;
  number_list list;  // of F4
  int first, second; // words before firsts and seconds
  group_place at_first, at_second;
} group_format;

// What the emitter passes: form, type, shift and log of both numbers, and list, of 4, 2,
// 5, 2, 5, 2 and 2 bits, the lowest first; words of a row, and before its seconds.
#define GROUP_NUMBERS int format, int row_words, int second

// Of other weights.
#define NO_FORMAT                                                              \
  {FORM_SYMMETRIC, ELEMENT_F32, 0, LIST_E2M1, 0, 0, {0, 0}, {0, 0}}

// What kernels for weights in groups have besides: parameters, which follow all others,
// and the format of rows of so many inputs.
#define UNSCALED_NUMBERS
#define SCALED_NUMBERS
#define GROUPED_NUMBERS , GROUP_NUMBERS
#define UNSCALED_FORMAT(type, inputs) NO_FORMAT
#define SCALED_FORMAT(type, inputs) NO_FORMAT
#define GROUPED_FORMAT(type, inputs)                                           \
  group_format_of(type, inputs, format, row_words, second)

// Returns how many words of a group's planes there are.
INLINE int planes_of(weight_type type) {
  return type == WEIGHT_G5 ? 1 : type == WEIGHT_G6 ? 2 : 0;
}

// Returns the format of rows of so many inputs.
INLINE group_format group_format_of(weight_type type, int inputs, int format,
                                    int row_words, int second) {
  return (group_format){
      .form = (group_form)(format & 15),
      .type = (element_type)(format >> 4 & 3),
      .row_words = row_words,
      .list = (number_list)(format >> 20 & 3),
      .first = inputs / GROUP * planes_of(type),
      .second = second,
      .at_first = {format >> 6 & 31, format >> 11 & 3},
      .at_second = {format >> 13 & 31, format >> 18 & 3},
  };
}

INLINE int is_grouped(weight_type type) {
  return type == WEIGHT_G4 || type == WEIGHT_G5 || type == WEIGHT_G6 ||
         type == WEIGHT_G8 || type == WEIGHT_E4M3 || type == WEIGHT_F4;
}

// Returns whether codes in groups are floating-point numbers.
INLINE int has_floats(weight_type type) {
  return type == WEIGHT_E4M3 || type == WEIGHT_F4;
}

// Returns whether each half of a group may have a scale of its own.
INLINE int has_halves(weight_type type) {
  return type == WEIGHT_G6 || type == WEIGHT_F4;
}

// Returns whether a code in groups is a byte.
INLINE int is_byte(weight_type type) {
  return type == WEIGHT_G8 || type == WEIGHT_E4M3;
}

// Returns whether weights are whole numbers.
INLINE int is_whole(weight_type type) {
  return type == WEIGHT_Q8 || type == WEIGHT_Q4 ||
         (is_grouped(type) && !has_floats(type));
}

INLINE int is_listed(group_form form) {
  return form == FORM_E2M1 || form == FORM_IQ4 || form == FORM_IQ4_BLOCKS;
}

INLINE int has_seconds(group_form form) {
  return form != FORM_SYMMETRIC && form != FORM_E2M1 && form != FORM_IQ4;
}

// Returns where a group's number is, in bytes.
INLINE int group_bytes(group_place at, int group) {
  return group >> at.shift << at.log;
}

// What a group has, as loaded.
typedef struct {
  uint32_t first, second;
  uint32_t planes[2];
} raw_group;

// Loads what group `g` of a row has. `words` are the row's.
INLINE raw_group load_group(weight_type type, const group_format *f,
                            const uint32_t *words, int g, int valid) {
  raw_group raw = {0, 0, {0, 0}};
  raw.first =
      load_4_bytes(words + f->first + (group_bytes(f->at_first, g) >> 2), valid);
  raw.second = load_4_bytes(words + f->second + (group_bytes(f->at_second, g) >> 2),
                            valid && has_seconds(f->form));
  if (type == WEIGHT_G5)
    raw.planes[0] = load_4_bytes(words + g, valid);
  if (type == WEIGHT_G6) {
    const uint4_t both = load_8_bytes(words + 2 * g, valid);
    raw.planes[0] = both[0], raw.planes[1] = both[1];
  }
  return raw;
}

// What a group's weights are computed from: (code - zero) * scale + minimum, where each
// half of a group has a scale. Codes are as signed_codes() returns them.
typedef struct {
  float scale, upper_scale, minimum;
  int32_t zero;
} group_scale;

INLINE float group_number(const group_format *f, uint32_t bits) {
  return f->type == ELEMENT_F32 ? float_of(bits)
                                : float_of_half(f->type, bits & 0xffff);
}

// Returns by how much codes are less than unsigned ones.
INLINE int middle_of(weight_type type) {
  return type == WEIGHT_G6 ? 32 : type == WEIGHT_G8 ? 128 : 0;
}

// Returns the number of the highest byte in E4M3: its exponent and its mantissa begin those
// of an f32 whose exponent is 120 more.
INLINE float number_of_e4m3(uint32_t word) {
  return float_of((uint32_t)((int32_t)word >> 4) & 0x87f00000u) * 0x1p120f;
}

INLINE group_scale scale_of_group(weight_type type, const group_format *f, int g,
                                  raw_group raw) {
  const uint32_t first = raw.first >> (group_bytes(f->at_first, g) & 3) * 8;
  const uint32_t second = raw.second >> (group_bytes(f->at_second, g) & 3) * 8;
  group_scale made = {0.0f, 0.0f, 0.0f, 0};
  switch (f->form) {
  case FORM_SYMMETRIC:
    made.zero = type == WEIGHT_G4 ? 8 : type == WEIGHT_G5 ? 16 : middle_of(type);
    break;
  case FORM_ZEROS: made.zero = (int32_t)(second & 255); break;
  case FORM_MINIMA: made.minimum = group_number(f, second); break;
  case FORM_HALVES: made.zero = has_floats(type) ? 0 : 32; break;
  default: break;
  }
  made.zero -= is_listed(f->form) ? 0 : middle_of(type);
  made.scale = made.upper_scale = group_number(f, first);
  if (type == WEIGHT_G4 && f->type == IN_E8M0)
    made.scale = made.upper_scale = float_of((first & 255) << 23);
  if (f->form == FORM_SUPERBLOCKS) {
    made.minimum = float_from_f16((uint16_t)(first >> 16)) *
                   (float)(second >> 8 & 255);
    made.scale = made.upper_scale =
        float_from_f16((uint16_t)first) * (float)(second & 255);
  }
  if (type == WEIGHT_F4) {
    if (f->form == FORM_HALVES) {
      const float unit = made.scale;
      made.scale = unit * number_of_e4m3(second << 24);
      made.upper_scale = unit * number_of_e4m3(second >> 8 << 24);
    }
  } else if (f->form == FORM_HALVES || f->form == FORM_IQ4_BLOCKS) {
    const float unit = made.scale;
    made.scale = made.upper_scale = unit * (float)(int8_t)second;
    if (f->form == FORM_HALVES)
      made.upper_scale = unit * (float)(int8_t)(second >> 8);
  }
  return made;
}

// The numbers that codes of four bits look up, four in a word.
typedef struct {
  uint32_t of[4];
} code_list;

#define LIST_BYTES(a, b, c, d)                                                 \
  ((uint32_t)(uint8_t)(a) | (uint32_t)(uint8_t)(b) << 8 |                      \
   (uint32_t)(uint8_t)(c) << 16 | (uint32_t)(uint8_t)(d) << 24)
#define LIST_OF(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                \
  {{LIST_BYTES(a, b, c, d), LIST_BYTES(e, f, g, h), LIST_BYTES(i, j, k, l),    \
    LIST_BYTES(m, n, o, p)}}
#define LIST(...) LIST_OF(__VA_ARGS__)

INLINE code_list list_of(group_form form) {
  const code_list e2m1 = LIST(E2M1), iq4 = LIST(IQ4);
  code_list made;
  UNROLL for (int i = 0; i < 4; ++i)
    made.of[i] = form == FORM_E2M1 ? e2m1.of[i] : iq4.of[i];
  return made;
}

// Looks up four codes, of which the selectors have the lower three bits each; `tables`
// has 4 in the place of each whose fourth bit is set.
INLINE uint32_t look_up(const code_list *list, uint32_t selectors, uint32_t tables) {
  const uint32_t lower = permute_bytes(list->of[0], list->of[1], selectors);
  const uint32_t upper = permute_bytes(list->of[2], list->of[3], selectors);
  return permute_bytes(lower, upper, tables | 0x3210u);
}

// Returns the numbers that the low and the high codes of four bytes look up.
INLINE uint2_t look_up_both(const code_list *list, uint32_t word) {
  const uint32_t selectors = word & 0x77777777u, tables = word >> 1 & 0x44444444u;
  const uint32_t first = look_up(list, selectors & 0xffff, tables & 0xffff);
  const uint32_t last = look_up(list, selectors >> 16, tables >> 16);
  return (uint2_t){permute_bytes(first, last, 0x6420),
                   permute_bytes(first, last, 0x7531)};
}

// Returns the unsigned codes of inputs 16 h + 4 v on, of up to 6 bits: `word` is word v of
// the group.
INLINE uint32_t unsigned_codes(weight_type type, uint32_t word,
                               const uint32_t planes[2], const int h, int v) {
  const uint32_t low = word >> 4 * h & 0x0f0f0f0fu;
  if (type == WEIGHT_G5)
    return low | (planes[0] >> (4 * h + v) & 0x01010101u) << 4;
  if (type == WEIGHT_G6)
    return low | (planes[h] >> 2 * v & 0x03030303u) << 4;
  return low;
}

// Returns unsigned codes of 6 bits less 32.
INLINE uint32_t centered(uint32_t codes) {
  return ((codes | 0x80808080u) - 0x20202020u) ^ 0x80808080u;
}

// Returns the codes of a group's inputs 4 v on, and 16 + 4 v on, as signed bytes: less
// middle_of(), or looked up. Of 8 bits, `word` has four codes, and the others are zeros.
INLINE uint2_t signed_codes(weight_type type, int listed, const code_list *list,
                            uint32_t word, const uint32_t planes[2], const int v) {
  if (type == WEIGHT_G8)
    return (uint2_t){word, 0};
  if (type == WEIGHT_G4 && listed)
    return look_up_both(list, word);
  uint2_t codes = {unsigned_codes(type, word, planes, 0, v),
                   unsigned_codes(type, word, planes, 1, v)};
  if (type == WEIGHT_G6)
    codes = (uint2_t){centered(codes[0]), centered(codes[1])};
  return codes;
}

// Returns the number of a list that a code stands for.
INLINE float number_of_code(number_list list, int code) {
  const float e2m1[] = {E2M1_NUMBERS}, nf4[] = {NF4_NUMBERS}, fp4[] = {FP4_NUMBERS};
  float found = 0.0f;
  UNROLL for (int c = 0; c < 16; ++c) {
    const float number = list == LIST_NF4   ? nf4[c]
                         : list == LIST_FP4 ? fp4[c]
                                            : e2m1[c];
    found = c == code ? number : found;
  }
  return found;
}

// The numbers of F4's codes, which all threads of a block look up.
SHARED_MEMORY float code_numbers[16];

// Fills them. All threads of a block call it.
INLINE void share_numbers(number_list list) {
  const int thread = (int)thread_idx();
  if (thread < 16)
    code_numbers[thread] = number_of_code(list, thread);
  syncthreads();
}

// Looks up the numbers of codes of 4 bits, of which each byte has one, `shift` bits up.
INLINE void numbers_of_codes(uint32_t word, int shift, float w[4]) {
  UNROLL for (int e = 0; e < 4; ++e)
    w[e] = code_numbers[word >> (8 * e + shift) & 15];
}

#endif
