// Superblocks of codes of 6 bits: a weight is (c - 32) * (D * s), with an s for each
// 16 inputs.
//
// Each group of 16 starts with the best of some scales. Then, in rounds, it tries its
// neighbors of s, and D is fitted to all codes by least squares. Each step is kept
// only if the error is smaller.
#ifndef KERNELS_CPU_HALVES_H
#define KERNELS_CPU_HALVES_H

#include "quantize_weights.h"

#define HALF 16
#define LOWEST_CODE (-32.0f)
#define HIGHEST_CODE 31.0f
#define LOWEST_SCALE (-128.0f)
#define HIGHEST_SCALE 127.0f

// Scales that a group starts with take its largest magnitude for a number from 31.1
// to 32.9.
#define STARTS 9 // below and above 32
#define START_STEP 0.1f

INLINE floats code(floats x, floats inverse) {
  return rounded(x * inverse, LOWEST_CODE, HIGHEST_CODE);
}

// Returns the reciprocal of scales of both signs, and 0 for 0.
INLINE floats inverse_of(floats scale) {
  const ints is_zero = scale == 0.0f;
  return choose(is_zero, (floats)0.0f,
                1.0f / choose(is_zero, (floats)1.0f, scale));
}

// Sums over a group, weighted by importance.
typedef struct {
  floats cc, xc;
} moments;

INLINE moments moments_of(const weight_groups *groups, floats inverse) {
  moments sum = {0.0f, 0.0f};
  for (int i = 0; i < HALF; ++i) {
    const floats c = code(groups->x[i], inverse), wc = groups->w[i] * c;
    sum.cc += wc * c;
    sum.xc += wc * groups->x[i];
  }
  return sum;
}

INLINE floats first_scales(const weight_groups *groups) {
  floats extreme = groups->x[0];
  for (int i = 1; i < HALF; ++i) {
    const floats x = groups->x[i];
    extreme = choose(x * x > extreme * extreme, x, extreme);
  }
  const ints is_zero =
      extreme < SMALLEST_WEIGHT & extreme > -SMALLEST_WEIGHT;
  extreme = choose(is_zero, (floats)1.0f, extreme);
  floats best = extreme / LOWEST_CODE, most = -1.0f;
  for (int start = -STARTS; start <= STARTS; ++start) {
    const float codes = LOWEST_CODE - START_STEP * (float)start;
    const moments sum = moments_of(groups, codes / extreme);
    const floats scale = ratio(sum.xc, sum.cc, 0.0f);
    // What the fit takes from the sum of squares.
    const floats gain = scale * sum.xc;
    const ints is_better = gain > most;
    most = choose(is_better, gain, most);
    best = choose(is_better, scale, best);
  }
  return choose(is_zero, (floats)0.0f, best);
}

// Returns the unit in which the largest scale is the lowest number.
INLINE float first_unit(floats scales) {
  float largest = 0.0f;
  for (index g = 0; g < GROUPS; ++g)
    largest = scales[g] * scales[g] > largest * largest ? scales[g] : largest;
  return float_from_f16(unit_bits(largest / LOWEST_SCALE));
}

// Returns the error with codes of one scale, if they are decoded with another.
INLINE floats errors(const weight_groups *groups, floats coded, floats decoded) {
  const floats inverse = inverse_of(coded);
  floats error = 0.0f;
  for (int i = 0; i < HALF; ++i) {
    const floats lack = decoded * code(groups->x[i], inverse) - groups->x[i];
    error += groups->w[i] * lack * lack;
  }
  return error;
}

// Moves scales by one at most, to the least error. Returns the error.
INLINE floats search(const weight_groups *groups, float D, floats *s) {
  const floats from = *s;
  floats least_error = errors(groups, D * from, D * from);
  for (int move = -1; move <= 1; move += 2) {
    const floats moved =
        clamped(from + (float)move, LOWEST_SCALE, HIGHEST_SCALE);
    const floats error = errors(groups, D * moved, D * moved);
    const ints is_better = error < least_error;
    least_error = choose(is_better, error, least_error);
    *s = choose(is_better, moved, *s);
  }
  return least_error;
}

// Returns the unit of least squares for the codes if it makes the error, which was
// `error`, smaller, and otherwise D.
INLINE float refitted(const weight_groups *groups, floats error, float D,
                      floats s) {
  const moments sum = moments_of(groups, inverse_of(D * s));
  const double pp = sum_of(s * s * sum.cc, 0, GROUPS);
  const double xp = sum_of(s * sum.xc, 0, GROUPS);
  const float fitted =
      pp > 0.0 ? float_from_f16(unit_bits(xp / pp)) : D;
  const floats changed = errors(groups, D * s, fitted * s);
  const int is_better =
      sum_of(changed, 0, GROUPS) < sum_of(error, 0, GROUPS);
  return is_better ? fitted : D;
}

// Quantizes a superblock, and sets its scales and codes. Returns its unit.
static __attribute__((noinline)) float quantize_one(const weight_groups *groups,
                                                    bytes *scales,
                                                    bytes codes[HALF]) {
  const floats start = first_scales(groups);
  float D = first_unit(start);
  floats s = rounded(start * inverse_of(D), LOWEST_SCALE, HIGHEST_SCALE);
  for (int round = 0; round < ROUNDS; ++round) {
    const floats s_before = s;
    const float D_before = D;
    const floats error = search(groups, D, &s);
    D = refitted(groups, error, D, s);
    int is_changed = D != D_before;
    for (index g = 0; g < GROUPS; ++g)
      is_changed |= s[g] != s_before[g];
    if (!is_changed) // nor would it be in another round
      break;
  }
  const floats inverse = inverse_of(D * s);
  for (int i = 0; i < HALF; ++i)
    codes[i] = bytes_of(code(groups->x[i], inverse) - LOWEST_CODE);
  *scales = bytes_of(s);
  return D;
}

#endif // KERNELS_CPU_HALVES_H
