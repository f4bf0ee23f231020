// Weights in groups of 32 inputs: codes of 2 to 6 or 8 bits, and scales of ten forms.
// Both are bytes, in panels of NR outputs.
//
//   w  [panel][k / 32] blocks of NR * 4 * bits bytes. A code vector has four inputs of
//      each column, [NR][4]; element e of vector v = 0..7 is input 4v + e.
//      2 bits: [2][NR][4] bytes; bits 2f and 2f + 1 of byte h are vector 4h + f's code
//      3 bits: the same, then [NR][4] bytes; bit v is bit 2 of vector v's code
//      4 bits: [4][NR][4] nibbles; byte j holds those of vector j low, of 4 + j high
//      5 bits: the same, then [NR][4] bytes; bit v is bit 4 of vector v's code
//      6 bits: the same, then [2][NR][4] bytes; bits 2f and 2f + 1 of byte h are bits
//      4 and 5 of vector 4h + f's code
//      8 bits: [8][NR][4] codes minus 128
//
//   w_scale  [panel][runs of groups] blocks. A run is `group` inputs, or 256 for
//      forms with D; their last run may have fewer inputs, but has a whole block.
//      Weights are computed from a code c by:
//      symmetric    NR scales d: (c - 2^(bits - 1)) * d
//      zeros        NR scales d, NR bytes z: (c - z) * d
//      minima       NR scales d, NR minima m: c * d + m
//      superblocks  NR f16 D, NR f16 M, then for each group a scale s and a minimum t
//                   of 6 bits: c * (D * s) - M * t. [12][NR] bytes, for j < 4: the low
//                   6 bits of byte j are s of group j, and its high 2 bits those of s
//                   of group 4 + j; byte 4 + j has the same of t; byte 8 + j has the
//                   low 4 bits of s of group 4 + j low, those of t high
//      halves       NR f16 D, [16][NR] signed bytes s, for 16 inputs each:
//                   (c - 2^(bits - 1)) * (D * s)
//      half_minima  NR f16 D, NR f16 M, [16][NR] bytes, for 16 inputs each, whose low
//                   4 bits are s and whose high ones t: c * (D * s) - M * t
//      e2m1         NR bytes, the exponents of powers of two d as an f32 has them:
//                   E2M1[c] * d
//      iq4          NR scales d: IQ4[c] * d
//      iq4_blocks   NR f16 D, [8][NR] signed bytes s, for 32 inputs each:
//                   IQ4[c] * (D * s)
//      e2m1_halves  NR f32 U, [16][NR] E4M3 e, for 16 inputs each: E2M1[c] * (U * e / 2)
//      d and m are of a type that is known at run time.
#ifndef KERNELS_CPU_GROUPS_H
#define KERNELS_CPU_GROUPS_H

#include "kernels.h"

#define NR GROUP_COLUMNS
#include "e4m3_codes.h"

#define GROUP 32
#define HALF 16 // of a group
#define VECTOR (NR * 4)
#define NIBBLES (4 * VECTOR)
#define SUPERBLOCK 8 // groups in a run of superblocks and halves

// Returns the bytes of a group's codes.
INLINE index code_bytes(int bits) { return VECTOR * bits; }

// Returns whether a run has as many groups as a superblock.
INLINE int has_superblocks(group_form form) {
  return form == FORM_SUPERBLOCKS || form == FORM_HALVES ||
         form == FORM_IQ4_BLOCKS || form == FORM_HALF_MINIMA ||
         form == FORM_E2M1_HALVES;
}

// Returns whether both halves of a group have scales of their own.
INLINE int has_halves(group_form form) {
  return form == FORM_HALVES || form == FORM_HALF_MINIMA ||
         form == FORM_E2M1_HALVES;
}

// Returns whether codes look up numbers of E2M1.
INLINE int is_e2m1(group_form form) {
  return form == FORM_E2M1 || form == FORM_E2M1_HALVES;
}

// Returns whether codes look up numbers.
INLINE int is_listed(group_form form) {
  return is_e2m1(form) || form == FORM_IQ4 || form == FORM_IQ4_BLOCKS;
}

// Returns whether half of the numbers are negative, and a scale is all that groups have.
INLINE int is_symmetric(group_form form) {
  return form == FORM_SYMMETRIC || is_listed(form);
}

// Returns the bits of the numbers that codes stand for.
INLINE int number_bits(int bits, group_form form) {
  return is_e2m1(form) ? 5 : is_listed(form) ? 8 : bits;
}

// Returns whether groups have a minimum in place of a zero point.
INLINE int has_minima(group_form form) {
  return form == FORM_MINIMA || form == FORM_SUPERBLOCKS;
}

// Copies fewer columns than a panel has. Only the last panel needs it, for which compilers
// would else unroll it in every tile.
static __attribute__((noinline, unused)) void
copy_columns(float *to, const float *from, index columns) {
#pragma clang loop vectorize(disable) unroll(disable)
  for (index j = 0; j < columns; ++j)
    to[j] = from[j];
}

// Returns the groups that share scales, of `group` inputs.
INLINE index groups_of_run(group_form form, index group) {
  return has_superblocks(form) ? SUPERBLOCK : group / GROUP;
}

// Returns the bytes of a run's scales, of which d and m have this type.
INLINE index scale_bytes(group_form form, element_type type) {
  switch (form) {
  case FORM_SYMMETRIC:
  case FORM_IQ4:
    return NR * element_size(type);
  case FORM_E2M1:
    return NR;
  case FORM_ZEROS:
    return NR * (element_size(type) + 1);
  case FORM_MINIMA:
    return NR * 2 * element_size(type);
  case FORM_SUPERBLOCKS:
    return NR * (2 + 2 + 12);
  case FORM_HALVES:
    return NR * (2 + 16);
  case FORM_IQ4_BLOCKS:
    return NR * (2 + 8);
  case FORM_HALF_MINIMA:
    return NR * (2 + 2 + 16);
  case FORM_E2M1_HALVES:
    return NR * (4 + 16);
  }
  return 0;
}

// Returns the code of input i of a group, or the number that it looks up.
INLINE int32_t code_at(int bits, group_form form, const uint8_t *block,
                       index column, index i) {
  const index v = i / 4, at = column * 4 + i % 4;
  if (bits == 8)
    return (int8_t)block[v * VECTOR + at] + 128;
  if (bits < 4) {
    const int32_t low = block[v / 4 * VECTOR + at] >> v % 4 * 2 & 3;
    return bits == 2 ? low : low | (block[2 * VECTOR + at] >> v & 1) << 2;
  }
  const int32_t both = block[v % 4 * VECTOR + at];
  const int32_t code = v < 4 ? both & 15 : both >> 4;
  static const int8_t e2m1[16] = {E2M1}, iq4[16] = {IQ4};
  if (is_listed(form))
    return is_e2m1(form) ? e2m1[code] : iq4[code];
  const uint8_t *high = block + NIBBLES;
  if (bits == 5)
    return code | (high[at] >> v & 1) << 4;
  if (bits == 6)
    return code | (high[v / 4 * VECTOR + at] >> v % 4 * 2 & 3) << 4;
  return code;
}

// What weights are computed from: (code - zero) * d + m.
typedef struct {
  float d, m;
  int32_t zero;
} weight_scale;

INLINE weight_scale superblock_scale(const uint8_t *block, index column,
                                     index g) {
  const uint8_t *packed = block + NR * 4 + column;
  const index j = g % 4;
  int32_t s = packed[j * NR] & 63, t = packed[(4 + j) * NR] & 63;
  if (g >= 4) {
    const int32_t low = packed[(8 + j) * NR];
    s = (low & 15) | packed[j * NR] >> 6 << 4;
    t = low >> 4 | packed[(4 + j) * NR] >> 6 << 4;
  }
  return (weight_scale){
      load_element(block, ELEMENT_F16, column) * (float)s,
      load_element(block, ELEMENT_F16, NR + column) * (float)-t, 0};
}

// Returns the scale of a column's half of group g of a run.
INLINE weight_scale scale_at(int bits, group_form form, element_type type,
                             const uint8_t *block, index column, index g,
                             index half) {
  if (form == FORM_SUPERBLOCKS)
    return superblock_scale(block, column, g);
  if (form == FORM_HALVES) {
    const int8_t *s = (const int8_t *)block + NR * 2;
    return (weight_scale){load_element(block, ELEMENT_F16, column) *
                              (float)s[(2 * g + half) * NR + column],
                          0.0f, 1 << (bits - 1)};
  }
  if (form == FORM_HALF_MINIMA) {
    const int32_t both = block[NR * 4 + (2 * g + half) * NR + column];
    return (weight_scale){
        load_element(block, ELEMENT_F16, column) * (float)(both & 15),
        load_element(block, ELEMENT_F16, NR + column) * (float)-(both >> 4), 0};
  }
  if (form == FORM_E2M1)
    return (weight_scale){float_of((uint32_t)block[column] << 23), 0.0f, 0};
  if (form == FORM_E2M1_HALVES) {
    const e4m3_codes e = load_e4m3(block + NR * (4 + 2 * g + half));
    return (weight_scale){load_element(block, ELEMENT_F32, column) *
                              (E4M3_UNIT / 2) * float_from_f16(e.halves[column]),
                          0.0f, 0};
  }
  weight_scale scale = {load_element(block, type, column), 0.0f, 0};
  if (form == FORM_IQ4_BLOCKS)
    scale.d = load_element(block, ELEMENT_F16, column) *
              (float)((const int8_t *)block)[NR * (2 + g) + column];
  if (is_listed(form))
    return scale;
  if (form == FORM_SYMMETRIC)
    scale.zero = 1 << (bits - 1);
  else if (form == FORM_ZEROS)
    scale.zero = block[NR * element_size(type) + column];
  else
    scale.m = load_element(block, type, NR + column);
  return scale;
}

#endif // KERNELS_CPU_GROUPS_H
