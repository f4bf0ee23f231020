// Tests attention of one query for each sequence, in chunks that are merged.

#include "pages_case.h"

#include "cuda/attention_bf16.c"
#include "cuda/attention_combine.c"
#include "cuda/attention_f16.c"
#include "cuda/attention_f32.c"
#include "cuda/attention_q8.c"

// --------------------------------------------------------------- input

// Gives each sequence one row, at any position. The positions that a window reaches
// begin and end anywhere in pages.
static void place_rows(problem *p, index most_before) {
  p->begins = allocate((p->sequences + 1) * 4);
  p->starts = allocate(p->sequences * 4);
  for (index s = 0; s <= p->sequences; ++s)
    p->begins[s] = (int32_t)s;
  for (index s = 0; s < p->sequences; ++s)
    p->starts[s] =
        (int32_t)(random_index(0, 4) ? random_index(0, most_before) : 0);
  p->rows = p->sequences + (random_index(0, 1) ? random_index(0, 3) : 0);
}

// Begins tables of pages with the first one that a row sees, or with page 0.
static void place_tables(problem *p) {
  if (p->window && random_index(0, 3)) {
    p->first_pages = allocate(p->sequences * 4);
    for (index s = 0; s < p->sequences; ++s)
      p->first_pages[s] = (int32_t)(first_of(p, s) / PAGE);
  }
  for (index s = 0; s < p->sequences; ++s) {
    const index before = p->first_pages ? p->first_pages[s] : 0;
    p->table = max_index(p->table, p->starts[s] / PAGE + 1 - before);
  }
  p->table += random_index(0, 2);
  place_pages(p);
}

static problem random_rows(element_type type, shape of) {
  problem p = random_layer(type, &of);
  p.keys_by_position = 1;
  p.causal = 1;
  p.chunks = random_index(0, 9) ? random_index(1, 4) : MAX_CHUNKS;
  place_rows(&p, of.most_before);
  place_tables(&p);
  fill_input(&p, &of);
  return p;
}

// Returns numbers of sequences with zeros for padding.
static int32_t *padded(const problem *p, const int32_t *numbers, index each) {
  int32_t *all = allocate(p->rows * each * 4);
  memset(all, 0, (size_t)(p->rows * each * 4));
  memcpy(all, numbers, (size_t)(p->sequences * each * 4));
  return all;
}

// --------------------------------------------------------------- calls

static struct {
  const problem *p;
  const int32_t *positions, *pages, *first_pages;
  float *partial, *max_sum, *out;
  int rows;
} call;

static void attend_body(void) {
  const problem *p = call.p;
#define ARGUMENTS                                                              \
  call.positions, call.pages, call.first_pages, call.partial, call.max_sum,    \
      (int)p->layer, (int)p->rows, (int)p->heads, (int)p->kv_heads,            \
      (int)p->head_dim, (int)p->parts, (int)p->table, call.rows,               \
      (int)p->window, bits_of(p->soft_cap), (int)p->chunks,                    \
      call.first_pages != NULL
  switch (p->type) {
  case ELEMENT_F32: cuda_attention_f32(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_BF16: cuda_attention_bf16(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_F16: cuda_attention_f16(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_Q8:
    cuda_attention_q8(p->q, p->cache, p->scales, ARGUMENTS);
    break;
  }
#undef ARGUMENTS
}

static void combine_body(void) {
  const problem *p = call.p;
  cuda_attention_combine(call.partial, call.max_sum,
                         p->has_sinks ? p->sinks : NULL, call.out,
                         (int)p->chunks, (int)p->heads, (int)p->head_dim,
                         (int)p->has_sinks);
}

// --------------------------------------------------------------- tests

// Checks that chunks beyond the last page of a sequence are empty.
static void check_empty_chunks(const problem *p) {
  for (index s = 0; s < p->sequences; ++s) {
    const index seen = p->starts[s] / PAGE + 1 - first_of(p, s) / PAGE;
    const index filled = divide_up(seen, divide_up(seen, p->chunks));
    for (index c = 0; c < p->chunks; ++c)
      for (index head = 0; head < p->heads; ++head) {
        const index at = (s * p->chunks + c) * p->heads + head;
        check_equal("chunk has weight", at, call.max_sum[at * 2 + 1] != 0,
                    c < filled);
        if (c >= filled)
          check_untouched("empty chunk", call.partial, at * p->head_dim,
                          (at + 1) * p->head_dim);
      }
  }
}

static void test_problem(problem p) {
  compute_expected(&p);
  const index rows = p.head_dim <= NARROW ? NARROW_ROWS : WIDE_ROWS;
  const index tiles = divide_up(p.heads / p.kv_heads, rows);
  const index states = p.rows * p.chunks * p.heads;
  call.p = &p;
  call.rows = (int)rows;
  call.positions = padded(&p, p.starts, 1);
  call.pages = padded(&p, p.pages, p.table);
  call.first_pages = p.first_pages ? padded(&p, p.first_pages, 1) : NULL;
  call.partial = allocate_results(states * p.head_dim);
  call.max_sum = allocate_results(states * 2);
  call.out = allocate_results(p.rows * p.heads * p.head_dim);
  launch_grid(p.rows * p.chunks * tiles * p.kv_heads, THREADS, attend_body);
  check_empty_chunks(&p);
  launch_grid(p.rows * p.heads, THREADS, combine_body);
  // What padding gives does not matter.
  for (index i = 0; i < p.sequences * p.heads * p.head_dim; ++i)
    check_near("out", i, call.out[i], p.expected[i],
               p.tolerance[i / p.head_dim]);
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
      test_problem(random_rows(type, (shape){dim, 1, 20, 0}));
      test_problem(random_rows(type, (shape){dim, 1, 600, sharp}));
    }
  return end_tests();
}
