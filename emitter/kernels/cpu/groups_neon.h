// Dot products of groups for ARM CPUs that have them for bytes. A vector of codes is two
// registers, each of four columns.
#ifndef KERNELS_CPU_GROUPS_NEON_H
#define KERNELS_CPU_GROUPS_NEON_H

#include "groups.h"
#include "matmul.h"

#define MR 3   // maximum of rows in a register tile
#define SUMS 3 // maximum of rows times streams
#define QUADS (NR / 4)

INLINE int rows_of_tile(int bits, group_form form) {
  return (void)bits, (void)form, MR;
}

typedef struct {
  float32x4_t quad[QUADS];
} floats;

// Sums of a row's activations over a group.
typedef struct {
  int32_t halves[2];
} row_sums;

INLINE void load_sums(const int16_t *a_sums, row_sums *sums) {
  *sums = (row_sums){{a_sums[0], a_sums[1]}};
}

typedef struct {
  int32x4_t quad[QUADS];
} zero_points;
typedef zero_points half_scales;
typedef struct {
  zero_points of[2];
} half_minima;

INLINE floats load_floats(const void *base, element_type type, index i) {
  floats x;
#pragma clang loop unroll(full)
  for (int q = 0; q < QUADS; ++q)
    x.quad[q] = load_quad(base, type, i + q * 4);
  return x;
}

INLINE floats negated(floats x) {
#pragma clang loop unroll(full)
  for (int q = 0; q < QUADS; ++q)
    x.quad[q] = vnegq_f32(x.quad[q]);
  return x;
}

// Widens a byte of each column.
INLINE zero_points load_bytes(const uint8_t *p) {
  const uint16x8_t wide = vmovl_u8(vld1_u8(p));
  return (zero_points){
      {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide))),
       vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(wide)))}};
}

INLINE half_scales load_signed_bytes(const uint8_t *p) {
  const int16x8_t wide = vmovl_s8(vld1_s8((const int8_t *)p));
  return (half_scales){
      {vmovl_s16(vget_low_s16(wide)), vmovl_s16(vget_high_s16(wide))}};
}

// Returns powers of two.
INLINE floats load_exponents(const uint8_t *p) {
  const zero_points bytes = load_bytes(p);
  floats x;
#pragma clang loop unroll(full)
  for (int q = 0; q < QUADS; ++q)
    x.quad[q] = vreinterpretq_f32_s32(vshlq_n_s32(bytes.quad[q], 23));
  return x;
}

INLINE floats times_number(floats x, float by) {
#pragma clang loop unroll(full)
  for (int q = 0; q < QUADS; ++q)
    x.quad[q] = vmulq_n_f32(x.quad[q], by);
  return x;
}

// Multiplies by a whole number of each column.
INLINE floats times_integers(floats x, zero_points by) {
#pragma clang loop unroll(full)
  for (int q = 0; q < QUADS; ++q)
    x.quad[q] = vmulq_f32(x.quad[q], vcvtq_f32_s32(by.quad[q]));
  return x;
}

// Multiplies by a byte of each column.
INLINE floats times_bytes(floats x, const uint8_t *p) {
  return times_integers(x, load_bytes(p));
}

// Multiplies by a signed byte of each column.
INLINE floats times_signed_bytes(floats x, const uint8_t *p) {
  return times_integers(x, load_signed_bytes(p));
}

INLINE zero_points load_zeros(int bits, const uint8_t *z) {
  zero_points zeros = load_bytes(z);
#pragma clang loop unroll(full)
  for (int q = 0; q < QUADS; ++q)
    zeros.quad[q] = vsubq_s32(vdupq_n_s32(bits == 8 ? 128 : 0), zeros.quad[q]);
  return zeros;
}

// Loads s of both halves.
INLINE void load_halves(int bits, const uint8_t *p, half_scales s[2],
                        zero_points *zeros) {
  (void)bits, (void)zeros;
  s[0] = load_signed_bytes(p);
  s[1] = load_signed_bytes(p + NR);
}

// Loads s and t of both halves.
INLINE void load_half_minima(const uint8_t *p, half_scales s[2], half_minima *t) {
#pragma clang loop unroll(full)
  for (int half = 0; half < 2; ++half) {
    const zero_points both = load_bytes(p + half * NR);
#pragma clang loop unroll(full)
    for (int q = 0; q < QUADS; ++q) {
      s[half].quad[q] = vandq_s32(both.quad[q], vdupq_n_s32(15));
      t->of[half].quad[q] = vshrq_n_s32(both.quad[q], 4);
    }
  }
}

// Unpacks the scales and minima of a superblock's groups.
INLINE void unpack_superblock(const uint8_t *packed, uint8_t *s_bytes,
                              uint8_t *t_bytes) {
  const uint8x16_t six = vdupq_n_u8(0x3f), four = vdupq_n_u8(0x0f);
  const uint8x16_t two = vdupq_n_u8(0x30);
#pragma clang loop unroll(full)
  for (index i = 0; i < 4 * NR; i += 16) {
    const uint8x16_t s = vld1q_u8(packed + i);
    const uint8x16_t t = vld1q_u8(packed + 4 * NR + i);
    const uint8x16_t low = vld1q_u8(packed + 8 * NR + i);
    const uint8x16_t high_s = vandq_u8(vshrq_n_u8(s, 2), two);
    const uint8x16_t high_t = vandq_u8(vshrq_n_u8(t, 2), two);
    vst1q_u8(s_bytes + i, vandq_u8(s, six));
    vst1q_u8(t_bytes + i, vandq_u8(t, six));
    vst1q_u8(s_bytes + 4 * NR + i, vorrq_u8(vandq_u8(low, four), high_s));
    vst1q_u8(t_bytes + 4 * NR + i, vorrq_u8(vshrq_n_u8(low, 4), high_t));
  }
}

#include "groups_scales.h"

// Leaves prefetching to the CPU.
INLINE void prefetch_codes(int streams, int cold, const uint8_t *block,
                           index bytes) {
  (void)streams, (void)cold, (void)block, (void)bytes;
}

// Returns the numbers that codes look up, of which those of 5 bits are unsigned.
INLINE int8x16_t look_up(group_form form, uint8x16_t codes) {
  static const int8_t e2m1[16] = {E2M1}, iq4[16] = {IQ4};
  const int8x16_t list = vld1q_s8(is_e2m1(form) ? e2m1 : iq4);
  return vqtbl1q_s8(vaddq_s8(list, vdupq_n_s8(is_e2m1(form) ? 16 : 0)),
                    codes);
}

// Returns vector v of a group's codes, or of the numbers that they look up, of four
// columns.
INLINE int8x16_t code_vector(int bits, group_form form, const uint8_t *block,
                             int v) {
  if (bits == 8)
    return vld1q_s8((const int8_t *)block + v * VECTOR);
  if (bits < 4) {
    const uint8x16_t fields = vld1q_u8(block + v / 4 * VECTOR);
    const uint8x16_t low = vandq_u8(
        vshlq_u8(fields, vdupq_n_s8((int8_t)(-(v % 4) * 2))), vdupq_n_u8(3));
    if (bits == 2)
      return vreinterpretq_s8_u8(low);
    const uint8x16_t high = vshlq_u8(vld1q_u8(block + 2 * VECTOR),
                                     vdupq_n_s8((int8_t)(2 - v)));
    return vreinterpretq_s8_u8(vorrq_u8(low, vandq_u8(high, vdupq_n_u8(4))));
  }
  const uint8x16_t both = vld1q_u8(block + v % 4 * VECTOR);
  uint8x16_t codes =
      v < 4 ? vandq_u8(both, vdupq_n_u8(0x0f)) : vshrq_n_u8(both, 4);
  if (is_listed(form))
    return look_up(form, codes);
  if (bits > 4) {
    const index part = bits == 6 ? v / 4 : 0;
    const uint8x16_t high = vld1q_u8(block + NIBBLES + part * VECTOR);
    const int place = bits == 6 ? v % 4 * 2 : v;
    const uint8x16_t moved = vshlq_u8(high, vdupq_n_s8((int8_t)(4 - place)));
    codes =
        vorrq_u8(codes, vandq_u8(moved, vdupq_n_u8(bits == 6 ? 0x30 : 0x10)));
  }
  return vreinterpretq_s8_u8(codes);
}

// Returns what the sums of a group begin with, which takes zero points out of the inner
// loop. Halves have sums of their own.
INLINE int32x4_t first_sums(int bits, group_form form, int half, int quad,
                            const group_scales *scales,
                            const row_sums *a_sums) {
  const int32_t sum = a_sums->halves[0] + a_sums->halves[1];
  if (form == FORM_HALVES || form == FORM_E2M1_HALVES)
    return vdupq_n_s32(-(a_sums->halves[half] << (bits - 1)));
  if (form == FORM_HALF_MINIMA)
    return vdupq_n_s32(0);
  if (form == FORM_ZEROS)
    return vmulq_n_s32(scales->zeros.quad[quad], sum);
  if (is_symmetric(form))
    return vdupq_n_s32(bits == 8 ? 0 : -(sum << (bits - 1)));
  return vdupq_n_s32(bits == 8 ? 128 * sum : 0);
}

// Sets dots[r] to the sums of (code - zero) * a[r] over a group, per column; for halves,
// times s; for minima, without a zero.
INLINE void dot_group(int bits, group_form form, int rows, const uint8_t *block,
                      const group_scales *scales, const int8_t *a,
                      const row_sums a_sums[MR], index apart,
                      floats dots[MR]) {
  const int numbers = number_bits(bits, form);
#pragma clang loop unroll(full)
  for (int q = 0; q < QUADS; ++q) {
    int8x16_t codes[8];
#pragma clang loop unroll(full)
    for (int v = 0; v < 8; ++v)
      codes[v] = code_vector(bits, form, block + q * 16, v);
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      int32x4_t sums[2];
      sums[0] = first_sums(numbers, form, 0, q, scales, &a_sums[r]);
      sums[1] = first_sums(numbers, form, 1, q, scales, &a_sums[r]);
#pragma clang loop unroll(full)
      for (int v = 0; v < 8; ++v) {
        int32x4_t *sum = &sums[has_halves(form) ? v / 4 : 0];
        *sum = vdotq_s32(*sum, codes[v], broadcast_bytes(a + r * apart + 4 * v));
      }
      if (form == FORM_E2M1_HALVES) {
        const float32x4_t first =
            vmulq_f32(vcvtq_f32_s32(sums[0]), scales->e[0].quad[q]);
        dots[r].quad[q] =
            vfmaq_f32(first, vcvtq_f32_s32(sums[1]), scales->e[1].quad[q]);
        continue;
      }
      if (has_halves(form))
        sums[0] = vmlaq_s32(vmulq_s32(sums[0], scales->s[0].quad[q]), sums[1],
                            scales->s[1].quad[q]);
      dots[r].quad[q] = vcvtq_f32_s32(sums[0]);
    }
  }
}

// Adds a group's products to a row's sums.
INLINE void add_group(group_form form, const floats *dots, float a_scale,
                      float scaled_sum, const row_sums *sums,
                      const group_scales *scales, floats *acc) {
#pragma clang loop unroll(full)
  for (int q = 0; q < QUADS; ++q) {
    const float32x4_t d = scales->d.quad[q], dot = dots->quad[q];
    float32x4_t *to = &acc->quad[q];
    *to = vfmaq_f32(*to, vmulq_n_f32(dot, a_scale), d);
    if (has_minima(form))
      *to = vfmaq_n_f32(*to, scales->m.quad[q], scaled_sum);
    if (form == FORM_HALF_MINIMA) {
      const int32x4_t minima = vmlaq_n_s32(
          vmulq_n_s32(scales->t.of[0].quad[q], sums->halves[0]),
          scales->t.of[1].quad[q], sums->halves[1]);
      *to = vfmaq_f32(*to, vmulq_n_f32(vcvtq_f32_s32(minima), a_scale),
                      scales->m.quad[q]);
    }
  }
}

INLINE void store_columns(const floats *x, float *out, index columns) {
  float lanes[NR];
  vst1q_f32(lanes, x->quad[0]);
  vst1q_f32(lanes + 4, x->quad[1]);
  for (index j = 0; j < min_index(NR, columns); ++j)
    out[j] = lanes[j];
}

#endif // KERNELS_CPU_GROUPS_NEON_H
