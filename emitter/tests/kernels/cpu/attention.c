// Tests attention of random shapes, each computed whole and in chunks.

#include "attention_case.h"
#include "cpu/kernels.h"

// Returns an upper bound of the chunks that its queries attend to.
static index chunks_of(const problem *p) {
  const index seen = p->window ? p->window + p->tokens : p->capacity;
  return divide_up(min_index(seen, p->capacity), p->chunk);
}

// --------------------------------------------------------------- calls

static void call_whole(const problem *p, float *out, index begin, index end) {
#define ARGUMENTS                                                              \
  p->positions, p->lengths, out, p->layer, p->batch, p->tokens, p->heads,      \
      p->kv_heads, p->head_dim, p->capacity, p->tile, p->window,               \
      (index)bits_of(p->soft_cap), p->causal, begin, end
  switch (p->type) {
  case ELEMENT_F32: attention_f32(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_BF16: attention_bf16(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_F16: attention_f16(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_Q8: attention_q8(p->q, p->cache, p->scales, ARGUMENTS); break;
  }
#undef ARGUMENTS
}

static void call_chunks(const problem *p, float *out, float *max_sum,
                        index begin, index end) {
#define ARGUMENTS                                                              \
  p->positions, p->lengths, out, max_sum, p->layer, p->batch, p->tokens,       \
      p->heads, p->kv_heads, p->head_dim, p->capacity, p->tile, p->window,     \
      (index)bits_of(p->soft_cap), p->causal, p->chunk, begin, end
  switch (p->type) {
  case ELEMENT_F32: attention_chunks_f32(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_BF16: attention_chunks_bf16(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_F16: attention_chunks_f16(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_Q8:
    attention_chunks_q8(p->q, p->cache, p->scales, ARGUMENTS);
    break;
  }
#undef ARGUMENTS
}

// Checks that nothing has written the results of an item: one tile of queries of
// one kv head. Items are [batch][chunks][tiles][kv_heads].
static void check_item_untouched(const problem *p, const float *out,
                                 const float *max_sum, index chunks,
                                 index item) {
  const index tiles = divide_up(p->tokens, p->tile);
  const index group = p->heads / p->kv_heads, head = item % p->kv_heads * group;
  const index first = item / p->kv_heads % tiles * p->tile;
  const index chunk = item / p->kv_heads / tiles % chunks;
  const index b = item / p->kv_heads / tiles / chunks;
  for (index t = first; t < min_index(first + p->tile, p->tokens); ++t) {
    const index row = ((b * chunks + chunk) * p->tokens + t) * p->heads + head;
    check_untouched("another item's result", out, row * p->head_dim,
                    (row + group) * p->head_dim);
    if (max_sum)
      check_untouched("another item's max and sum", max_sum, row * 2,
                      (row + group) * 2);
  }
}

// Computes all items in several calls, the last ones first.
static void do_items(const problem *p, float *out, float *max_sum,
                     index chunks) {
  const index tiles = divide_up(p->tokens, p->tile);
  for (index end = p->batch * chunks * tiles * p->kv_heads; end > 0;) {
    const index begin = random_index(0, end - 1);
    for (index item = begin; item < end; ++item)
      check_item_untouched(p, out, max_sum, chunks, item);
    if (max_sum)
      call_chunks(p, out, max_sum, begin, end);
    else
      call_whole(p, out, begin, end);
    end = begin;
  }
}

static void test_whole(const problem *p) {
  float *out = allocate_results(p->batch * rows_of(p) * p->head_dim);
  do_items(p, out, NULL, 1);
  check_result(p, "out", out);
}

// Checks that a row has a sum if it attends to a position of the chunk, and that
// the chunk has the weight 0 otherwise.
static void check_sums(const problem *p, const float *max_sum) {
  const index chunks = chunks_of(p), rows = rows_of(p);
  for (index i = 0; i < p->batch * chunks * rows; ++i) {
    const index b = i / rows / chunks, token = i % rows / p->heads;
    // Chunks begin at the first position that the first query of the tile attends to.
    const index tile_begin = token / p->tile * p->tile;
    const index first =
        first_of(p, b, tile_begin) + i / rows % chunks * p->chunk;
    const int sees = token < p->lengths[b] &&
                     first < end_of(p, b, token) &&
                     first + p->chunk > first_of(p, b, token);
    check_equal("has a sum", i, max_sum[i * 2 + 1] != 0, sees);
    if (!sees)
      check_equal("max", i, max_sum[i * 2], -INFINITY);
  }
}

static void test_chunks(const problem *p) {
  const index chunks = chunks_of(p), rows = rows_of(p);
  float *partial =
      allocate_results(p->batch * chunks * rows * p->head_dim);
  float *max_sum = allocate_results(p->batch * chunks * rows * 2);
  float *out = allocate_results(p->batch * rows * p->head_dim);
  do_items(p, partial, max_sum, chunks);
  check_sums(p, max_sum);
  for (index end = p->batch * rows; end > 0;) {
    const index begin = random_index(0, end - 1);
    check_untouched("another call's row", out, begin * p->head_dim,
                    end * p->head_dim);
    attention_combine(partial, max_sum, out, chunks, rows, p->head_dim, begin,
                      end);
    end = begin;
  }
  check_result(p, "combined", out);
}

// ---------------------------------------------------------------- tests

static const index head_dims[] = {1,  2,  3,  7,  8,  9,   15,  16,
                                  17, 24, 33, 40, 64, 65,  72,  80,
                                  127, 128, 129, 136, 192, 255, 256,
                                  32, 96, 160};

static void test_problem(problem p) {
  compute_expected(&p);
  test_whole(&p);
  test_chunks(&p);
  release_all();
}

static void test_shapes(void) {
  for (int i = 0; i < 26; ++i)
    for (int type = 0; type < TYPES; ++type) {
      const element_type of = (element_type)type;
      if (of == ELEMENT_Q8 && head_dims[i] % SCALED != 0)
        continue;
      test_problem(random_problem(of, head_dims[i], random_index(1, 3), 200,
                                  random_index(0, 4) == 0));
      test_problem(random_problem(of, head_dims[i], random_index(4, 40), 60,
                                  random_index(0, 4) == 0));
    }
}

// Tests that a call without items does nothing.
static void test_no_items(void) {
  const problem p = random_problem(ELEMENT_F32, 8, 2, 20, 0);
  call_whole(&p, NULL, 1, 1);
  call_chunks(&p, NULL, NULL, 1, 1);
  attention_combine(NULL, NULL, NULL, 2, 2, 8, 1, 1);
  release_all();
}

// Tests that NaN in a query affects its row and no other.
static void test_not_finite(void) {
  const index tokens[] = {1, 3, 30};
  for (int i = 0; i < 3; ++i) {
    problem p = random_problem(ELEMENT_BF16, 40, tokens[i], 100, 0);
    for (index b = 0; b < p.batch; ++b) {
      const index row = random_index(0, rows_of(&p) - 1);
      p.q[(b * rows_of(&p) + row) * p.head_dim + 39] = NAN;
    }
    test_problem(p);
  }
}

int main(void) {
  begin_tests();
  test_shapes();
  test_no_items();
  test_not_finite();
  return end_tests();
}
