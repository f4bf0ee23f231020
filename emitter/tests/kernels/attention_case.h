// Random cases of attention, and their expected results.
//
// All of the cache that no query may attend to is NaN: other layers, and positions
// after the last query of a batch row.
#ifndef TESTS_ATTENTION_CASE_H
#define TESTS_ATTENTION_CASE_H

#include "check.h"

static const char *const type_names[] = {"f32", "bf16", "f16", "q8"};
#define TYPES 4
#define SCALED 32

typedef struct {
  element_type type;
  index layers, layer, batch, tokens, heads, kv_heads, head_dim, capacity;
  index tile, chunk, window, causal;
  float soft_cap;
  int32_t *positions, *lengths;
  float *q;
  void *cache;
  uint16_t *scales; // of Q8
  double *expected, *tolerance; // per element of the result, per row
} problem;

static index rows_of(const problem *p) { return p->tokens * p->heads; }
// Returns the first position that a query attends to.
static index first_of(const problem *p, index b, index token) {
  return p->window ? max_index(p->positions[b] + token + 1 - p->window, 0) : 0;
}

// Returns one past the last position that a query attends to.
static index end_of(const problem *p, index b, index token) {
  return p->positions[b] + (p->causal ? token + 1 : p->lengths[b]);
}

// ----------------------------------------------------------------- input

// Returns the first element of a position; half is 0 for keys and 1 for values.
static index cache_index(const problem *p, index layer, index half, index b,
                         index kv_head, index position) {
  const index slab = (2 * layer + half) * p->batch + b;
  return ((slab * p->kv_heads + kv_head) * p->capacity +
          position % p->capacity) *
         p->head_dim;
}

// Fills a Q8 cache with values of at most two, as caches of other types have.
static void fill_steps(problem *p, index count, exponents keys) {
  int8_t *steps = p->cache;
  p->scales = allocate(count / SCALED * 2);
  for (index i = 0; i < count; ++i)
    steps[i] = (int8_t)random_index(-128, 127);
  for (index i = 0; i < count / SCALED; ++i)
    p->scales[i] = 0x7fff;
  for (index half = 0; half < 2; ++half)
    for (index b = 0; b < p->batch; ++b)
      for (index h = 0; h < p->kv_heads; ++h) {
        exponents range = half ? ORDINARY : keys;
        range.low -= 7;
        range.high -= 7;
        for (index s = first_of(p, b, 0); s < p->positions[b] + p->lengths[b];
             ++s) {
          const index at =
              cache_index(p, p->layer, half, b, h, s) / SCALED;
          for (index i = at; i < at + p->head_dim / SCALED; ++i)
            p->scales[i] = (uint16_t)random_bits(ELEMENT_F16, range);
        }
      }
}

static void fill_cache(problem *p, exponents keys) {
  const index count = cache_index(p, p->layers, 0, 0, 0, 0);
  p->cache = allocate(count * element_size(p->type));
  if (p->type == ELEMENT_Q8) {
    fill_steps(p, count, keys);
    return;
  }
  for (index i = 0; i < count; ++i)
    store_bits(p->cache, p->type, i,
               p->type == ELEMENT_F32 ? bits_of(NAN) : 0x7fff);
  for (index half = 0; half < 2; ++half)
    for (index b = 0; b < p->batch; ++b)
      for (index h = 0; h < p->kv_heads; ++h)
        for (index s = first_of(p, b, 0); s < p->positions[b] + p->lengths[b];
             ++s) {
          const index at = cache_index(p, p->layer, half, b, h, s);
          for (index i = at; i < at + p->head_dim; ++i)
            store_bits(p->cache, p->type, i,
                       random_bits(p->type, half ? ORDINARY : keys));
        }
}

// Chooses positions and lengths. Some batch rows are shorter than the call, some
// are empty, and in some only padding queries would be past the end of the cache.
static void place_rows(problem *p, index most_before) {
  index end = 1;
  p->positions = allocate(p->batch * 4);
  p->lengths = allocate(p->batch * 4);
  for (index b = 0; b < p->batch; ++b) {
    const index position =
        random_index(0, 4) ? random_index(0, most_before) : 0;
    const index length =
        random_index(0, 2) ? p->tokens : random_index(0, p->tokens);
    p->positions[b] = (int32_t)position;
    p->lengths[b] = (int32_t)length;
    end = max_index(end, position + length);
  }
  p->capacity = end + (random_index(0, 1) ? random_index(0, 90) : 0);
  // With a window, the cache needs room only for what is attended to.
  if (p->window && random_index(0, 1))
    p->capacity = p->window + p->tokens + random_index(0, 9);
}

// Returns a random case with scores of a few units, or of hundreds with `sharp`:
// then one weight is 1 and most are 0.
static problem random_problem(element_type type, index head_dim, index tokens,
                              index most_before, int sharp) {
  const index groups[] = {1, 2, 3, 4, 5, 7, 8};
  problem p = {.type = type, .head_dim = head_dim, .tokens = tokens};
  const int is_large = tokens * head_dim > 1000; // and so slow
  p.layers = random_index(1, 3);
  p.layer = random_index(0, p.layers - 1);
  p.batch = random_index(1, is_large ? 1 : 3);
  p.kv_heads = random_index(1, is_large ? 2 : 3);
  p.heads = p.kv_heads * PICK(groups);
  p.tile = random_index(0, 1) ? tokens : random_index(1, tokens);
  p.causal = random_index(0, 4) != 0;
  p.window = p.causal && random_index(0, 1) ? random_index(1, 90) : 0;
  // A few units, like the scores, so that it matters, or many, so that it hardly does.
  p.soft_cap = random_index(0, 1) ? 0.0f : random_index(0, 1) ? 1.5f : 50.0f;
  place_rows(&p, most_before);
  p.chunk = random_index(divide_up(p.capacity, 5), p.capacity + 3);
  const int spread = (int)lround(log2((double)head_dim) / 2);
  const int high = (sharp ? 8 : 1) - spread;
  p.q = random_floats(p.batch * rows_of(&p) * head_dim,
                      (exponents){high - 4, high});
  fill_cache(&p, ORDINARY);
  at_case("attention_%s, layer %lld of %lld, %lld x %lld tokens, %lld/%lld "
          "heads of %lld, capacity %lld, tiles of %lld, chunks of %lld, window "
          "%lld, causal %lld, soft cap %g",
          type_names[type], (long long)p.layer, (long long)p.layers,
          (long long)p.batch, (long long)p.tokens, (long long)p.heads,
          (long long)p.kv_heads, (long long)p.head_dim, (long long)p.capacity,
          (long long)p.tile, (long long)p.chunk, (long long)p.window,
          (long long)p.causal, (double)p.soft_cap);
  return p;
}

// Returns a causal case with a single query in every row and no padding.
SHARED problem random_single(element_type type, index head_dim,
                             index most_before, int sharp) {
  problem p;
  do {
    release_all();
    p = random_problem(type, head_dim, 1, most_before, sharp);
    for (index b = 0; b < p.batch; ++b)
      p.causal = p.causal && p.lengths[b] == 1;
  } while (!p.causal);
  return p;
}

// ------------------------------------------------------------- reference

static double *widened(const problem *p, index half, index b, index kv_head,
                      index count) {
  double *x = allocate(count * p->head_dim * 8);
  for (index s = 0; s < count; ++s) {
    const index at = cache_index(p, p->layer, half, b, kv_head, s);
    for (index d = 0; d < p->head_dim; ++d)
      x[s * p->head_dim + d] =
          load_element(p->cache, p->type, at + d) *
          (p->type == ELEMENT_Q8
               ? float_from_f16_portable(p->scales[(at + d) / SCALED])
               : 1.0);
  }
  return x;
}

// Computes one query of one head, which attends to `first` to `count`. Returns the
// largest sum of magnitudes in a score.
static double attend_query(const float *q, const double *keys, const double *values,
                     index first, index count, index dim, double soft_cap,
                     double *weights, double *out) {
  double max = -INFINITY, sum = 0, magnitude = 0;
  for (index s = first; s < count; ++s) {
    double score = 0, size = 0;
    for (index d = 0; d < dim; ++d) {
      const double product = q[d] * keys[s * dim + d];
      score += product;
      size += fabs(product);
    }
    if (soft_cap != 0)
      score = soft_cap * tanh(score / soft_cap);
    weights[s] = score;
    max = fmax(max, score);
    magnitude = fmax(magnitude, size);
  }
  memset(out, 0, (size_t)dim * 8);
  for (index s = first; s < count; ++s) {
    const double weight = exp(weights[s] - max);
    sum += weight;
    for (index d = 0; d < dim; ++d)
      out[d] += weight * values[s * dim + d];
  }
  for (index d = 0; d < dim; ++d)
    out[d] /= sum;
  return magnitude;
}

static void compute_expected_head(problem *p, index b, index head) {
  const index dim = p->head_dim, count = p->positions[b] + p->lengths[b];
  const index kv_head = head / (p->heads / p->kv_heads);
  const int kept = buffer_count;
  const double *keys = widened(p, 0, b, kv_head, count);
  const double *values = widened(p, 1, b, kv_head, count);
  double *weights = allocate(count * 8);
  for (index t = 0; t < p->lengths[b]; ++t) {
    const index row = (b * p->tokens + t) * p->heads + head;
    const double magnitude =
        attend_query(p->q + row * dim, keys, values, first_of(p, b, t),
               end_of(p, b, t), dim, p->soft_cap, weights,
               p->expected + row * dim);
    // Values are below 2. The first term is for sums over positions, the others for
    // scores, whose absolute errors are relative errors of the weights.
    p->tolerance[row] =
        0x1p-18 + 0x1p-22 * magnitude + 0x1p-21 * p->soft_cap;
  }
  release_from(kept);
}

static void compute_expected(problem *p) {
  const index rows = p->batch * rows_of(p);
  p->expected = allocate(rows * p->head_dim * 8);
  p->tolerance = allocate(rows * 8);
  memset(p->expected, 0, (size_t)(rows * p->head_dim) * 8);
  memset(p->tolerance, 0, (size_t)rows * 8);
  for (index b = 0; b < p->batch; ++b)
    for (index head = 0; head < p->heads; ++head)
      compute_expected_head(p, b, head);
}

static void check_result(const problem *p, const char *what, const float *out) {
  for (index i = 0; i < p->batch * rows_of(p) * p->head_dim; ++i)
    check_near(what, i, out[i], p->expected[i], p->tolerance[i / p->head_dim]);
}

#endif
