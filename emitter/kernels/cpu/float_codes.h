// out = a * w^T with weights that are floating-point numbers of few bits, and scales;
// activations and sums in f32. A file for each width includes this, after what defines
//
//   INPUTS        inputs that have their weights in the same bytes
//   INPUT_BYTES   these bytes, of a panel
//   WEIGHT_UNIT   what loaded weights are multiplied by
//   codes         a type: what codes stand for
//   stored_codes  a type: those of a panel's columns and INPUTS inputs
//   load_codes()  loads them
//   numbers_of()  computes the weights of a part of the columns, without their unit
//
// Arguments of all:
//
//   w           [ceil(n / NR)][k / INPUTS][INPUT_BYTES]; rows past n hold anything finite
//   w_scale     [ceil(n / NR)][ceil(k / group)][NR], of scale_type; or, in E4M3, blocks
//               of UNIT_GROUPS groups: [NR] units in f32, and what scales have of them,
//               [UNIT_GROUPS][NR]
//   a           [batch][tokens][k]
//   lengths     [batch]; see real_rows()
//   out         [batch][tokens][n]
//   group       inputs with the same scales; the last ones of a row may be fewer
//   scale_type  an element_type, or IN_E4M3
//
// Each output adds sums over ascending k of up to KC inputs of a group, scaled, in their
// order: the result of a row may not depend on the others of the call.
#ifndef KERNELS_CPU_FLOAT_CODES_H
#define KERNELS_CPU_FLOAT_CODES_H

#include "e4m3.h"
#include "matmul.h"

#define PANELS 1 // at a time
// Maximum of rows in a register tile, and of rows times streams.
#if LANES == 16
#define MR 12
#elif LANES == 8
#define MR 6
#else
#define MR 4
#endif
#define SUMS MR
#define KC 256 // maximum of inputs that are added before they are scaled
#define MOST_SCALED 16 // times that this is done for weights that are decoded at once

#ifndef STEPS
#define STEPS (64 / INPUT_BYTES * INPUTS) // inputs that are unrolled, a line of weights
#endif
#define AHEAD 1024 // bytes that weights are prefetched

#define IN_E4M3 4 // a scale_type, which no element_type is
#define UNIT_GROUPS 16
#define UNIT_BLOCK (NR * (4 + UNIT_GROUPS)) // bytes

typedef struct {
  const uint8_t *w, *w_scale;
  const float *a;
  float *out;
  index n, k, group;
  index scale_bytes; // of a panel
  index scale_type;
  codes codes;
} product;

// Keeps what computes a sum before later ones. Compilers would mix them, for which there
// are not enough registers.
#if LANES == 8 && defined(__AVX2__)
#define KEEP_ORDER_OF(sum) __asm__ volatile("" : "+x"(sum))
#else
#define KEEP_ORDER_OF(sum) (void)(sum)
#endif

// Returns the bytes of weights before an input of a panel.
INLINE index bytes_before(index input) { return input / INPUTS * INPUT_BYTES; }

// Returns the bytes of a panel's scales.
INLINE index scale_bytes(index k, index group, index type) {
  const index groups = divide_up(k, group);
  return type == IN_E4M3 ? divide_up(groups, UNIT_GROUPS) * UNIT_BLOCK
                         : groups * NR * element_size((element_type)type);
}

// Loads the scales of a group, times the unit of weights.
INLINE void load_scales(const product *x, index panel, index group,
                        lanes scales[PARTS]) {
  const uint8_t *of_panel = x->w_scale + panel * x->scale_bytes;
  if (x->scale_type == IN_E4M3) {
    const uint8_t *block = of_panel + group / UNIT_GROUPS * UNIT_BLOCK;
    const e4m3_codes of_group = load_e4m3(block + NR * (4 + group % UNIT_GROUPS));
#pragma clang loop unroll(full)
    for (int part = 0; part < PARTS; ++part)
      scales[part] = e4m3_numbers(&of_group, part) *
                     load_elements(block, ELEMENT_F32, part * LANES) *
                     (E4M3_UNIT * WEIGHT_UNIT);
    return;
  }
#pragma clang loop unroll(full)
  for (int part = 0; part < PARTS; ++part) {
    const index i = group * NR + part * LANES;
    lanes loaded;
    if (x->scale_type == ELEMENT_F32)
      loaded = load_elements(of_panel, ELEMENT_F32, i);
    else if (x->scale_type == ELEMENT_BF16)
      loaded = load_elements(of_panel, ELEMENT_BF16, i);
    else
      loaded = load_elements(of_panel, ELEMENT_F16, i);
    scales[part] = loaded * WEIGHT_UNIT;
  }
}

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

// Returns the end of the inputs from `begin` on that are added before they are scaled.
INLINE index end_of_part(const product *x, index begin) {
  const index of_group = (begin / x->group + 1) * x->group;
  return min_index(min_index(of_group, begin + KC), x->k);
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

// Returns the part of a product from a row on.
INLINE product rows_from(const product *whole, index row) {
  product x = *whole;
  x.a += row * x.k;
  x.out += row * x.n;
  return x;
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

// Multiplies m rows by panels begin..end.
INLINE void multiply(const product *x, index m, index begin, index end) {
  if (m > MR)
    multiply_decoded(x, m, begin, end);
  else if (m > 0)
    tiles(m, begin, end, x);
}

#define WHOLE(a, n, k, codes)                                                  \
  {w,                                                                          \
   w_scale,                                                                    \
   a,                                                                          \
   out,                                                                        \
   n,                                                                          \
   k,                                                                          \
   group,                                                                      \
   scale_bytes(k, group, scale_type),                                          \
   scale_type,                                                                 \
   codes}

// Multiplies the rows of a batch, see above.
INLINE void multiply_rows(const product *whole, const int32_t *lengths,
                          index batch, index tokens, index begin, index end) {
  for (index b = 0; b < batch; ++b) {
    const product x = rows_from(whole, b * tokens);
    multiply(&x, real_rows(lengths, b, tokens), begin, end);
  }
}

// Multiplies rows of experts.
INLINE void multiply_experts(const product *whole, const int32_t *experts,
                             const int32_t *begins, index begin, index end) {
  const index panels = divide_up(whole->n, NR);
  expert_part p;
  for (index item = begin;
       next_expert_part(experts, begins, panels, &item, end, &p);) {
    product x = rows_from(whole, p.row);
    x.w += p.expert * panels * bytes_before(x.k);
    x.w_scale += p.expert * panels * x.scale_bytes;
    multiply(&x, p.rows, p.panel_begin, p.panel_end);
  }
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
