// Random calls on a cache in pages, and the expected results of attention.
//
// Everything in the cache that no row may see is NaN: other layers, positions
// before and after those that rows see, and pages that no sequence has. Entries of
// the page table that no position needs are out of range.
#ifndef TESTS_PAGES_CASE_H
#define TESTS_PAGES_CASE_H

#include "check.h"
#include "kv_cache.h"

static const char *const type_names[] = {"f32", "bf16", "f16", "q8"};
#define TYPES 4
#define CHUNK 1024
#define LN_2 0.69314718055994530942

typedef struct {
  element_type type;
  index layers, layer, sequences, rows, heads, kv_heads, head_dim, parts;
  index page_count, table, window, causal, has_sinks, items, chunks;
  index keys_by_position; // as values are
  float soft_cap;
  int32_t *begins, *starts, *pages;
  int32_t *first_pages; // before each sequence's table, or NULL
  float *q, *sinks;
  void *cache;
  uint16_t *scales;             // of Q8
  double *expected, *tolerance; // per element of the result, per row and head
} problem;

typedef struct {
  index head_dim, most_rows, most_before; // of a sequence
  int sharp; // scores of hundreds, so that one weight is 1 and most are 0
} shape;

SHARED index real_count(const problem *p) { return p->begins[p->sequences]; }

SHARED index sequence_of(const problem *p, index row) {
  index s = 0;
  while (row >= p->begins[s + 1])
    ++s;
  return s;
}

// Returns one past the last position that a row sees.
SHARED index end_of(const problem *p, index row) {
  const index s = sequence_of(p, row);
  const index last = p->causal ? row : p->begins[s + 1] - 1;
  return p->starts[s] + last - p->begins[s] + 1;
}

SHARED index first_of(const problem *p, index row) {
  return p->window ? max_index(end_of(p, row) - p->window, 0) : 0;
}

// ----------------------------------------------------------------- places

// Returns the first element of a kv head's keys (half 0) or values (half 1) in the
// page of a position.
SHARED index half_at(const problem *p, index layer, index half, index s,
                     index kv_head, index position) {
  const index before = p->first_pages ? p->first_pages[s] : 0;
  const index page = p->pages[s * p->table + position / PAGE - before];
  return ((page * p->parts + 2 * layer + half) * p->kv_heads + kv_head) *
         PAGE * p->head_dim;
}

SHARED index element_of(const problem *p, index layer, index half, index s,
                        index kv_head, index position, index d) {
  const index slot = position % PAGE;
  return half_at(p, layer, half, s, kv_head, position) +
         (half || p->keys_by_position ? slot * p->head_dim + d
                                      : d * PAGE + slot);
}

SHARED index scale_of(const problem *p, index layer, index half, index s,
                      index kv_head, index position, index group) {
  const index slot = position % PAGE, groups = p->head_dim / CACHE_GROUP;
  return half_at(p, layer, half, s, kv_head, position) / CACHE_GROUP +
         (half || p->keys_by_position ? slot * groups + group
                                      : group * PAGE + slot);
}

SHARED index cache_count(const problem *p) {
  return p->page_count * p->parts * p->kv_heads * PAGE * p->head_dim;
}

// ----------------------------------------------------------------- input

// Chooses the rows of each sequence: some have one, and some have none.
SHARED void place_sequences(problem *p, const shape *of) {
  p->begins = allocate((p->sequences + 1) * 4);
  p->starts = allocate(p->sequences * 4);
  p->begins[0] = 0;
  index most = 1;
  for (index s = 0; s < p->sequences; ++s) {
    const index kind = random_index(0, 5);
    const index rows = kind == 0   ? 0
                       : kind == 1 ? 1
                       : kind == 2 ? random_index(1, of->most_rows)
                                   : of->most_rows;
    p->begins[s + 1] = p->begins[s] + (int32_t)rows;
    p->starts[s] = (int32_t)(kind == 5 ? 0 : random_index(0, of->most_before));
    most = max_index(most, p->starts[s] + rows);
  }
  p->rows = real_count(p) + (random_index(0, 1) ? random_index(0, 4) : 0);
  p->rows = max_index(p->rows, 1);
  p->table = divide_up(most, PAGE) + random_index(0, 2);
}

// Gives sequences the pages they need in random order, from 1 on.
SHARED void place_pages(problem *p) {
  const index entries = p->sequences * p->table;
  p->page_count = entries + 1;
  p->pages = allocate(entries * 4);
  for (index i = 0; i < entries; ++i)
    p->pages[i] = (int32_t)(i + 1);
  for (index i = entries - 1; i > 0; --i) {
    const index other = random_index(0, i);
    const int32_t page = p->pages[i];
    p->pages[i] = p->pages[other];
    p->pages[other] = page;
  }
  for (index s = 0; s < p->sequences; ++s) {
    const index end = p->starts[s] + p->begins[s + 1] - p->begins[s];
    const index before = p->first_pages ? p->first_pages[s] : 0;
    for (index i = divide_up(end, PAGE) - before; i < p->table; ++i)
      p->pages[s * p->table + i] = INT32_MAX;
  }
}

// Writes a position's keys and values, random or NaN.
SHARED void fill_position(problem *p, index s, index position, int is_nan) {
  for (index half = 0; half < 2; ++half)
    for (index h = 0; h < p->kv_heads; ++h) {
      exponents range = ORDINARY;
      for (index d = 0; d < p->head_dim; ++d) {
        const index at = element_of(p, p->layer, half, s, h, position, d);
        if (p->type == ELEMENT_Q8)
          ((int8_t *)p->cache)[at] = (int8_t)random_index(-128, 127);
        else
          store_bits(p->cache, p->type, at,
                     is_nan ? (p->type == ELEMENT_F32 ? 0x7fc00000u : 0x7fffu)
                            : random_bits(p->type, range));
      }
      // Quantized values are of at most two, as those of other types are.
      range.low -= 7;
      range.high -= 7;
      for (index g = 0; p->type == ELEMENT_Q8 && g < p->head_dim / CACHE_GROUP;
           ++g)
        p->scales[scale_of(p, p->layer, half, s, h, position, g)] =
            (uint16_t)(is_nan ? 0x7fffu : random_bits(ELEMENT_F16, range));
    }
}

SHARED void fill_cache(problem *p) {
  const index count = cache_count(p);
  p->cache = allocate(count * element_size(p->type));
  memset(p->cache, 0x7f, (size_t)(count * element_size(p->type)));
  if (p->type == ELEMENT_F32)
    for (index i = 0; i < count; ++i)
      ((float *)p->cache)[i] = NAN;
  if (p->type == ELEMENT_BF16 || p->type == ELEMENT_F16)
    for (index i = 0; i < count; ++i)
      ((uint16_t *)p->cache)[i] = 0x7fff;
  if (p->type == ELEMENT_Q8) {
    p->scales = allocate(count / CACHE_GROUP * 2);
    for (index i = 0; i < count / CACHE_GROUP; ++i)
      p->scales[i] = 0x7fff;
  }
  for (index s = 0; s < p->sequences; ++s) {
    if (p->begins[s] == p->begins[s + 1])
      continue;
    for (index position = first_of(p, p->begins[s]);
         position < end_of(p, p->begins[s + 1] - 1); ++position)
      fill_position(p, s, position, 0);
  }
}

SHARED void name_case(const problem *p) {
  at_case("%s, layer %lld of %lld, %lld rows of %lld in %lld sequences, "
          "%lld/%lld heads of %lld, window %lld, causal %lld, soft cap %g, "
          "sinks %lld, %lld items, %lld chunks, first start %d",
          type_names[p->type], (long long)p->layer, (long long)p->layers,
          (long long)real_count(p), (long long)p->rows,
          (long long)p->sequences, (long long)p->heads, (long long)p->kv_heads,
          (long long)p->head_dim, (long long)p->window, (long long)p->causal,
          (double)p->soft_cap, (long long)p->has_sinks, (long long)p->items,
          (long long)p->chunks, p->starts[0]);
}

// Chooses everything but positions.
SHARED problem random_layer(element_type type, const shape *of) {
  const index groups[] = {1, 2, 3, 4, 5, 7, 8}, items[] = {1, 3, 16, 64};
  problem p = {.type = type, .head_dim = of->head_dim, .items = PICK(items)};
  const int is_large = of->most_rows * of->head_dim > 1000; // and so slow
  p.layers = random_index(1, 2);
  p.layer = random_index(0, p.layers - 1);
  p.parts = 2 * p.layers;
  p.sequences = random_index(1, is_large ? 2 : 4);
  p.kv_heads = random_index(1, is_large ? 2 : 3);
  p.heads = p.kv_heads * PICK(groups);
  p.causal = random_index(0, 4) != 0;
  p.window = p.causal && random_index(0, 2) == 0 ? random_index(1, 200) : 0;
  // A few units, like the scores, so that it matters, or many.
  p.soft_cap = random_index(0, 1) ? 0.0f : random_index(0, 1) ? 1.5f : 50.0f;
  p.has_sinks = random_index(0, 3) == 0;
  return p;
}

// Fills queries and the cache of a case with positions.
SHARED void fill_input(problem *p, const shape *of) {
  const int spread = (int)lround(log2((double)of->head_dim) / 2);
  const int high = (of->sharp ? 8 : 1) - spread;
  p->q = random_floats(p->rows * p->heads * of->head_dim,
                       (exponents){high - 4, high});
  // As large as the scores.
  p->sinks = random_floats(p->heads, of->sharp ? (exponents){4, 7}
                                               : (exponents){-2, 2});
  fill_cache(p);
  name_case(p);
}

SHARED problem random_problem(element_type type, shape of) {
  problem p = random_layer(type, &of);
  place_sequences(&p, &of);
  place_pages(&p);
  // A window needs few chunks.
  p.chunks = p.window && random_index(0, 1) ? (p.window + CHUNK - 2) / CHUNK + 1
                                            : divide_up(p.table * PAGE, CHUNK);
  fill_input(&p, &of);
  return p;
}

// ------------------------------------------------------------- reference

SHARED double element(const problem *p, index half, index s, index kv_head,
                      index position, index d) {
  const index at = element_of(p, p->layer, half, s, kv_head, position, d);
  const double x = load_element(p->cache, p->type, at);
  if (p->type != ELEMENT_Q8)
    return x;
  return x * float_from_f16_portable(
                 p->scales[scale_of(p, p->layer, half, s, kv_head, position,
                                    d / CACHE_GROUP)]);
}

// Computes one head of a row from scores, which become weights.
SHARED void expect_head(problem *p, index row, index head, double *weights,
                        const double *keys, const double *values) {
  const index first = first_of(p, row), end = end_of(p, row);
  const index dim = p->head_dim, at = row * p->heads + head;
  const float *q = p->q + at * dim;
  double *out = p->expected + at * dim;
  double max = p->has_sinks ? p->sinks[head] : -INFINITY, magnitude = 0;
  for (index s = first; s < end; ++s) {
    double score = 0, size = 0;
    for (index d = 0; d < dim; ++d) {
      const double product = q[d] * keys[s * dim + d] * LN_2;
      score += product;
      size += fabs(product);
    }
    if (p->soft_cap != 0)
      score = p->soft_cap * tanh(score / p->soft_cap);
    weights[s] = score;
    max = fmax(max, score);
    magnitude = fmax(magnitude, size);
  }
  double sum = p->has_sinks ? exp(p->sinks[head] - max) : 0;
  memset(out, 0, (size_t)dim * 8);
  for (index s = first; s < end; ++s) {
    const double weight = exp(weights[s] - max);
    sum += weight;
    for (index d = 0; d < dim; ++d)
      out[d] += weight * values[s * dim + d];
  }
  for (index d = 0; d < dim; ++d)
    out[d] /= sum;
  // Values are below 2. The first term is for sums over positions, the others for
  // scores, whose absolute errors are relative errors of the weights.
  p->tolerance[at] = 0x1p-18 + 0x1p-22 * magnitude + 0x1p-21 * p->soft_cap;
}

SHARED void compute_expected(problem *p) {
  const index heads = p->rows * p->heads, dim = p->head_dim;
  p->expected = allocate(heads * dim * 8);
  p->tolerance = allocate(heads * 8);
  for (index s = 0; s < p->sequences; ++s)
    for (index h = 0; h < p->kv_heads && p->begins[s] < p->begins[s + 1]; ++h) {
      const int kept = buffer_count;
      const index end = end_of(p, p->begins[s + 1] - 1);
      double *halves[2], *weights = allocate(end * 8);
      for (index half = 0; half < 2; ++half) {
        halves[half] = allocate(end * dim * 8);
        for (index i = first_of(p, p->begins[s]) * dim; i < end * dim; ++i)
          halves[half][i] = element(p, half, s, h, i / dim, i % dim);
      }
      const index group = p->heads / p->kv_heads;
      for (index row = p->begins[s]; row < p->begins[s + 1]; ++row)
        for (index head = h * group; head < (h + 1) * group; ++head)
          expect_head(p, row, head, weights, halves[0], halves[1]);
      release_from(kept);
    }
}

#endif
