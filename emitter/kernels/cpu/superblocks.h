// Superblocks of codes of 4 or 5 bits: a weight is c * (D * s) - M * t.
//
// Each group of 32 starts with the best of some fits of a scale and a minimum. Then,
// in rounds, each group tries its neighbors s and t together, and D and M are fitted
// to all codes by least squares. Each step is kept only if the error is smaller.
#ifndef KERNELS_CPU_SUPERBLOCKS_H
#define KERNELS_CPU_SUPERBLOCKS_H

#include "quantize_weights.h"

#define GROUP 32
#define IN_BLOCK (BLOCK / GROUP)
#define BLOCKS (GROUPS / IN_BLOCK) // in the lanes of a vector
#define LARGEST_SCALE 63.0f

// Fits that a group starts with: of this many ranges of codes, from one code less
// than there are.
#define RANGES 21
#define RANGE_STEP 0.1f

// Superblocks in lanes: units, repeated for the groups of each, scales and minima.
typedef struct {
  floats D, M, s, t;
} superblocks;

// Sums over a group, weighted by importance, of codes and of their products.
typedef struct {
  floats c, cc, xc;
} moments;

INLINE floats code(floats x, floats least, floats inverse, float most) {
  return rounded((x + least) * inverse, 0.0f, most);
}

INLINE moments moments_of(const floats *x, const floats *w, floats least,
                          floats inverse, float most) {
  moments sum = {0.0f, 0.0f, 0.0f};
  for (int i = 0; i < GROUP; ++i) {
    const floats c = code(x[i], least, inverse, most), wc = w[i] * c;
    sum.c += wc;
    sum.cc += wc * c;
    sum.xc += wc * x[i];
  }
  return sum;
}

// Fits of scales and minima to groups: x is near scale * c - least.
typedef struct {
  floats scale, least;
} fits;

// Groups less their lowest number, and sums over them.
typedef struct {
  floats x[GROUP];
  floats low, range, sum_w, sum_x, sum_xx;
} shifted_groups;

INLINE void shift_groups(const weight_groups *groups, shifted_groups *to) {
  floats low = groups->x[0], high = groups->x[0];
  for (int i = 1; i < GROUP; ++i) {
    low = smaller(groups->x[i], low);
    high = larger(groups->x[i], high);
  }
  low = smaller(low, (floats)0.0f); // minima are not positive
  to->low = low;
  to->range = high - low;
  to->sum_w = to->sum_x = to->sum_xx = 0.0f;
  for (int i = 0; i < GROUP; ++i) {
    const floats x = groups->x[i] - low, w = groups->w[i];
    to->x[i] = x;
    to->sum_w += w;
    to->sum_x += w * x;
    to->sum_xx += w * x * x;
  }
}

// Returns the error if x is taken for scale * c + offset. Numbers from zero on lose
// few bits here.
INLINE floats error_of(const shifted_groups *of, const moments *sum,
                       floats scale, floats offset) {
  return scale * (scale * sum->cc + 2.0f * (offset * sum->c - sum->xc)) +
         offset * (offset * of->sum_w - 2.0f * of->sum_x) + of->sum_xx;
}

// Returns fits from the lowest to the highest number.
INLINE fits plain_fits(const shifted_groups *of, float most) {
  const ints is_flat = of->range < SMALLEST_WEIGHT;
  return (fits){choose(is_flat, (floats)0.0f, of->range / most), -of->low};
}

// Returns the best fits to groups that are quantized to some ranges of codes.
INLINE fits best_fits(const shifted_groups *of, const floats *w, float most) {
  const floats low = of->low;
  const ints is_flat = of->range < SMALLEST_WEIGHT;
  const floats range = choose(is_flat, (floats)1.0f, of->range);
  fits best = {range / most, -low};
  floats least_error = 0.0f;
  for (int step = -1; step < RANGES; ++step) {
    const float codes =
        step < 0 ? most : most - 1.0f + RANGE_STEP * (float)step;
    const moments sum = moments_of(of->x, w, 0.0f, codes / range, most);
    if (step < 0)
      least_error = error_of(of, &sum, best.scale, 0.0f);
    const floats det = of->sum_w * sum.cc - sum.c * sum.c;
    floats scale = ratio(of->sum_w * sum.xc - of->sum_x * sum.c, det, 0.0f);
    floats offset = ratio(sum.cc * of->sum_x - sum.c * sum.xc, det, 0.0f);
    // Without a minimum, if it would be positive.
    const ints is_above = offset + low > 0.0f;
    scale = choose(is_above, ratio(sum.xc + low * sum.c, sum.cc, 0.0f), scale);
    offset = choose(is_above, -low, offset);
    const floats error = error_of(of, &sum, scale, offset);
    const ints is_better = error < least_error & scale > 0.0f;
    least_error = choose(is_better, error, least_error);
    best.scale = choose(is_better, scale, best.scale);
    best.least = choose(is_better, -(offset + low), best.least);
  }
  best.scale = choose(is_flat, (floats)0.0f, best.scale);
  best.least = choose(is_flat, -low, best.least);
  return best;
}

// Sets the lanes of each superblock to the smallest unit for its largest number.
INLINE floats units(floats x) {
  floats unit;
  for (index first = 0; first < GROUPS; first += IN_BLOCK) {
    float largest = 0.0f;
    for (index g = first; g < first + IN_BLOCK; ++g)
      largest = x[g] > largest ? x[g] : largest;
    const float one = float_from_f16(unit_bits(largest / LARGEST_SCALE));
    for (index g = first; g < first + IN_BLOCK; ++g)
      unit[g] = one;
  }
  return unit;
}

// Returns the error with codes of one scale and minimum, if they are decoded with
// others.
INLINE floats errors(const weight_groups *groups, fits coded, fits decoded,
                     float most) {
  const floats inverse = ratio(1.0f, coded.scale, 0.0f);
  floats error = 0.0f;
  for (int i = 0; i < GROUP; ++i) {
    const floats c = code(groups->x[i], coded.least, inverse, most);
    const floats lack = decoded.scale * c - decoded.least - groups->x[i];
    error += groups->w[i] * lack * lack;
  }
  return error;
}

INLINE fits fits_of(const superblocks *of) {
  return (fits){of->D * of->s, of->M * of->t};
}

INLINE superblocks rounded_fits(fits by) {
  superblocks of = {.D = units(by.scale), .M = units(by.least)};
  of.s = rounded(ratio(by.scale, of.D, 0.0f), 0.0f, LARGEST_SCALE);
  of.t = rounded(ratio(by.least, of.M, 0.0f), 0.0f, LARGEST_SCALE);
  return of;
}

// Copies the superblock in lanes from `first` on if its error is smaller. Returns
// whether it is.
INLINE int keep_better(index first, const superblocks *other, floats other_error,
                       superblocks *of, floats error) {
  if (!(sum_of(other_error, first, IN_BLOCK) < sum_of(error, first, IN_BLOCK)))
    return 0;
  for (index g = first; g < first + IN_BLOCK; ++g) {
    of->D[g] = other->D[g];
    of->M[g] = other->M[g];
    of->s[g] = other->s[g];
    of->t[g] = other->t[g];
  }
  return 1;
}

// Returns what the search begins with: rounded fits, the best ones or plain ones.
INLINE superblocks first_superblocks(const weight_groups *groups, float most) {
  shifted_groups shifted;
  shift_groups(groups, &shifted);
  superblocks of = rounded_fits(best_fits(&shifted, groups->w, most));
  const superblocks plain = rounded_fits(plain_fits(&shifted, most));
  const fits by = fits_of(&of), plainly = fits_of(&plain);
  const floats error = errors(groups, by, by, most);
  const floats plain_error = errors(groups, plainly, plainly, most);
  for (index first = 0; first < GROUPS; first += IN_BLOCK)
    keep_better(first, &plain, plain_error, &of, error);
  return of;
}

// Moves scales and minima by one at most, to the least error. Returns the error.
INLINE floats search(const weight_groups *groups, superblocks *of, float most) {
  const float moves[] = {0.0f, -1.0f, 1.0f};
  const floats s = of->s, t = of->t;
  floats least_error = 0.0f;
  for (int move_s = 0; move_s < 3; ++move_s) {
    for (int move_t = 0; move_t < 3; ++move_t) {
      superblocks moved = *of;
      moved.s = clamped(s + moves[move_s], 0.0f, LARGEST_SCALE);
      moved.t = clamped(t + moves[move_t], 0.0f, LARGEST_SCALE);
      const fits by = fits_of(&moved);
      const floats error = errors(groups, by, by, most);
      const ints is_first = (ints)((move_s | move_t) == 0 ? -1 : 0);
      const ints is_better = is_first | (error < least_error);
      least_error = choose(is_better, error, least_error);
      of->s = choose(is_better, moved.s, of->s);
      of->t = choose(is_better, moved.t, of->t);
    }
  }
  return least_error;
}

// Sets the units of a superblock to those of least squares for its codes.
INLINE void fit_units(const moments *sum, floats sum_w, floats sum_x,
                      index first, superblocks *of) {
  const floats s = of->s, t = of->t;
  const double pp = sum_of(s * s * sum->cc, first, IN_BLOCK);
  const double pq = -sum_of(s * t * sum->c, first, IN_BLOCK);
  const double qq = sum_of(t * t * sum_w, first, IN_BLOCK);
  const double xp = sum_of(s * sum->xc, first, IN_BLOCK);
  const double xq = -sum_of(t * sum_x, first, IN_BLOCK);
  const double det = pp * qq - pq * pq;
  const int has_both = det > 1e-6 * pp * qq;
  const double best_D = has_both ? (xp * qq - xq * pq) / det
                        : pp > 0 ? xp / pp
                                 : 0.0;
  const float D =
      best_D > 0.0 ? float_from_f16(unit_bits(best_D)) : of->D[first];
  // The best one beside what D was rounded to.
  const double best_M = has_both ? (xq - (double)D * pq) / qq : 0.0;
  const float M =
      best_M >= 0.0 ? float_from_f16(unit_bits(best_M)) : of->M[first];
  for (index g = first; g < first + IN_BLOCK; ++g) {
    of->D[g] = D;
    of->M[g] = M;
  }
}

// Fits units to codes, and keeps those of superblocks whose error, which was `error`,
// they make smaller. Returns whether there are any.
INLINE int refit(const weight_groups *groups, floats error, superblocks *of,
                 float most) {
  const fits by = fits_of(of);
  const moments sum = moments_of(groups->x, groups->w, by.least,
                                 ratio(1.0f, by.scale, 0.0f), most);
  floats sum_w = 0.0f, sum_x = 0.0f;
  for (int i = 0; i < GROUP; ++i) {
    sum_w += groups->w[i];
    sum_x += groups->w[i] * groups->x[i];
  }
  superblocks fitted = *of;
  for (index first = 0; first < GROUPS; first += IN_BLOCK)
    fit_units(&sum, sum_w, sum_x, first, &fitted);
  const floats changed = errors(groups, by, fits_of(&fitted), most);
  int is_any = 0;
  for (index first = 0; first < GROUPS; first += IN_BLOCK)
    is_any |= keep_better(first, &fitted, changed, of, error);
  return is_any;
}

// Quantizes two superblocks, and sets their codes.
static __attribute__((noinline)) void quantize_two(const weight_groups *groups,
                                                   float most, superblocks *to,
                                                   bytes codes[GROUP]) {
  superblocks of = first_superblocks(groups, most);
  for (int round = 0; round < ROUNDS; ++round) {
    const floats s = of.s, t = of.t;
    const floats error = search(groups, &of, most);
    int is_changed = refit(groups, error, &of, most);
    for (index g = 0; g < GROUPS; ++g)
      is_changed |= of.s[g] != s[g] || of.t[g] != t[g];
    if (!is_changed) // nor would it be in another round
      break;
  }
  const fits by = fits_of(&of);
  const floats inverse = ratio(1.0f, by.scale, 0.0f);
  for (int i = 0; i < GROUP; ++i)
    codes[i] = bytes_of(code(groups->x[i], by.least, inverse, most));
  *to = of;
}

#endif // KERNELS_CPU_SUPERBLOCKS_H
