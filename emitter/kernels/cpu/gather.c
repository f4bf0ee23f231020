// Rows of tables, as floats.
//
//   ids    [rows]: the table's row for each row of the result
//   count  [1]; rows from count[0] on are padding, which is not written
//   out    [rows][width]
//
// A table is plain, [.][width], or weights that are packed for products, as
// matmul_float.c, matmul_q8.c and groups.h describe. Panels of floats and bytes are
// [.][width / step][16][step].

#include "groups.h"

#define PANEL_ROWS 16

// Copies the row `id` of 16-row panels of `type`, times `scale`.
INLINE void gather_panel_row(const void *w, element_type type, float scale, index id,
                             float *out, index width, index step) {
  const index row = id / PANEL_ROWS * PANEL_ROWS * width + id % PANEL_ROWS * step;
  for (index i = 0; i < width; i += step) {
    for (index j = 0; j < step; ++j)
      out[i + j] = load_element(w, type, row + i * PANEL_ROWS + j) * scale;
  }
}

#define GATHER_PANELS(name, element, type)                                     \
  void gather_panels_##name(const element *w, GATHER_ROWS, index step,         \
                            GATHER_RANGE) {                                    \
    for (index r = begin; r < min_index(end, count[0]); ++r)                   \
      gather_panel_row(w, type, 1.0f, ids[r], out + r * width, width, step);   \
  }

GATHER_PANELS(f32, float, ELEMENT_F32)
GATHER_PANELS(bf16, uint16_t, ELEMENT_BF16)
GATHER_PANELS(f16, uint16_t, ELEMENT_F16)

void gather_panels_q8(const int8_t *w, const float *w_scale, GATHER_ROWS,
                      index step, GATHER_RANGE) {
  for (index r = begin; r < min_index(end, count[0]); ++r)
    gather_panel_row(w, ELEMENT_Q8, w_scale[ids[r]], ids[r], out + r * width, width,
                     step);
}

// Computes the row `id` of weights in groups.
INLINE void gather_groups_row(int bits, group_form form, element_type type,
                              const uint8_t *w, const uint8_t *w_scale, index id,
                              float *out, index width, index group) {
  const index groups = width / GROUP, length = groups_of_run(form, group);
  const index runs = divide_up(groups, length), column = id % NR;
  for (index g = 0; g < groups; ++g) {
    const uint8_t *codes = w + (id / NR * groups + g) * code_bytes(bits);
    const uint8_t *scales =
        w_scale + (id / NR * runs + g / length) * scale_bytes(form, type);
    for (index half = 0; half < GROUP; half += HALF) {
      const weight_scale by =
          scale_at(bits, form, type, scales, column, g % length, half / HALF);
      for (index i = half; i < half + HALF; ++i) {
        const int32_t code = code_at(bits, form, codes, column, i);
        out[g * GROUP + i] = (float)(code - by.zero) * by.d + by.m;
      }
    }
  }
}

void gather_groups(const uint8_t *w, const uint8_t *w_scale, GATHER_ROWS,
                   index bits, index form, GROUPS_SIZES, GATHER_RANGE) {
  for (index r = begin; r < min_index(end, count[0]); ++r)
    gather_groups_row((int)bits, (group_form)form, (element_type)scale_type, w,
                      w_scale, ids[r], out + r * width, width, group);
}

void gather_rows(const float *table, GATHER_ROWS, GATHER_RANGE) {
  for (index r = begin; r < min_index(end, count[0]); ++r) {
    const float *from = table + ids[r] * width;
    for (index i = 0; i < width; ++i)
      out[r * width + i] = from[i];
  }
}
