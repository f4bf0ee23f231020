// Random weights in groups, and a reader that follows the definition of their layout
// in kernels/cpu/groups.h. Bytes without a meaning in it are random too.
#ifndef TESTS_GROUPED_H
#define TESTS_GROUPED_H

#include "check.h"
#include "cpu/kernels.h"

#define PANEL GROUP_COLUMNS
#define GROUP 32
#define HALF 16
#define SUPERBLOCK 256 // inputs

// One kind of weights in groups.
typedef struct {
  const char *name;
  int bits;
  group_form form;
  index group; // of superblocks, halves and blocks: anything
  element_type type;
} grouping;

typedef enum {
  RANDOM,
  ZERO,
  HIGHEST,
  LOWEST,  // activations
  OPPOSED, // halves of a group, so that their sums are largest
  SUBNORMAL,
  KINDS
} kind;

SHARED const char *kind_name(kind of) {
  const char *const names[KINDS] = {"random", "zero",    "highest",
                                    "lowest", "opposed", "subnormal scales"};
  return names[of];
}

SHARED int has_superblocks(const grouping *by) {
  return by->form == FORM_SUPERBLOCKS || by->form == FORM_HALVES ||
         by->form == FORM_IQ4_BLOCKS || by->form == FORM_HALF_MINIMA ||
         by->form == FORM_E2M1_HALVES;
}

// Returns the inputs that share a block of scales.
SHARED index run_of(const grouping *by) {
  return has_superblocks(by) ? SUPERBLOCK : by->group;
}

SHARED index panel_bytes(const grouping *by, index k) {
  return PANEL * k * by->bits / 8;
}

// Returns the numbers d, m, D or M of a column in a block of scales.
SHARED index numbers_of(const grouping *by) {
  return by->form == FORM_MINIMA || by->form == FORM_SUPERBLOCKS ||
                 by->form == FORM_HALF_MINIMA
             ? 2
             : 1;
}

SHARED index number_size(const grouping *by) {
  if (by->form == FORM_E2M1)
    return 1;
  if (by->form == FORM_E2M1_HALVES)
    return 4;
  return has_superblocks(by) ? 2 : element_size(by->type);
}

// Returns the type of these numbers.
SHARED element_type number_type(const grouping *by) {
  if (by->form == FORM_E2M1_HALVES)
    return ELEMENT_F32;
  return has_superblocks(by) ? ELEMENT_F16 : by->type;
}

SHARED index block_bytes(const grouping *by) {
  const index bytes[] = {[FORM_SYMMETRIC] = 0,
                         [FORM_ZEROS] = 1,
                         [FORM_MINIMA] = 0,
                         [FORM_SUPERBLOCKS] = 12,
                         [FORM_HALVES] = 16,
                         [FORM_E2M1] = 0,
                         [FORM_IQ4] = 0,
                         [FORM_IQ4_BLOCKS] = 8,
                         [FORM_HALF_MINIMA] = 16,
                         [FORM_E2M1_HALVES] = 16};
  return PANEL * (numbers_of(by) * number_size(by) + bytes[by->form]);
}

SHARED index panel_scale_bytes(const grouping *by, index k) {
  return divide_up(k, run_of(by)) * block_bytes(by);
}

SHARED uint8_t *random_codes(const grouping *by, kind of, index panels,
                             index k) {
  const index count = panels * panel_bytes(by, k);
  if (of == ZERO)
    return (uint8_t *)extreme_bytes(count, 0, 0);
  if (of == OPPOSED && by->bits < 8)
    return (uint8_t *)extreme_bytes(count, -16, -16); // nibbles 0 and 15
  if (of == HIGHEST && by->bits < 8)
    return (uint8_t *)extreme_bytes(count, -1, -1);
  if (of == HIGHEST || of == OPPOSED)
    return (uint8_t *)extreme_bytes(count, -128, random_u32() & 1 ? 127 : -128);
  return (uint8_t *)random_bytes(count, -128, 127);
}

SHARED uint8_t *random_scales(const grouping *by, kind of, index panels,
                              index k) {
  const index blocks = panels * divide_up(k, run_of(by));
  const index bytes = block_bytes(by);
  const element_type type = number_type(by);
  const int lowest = type == ELEMENT_F16 ? -15 : -127;
  const exponents range =
      of == SUBNORMAL ? (exponents){lowest, lowest} : ORDINARY;
  uint8_t *scales =
      (uint8_t *)(of == HIGHEST || of == OPPOSED
                      ? extreme_bytes(blocks * bytes, -1,
                                      by->form >= FORM_HALVES &&
                                              by->form <= FORM_IQ4_BLOCKS
                                          ? -128
                                          : -1)
                      : random_bytes(blocks * bytes, -128, 127));
  for (index block = 0; block < blocks; ++block)
    for (index i = 0; i < PANEL * numbers_of(by); ++i) {
      const index exponent = 127 + random_index(range.low, range.high);
      if (by->form == FORM_E2M1)
        scales[block * bytes + i] = (uint8_t)(of == SUBNORMAL ? 0 : exponent);
      else
        store_bits(scales + block * bytes, type, i, random_bits(type, range));
    }
  // E4M3 has NaN.
  for (index i = 0; by->form == FORM_E2M1_HALVES && i < blocks * bytes; ++i)
    if (i % bytes >= PANEL * 4 && scales[i] % 128 == 127)
      --scales[i];
  return scales;
}

// Returns the code of input `at` of a row of weights, or the number that it looks up.
SHARED int code_of(const grouping *by, const uint8_t *w, index k, index row,
                   index at) {
  const index group = row / PANEL * (k / GROUP) + at / GROUP;
  const uint8_t *block = w + group * PANEL * 4 * by->bits;
  const int v = (int)(at % GROUP / 4), j = v % 4;
  const index lane = row % PANEL * 4 + at % 4, vector = PANEL * 4;
  if (by->bits == 8)
    return (block[v * vector + lane] + 128) % 256;
  if (by->bits < 4) {
    const int two = block[v / 4 * vector + lane] >> 2 * j & 3;
    return by->bits == 2 ? two : two + 4 * (block[2 * vector + lane] >> v & 1);
  }
  const int code = block[j * vector + lane] >> (v < 4 ? 0 : 4) & 15;
  // OCP's specification of MX formats; ggml's kvalues_iq4nl.
  const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const int iq4[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                     1,    13,   25,  38,  53,  69,  89,  113};
  if (by->form == FORM_E2M1 || by->form == FORM_E2M1_HALVES)
    return (int)(2 * e2m1[code % 8]) * (code < 8 ? 1 : -1);
  if (by->form == FORM_IQ4 || by->form == FORM_IQ4_BLOCKS)
    return iq4[code];
  const uint8_t *high = block + 4 * vector;
  if (by->bits == 5)
    return code + 16 * (high[lane] >> v & 1);
  if (by->bits == 6)
    return code + 16 * (high[v / 4 * vector + lane] >> 2 * j & 3);
  return code;
}

// A weight is (code - zero) * d + m.
typedef struct {
  float d, m;
  int zero;
} scale;

SHARED float number(const uint8_t *base, element_type type, index i) {
  if (type == ELEMENT_F32) {
    float x;
    memcpy(&x, base + i * 4, sizeof x);
    return x;
  }
  const uint16_t bits = (uint16_t)(base[i * 2] | base[i * 2 + 1] << 8);
  return type == ELEMENT_F16 ? float_from_f16_portable(bits)
                             : float_from_bf16(bits);
}

// Returns the six bits of group g, of which the low ones are in byte g or `low`.
SHARED int six_bits(int own, int low, int high, index g) {
  return g < 4 ? own & 63 : low + 16 * (high >> 6);
}

// Returns what input `at` of a row of weights is scaled by.
SHARED scale scale_of(const grouping *by, const uint8_t *w_scale, index k,
                      index row, index at) {
  const index run = run_of(by), g = at % SUPERBLOCK / GROUP, c = row % PANEL;
  const index i = row / PANEL * divide_up(k, run) + at / run;
  const uint8_t *block = w_scale + i * block_bytes(by);
  const uint8_t *bytes = block + PANEL * numbers_of(by) * number_size(by) + c;
  const element_type type = number_type(by);
  if (by->form == FORM_E2M1)
    return (scale){.d = block[c] ? ldexpf(1, block[c] - 127) : 0};
  scale found = {.d = number(block, type, c)};
  switch (by->form) {
  case FORM_SYMMETRIC:
    found.zero = 1 << (by->bits - 1);
    break;
  case FORM_ZEROS:
    found.zero = *bytes;
    break;
  case FORM_MINIMA:
    found.m = number(block, type, PANEL + c);
    break;
  case FORM_SUPERBLOCKS: {
    const int s = bytes[g % 4 * PANEL], t = bytes[(4 + g % 4) * PANEL];
    const int low = bytes[(8 + g % 4) * PANEL];
    found.d *= (float)six_bits(s, low % 16, s, g);
    found.m =
        -number(block, type, PANEL + c) * (float)six_bits(t, low / 16, t, g);
    break;
  }
  case FORM_HALVES:
    found.zero = by->bits == 3 ? 4 : 32;
    found.d *= (float)(int8_t)bytes[at % SUPERBLOCK / HALF * PANEL];
    break;
  case FORM_IQ4_BLOCKS:
    found.d *= (float)(int8_t)bytes[g * PANEL];
    break;
  case FORM_HALF_MINIMA: {
    const int both = bytes[at % SUPERBLOCK / HALF * PANEL];
    found.d *= (float)(both % 16);
    found.m = -number(block, type, PANEL + c) * (float)(both / 16);
    break;
  }
  case FORM_E2M1_HALVES: {
    // OCP's specification of 8-bit floats.
    const int e = bytes[at % SUPERBLOCK / HALF * PANEL], exponent = e >> 3 & 15;
    const int mantissa = e % 8 + (exponent ? 8 : 0);
    const float magnitude = ldexpf((float)mantissa, (exponent ? exponent : 1) - 10);
    found.d *= (e < 128 ? magnitude : -magnitude) / 2;
    break;
  }
  case FORM_E2M1:
  case FORM_IQ4:
    break;
  }
  return found;
}

#endif // TESTS_GROUPED_H
