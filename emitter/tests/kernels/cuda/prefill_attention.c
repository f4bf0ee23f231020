// Tests attention of the rows of prompts.

#include "pages_case.h"
#include "rope_case.h"

#include "cuda/prefill_attention_bf16.c"
#include "cuda/prefill_attention_f16.c"
#include "cuda/prefill_attention_f32.c"
#include "cuda/prefill_attention_q8.c"

static struct {
  const problem *p;
  rope_case rope;
  index rows; // of each sequence, with padding
  float scale;
  const float *q;
  const int32_t *positions, *pages;
  void *out;
  int out_type;
} call;

// --------------------------------------------------------------- input

// Begins tables of pages with the first one that a row sees, or with page 0.
static void place_tables(problem *p) {
  if (p->window && random_index(0, 3)) {
    p->first_pages = allocate(p->sequences * 4);
    for (index s = 0; s < p->sequences; ++s)
      p->first_pages[s] = (int32_t)(p->begins[s] < p->begins[s + 1]
                                        ? first_of(p, p->begins[s]) / PAGE
                                        : 0);
  }
  p->table = 1;
  for (index s = 0; s < p->sequences; ++s) {
    if (p->begins[s] == p->begins[s + 1])
      p->starts[s] = 0;
    const index end = p->starts[s] + p->begins[s + 1] - p->begins[s];
    const index before = p->first_pages ? p->first_pages[s] : 0;
    p->table = max_index(p->table, divide_up(end, PAGE) - before);
  }
  p->table += random_index(0, 2);
  place_pages(p);
}

// Returns the place of a real row among those with padding.
static index padded_row(const problem *p, index row) {
  const index s = sequence_of(p, row);
  return s * call.rows + row - p->begins[s];
}

// Sets the queries that the expected results are computed of: those that the kernels
// compute, because they round them.
static void expect_queries(problem *p) {
  for (index i = 0; i < p->rows * p->heads * p->head_dim; ++i) {
    const index d = i % p->head_dim, head = i / p->head_dim % p->heads;
    const index row = padded_row(p, i / p->head_dim / p->heads);
    const float *x = call.q + (row * p->heads + head) * p->head_dim;
    const float scaled = expected_rotated(&call.rope, x, row, d) *
                         (call.scale * LOG2_E);
    p->q[i] = p->type == ELEMENT_F32 ? scaled
              : p->type == ELEMENT_BF16
                  ? float_from_bf16(bf16_from_float(scaled))
                  : float_from_f16(f16_from_float_portable(scaled));
  }
}

static problem random_prompts(element_type type, shape of) {
  problem p = random_layer(type, &of);
  p.keys_by_position = 1;
  p.causal = 1;
  place_sequences(&p, &of);
  p.rows = real_count(&p);
  place_tables(&p);
  fill_input(&p, &of);
  call.p = NULL;
  call.rows = 1 + random_index(0, 2);
  for (index s = 0; s < p.sequences; ++s)
    call.rows = max_index(call.rows, p.begins[s + 1] - p.begins[s]);
  const index rows = p.sequences * call.rows;
  call.rope = random_rope(rows, of.head_dim);
  const float scales[] = {1.0f, 0.6f};
  call.scale = scales[random_index(0, 1)];
  const int high = (of.sharp ? 8 : 1) - (int)lround(log2((double)of.head_dim) / 2);
  call.q = random_floats(rows * p.heads * of.head_dim, (exponents){high - 4, high});
  int32_t *positions = allocate(3 * rows * 4);
  int32_t *pages = allocate(p.sequences * p.table * 4);
  memset(positions, 0xff, (size_t)(3 * rows * 4));
  for (index row = 0; row < rows; ++row) {
    const index s = row / call.rows, i = row % call.rows;
    const int is_padding = i >= p.begins[s + 1] - p.begins[s];
    positions[row] = (int32_t)(is_padding ? 0 : p.starts[s] + i);
  }
  for (index i = 0; i < p.sequences * p.table; ++i) {
    const index s = i / p.table;
    pages[i] = p.begins[s] == p.begins[s + 1] ? 0 : p.pages[i];
  }
  // First pages are the third part of the rows' numbers.
  if (p.first_pages)
    memcpy(positions + 2 * rows, p.first_pages, (size_t)(p.sequences * 4));
  call.positions = positions;
  call.pages = pages;
  expect_queries(&p);
  return p;
}

// --------------------------------------------------------------- calls

static void attend_body(void) {
  const problem *p = call.p;
#define READ call.q, call.rope.cos, call.rope.sin
#define ARGUMENTS                                                              \
  call.positions, call.pages, p->sinks, call.out,                              \
      (int)p->layer, (int)p->sequences, (int)call.rows, (int)p->heads,         \
      (int)p->kv_heads, (int)p->head_dim, (int)call.rope.pairs,                \
      (int)call.rope.interleaved, (int)p->parts, (int)p->table,                \
      (int)p->window, bits_of(call.scale), bits_of(p->soft_cap),               \
      p->first_pages != NULL, (int)p->has_sinks, call.out_type
#define CALL(width)                                                            \
  switch (p->type) {                                                           \
  case ELEMENT_F32:                                                            \
    cuda_prefill_attention_f32_##width(READ, p->cache, ARGUMENTS);             \
    break;                                                                     \
  case ELEMENT_BF16:                                                           \
    cuda_prefill_attention_bf16_##width(READ, p->cache, ARGUMENTS);            \
    break;                                                                     \
  case ELEMENT_F16:                                                            \
    cuda_prefill_attention_f16_##width(READ, p->cache, ARGUMENTS);             \
    break;                                                                     \
  case ELEMENT_Q8:                                                             \
    cuda_prefill_attention_q8_##width(READ, p->cache, p->scales, ARGUMENTS);   \
    break;                                                                     \
  }
  if (p->head_dim <= 64)
    CALL(64)
  else if (p->head_dim <= 128)
    CALL(128)
  else
    CALL(256)
#undef CALL
#undef READ
#undef ARGUMENTS
}

// --------------------------------------------------------------- tests

// Returns how much a result may differ because of the rounding of weights, which are at
// most 1, and of products of q8. Values are below 2.
static double rounding(const problem *p, index at) {
  switch (p->type) {
  case ELEMENT_F32: return 0;
  case ELEMENT_BF16: return 0x1p-8;
  case ELEMENT_F16: return 0x1p-11;
  case ELEMENT_Q8:
    // The tolerance has the magnitude of products of a score.
    return 0x1p-10 + p->tolerance[at] * 0x1p12;
  }
  return 0;
}

static double result(index i) {
  return load_element(call.out, (element_type)call.out_type, i);
}

static void test_problem(problem p) {
  compute_expected(&p);
  call.p = &p;
  const index count = p.sequences * call.rows * p.heads * p.head_dim;
  call.out = allocate_results(count);
  call.out_type = (int)random_index(0, 2);
  const index group = p.heads / p.kv_heads;
  const index queries = p.type != ELEMENT_F32 ? QUERIES
                        : p.head_dim <= 128   ? FLOAT_QUERIES
                                              : FLOAT_QUERIES_WIDE;
  const index threads = p.type == ELEMENT_F32 ? FLOAT_THREADS : PREFILL_THREADS;
  const index parts = divide_up(call.rows * group, queries);
  launch_grid(parts * p.sequences * p.kv_heads, threads, attend_body);
  for (index i = 0; i < p.rows * p.heads * p.head_dim; ++i) {
    const index each = p.heads * p.head_dim, at = i / p.head_dim;
    const index place = padded_row(&p, i / each) * each + i % each;
    // Halves have at least 8 bits.
    const double step = call.out_type == ELEMENT_F32 ? 0 : 0x1p-8;
    check_near("out", i, result(place), p.expected[i],
               p.tolerance[at] + rounding(&p, at) + fabs(p.expected[i]) * step);
  }
  // Those of padding rows are numbers.
  for (index i = 0; i < count; ++i) {
    const index row = i / p.head_dim / p.heads, s = row / call.rows;
    if (p.begins[s] < p.begins[s + 1])
      check_equal("is a number", i, isfinite(result(i)) != 0, 1);
  }
  release_all();
}

int main(void) {
  begin_tests();
  const index head_dims[] = {8, 16, 32, 40, 64, 72, 80, 96, 128, 136, 192, 256};
  for (int i = 0; i < 12; ++i)
    for (int t = 0; t < TYPES; ++t) {
      const element_type type = (element_type)t;
      const index dim = head_dims[i];
      if (type == ELEMENT_Q8 && dim % CACHE_GROUP != 0)
        continue;
      const int sharp = random_index(0, 2) == 0;
      test_problem(random_prompts(type, (shape){dim, 7, 20, 0}));
      test_problem(random_prompts(type, (shape){dim, 3, 300, sharp}));
      test_problem(random_prompts(type, (shape){dim, 40, 70, sharp}));
    }
  test_problem(random_prompts(ELEMENT_BF16, (shape){64, 160, 100, 0}));
  return end_tests();
}
