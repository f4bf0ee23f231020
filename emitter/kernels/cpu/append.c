// Rotates queries and keys, and writes keys and values to pages of the cache.
//
//   q, k, v   rows of [heads][head_dim], or of [kv_heads][head_dim]: row r of q
//             begins at q + r * q_stride + q_offset, and so on
//   cos, sin  [rows][rope_width / 2]
//   q_out     [rows][heads][head_dim]: rotated q, times the float q_scale
//
// attention_units.h documents the rest. The first rope_width dimensions of a head
// are rotated by pairs (x, y) to (x * cos - y * sin, y * cos + x * sin). If
// interleaved is 0, pair i is dimensions i and i + rope_width / 2, or else it is
// dimensions 2 * i and 2 * i + 1. Floats are rounded to the nearest, ties to even.
// Q8 quantizes groups of 32 dimensions.
//
// Padding rows are neither read nor written. A unit of work is the rows of one
// sequence in one page, and one kv head, so that no two units write to one page
// half of a head.

#include "../kv_cache.h"
#include "kernels.h"
#include "lanes.h"
#include "quantize.h"

#define MAX_HEAD_DIM 256
#define RUN_ROWS 16 // rows that are transposed at once

typedef struct {
  const float *q, *k, *v, *cos, *sin;
  const int32_t *begins, *starts, *pages;
  void *cache;
  uint16_t *scales;
  float *q_out;
  index layer, sequences, heads, kv_heads, head_dim, parts, table;
  index q_stride, k_stride, v_stride; // q, k and v include their offsets
  index rope_width, interleaved;
  index items, begin, end;
  float q_scale;
} append;

// Rows of one sequence in one page.
typedef struct {
  index row, count;
  index page, slot; // of the first row
} run;

INLINE void rotate_pairs(const float *restrict x, float *restrict out,
                         const float *restrict cos, const float *restrict sin,
                         index half, index x_step, index y_offset,
                         float scale) {
  for (index i = 0; i < half; ++i) {
    const float a = x[i * x_step], b = x[i * x_step + y_offset];
    out[i * x_step] = (a * cos[i] - b * sin[i]) * scale;
    out[i * x_step + y_offset] = (b * cos[i] + a * sin[i]) * scale;
  }
}

// Writes a head of a row, rotated and scaled.
static void rotate_head(const append *a, const float *restrict x,
                        float *restrict out, index row, float scale) {
  const index half = a->rope_width / 2;
  const float *cos = a->cos + row * half, *sin = a->sin + row * half;
  if (a->interleaved)
    rotate_pairs(x, out, cos, sin, half, 2, 1, scale);
  else
    rotate_pairs(x, out, cos, sin, half, 1, half, scale);
  for (index d = a->rope_width; d < a->head_dim; ++d)
    out[d] = x[d] * scale;
}

INLINE void encode_f16(const float *restrict x, uint16_t *restrict to,
                       index count) {
  index i = 0;
#if defined(__F16C__) || defined(__ARM_NEON)
  for (; i + LANES <= count; i += LANES) {
    const VECTOR(_Float16) halves = __builtin_convertvector(
        load_floats(x + i), VECTOR(_Float16));
    __builtin_memcpy(to + i, &halves, sizeof halves);
  }
#endif
#pragma clang loop vectorize(disable) unroll(disable)
  for (; i < count; ++i)
    to[i] = f16_from_float(x[i]);
}

// Converts a head of a row to elements of the cache, and to scales for Q8.
INLINE void encode(element_type type, const float *restrict x, index head_dim,
                   void *restrict to, uint16_t *restrict scales) {
  if (type == ELEMENT_F32) {
    for (index d = 0; d < head_dim; ++d)
      ((float *)to)[d] = x[d];
  } else if (type == ELEMENT_BF16) {
    for (index d = 0; d < head_dim; ++d)
      ((uint16_t *)to)[d] = bf16_from_float(x[d]);
  } else if (type == ELEMENT_F16) {
    encode_f16(x, to, head_dim);
  } else {
    for (index g = 0; g < head_dim / GROUP; ++g) {
      int8_t *steps = (int8_t *)to + g * GROUP;
      const quantizer by = quantizer_for(absmax_bits(x + g * GROUP, GROUP));
      scales[g] = f16_from_float(by.scale);
      if (by.inverse != 0.0f) {
        quantize_group(x + g * GROUP, steps, by.inverse, NULL);
      } else {
        for (index d = 0; d < GROUP; ++d)
          steps[d] = 0;
      }
    }
  }
}

// Copies rows of `width` elements to columns, of which there are PAGE.
INLINE void transpose(index size, const void *rows, index count, index width,
                      index row_width, void *columns) {
  for (index d = 0; d < width; ++d)
    for (index i = 0; i < count; ++i)
      __builtin_memcpy((char *)columns + (d * PAGE + i) * size,
                       (const char *)rows + (i * row_width + d) * size,
                       (size_t)size);
}

// Returns the element of the cache at which a kv head's keys or values begin.
INLINE index half_at(const append *a, const run *r, index half, index kv_head) {
  const index part = r->page * a->parts + 2 * a->layer + half;
  return (part * a->kv_heads + kv_head) * PAGE * a->head_dim;
}

INLINE void write_keys(element_type type, const append *a, const run *r,
                       index kv_head) {
  float rotated[MAX_HEAD_DIM];
  float elements[RUN_ROWS * MAX_HEAD_DIM]; // room for any type
  uint16_t scales[RUN_ROWS * MAX_HEAD_DIM / GROUP];
  const index head_dim = a->head_dim, size = element_size(type);
  const index groups = head_dim / GROUP;
  const index at = half_at(a, r, 0, kv_head);
  for (index first = 0; first < r->count; first += RUN_ROWS) {
    const index count = min_index(RUN_ROWS, r->count - first);
    for (index i = 0; i < count; ++i) {
      const index row = r->row + first + i;
      rotate_head(a, a->k + row * a->k_stride + kv_head * head_dim, rotated,
                  row, 1.0f);
      encode(type, rotated, head_dim, (char *)elements + i * head_dim * size,
             scales + i * groups);
    }
    const index slot = r->slot + first;
    transpose(size, elements, count, head_dim, head_dim,
              (char *)a->cache + (at + slot) * size);
    if (type == ELEMENT_Q8)
      transpose(2, scales, count, groups, groups,
                a->scales + at / GROUP + slot);
  }
}

INLINE void write_values(element_type type, const append *a, const run *r,
                         index kv_head) {
  const index at =
      half_at(a, r, 1, kv_head) + r->slot * a->head_dim;
  for (index i = 0; i < r->count; ++i) {
    const index to = at + i * a->head_dim;
    encode(type,
           a->v + (r->row + i) * a->v_stride + kv_head * a->head_dim,
           a->head_dim, (char *)a->cache + to * element_size(type),
           type == ELEMENT_Q8 ? a->scales + to / GROUP : NULL);
  }
}

static void rotate_queries(const append *a, const run *r, index kv_head) {
  const index group = a->heads / a->kv_heads;
  for (index row = r->row; row < r->row + r->count; ++row) {
    for (index head = kv_head * group; head < (kv_head + 1) * group; ++head)
      rotate_head(a, a->q + row * a->q_stride + head * a->head_dim,
                  a->q_out + (row * a->heads + head) * a->head_dim, row,
                  a->q_scale);
  }
}

// Does the units of items begin..end: those whose first row begins in the items'
// part of all rows of kv heads.
INLINE void each_run(element_type type, const append *a) {
  const index total =
      (a->begins[a->sequences] - a->begins[0]) * a->kv_heads;
  index before = 0;
  for (index s = 0; s < a->sequences; ++s) {
    for (index row = a->begins[s]; row < a->begins[s + 1];) {
      const index position = a->starts[s] + row - a->begins[s];
      const index slot = position % PAGE;
      const run r = {row, min_index(PAGE - slot, a->begins[s + 1] - row),
                     a->pages[s * a->table + position / PAGE], slot};
      for (index kv_head = 0; kv_head < a->kv_heads; ++kv_head) {
        if (before * a->items >= total * a->begin &&
            before * a->items < total * a->end) {
          rotate_queries(a, &r, kv_head);
          write_keys(type, a, &r, kv_head);
          write_values(type, a, &r, kv_head);
        }
        before += r.count;
      }
      row += r.count;
    }
  }
}

// Defines the entry point for a cache of one type.
#define DEFINE_APPEND(name, type, of_scales, ...)                              \
  void append_##name(APPEND_READ, __VA_ARGS__, APPEND_SIZES) {                 \
    (void)rows;                                                                \
    const append a = {.q = q + q_offset,                                       \
                      .k = k + k_offset,                                       \
                      .v = v + v_offset,                                       \
                      .cos = cos,                                              \
                      .sin = sin,                                              \
                      .begins = begins,                                        \
                      .starts = starts,                                        \
                      .pages = pages,                                          \
                      .cache = cache,                                          \
                      .scales = of_scales,                                     \
                      .q_out = q_out,                                          \
                      .layer = layer,                                          \
                      .sequences = sequences,                                  \
                      .heads = heads,                                          \
                      .kv_heads = kv_heads,                                    \
                      .head_dim = head_dim,                                    \
                      .parts = parts,                                          \
                      .table = table,                                          \
                      .q_stride = q_stride,                                    \
                      .k_stride = k_stride,                                    \
                      .v_stride = v_stride,                                    \
                      .rope_width = rope_width,                                \
                      .interleaved = interleaved,                              \
                      .items = items,                                          \
                      .begin = begin,                                          \
                      .end = end,                                              \
                      .q_scale = float_of((uint32_t)q_scale)};                 \
    each_run(type, &a);                                                        \
  }

DEFINE_APPEND(f32, ELEMENT_F32, NULL, float *cache)
DEFINE_APPEND(bf16, ELEMENT_BF16, NULL, uint16_t *cache)
DEFINE_APPEND(f16, ELEMENT_F16, NULL, uint16_t *cache)
DEFINE_APPEND(q8, ELEMENT_Q8, scales, int8_t *cache, uint16_t *scales)
