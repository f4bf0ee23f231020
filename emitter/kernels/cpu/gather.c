// Rows of tables, as floats.
//
//   ids    [rows]: the table's row for each row of the result
//   count  [1]; rows from count[0] on are padding, which is not written
//   out    [rows][width]
//
// A table is plain, [.][width], or weights that are packed for products, as
// matmul_float.c, matmul_q8.c and matmul_q4.c describe. Panels of floats and bytes are
// [.][width / step][16][step].

#include "kernels.h"

#define PANEL_ROWS 16
#define GROUP 32 // weights of 4 bits with one scale

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

void gather_panels_q4(const uint8_t *w, const uint16_t *w_scale, GATHER_ROWS,
                      GATHER_RANGE) {
  for (index r = begin; r < min_index(end, count[0]); ++r) {
    const index panel = ids[r] / Q4_COLUMNS, column = ids[r] % Q4_COLUMNS;
    for (index g = 0; g < width / GROUP; ++g) {
      const index group = panel * (width / GROUP) + g;
      const uint8_t *block = w + group * Q4_COLUMNS * (GROUP / 2);
      const float d = float_from_f16(w_scale[group * Q4_COLUMNS + column]);
      float *to = out + r * width + g * GROUP;
      for (index i = 0; i < GROUP / 2; ++i) {
        const int32_t packed = block[(i / 4 * Q4_COLUMNS + column) * 4 + i % 4];
        to[i] = (float)((packed & 15) - 8) * d;
        to[GROUP / 2 + i] = (float)((packed >> 4) - 8) * d;
      }
    }
  }
}

void gather_rows(const float *table, GATHER_ROWS, GATHER_RANGE) {
  for (index r = begin; r < min_index(end, count[0]); ++r) {
    const float *from = table + ids[r] * width;
    for (index i = 0; i < width; ++i)
      out[r * width + i] = from[i];
  }
}
