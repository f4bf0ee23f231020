// Tests that keys and values get to their places in the cache, and nothing to others.

#include "pages_case.h"
#include "rope_case.h"

#include "cuda/append_bf16.c"
#include "cuda/append_f16.c"
#include "cuda/append_f32.c"
#include "cuda/append_q8.c"

static struct {
  problem p; // its cache is what is expected
  rope_case rope;
  const float *k, *v;
  const int32_t *row_numbers, *slots; // the second part of the numbers
  void *cache;
  uint16_t *scales;
} call;

static void append_body(void) {
  const problem *p = &call.p;
#define READ call.k, call.v, call.rope.cos, call.rope.sin
#define SIZES                                                                  \
  call.row_numbers, (int)p->layer, (int)p->rows, (int)p->kv_heads,             \
      (int)p->head_dim, (int)call.rope.pairs, (int)call.rope.interleaved, (int)p->parts
  switch (p->type) {
  case ELEMENT_F32: cuda_append_f32(READ, call.cache, SIZES); break;
  case ELEMENT_BF16: cuda_append_bf16(READ, call.cache, SIZES); break;
  case ELEMENT_F16: cuda_append_f16(READ, call.cache, SIZES); break;
  case ELEMENT_Q8: cuda_append_q8(READ, call.cache, call.scales, SIZES); break;
  }
#undef READ
#undef SIZES
}

static void expect_group(problem *p, index at, const float *x) {
  uint32_t largest = 0;
  for (index i = 0; i < CACHE_GROUP; ++i) {
    const uint32_t bits = bits_of(x[i]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  // NaN and inf are their group's scale.
  const float absmax = float_of(largest);
  const int is_zero = !isfinite(absmax) || absmax < 0x1p-120f;
  const float scale = !isfinite(absmax) ? absmax : is_zero ? 0 : absmax / 127;
  p->scales[at / CACHE_GROUP] = f16_from_float_portable(scale);
  for (index i = 0; i < CACHE_GROUP; ++i)
    ((int8_t *)p->cache)[at + i] =
        (int8_t)(is_zero ? 0 : nearbyintf(x[i] * (127 / absmax)));
}

static void expect_row(problem *p, index at, const float *x) {
  for (index d = 0; d < p->head_dim; ++d) {
    if (p->type == ELEMENT_F32)
      ((float *)p->cache)[at + d] = x[d];
    if (p->type == ELEMENT_BF16)
      ((uint16_t *)p->cache)[at + d] = bf16_from_float(x[d]);
    if (p->type == ELEMENT_F16)
      ((uint16_t *)p->cache)[at + d] = f16_from_float_portable(x[d]);
    if (p->type == ELEMENT_Q8 && d % CACHE_GROUP == 0)
      expect_group(p, at + d, x + d);
  }
}

static void expect(void) {
  problem *p = &call.p;
  for (index row = 0; row < p->rows; ++row)
    for (index half = 0; half < 2; ++half)
      for (index h = 0; h < p->kv_heads; ++h) {
        const float *x = (half ? call.v : call.k) +
                         (row * p->kv_heads + h) * p->head_dim;
        const index part =
            call.slots[row] / PAGE * p->parts + 2 * p->layer + half;
        const index place =
            (part * p->kv_heads + h) * PAGE + call.slots[row] % PAGE;
        float all[256];
        for (index d = 0; d < p->head_dim; ++d)
          all[d] = half ? x[d] : expected_rotated(&call.rope, x, row, d);
        expect_row(p, place * p->head_dim, all);
      }
}

// Gives rows places that differ, in random order.
static void choose_slots(index rows, index pages) {
  int32_t *numbers = allocate(3 * rows * 4), *slots = numbers + rows;
  memset(numbers, 0xff, (size_t)(3 * rows * 4));
  const index step = PAGE * pages / rows;
  for (index r = 0; r < rows; ++r)
    slots[r] = (int32_t)(r * step + random_index(0, step - 1));
  for (index r = rows - 1; r > 0; --r) {
    const index other = random_index(0, r);
    const int32_t slot = slots[r];
    slots[r] = slots[other];
    slots[other] = slot;
  }
  call.row_numbers = numbers;
  call.slots = slots;
}

static void *copy_of(const void *x, index bytes) {
  return memcpy(allocate(bytes), x, (size_t)bytes);
}

static void test_case(element_type type, index head_dim, index rows,
                      exponents range) {
  problem *p = &call.p;
  *p = random_layer(type, &(shape){head_dim, rows, 0, 0});
  p->page_count = random_index(1, 3);
  p->rows = rows;
  p->begins = p->starts = allocate(4);
  *p->begins = 0;
  p->sequences = 0;
  fill_cache(p);
  name_case(p);
  call.rope = random_rope(rows, head_dim);
  choose_slots(rows, p->page_count);
  float *k = random_floats(rows * p->kv_heads * head_dim, range);
  float *v = random_floats(rows * p->kv_heads * head_dim, range);
  v[random_index(0, rows * p->kv_heads * head_dim - 1)] = NAN;
  v[random_index(0, rows * p->kv_heads * head_dim - 1)] = INFINITY;
  k[random_index(0, rows * p->kv_heads * head_dim - 1)] = -INFINITY;
  call.k = k;
  call.v = v;
  const index count = cache_count(p), bytes = count * element_size(type);
  call.cache = copy_of(p->cache, bytes);
  if (type == ELEMENT_Q8)
    call.scales = copy_of(p->scales, count / CACHE_GROUP * 2);
  expect();
  const index threads = rows * 2 * p->kv_heads * head_dim / ROPE_DIMS;
  launch_grid(divide_up(threads, APPEND_THREADS), APPEND_THREADS, append_body);
  for (index i = 0; i < count; ++i)
    check_equal("cache", i, load_element(call.cache, type, i),
                load_element(p->cache, type, i));
  for (index i = 0; type == ELEMENT_Q8 && i < count / CACHE_GROUP; ++i)
    check_equal("scales", i, float_from_f16(call.scales[i]),
                float_from_f16(p->scales[i]));
  release_all();
}

int main(void) {
  begin_tests();
  const index head_dims[] = {8, 32, 64, 80, 96, 128, 256};
  for (int t = 0; t < TYPES; ++t)
    for (int i = 0; i < 7; ++i)
      for (int round = 0; round < 6; ++round)
        if (t != ELEMENT_Q8 || head_dims[i] % CACHE_GROUP == 0)
          test_case((element_type)t, head_dims[i], random_index(1, 20),
                    round == 0   ? (exponents){-127, -100}
                    : round == 1 ? (exponents){-140, 127}
                                 : ORDINARY);
  return end_tests();
}
