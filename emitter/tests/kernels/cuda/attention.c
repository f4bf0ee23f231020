// Tests attention of one query for each sequence, with all that comes before: norms of
// heads, rotation, and the new key and value, which are written to the cache.

#include "pages_case.h"

#include "cuda/attention_bf16.c"
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

// Sequences of a problem, and those with padding; zeros for any.
typedef struct {
  index sequences, rows;
} counts;

static problem random_rows(element_type type, shape of, counts count) {
  problem p = random_layer(type, &of);
  if (count.sequences)
    p.sequences = count.sequences;
  p.keys_by_position = 1;
  p.causal = 1;
  p.chunks = random_index(0, 9) ? random_index(1, 9) : 40;
  place_rows(&p, of.most_before);
  if (count.rows)
    p.rows = count.rows;
  place_tables(&p);
  fill_input(&p, &of);
  return p;
}

// What a call has besides the cache.
typedef struct {
  problem *p;
  float *q, *k, *v, *cos, *sin;
  void *q_norm, *k_norm;
  int32_t *row_numbers, *pages, *counters;
  // Parts of row_numbers; the last may be NULL.
  int32_t *positions, *slots, *first_pages;
  void *out;
  float *partial;
  element_type out_type;
  index busy, pairs, interleaved, norm, norm_by_head;
  element_type norm_type;
  float epsilon, offset, clip, scale;
} step;

static step call;

// Copies numbers of sequences, with zeros for padding.
static void pad(const problem *p, int32_t *to, const int32_t *numbers, index each) {
  memset(to, 0, (size_t)(p->rows * each * 4));
  memcpy(to, numbers, (size_t)(p->sequences * each * 4));
}

static void place_step(step *c) {
  const problem *p = c->p;
  c->pages = allocate(p->rows * p->table * 4);
  pad(p, c->pages, p->pages, p->table);
  c->row_numbers = allocate(3 * p->rows * 4);
  c->positions = c->row_numbers;
  c->slots = c->row_numbers + p->rows;
  pad(p, c->positions, p->starts, 1);
  if (p->first_pages) {
    c->first_pages = c->row_numbers + 2 * p->rows;
    pad(p, c->first_pages, p->first_pages, 1);
  }
  for (index s = 0; s < p->rows; ++s) {
    const index position = c->positions[s];
    const index before = c->first_pages ? c->first_pages[s] : 0;
    const index page = c->pages[s * p->table + position / PAGE - before];
    c->slots[s] = (int32_t)(page * PAGE + position % PAGE);
  }
}

// Chooses angles of any size, with an amplitude.
static void choose_rotation(step *c) {
  const problem *p = c->p;
  const index kind = random_index(0, 3);
  c->pairs = kind == 0   ? 0
             : kind == 1 ? random_index(1, p->head_dim / 2)
                         : p->head_dim / 2;
  c->interleaved = random_index(0, 1);
  c->cos = allocate(p->rows * c->pairs * 4);
  c->sin = allocate(p->rows * c->pairs * 4);
  for (index i = 0; i < p->rows * c->pairs; ++i) {
    const double angle = (double)random_u32() * 0x1p-20;
    c->cos[i] = (float)(1.1 * cos(angle));
    c->sin[i] = (float)(1.1 * sin(angle));
  }
}

static void choose_norm(step *c) {
  const problem *p = c->p;
  const index by_head = c->norm_by_head = random_index(0, 1);
  c->norm = random_index(0, 2);
  c->norm_type = (element_type)random_index(0, 2);
  c->epsilon = random_index(0, 1) ? 1e-6f : 0.5f;
  c->offset = random_index(0, 1) ? 0.0f : 1.0f;
  c->q_norm = random_elements(c->norm_type,
                              p->head_dim * (by_head ? p->heads : 1), ORDINARY);
  c->k_norm = random_elements(
      c->norm_type, p->head_dim * (by_head ? p->kv_heads : 1), ORDINARY);
}

static step random_step(problem *p, int sharp) {
  const index dim = p->head_dim, states = p->rows * p->chunks * p->heads;
  step c = {.p = p, .busy = random_index(1, 5)};
  c.q = random_floats(p->rows * p->heads * dim, ORDINARY);
  c.k = random_floats(p->rows * p->kv_heads * dim, ORDINARY);
  c.v = random_floats(p->rows * p->kv_heads * dim, ORDINARY);
  place_step(&c);
  choose_rotation(&c);
  choose_norm(&c);
  c.clip = random_index(0, 2) ? 0.0f : 0.75f;
  c.scale = (sharp ? 64.0f : 1.0f) / sqrtf((float)dim);
  const index tiles = divide_up(p->heads / p->kv_heads, ROWS);
  c.counters = allocate(p->rows * p->kv_heads * tiles * 4);
  memset(c.counters, 0, (size_t)(p->rows * p->kv_heads * tiles * 4));
  c.partial = allocate_results(states * (dim + 2));
  c.out_type = (element_type)random_index(0, 2);
  c.out = allocate_results(p->rows * p->heads * dim);
  return c;
}

// ----------------------------------------------------------- reference

// Norms and clips a head, with weights from `first` on if it has a norm.
static void expect_normed(const step *c, const float *x, const void *weights,
                          index first, double *to) {
  const index dim = c->p->head_dim, norm = weights ? c->norm : 0;
  double mean = 0, squares = 0;
  for (index d = 0; d < dim && norm == 2; ++d)
    mean += x[d] / (double)dim;
  for (index d = 0; d < dim; ++d)
    squares += (x[d] - mean) * (x[d] - mean) / (double)dim;
  for (index d = 0; d < dim; ++d) {
    to[d] = x[d];
    if (norm)
      to[d] = (x[d] - mean) / sqrt(squares + c->epsilon) *
              (c->offset + load_element(weights, c->norm_type, first + d));
    if (c->clip != 0)
      to[d] = fmin(fmax(to[d], -c->clip), c->clip);
  }
}

static void expect_rotated(const step *c, index s, double *x) {
  for (index i = 0; i < c->pairs; ++i) {
    const index at = c->interleaved ? 2 * i : i;
    const index other = c->interleaved ? at + 1 : i + c->pairs;
    const double cosine = c->cos[s * c->pairs + i];
    const double sine = c->sin[s * c->pairs + i];
    const double a = x[at], b = x[other];
    x[at] = a * cosine - b * sine;
    x[other] = b * cosine + a * sine;
  }
}

static double largest_of(const double *x, index count) {
  double largest = 0;
  for (index i = 0; i < count; ++i)
    largest = fmax(largest, fabs(x[i]));
  return largest;
}

// Checks a new key or value in the cache.
static void check_fresh(const step *c, index half, index s, index kv_head,
                        const double *x) {
  const problem *p = c->p;
  const double head = largest_of(x, p->head_dim) * 0x1p-20;
  for (index d = 0; d < p->head_dim; ++d) {
    double step = 0;
    if (p->type == ELEMENT_BF16)
      step = fabs(x[d]) * 0x1p-8;
    if (p->type == ELEMENT_F16)
      step = fabs(x[d]) * 0x1p-11 + 0x1p-25;
    if (p->type == ELEMENT_Q8)
      step = largest_of(x + d / CACHE_GROUP * CACHE_GROUP, CACHE_GROUP) *
             (0.501 / 127 + 0x1p-11);
    check_near(half ? "new value" : "new key", kv_head * p->head_dim + d,
               element(p, half, s, kv_head, p->starts[s], d), x[d],
               step + head);
  }
}

// Checks what was written to the cache, and gives the reference the queries, in units
// in which weights are powers of two.
static void expect_inputs(const step *c) {
  problem *p = c->p;
  const index dim = p->head_dim;
  double x[256];
  for (index s = 0; s < p->sequences; ++s) {
    for (index h = 0; h < p->heads; ++h) {
      const index at = (s * p->heads + h) * dim;
      expect_normed(c, c->q + at, c->q_norm, c->norm_by_head ? h * dim : 0, x);
      expect_rotated(c, s, x);
      for (index d = 0; d < dim; ++d)
        p->q[at + d] = (float)(x[d] * c->scale / LN_2);
    }
    for (index h = 0; h < p->kv_heads; ++h) {
      const index at = (s * p->kv_heads + h) * dim;
      expect_normed(c, c->k + at, c->k_norm, c->norm_by_head ? h * dim : 0, x);
      expect_rotated(c, s, x);
      check_fresh(c, 0, s, h, x);
      expect_normed(c, c->v + at, NULL, 0, x);
      check_fresh(c, 1, s, h, x);
    }
  }
}

// --------------------------------------------------------------- calls

static void attend_body(void) {
  const step *c = &call;
  const problem *p = c->p;
#define ARGUMENTS(...)                                                         \
  (c->q, c->k, c->v, c->cos, c->sin, c->q_norm, c->k_norm, __VA_ARGS__,        \
   c->counters, c->row_numbers, c->pages, p->has_sinks ? p->sinks : NULL,      \
   c->out, c->partial,                                                         \
   (int)p->layer, (int)p->rows, (int)p->heads, (int)p->kv_heads,               \
   (int)p->head_dim, (int)p->parts, (int)p->table, (int)p->chunks,             \
   (int)c->busy, (int)p->window, bits_of(p->soft_cap),                         \
   c->first_pages != NULL, (int)p->has_sinks, (int)c->pairs,                   \
   (int)c->interleaved, (int)c->norm, (int)c->norm_type,                       \
   (int)c->norm_by_head, bits_of(c->epsilon), bits_of(c->offset),              \
   bits_of(c->clip), bits_of(c->scale), (int)c->out_type)
#define BY_WIDTH(name, ...)                                                    \
  if (p->head_dim <= 64)                                                       \
    cuda_decode_attention_##name##_64 ARGUMENTS(__VA_ARGS__);                  \
  else if (p->head_dim <= 128)                                                 \
    cuda_decode_attention_##name##_128 ARGUMENTS(__VA_ARGS__);                 \
  else                                                                         \
    cuda_decode_attention_##name##_256 ARGUMENTS(__VA_ARGS__)
  switch (p->type) {
  case ELEMENT_F32: BY_WIDTH(f32, p->cache); break;
  case ELEMENT_BF16: BY_WIDTH(bf16, p->cache); break;
  case ELEMENT_F16: BY_WIDTH(f16, p->cache); break;
  case ELEMENT_Q8: BY_WIDTH(q8, p->cache, p->scales); break;
  }
#undef BY_WIDTH
#undef ARGUMENTS
}

// Checks that nothing of the cache but new rows and page 0 was written.
static void check_kept(const problem *p, const void *before) {
  const index size = element_size(p->type);
  const index row = p->head_dim * size, all = cache_count(p) * size;
  const index first = p->parts * p->kv_heads * PAGE * row;
  index changed = 0;
  for (index at = first; at < all; at += row)
    changed += memcmp((const char *)before + at, (const char *)p->cache + at,
                      (size_t)row) != 0;
  check_near("rows that changed", 0, (double)(changed <= 2 * p->sequences * p->kv_heads),
             1, 0);
}

// Returns by how much a result is rounded.
static double rounding(element_type type, double x) {
  return type == ELEMENT_BF16  ? fabs(x) * 0x1p-8
         : type == ELEMENT_F16 ? fabs(x) * 0x1p-11 + 0x1p-25
                               : 0;
}

static void test_problem(problem p, int sharp) {
  for (index s = 0; s < p.sequences; ++s)
    fill_position(&p, s, p.starts[s], 1);
  call = random_step(&p, sharp);
  char name[sizeof current_case];
  memcpy(name, current_case, sizeof name);
  at_case("%s, %lld pairs, interleaved %lld, norm %lld of type %lld by head %lld",
          name, (long long)call.pairs, (long long)call.interleaved,
          (long long)call.norm, (long long)call.norm_type,
          (long long)call.norm_by_head);
  const index tiles = divide_up(p.heads / p.kv_heads, ROWS);
  const index bytes = cache_count(&p) * element_size(p.type);
  void *before = malloc((size_t)bytes);
  memcpy(before, p.cache, (size_t)bytes);
  launch_grid(p.rows * p.chunks * tiles * p.kv_heads, THREADS, attend_body);
  check_kept(&p, before);
  free(before);
  for (index i = 0; i < p.rows * p.kv_heads * tiles; ++i)
    check_equal("counter", i, call.counters[i], 0);
  expect_inputs(&call);
  compute_expected(&p);
  // What padding gives does not matter. Queries have errors of their own.
  for (index i = 0; i < p.sequences * p.heads * p.head_dim; ++i)
    check_near("out", i, load_element(call.out, call.out_type, i), p.expected[i],
               4 * p.tolerance[i / p.head_dim] + rounding(call.out_type, p.expected[i]));
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
      test_problem(random_rows(type, (shape){dim, 1, 20, 0}, (counts){0}), 0);
      test_problem(random_rows(type, (shape){dim, 1, 600, sharp}, (counts){0}), sharp);
    }
  // Around a warp, and around what it is known of which sequences are padding.
  const counts many[] = {{WARP, WARP},           {WARP + 1, WARP + 1},
                         {9, MOST_LIVE},         {WARP + 1, MOST_LIVE},
                         {MOST_LIVE, MOST_LIVE}, {MOST_LIVE, MOST_LIVE + 1}};
  for (int i = 0; i < 6; ++i)
    test_problem(random_rows(ELEMENT_F32, (shape){16, 1, 150, 0}, many[i]), 0);
  return end_tests();
}
