// out = a * w^T with weights in E4M3 and scales, activations and sums in f32.
//
//   w           [ceil(n / NR)][k][NR] bytes; rows past n hold anything finite
//   w_scale     [ceil(n / NR)][ceil(k / group)][NR], of scale_type
//   a           [batch][tokens][k]
//   lengths     [batch]; see real_rows()
//   out         [batch][tokens][n]
//   group       inputs with the same scales; the last ones of a row may be fewer
//   scale_type  an element_type
//
// Each output adds sums over ascending k of up to KC inputs of a group, scaled, in their
// order: the result of a row may not depend on the others of the call.

#include "lanes.h"
#include "matmul.h"

#define NR 16    // columns of a panel
#define PANELS 1 // at a time
#define PARTS (NR / LANES)
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

#ifndef STEPS
#define STEPS 4 // inputs that are unrolled, a line of weights
#endif
#define AHEAD 1024 // bytes that weights are prefetched

typedef struct {
  const uint8_t *w, *w_scale;
  const float *a;
  float *out;
  index n, k, group;
  element_type scale_type;
} product;

// Keeps what computes a row's sums before later rows. Compilers would mix rows, for whose
// activations there are not enough registers.
#if LANES == 8 && defined(__AVX2__)
#define KEEP_ORDER_OF(row) __asm__ volatile("" : "+x"(row[0]), "+x"(row[1]))
#else
#define KEEP_ORDER_OF(row) (void)(row)
#endif

typedef int8_t panel_bytes __attribute__((ext_vector_type(NR)));
typedef int16_t panel_halves __attribute__((ext_vector_type(NR)));

// What loaded weights are multiplied by: an f16's exponent is 8 more than an E4M3's.
#define UNIT 256.0f

// Loads a panel's weights of an input, without their unit. f16 has all bits of an E4M3,
// whose subnormal numbers no CPU takes for zeros when it converts them.
INLINE void load_weights(const uint8_t *w, lanes weights[PARTS]) {
  panel_bytes bytes;
  __builtin_memcpy(&bytes, w, NR);
  // The sign is there twice.
  panel_halves halves = __builtin_convertvector(bytes, panel_halves) << 7;
  halves &= (int16_t)0xbf80;
  // All ones are NaN.
  halves |= (panel_halves)((halves | (int16_t)0x8000) == (int16_t)0xbf80);
  uint16_t stored[NR];
  __builtin_memcpy(stored, &halves, sizeof stored);
#pragma clang loop unroll(full)
  for (int part = 0; part < PARTS; ++part)
    weights[part] = lanes_from_f16(stored + part * LANES);
}

// Returns scales times the unit of weights.
INLINE lanes load_scales(const product *x, index i) {
  lanes scales;
  if (x->scale_type == ELEMENT_F32)
    scales = load_elements(x->w_scale, ELEMENT_F32, i);
  else if (x->scale_type == ELEMENT_BF16)
    scales = load_elements(x->w_scale, ELEMENT_BF16, i);
  else
    scales = load_elements(x->w_scale, ELEMENT_F16, i);
  return scales * UNIT;
}

// Adds the products of an input, of which those of a row come together.
INLINE void add_products(int rows, const lanes w[PARTS], const float *a, index k,
                         lanes acc[MR][PARTS]) {
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    const lanes by = a[r * k];
#pragma clang loop unroll(full)
    for (int part = 0; part < PARTS; ++part)
      acc[r][part] = multiply_add(by, w[part], acc[r][part]);
    if (rows > 2)
      KEEP_ORDER_OF(acc[r]);
  }
}

// Adds the products of an input, whose weights of each stream are `apart` bytes apart.
INLINE void add_input(int rows, int streams, const uint8_t *w, index apart,
                      index p, const product *x,
                      lanes acc[STREAMS][MR][PARTS]) {
#pragma clang loop unroll(full)
  for (int s = 0; s < streams; ++s) {
    lanes weights[PARTS];
    load_weights(w + s * apart + p * NR, weights);
    add_products(rows, weights, x->a + p, x->k, acc[s]);
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
  const index groups = divide_up(x->k, x->group), step_apart = apart * x->k * NR;
  const uint8_t *w = x->w + panel * x->k * NR;
  lanes total[STREAMS][MR][PARTS] = {0};
  for (index begin = 0, end; begin < x->k; begin = end) {
    lanes acc[STREAMS][MR][PARTS] = {0};
    const index g = begin / x->group;
    end = end_of_part(x, begin);
    index p = begin;
    for (; p + STEPS <= end; p += STEPS) {
#pragma clang loop unroll(full)
      for (int s = 0; s < streams; ++s)
        prefetch(w + s * step_apart + p * NR, AHEAD);
#pragma clang loop unroll(full)
      for (int i = 0; i < STEPS; ++i)
        add_input(rows, streams, w, step_apart, p + i, x, acc);
    }
    for (; p < end; ++p)
      add_input(rows, streams, w, step_apart, p, x, acc);
#pragma clang loop unroll(full)
    for (int s = 0; s < streams; ++s)
#pragma clang loop unroll(full)
      for (int part = 0; part < PARTS; ++part) {
        const index at = ((panel + s * apart) * groups + g) * NR + part * LANES;
        const lanes scales = load_scales(x, at);
#pragma clang loop unroll(full)
        for (int r = 0; r < rows; ++r)
          total[s][r][part] =
              multiply_add(acc[s][r][part], scales, total[s][r][part]);
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

// Weights of a panel's inputs begin..end as floats, with their scales.
typedef struct {
  float w[KC][NR];
  lanes scales[PARTS];
  index panel, begin, end;
} decoded;

// Adds to out what the inputs of decoded weights add to it, as a tile of fewer rows
// would.
INLINE void add_decoded(int rows, const decoded *of, const product *x) {
  lanes acc[MR][PARTS] = {0};
  const float *a = x->a + of->begin;
  const index k = x->k, count = of->end - of->begin;
#pragma clang loop unroll_count(2)
  for (index p = 0; p < count; ++p) {
    lanes w[PARTS];
#pragma clang loop unroll(full)
    for (int part = 0; part < PARTS; ++part)
      w[part] = load_floats(of->w[p] + part * LANES);
    add_products(rows, w, a + p, k, acc);
  }
#pragma clang loop unroll(full)
  for (int part = 0; part < PARTS; ++part) {
    const index j = of->panel * NR + part * LANES, columns = x->n - j;
#pragma clang loop unroll(full)
    for (int r = 0; r < rows; ++r) {
      float *out = x->out + r * x->n + j;
      lanes before = 0.0f;
      if (of->begin)
        before = columns >= LANES
                     ? load_floats(out)
                     : load_some_elements(out, ELEMENT_F32, 0, columns);
      store_some_floats(out, multiply_add(acc[r][part], of->scales[part], before),
                        columns);
    }
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
  const index groups = divide_up(whole->k, whole->group);
  const index count = divide_up(m, MR);
  decoded of;
  for (of.panel = begin; of.panel < end; ++of.panel) {
    for (of.begin = 0; of.begin < whole->k; of.begin = of.end) {
      const index g = of.panel * groups + of.begin / whole->group;
      of.end = end_of_part(whole, of.begin);
      const uint8_t *w = whole->w + (of.panel * whole->k + of.begin) * NR;
      for (index p = 0; p < of.end - of.begin; ++p) {
        lanes weights[PARTS];
        load_weights(w + p * NR, weights);
        for (int part = 0; part < PARTS; ++part)
          store_floats(of.w[p] + part * LANES, weights[part]);
      }
      for (int part = 0; part < PARTS; ++part)
        of.scales[part] = load_scales(whole, g * NR + part * LANES);
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

#define WHOLE                                                                  \
  {w, w_scale, a, out, n, k, group, (element_type)scale_type}

void matmul_e4m3(const uint8_t *w, const uint8_t *w_scale, const float *a,
                 const int32_t *lengths, float *out, index batch, index tokens,
                 index n, index k, GROUPS_SIZES, index begin, index end) {
  for (index b = 0; b < batch; ++b) {
    const product whole = WHOLE, x = rows_from(&whole, b * tokens);
    multiply(&x, real_rows(lengths, b, tokens), begin, end);
  }
}

void matmul_e4m3_experts(const uint8_t *w, const uint8_t *w_scale,
                         const float *a, const int32_t *experts,
                         const int32_t *begins, float *out, index n, index k,
                         GROUPS_SIZES, index begin, index end) {
  const index panels = divide_up(n, NR);
  const index scales =
      divide_up(k, group) * NR * element_size((element_type)scale_type);
  expert_part p;
  for (index item = begin;
       next_expert_part(experts, begins, panels, &item, end, &p);) {
    const product whole = WHOLE;
    product x = rows_from(&whole, p.row);
    x.w += p.expert * panels * k * NR;
    x.w_scale += p.expert * panels * scales;
    multiply(&x, p.rows, p.panel_begin, p.panel_end);
  }
}
