// Products of weights that are floating-point numbers of few bits, with activations in
// f32; float_codes.h documents the arguments. A file for each width includes this, after
// what that header needs and what defines
//
//   stored_codes  a type: codes of a panel's columns and INPUTS inputs
//   load_codes()  loads them
//   numbers_of()  computes the weights of a part of the columns, without their unit
#ifndef KERNELS_CPU_FLOAT_CODES_F32_H
#define KERNELS_CPU_FLOAT_CODES_F32_H

typedef float activation;
#include "float_codes.h"

// Maximum of rows in a register tile, and of rows times streams.
#if LANES == 16
#define MR 12
#elif LANES == 8
#define MR 6
#else
#define MR 4
#endif
#define SUMS MR
#define MOST_SCALED 16 // times that this is done for weights that are decoded at once

#ifndef STEPS
#define STEPS (64 / INPUT_BYTES * INPUTS) // inputs that are unrolled, a line of weights
#endif

// Keeps what computes a sum before later ones. Compilers would mix them, for which there
// are not enough registers.
#if LANES == 8 && defined(__AVX2__)
#define KEEP_ORDER_OF(sum) __asm__ volatile("" : "+x"(sum))
#else
#define KEEP_ORDER_OF(sum) (void)(sum)
#endif

// Adds the products of INPUTS inputs, whose weights of each stream are `apart` bytes
// apart.
INLINE void add_inputs(int rows, int streams, const uint8_t *w, index apart,
                       index p, const product *x,
                       lanes acc[STREAMS][MR][PARTS]) {
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    const stored_codes stored = load_codes(w + s * apart + bytes_before(p));
#pragma clang loop unroll(full)
    for (int part = 0; part < PARTS; ++part) {
      lanes weights[INPUTS];
      numbers_of(&x->codes, &stored, part, weights);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
#pragma clang loop unroll(full)
        for (int i = 0; i < INPUTS; ++i)
          acc[s][r][part] =
              multiply_add(x->a[r * x->k + p + i], weights[i], acc[s][r][part]);
        if (rows > 2 || INPUTS > 1)
          KEEP_ORDER_OF(acc[s][r][part]);
      }
    }
  }
}

// Multiplies the rows of a tile, whose weights are read once.
INLINE void tile(int rows, int streams, index apart, index panel,
                 const product *x) {
  const index panel_size = bytes_before(x->k), step_apart = apart * panel_size;
  const uint8_t *w = x->w + panel * panel_size;
  lanes total[STREAMS][MR][PARTS] = {0};
  for (index begin = 0, end; begin < x->k; begin = end) {
    lanes acc[STREAMS][MR][PARTS] = {0};
    const index g = begin / x->group;
    end = end_of_part(x, begin);
    index p = begin;
    for (; p + STEPS <= end; p += STEPS) {
#pragma clang loop unroll(full)
      for (int s = 0; s < streams; ++s)
        prefetch(w + s * step_apart + bytes_before(p), AHEAD);
#pragma clang loop unroll(full)
      for (int i = 0; i < STEPS; i += INPUTS)
        add_inputs(rows, streams, w, step_apart, p + i, x, acc);
    }
    for (; p < end; p += INPUTS)
      add_inputs(rows, streams, w, step_apart, p, x, acc);
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s) {
      lanes scales[PARTS];
      load_scales(x, panel + s * apart, g, scales);
#pragma clang loop unroll(full)
      for (int part = 0; part < PARTS; ++part) {
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; ++r)
          total[s][r][part] =
              multiply_add(acc[s][r][part], scales[part], total[s][r][part]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s)
#pragma clang loop unroll(full)
    for (int part = 0; part < PARTS; ++part) {
      const index j = (panel + s * apart) * NR + part * LANES;
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r)
        store_some_floats(x->out + r * x->n + j, total[s][r][part], x->n - j);
    }
}

DEFINE_ROW_TILES(tiles, x)

// Weights of a panel's inputs from `begin` on as floats: parts that are scaled at once,
// each with its end and its scales.
typedef struct {
  float w[KC][NR];
  lanes scales[MOST_SCALED][PARTS];
  index ends[MOST_SCALED], count;
  index panel, begin;
} decoded;

// Decodes weights from of->begin on. Returns their end.
INLINE index decode(const product *x, decoded *of) {
  const uint8_t *w = x->w + of->panel * bytes_before(x->k);
  index p = of->begin;
  of->count = 0;
  do {
    const index end = end_of_part(x, p);
    load_scales(x, of->panel, p / x->group, of->scales[of->count]);
    of->ends[of->count++] = end;
    for (; p < end; p += INPUTS) {
      const stored_codes stored = load_codes(w + bytes_before(p));
      for (int part = 0; part < PARTS; ++part) {
        lanes weights[INPUTS];
        numbers_of(&x->codes, &stored, part, weights);
        for (int i = 0; i < INPUTS; ++i)
          store_floats(of->w[p - of->begin + i] + part * LANES, weights[i]);
      }
    }
  } while (p < x->k && of->count < MOST_SCALED &&
           end_of_part(x, p) <= of->begin + KC);
  return p;
}

// Adds to out what the inputs of decoded weights add to it, as a tile of fewer rows
// would.
INLINE void add_decoded(int rows, const decoded *of, const product *x) {
  const index k = x->k, first = of->panel * NR;
  lanes total[MR][PARTS];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
    for (int part = 0; part < PARTS; ++part) {
      const index j = first + part * LANES;
      total[r][part] = 0.0f;
      if (of->begin && x->n - j >= LANES)
        total[r][part] = load_floats(x->out + r * x->n + j);
      else if (of->begin)
        total[r][part] =
            load_some_elements(x->out, ELEMENT_F32, r * x->n + j, x->n - j);
    }
  index p = of->begin;
  for (index scaled = 0; scaled < of->count; ++scaled) {
    lanes acc[MR][PARTS] = {0};
#pragma clang loop unroll_count(2)
    for (; p < of->ends[scaled]; ++p) {
      const float *w = of->w[p - of->begin], *a = x->a + p;
      lanes weights[PARTS];
#pragma clang loop unroll(full)
      for (int part = 0; part < PARTS; ++part)
        weights[part] = load_floats(w + part * LANES);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const lanes by = a[r * k];
#pragma clang loop unroll(full)
        for (int part = 0; part < PARTS; ++part) {
          acc[r][part] = multiply_add(by, weights[part], acc[r][part]);
          KEEP_ORDER_OF(acc[r][part]);
        }
      }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
      for (int part = 0; part < PARTS; ++part)
        total[r][part] = multiply_add(acc[r][part], of->scales[scaled][part],
                                      total[r][part]);
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r)
#pragma clang loop unroll(full)
    for (int part = 0; part < PARTS; ++part) {
      const index j = first + part * LANES;
      store_some_floats(x->out + r * x->n + j, total[r][part], x->n - j);
    }
}

#define DECODED(count, name, unused)                                           \
  static __attribute__((noinline)) void name##_##count(const decoded *of,      \
                                                       const product *x) {     \
    if (count <= MR)                                                           \
      add_decoded(count, of, x);                                               \
  }
#define DECODED_CASE(count, name, unused)                                      \
  case count:                                                                  \
    name##_##count(of, x);                                                     \
    break;
FROM_2_TO_12(DECODED, add_decoded, )

static void add_decoded_rows(index rows, const decoded *of, const product *x) {
  switch (rows) {
    FROM_2_TO_12(DECODED_CASE, add_decoded, )
  }
}

// Multiplies more rows than a tile has, for which weights are decoded once.
static __attribute__((noinline)) void multiply_decoded(const product *whole,
                                                       index m, index begin,
                                                       index end) {
  const index count = divide_up(m, MR);
  decoded of;
  for (of.panel = begin; of.panel < end; ++of.panel) {
    for (index p = 0; p < whole->k;) {
      of.begin = p;
      p = decode(whole, &of);
      for (index t = 0; t < count; ++t) {
        const index i = m * t / count, rows = m * (t + 1) / count - i;
        const product x = rows_from(whole, i);
        add_decoded_rows(rows, &of, &x);
      }
    }
  }
}

INLINE void multiply(const product *x, index m, index begin, index end) {
  if (m > MR)
    multiply_decoded(x, m, begin, end);
  else if (m > 0)
    tiles(m, begin, end, x);
}

// Computes rows of weights: `out` [.][x->k] of `ids`. Rows from count[0] on are padding,
// which is not written. `x` has neither a nor n.
INLINE void gather(const product *x, const int32_t *ids, const int32_t *count,
                   index begin, index end) {
  decoded of;
  for (index row = begin; row < min_index(end, count[0]); ++row) {
    const index column = ids[row] % NR;
    of.panel = ids[row] / NR;
    for (index p = 0; p < x->k;) {
      of.begin = p;
      decode(x, &of);
      for (index scaled = 0; scaled < of.count; ++scaled) {
        const float scale = of.scales[scaled][column / LANES][column % LANES];
        for (; p < of.ends[scaled]; ++p)
          x->out[row * x->k + p] = of.w[p - of.begin][column] * scale;
      }
    }
  }
}

#endif
