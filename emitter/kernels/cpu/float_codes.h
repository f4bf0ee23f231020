// out = a * w^T with weights that are floating-point numbers of few bits, and scales;
// sums in f32. What multiplies includes this, after what defines
//
//   INPUTS       inputs that have their weights in the same bytes
//   INPUT_BYTES  these bytes, of a panel
//   WEIGHT_UNIT  what loaded weights are multiplied by
//   activation   a type: f32, or uint16_t for bf16
//   codes        a type: what codes stand for
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
#define KC 256 // maximum of inputs that are added before they are scaled
#define AHEAD 1024 // bytes that weights are prefetched

#define IN_E4M3 4 // a scale_type, which no element_type is
#define UNIT_GROUPS 16
#define UNIT_BLOCK (NR * (4 + UNIT_GROUPS)) // bytes

typedef struct {
  const uint8_t *w, *w_scale;
  const activation *a;
  float *out;
  index n, k, group;
  index scale_bytes; // of a panel
  index scale_type;
  codes codes;
} product;

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

// Returns the end of the inputs from `begin` on that are added before they are scaled.
INLINE index end_of_part(const product *x, index begin) {
  const index of_group = (begin / x->group + 1) * x->group;
  return min_index(min_index(of_group, begin + KC), x->k);
}

// Returns the part of a product from a row on.
INLINE product rows_from(const product *whole, index row) {
  product x = *whole;
  x.a += row * x.k;
  x.out += row * x.n;
  return x;
}

// Multiplies m rows by panels begin..end.
INLINE void multiply(const product *x, index m, index begin, index end);

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

#endif
