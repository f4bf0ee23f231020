// Products of a single row by rows of weights, at the speed of memory.
//
// A unit is some rows of a matrix, or pairs of rows of two. `split` warps of a block
// share a unit; each reads chunks of some times 32 consecutive vectors of 16 bytes, so
// that each load of a warp is 512 contiguous bytes. A warp has all loads of its next
// chunk under way while it multiplies: a load is issued when the one before into the
// same registers has been used. The first ones are issued before the input is computed.
//
// Blocks take units in turn, so that any number of blocks computes all. Sums are in f32,
// always in the same order.
#ifndef KERNELS_CUDA_ROW_PRODUCT_H
#define KERNELS_CUDA_ROW_PRODUCT_H

#include "choose.h"
#include "row_input.h"

enum {
  VECTORS = 4, // of a row, that a lane has under way
  MAX_ROWS = 2,
  MAX_MATRICES = 3,
};

STATED(matrices, MAX_MATRICES);
STATED(vectors, VECTORS);

typedef struct {
  const void *weights, *scales;
  const void *bias; // [outputs], if there are biases
  float *out;
  int outputs;
  int first; // row of the weights
} matrix;

// A mixture of experts, whose matrices are one after the other.
typedef struct {
  int active; // experts of the token; 0 without a mixture
  int rows;   // of an expert, of all its matrices
  int step;   // from one row of a matrix to the next
  int in_row; // whether the input has a part for each of the token's experts
} experts;

// The token's experts, and their shares of the result.
SHARED_MEMORY int32_t chosen[MAX_ACTIVE];
SHARED_MEMORY float shares[MAX_ACTIVE];

// What the blocks of a launch compute.
typedef struct {
  weight_type type;
  const float *x;
  norm norm;
  matrix matrices[MAX_MATRICES];
  int count;  // of matrices
  int paired; // whether a unit's rows are of two matrices in turn
  int inputs, split;
  experts experts; // without a mixture, zeros, but a step of 1
  group_format groups;
} product;

// A unit's rows.
typedef struct {
  matrix of; // with 0 outputs past the last unit
  int first;
  int slot; // of the token's experts
} unit;

// Divides by the split, which is a power of two.
INLINE int by_split(const product *p, int x) {
  return x >> __builtin_ctz((unsigned)p->split);
}

// Returns how many rows a unit has. The fewer bytes a row has, the more rows a lane has to
// have under way; and rows share what is loaded of the input.
#define ROWS(type)                                                             \
  ((type) == WEIGHT_Q4 || (type) == WEIGHT_G4 || (type) == WEIGHT_F4 ? 2 : 1)

INLINE int rows_of(const product *p) {
  return p->paired ? MAX_ROWS : ROWS(p->type);
}

// Returns how many outputs a unit has.
INLINE int outputs_of(const product *p) { return rows_of(p) / (p->paired ? 2 : 1); }

// Returns which of a unit's warps this one is.
INLINE int share_of(const product *p, int warp) { return warp & (p->split - 1); }

// Returns whether units are of the token's experts, one after the other.
INLINE int is_by_expert(const product *p) {
  return p->experts.active && !p->experts.in_row;
}

INLINE unit unit_at(const product *p, int number) {
  unit found = {p->matrices[0], number * outputs_of(p), 0};
  if (is_by_expert(p)) {
    found.slot = number / found.of.outputs;
    found.first -= found.slot * found.of.outputs;
    found.of.out += found.slot * found.of.outputs;
    if (found.slot >= p->experts.active)
      found.of.outputs = found.slot = 0;
    return found;
  }
  int past = number - (found.of.outputs + outputs_of(p) - 1) / outputs_of(p);
  UNROLL for (int m = 1; m < (p->paired ? 1 : p->count); ++m)
    if (past >= 0) {
      found = (unit){p->matrices[m], past * outputs_of(p), 0};
      past -= (found.of.outputs + outputs_of(p) - 1) / outputs_of(p);
    }
  if (past >= 0)
    found.of.outputs = 0;
  return found;
}

// Returns which row of all weights that of an output is.
INLINE index row_at(const product *p, const unit *u, const matrix *of, int output) {
  const index before = is_by_expert(p) ? (index)chosen[u->slot] * p->experts.rows : 0;
  return before + of->first + (index)output * p->experts.step;
}

INLINE int unit_count(const product *p) {
  if (is_by_expert(p))
    return p->experts.active * p->matrices[0].outputs;
  int units = 0;
  UNROLL for (int m = 0; m < (p->paired ? 1 : p->count); ++m)
    units += (p->matrices[m].outputs + outputs_of(p) - 1) / outputs_of(p);
  return units;
}

// Returns how many parts of rows, each of one expert, the input is for.
INLINE int parts_of(const product *p) {
  return p->experts.in_row ? p->experts.active : 1;
}

// Returns whether each part of a row of Q8 has its own scale.
INLINE int is_scaled_in_row(const product *p) {
  return p->type == WEIGHT_Q8 && p->experts.in_row;
}

// The loads of a lane that are under way, and where the next ones are.
typedef struct {
  const uint4_t *rows[MAX_ROWS];
  const uint16_t *scales[MAX_ROWS]; // of Q4
  const float *float_scales[MAX_ROWS]; // of Q8, if parts of rows have their own
  int vectors;                      // of a row, or 0 past the last unit
  int at;                           // the next chunk's first vector of this lane
  uint4_t words[MAX_ROWS][VECTORS];
  uint32_t word_scales[MAX_ROWS][VECTORS];
  const uint32_t *group_words[MAX_ROWS]; // of weights in groups, with what groups have
  raw_group groups[MAX_ROWS][VECTORS];
  int numbers[VECTORS]; // of groups in their rows
} stream;

INLINE int first_vector(const product *p, int thread) {
  return share_of(p, thread / WARP) * (VECTORS * WARP) + thread % WARP;
}

INLINE void begin_unit(stream *s, const product *p, int number, int thread) {
  const unit u = unit_at(p, number);
  const int vectors = p->inputs / inputs_in_16_bytes(p->type);
  UNROLL for (int r = 0; r < rows_of(p); ++r) {
    const matrix *of = p->paired && r % 2 ? &p->matrices[1] : &u.of;
    // Past the last row, it is computed again.
    const int row =
        min_int(u.first + (p->paired ? r / 2 : r), max_int(u.of.outputs, 1) - 1);
    const index at = row_at(p, &u, of, row), part = vectors / parts_of(p);
    s->rows[r] = (const uint4_t *)of->weights + at * part;
    if (p->type == WEIGHT_Q4)
      s->scales[r] = (const uint16_t *)of->scales + at * part;
    if (is_scaled_in_row(p))
      s->float_scales[r] = (const float *)of->scales + at;
    if (is_grouped(p->type))
      s->group_words[r] = (const uint32_t *)of->scales + at * p->groups.row_words;
  }
  s->vectors = u.of.outputs ? vectors : 0;
  s->at = first_vector(p, thread);
}

// Issues the loads of vector `v` of the next chunk.
INLINE void load_vector(stream *s, const product *p, int v) {
  const int in_row = s->at + v * WARP, valid = in_row < s->vectors;
  index at = in_row, before = 0;
  int number = in_row;
  if (p->experts.in_row) {
    // The part is of another expert, so many rows on.
    const int size = p->inputs / inputs_in_16_bytes(p->type) / p->experts.active;
    const int part = min_int(in_row / size, p->experts.active - 1);
    before = (index)chosen[part] * p->experts.rows;
    number -= part * size;
    at = before * size + number;
  }
  UNROLL for (int r = 0; r < rows_of(p); ++r)
    s->words[r][v] = load_stream(s->rows[r] + at, valid);
  if (p->type == WEIGHT_Q4)
    UNROLL for (int r = 0; r < rows_of(p); ++r)
      s->word_scales[r][v] = load_2_bytes(s->scales[r] + at, valid);
  if (is_scaled_in_row(p))
    UNROLL for (int r = 0; r < rows_of(p); ++r)
      s->word_scales[r][v] = load_4_bytes(s->float_scales[r] + before, valid);
  if (is_grouped(p->type)) {
    s->numbers[v] = is_byte(p->type) ? number / 2 : number;
    UNROLL for (int r = 0; r < rows_of(p); ++r)
      s->groups[r][v] =
          load_group(p->type, &p->groups,
                     s->group_words[r] + before * p->groups.row_words,
                     s->numbers[v], valid);
  }
}

// Returns the scale of a vector of row `r`, if it has its own.
INLINE float vector_scale(const stream *s, const product *p, const int r, const int v) {
  return p->type == WEIGHT_Q4   ? float_from_f16((uint16_t)s->word_scales[r][v])
         : is_scaled_in_row(p) ? float_of(s->word_scales[r][v])
                               : 1.0f;
}

// Two sums for each row, so that additions need not wait for each other.
typedef struct {
  float of[MAX_ROWS][2];
} sums;

// Adds the products of a vector `v` of whole numbers by the staged ones, whose number in
// the slice of so many is `at`.
INLINE void add_whole(const stream *s, const product *p, int v, int at, int vectors,
                      sums *into) {
  const int halves = inputs_in_16_bytes(p->type) / 16;
  uint4_t upper[2], lower[2];
  UNROLL for (int h = 0; h < halves; ++h) {
    upper[h] = staged[h * vectors + at];
    lower[h] = staged[(halves + h) * vectors + at];
  }
  const whole_scale by = whole_scales(p->type, vectors)[at];
  UNROLL for (int r = 0; r < rows_of(p); ++r) {
    const uint4_t words = s->words[r][v];
    int32_t of_upper = 0, of_lower = p->type == WEIGHT_Q4 ? by.sum * -8 : 0;
    float scale = by.scale;
    UNROLL for (int w = 0; w < 4; ++w) {
      if (p->type == WEIGHT_Q8) {
        of_upper = dot_signed(words[w], upper[0][w], of_upper);
        of_lower = dot_unsigned(words[w], lower[0][w], of_lower);
      } else {
        UNROLL for (int h = 0; h < 2; ++h) {
          const uint32_t bytes = words[w] >> 4 * h & 0x0f0f0f0fu;
          of_upper = dot_signed(bytes, upper[h][w], of_upper);
          of_lower = dot_unsigned(bytes, lower[h][w], of_lower);
        }
      }
    }
    if (p->type == WEIGHT_Q4 || is_scaled_in_row(p))
      scale *= vector_scale(s, p, r, v);
    into->of[r][v % 2] = __builtin_fmaf((float)(of_upper * 256 + of_lower), scale,
                                        into->of[r][v % 2]);
  }
}

// Adds the products of vector `v` of weights in groups, likewise.
INLINE void add_groups(const stream *s, const product *p, int v, int at, int vectors,
                       sums *into) {
  const group_format *f = &p->groups;
  const int halves = inputs_in_16_bytes(p->type) / 16;
  const code_list list = list_of(f->form);
  uint4_t upper[2], lower[2];
  UNROLL for (int h = 0; h < halves; ++h) {
    upper[h] = staged[h * vectors + at];
    lower[h] = staged[(halves + h) * vectors + at];
  }
  const whole_scale by = whole_scales(p->type, vectors)[at];
  UNROLL for (int r = 0; r < rows_of(p); ++r) {
    const raw_group raw = s->groups[r][v];
    int32_t of_upper[2] = {0, 0}, of_lower[2] = {0, 0};
    UNROLL for (int w = 0; w < 4; ++w) {
      const uint2_t codes = signed_codes(p->type, is_listed(f->form), &list,
                                         s->words[r][v][w], raw.planes, w);
      UNROLL for (int h = 0; h < halves; ++h) {
        of_upper[h] = dot_signed(codes[h], upper[h][w], of_upper[h]);
        of_lower[h] = dot_unsigned(codes[h], lower[h][w], of_lower[h]);
      }
    }
    const group_scale g = scale_of_group(p->type, f, s->numbers[v], raw);
    const int32_t first = of_upper[0] * 256 + of_lower[0] - g.zero * by.sum;
    const int32_t last = of_upper[1] * 256 + of_lower[1];
    // Halves have scales of their own, and no zero point.
    const float sum =
        p->type == WEIGHT_G6
            ? __builtin_fmaf((float)first, g.scale, (float)last * g.upper_scale)
            : (float)(first + last) * g.scale;
    into->of[r][v % 2] =
        __builtin_fmaf(__builtin_fmaf((float)by.sum, g.minimum, sum), by.scale,
                       into->of[r][v % 2]);
  }
}

// Adds the products of vector `v` by floats, likewise.
INLINE void add_floats(const stream *s, const product *p, int v, int at, int vectors,
                       sums *into) {
  const int has_scales = is_grouped(p->type), halves = has_halves(p->type);
  sums own = {{{0.0f}}}, *to = has_scales ? &own : into;
  UNROLL for (int part = 0; part < inputs_in_16_bytes(p->type) / 4; ++part) {
    const four x = four_of(staged[part * vectors + at]);
    UNROLL for (int r = 0; r < rows_of(p); ++r) {
      float w[4], *sum = &to->of[r][halves ? part / 4 : part % 2];
      widen(p->type, s->words[r][v], part, w);
      UNROLL for (int e = 0; e < 4; ++e)
        *sum = __builtin_fmaf(w[e], x.of[e], *sum);
    }
  }
  if (has_scales)
    UNROLL for (int r = 0; r < rows_of(p); ++r) {
      const group_scale g =
          scale_of_group(p->type, &p->groups, s->numbers[v], s->groups[r][v]);
      UNROLL for (int e = 0; e < 2; ++e)
        into->of[r][e] =
            __builtin_fmaf(own.of[r][e], halves && e ? g.upper_scale : g.scale,
                           into->of[r][e]);
    }
}

// Adds the products of vector `v` of a chunk, whose number in the row is `at`. Past
// the row's end, weights or scales are zeros, and the input is the last one.
INLINE void add_vector(const stream *s, const product *p, int v, int at, slice in,
                       sums *into) {
  at = min_int(at - in.first, in.vectors - 1);
  if (!is_whole(p->type))
    add_floats(s, p, v, at, in.vectors, into);
  else if (is_grouped(p->type))
    add_groups(s, p, v, at, in.vectors, into);
  else
    add_whole(s, p, v, at, in.vectors, into);
}

// Of two units in turn, so that the next one need not wait for readers.
SHARED_MEMORY float of_warps[2][WARPS * MAX_ROWS];

// Returns a unit's products in every lane of the first of its warps.
INLINE four unit_products(const product *p, const sums *of, int parity,
                          int thread) {
  const int warp = thread / WARP;
  four found = {{0.0f, 0.0f, 0.0f, 0.0f}};
  UNROLL for (int r = 0; r < rows_of(p); ++r)
    found.of[r] = warp_reduce_sum(of->of[r][0] + of->of[r][1]);
  if (p->split == 1)
    return found;
  UNROLL for (int r = 0; r < rows_of(p); ++r)
    if (thread % WARP == 0)
      of_warps[parity][warp * MAX_ROWS + r] = found.of[r];
  syncthreads();
  if (share_of(p, warp) == 0)
    for (int s = 1; s < p->split; ++s)
      UNROLL for (int r = 0; r < rows_of(p); ++r)
        found.of[r] += of_warps[parity][(warp + s) * MAX_ROWS + r];
  return found;
}

#endif
