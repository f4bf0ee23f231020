// Scales of runs and of their groups, for instruction sets with vectors. Their headers
// include this one after
//
//   floats         one number of each column
//   zero_points    what sums of activations are multiplied by and added to products
//   half_scales    s of half a group
//   half_minima    t of both
//   load_floats(), load_exponents(), negated(), times_number(), times_bytes(),
//   times_signed_bytes(), load_zeros(), unpack_superblock(), load_halves(), load_half_minima()
#ifndef KERNELS_CPU_GROUPS_SCALES_H
#define KERNELS_CPU_GROUPS_SCALES_H

#include "groups.h"

// Scales of a run.
typedef struct {
  floats d, m;
  zero_points zeros;
  const uint8_t *bytes;                           // s of blocks, s and t of halves
  uint8_t s[SUPERBLOCK * NR], t[SUPERBLOCK * NR]; // of superblocks
} run_scales;

// Scales of a group.
typedef struct {
  floats d, m;
  zero_points zeros;
  half_scales s[2];
  half_minima t;
  floats e[2]; // of halves of E2M1
} group_scales;

// Loads what E4M3 have of their unit.
INLINE floats load_e4m3_floats(const uint8_t *p) {
  const e4m3_codes codes = load_e4m3(p);
  return load_floats(codes.halves, ELEMENT_F16, 0);
}

INLINE void load_run(int bits, group_form form, element_type type,
                     const uint8_t *block, run_scales *run) {
  run->d = form == FORM_E2M1 ? load_exponents(block) : load_floats(block, type, 0);
  if (has_minima(form) || form == FORM_HALF_MINIMA)
    run->m = load_floats(block, type, NR);
  if (form == FORM_ZEROS)
    run->zeros = load_zeros(bits, block + NR * element_size(type));
  if (form == FORM_SUPERBLOCKS) {
    run->m = negated(run->m);
    unpack_superblock(block + NR * 4, run->s, run->t);
  }
  if (form == FORM_HALVES || form == FORM_IQ4_BLOCKS)
    run->bytes = block + NR * 2;
  if (form == FORM_HALF_MINIMA) {
    run->m = negated(run->m);
    run->bytes = block + NR * 4;
  }
  if (form == FORM_E2M1_HALVES) {
    run->d = times_number(run->d, E4M3_UNIT / 2);
    run->bytes = block + NR * 4;
  }
}

INLINE void load_group(int bits, group_form form, const run_scales *run,
                       index g, group_scales *scales) {
  scales->d = run->d;
  if (has_minima(form) || form == FORM_HALF_MINIMA)
    scales->m = run->m;
  if (form == FORM_ZEROS)
    scales->zeros = run->zeros;
  if (form == FORM_SUPERBLOCKS) {
    scales->d = times_bytes(run->d, run->s + g * NR);
    scales->m = times_bytes(run->m, run->t + g * NR);
  }
  if (form == FORM_IQ4_BLOCKS)
    scales->d = times_signed_bytes(run->d, run->bytes + g * NR);
  if (form == FORM_HALVES)
    load_halves(bits, run->bytes + 2 * g * NR, scales->s, &scales->zeros);
  if (form == FORM_HALF_MINIMA)
    load_half_minima(run->bytes + 2 * g * NR, scales->s, &scales->t);
  if (form == FORM_E2M1_HALVES)
    for (int half = 0; half < 2; ++half)
      scales->e[half] = load_e4m3_floats(run->bytes + (2 * g + half) * NR);
}

#endif // KERNELS_CPU_GROUPS_SCALES_H
