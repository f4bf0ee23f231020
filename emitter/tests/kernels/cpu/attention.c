// Tests attention over pages: random shapes against a reference, and that a row's
// bits depend on nothing but what it sees.

#include "cpu/kernels.h"
#include "pages_case.h"

// --------------------------------------------------------------- calls

static void call_whole(const problem *p, float *out, index begin, index end) {
#define ARGUMENTS                                                              \
  p->sinks, p->begins, p->starts, p->pages, out, p->layer, p->rows,            \
      p->sequences, p->heads, p->kv_heads, p->head_dim, p->parts, p->table,    \
      p->window, (index)bits_of(p->soft_cap), p->causal, p->has_sinks,         \
      p->items, begin, end
  switch (p->type) {
  case ELEMENT_F32: attention_f32(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_BF16: attention_bf16(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_F16: attention_f16(p->q, p->cache, ARGUMENTS); break;
  case ELEMENT_Q8: attention_q8(p->q, p->cache, p->scales, ARGUMENTS); break;
  }
#undef ARGUMENTS
}

static void call_chunks(const problem *p, float *partial, float *max_sum,
                        index begin, index end) {
#define ARGUMENTS                                                              \
  p->begins, p->starts, p->pages, partial, max_sum, p->layer, p->rows,         \
      p->sequences, p->heads, p->kv_heads, p->head_dim, p->parts, p->table,    \
      p->window, (index)bits_of(p->soft_cap), p->causal, p->chunks, p->items,  \
      begin, end
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

static void call_combine(const problem *p, const float *partial,
                         const float *max_sum, float *out, index begin,
                         index end) {
  attention_combine(partial, max_sum, p->sinks, p->begins, p->starts, out,
                    p->chunks, p->rows, p->sequences, p->heads, p->head_dim,
                    p->window, p->causal, p->has_sinks, begin, end);
}

static index result_count(const problem *p) {
  return p->rows * p->heads * p->head_dim;
}

// Computes all items in one call.
static float *whole_of(const problem *p) {
  float *out = allocate_results(result_count(p));
  call_whole(p, out, 0, p->items);
  return out;
}

// Computes chunks in one call and combines them in several, the last ones first.
static float *combined(const problem *p) {
  const index states = p->rows * p->chunks * p->heads;
  float *partial = allocate_results(states * p->head_dim);
  float *max_sum = allocate_results(states * 2);
  float *out = allocate_results(result_count(p));
  call_chunks(p, partial, max_sum, 0, p->items);
  for (index end = p->rows * p->heads; end > 0;) {
    const index begin = random_index(0, end - 1);
    check_untouched("another call's row", out, begin * p->head_dim,
                    end * p->head_dim);
    call_combine(p, partial, max_sum, out, begin, end);
    end = begin;
  }
  return out;
}

static void check_bits(const char *what, const float *found,
                       const float *expected, index count) {
  for (index i = 0; i < count; ++i) {
    ++checks;
    if (bits_of(found[i]) != bits_of(expected[i]))
      fail(what, i, found[i], expected[i]);
  }
}

// ------------------------------------------------------------- reference

// Checks results, and that those of padding are unwritten.
static void check_result(const problem *p, const char *what, const float *out) {
  const index real = real_count(p) * p->heads * p->head_dim;
  for (index i = 0; i < real; ++i)
    check_near(what, i, out[i], p->expected[i], p->tolerance[i / p->head_dim]);
  check_untouched("padding", out, real, result_count(p));
}

// Computes every item alone, and checks that each result has one item.
static void check_items(const problem *p, const float *expected) {
  const index heads = p->rows * p->heads, dim = p->head_dim;
  int *writers = allocate(heads * (index)sizeof *writers);
  memset(writers, 0, (size_t)heads * sizeof *writers);
  for (index item = 0; item < p->items; ++item) {
    const int kept = buffer_count;
    float *out = allocate_results(heads * dim);
    call_whole(p, out, item, item + 1);
    for (index i = 0; i < heads; ++i) {
      if (bits_of(out[i * dim]) == UNTOUCHED_BITS) {
        check_untouched("part of a head", out, i * dim, (i + 1) * dim);
        continue;
      }
      ++writers[i];
      check_bits("item", out + i * dim, expected + i * dim, dim);
    }
    release_from(kept);
  }
  for (index i = 0; i < heads; ++i)
    check_equal("items that write a head", i, writers[i],
                i < real_count(p) * p->heads);
}

// Divides the work in other ways, and by chunks.
static void check_divisions(problem p, const float *expected) {
  const index items[] = {1, 2, 7, 64};
  for (int i = 0; i < 4; ++i) {
    const int kept = buffer_count;
    p.items = items[i];
    check_bits("whole, other items", whole_of(&p), expected, result_count(&p));
    check_bits("combined", combined(&p), expected, result_count(&p));
    release_from(kept);
  }
}

static void test_problem(problem p) {
  compute_expected(&p);
  const float *out = whole_of(&p);
  check_result(&p, "out", out);
  check_items(&p, out);
  check_divisions(p, out);
  release_all();
}

static const index head_dims[] = {1,  2,  3,  4,   6,   7,   8,   9,   10,
                                  12, 15, 16, 17,  24,  33,  40,  64,  65,
                                  72, 80, 96, 127, 128, 136, 192, 255, 256,
                                  32, 64, 96, 128, 160, 256};
#define HEAD_DIMS (int)(sizeof head_dims / sizeof *head_dims)

static int takes(element_type type, index head_dim) {
  return type != ELEMENT_Q8 || head_dim % CACHE_GROUP == 0;
}

static void test_shapes(void) {
  for (int i = 0; i < HEAD_DIMS; i += ONE_IN)
    for (int t = 0; t < TYPES; ++t) {
      const element_type type = (element_type)t;
      const index dim = head_dims[i];
      if (!takes(type, dim))
        continue;
      const int sharp = random_index(0, 4) == 0;
      test_problem(random_problem(type, (shape){dim, 2, 300, sharp}));
      test_problem(random_problem(
          type, (shape){dim, random_index(4, 70), 100, sharp}));
    }
}

// Tests positions in several chunks.
static void test_long(void) {
  const index dims[] = {6, 32, 64};
  for (int i = 0; i < 3; i += ONE_IN)
    for (int t = 0; t < TYPES; ++t) {
      const element_type type = (element_type)t;
      if (!takes(type, dims[i]))
        continue;
      problem p = random_problem(type, (shape){dims[i], 3, 2600, 0});
      test_problem(p);
      p = random_problem(type, (shape){dims[i], 40, 1100, 0});
      test_problem(p);
    }
}

// ------------------------------------------------------------------ bits

// Computes pieces of one sequence, of `step` rows each, and compares their results.
// In one call, each piece is a sequence.
static void check_pieces(const problem *p, const float *expected, index s,
                         index step, int in_one_call) {
  const index row_size = p->heads * p->head_dim;
  const index end = p->begins[s + 1];
  for (index row = p->begins[s]; row < end;) {
    const int kept = buffer_count;
    const index most = in_one_call ? divide_up(end - row, step) : 1;
    problem piece = *p;
    piece.sequences = most;
    piece.begins = allocate((most + 1) * 4);
    piece.starts = allocate(most * 4);
    piece.pages = allocate(most * p->table * 4);
    piece.q = p->q + row * row_size;
    piece.begins[0] = 0;
    index next = row;
    for (index i = 0; i < most; ++i) {
      piece.starts[i] = p->starts[s] + (int32_t)(next - p->begins[s]);
      next = min_index(next + step, end);
      piece.begins[i + 1] = (int32_t)(next - row);
      memcpy(piece.pages + i * p->table, p->pages + s * p->table,
             (size_t)p->table * 4);
    }
    piece.rows = next - row;
    check_bits("piece", whole_of(&piece), expected + row * row_size,
               piece.rows * row_size);
    check_bits("combined piece", combined(&piece), expected + row * row_size,
               piece.rows * row_size);
    release_from(kept);
    row = next;
  }
}

// Makes some positions NaN, and compares the rows that do not see them.
static void check_poisoned(problem *p, const float *expected, index s) {
  const index begin = p->begins[s], end = p->begins[s + 1];
  const index row_size = p->heads * p->head_dim;
  const index row = random_index(begin, end - 1);
  const index cut = end_of(p, row);
  for (index position = cut; position < end_of(p, end - 1); ++position)
    fill_position(p, s, position, 1);
  check_bits("later positions are NaN", whole_of(p) + begin * row_size,
             expected + begin * row_size, (row + 1 - begin) * row_size);
  for (index position = first_of(p, begin); position < first_of(p, row);
       ++position)
    fill_position(p, s, position, 1);
  check_bits("all other positions are NaN", whole_of(p) + row * row_size,
             expected + row * row_size, row_size);
}

static void test_bits_of(element_type type, shape of) {
  const index steps[] = {1, 7, 32, 512};
  problem p;
  do {
    release_all();
    p = random_problem(type, of);
  } while (!p.causal || real_count(&p) < of.most_rows);
  index s = 0;
  while (p.begins[s + 1] - p.begins[s] < of.most_rows && s + 1 < p.sequences)
    ++s;
  const float *expected = whole_of(&p);
  for (int i = 0; i < 4; ++i) {
    check_pieces(&p, expected, s, steps[i], 0);
    check_pieces(&p, expected, s, steps[i], 1);
  }
  if (p.begins[s + 1] > p.begins[s])
    check_poisoned(&p, expected, s);
  release_all();
}

static void test_bits(void) {
  for (int t = 0; t < TYPES; ++t) {
    const element_type type = (element_type)t;
    const shape shapes[] = {{64, 45, 90, 0},
                            {96, 70, 30, 1},
                            {32, 600, 500, 0},
                            {takes(type, 20) ? 20 : 32, 40, 1010, 0},
                            {takes(type, 6) ? 6 : 256, 30, 200, 0}};
    for (int i = 0; i < 5; i += ONE_IN)
      test_bits_of(type, shapes[i]);
  }
}

// ---------------------------------------------------------------- others

// Tests that a call without items, and one without rows, does nothing.
static void test_no_work(void) {
  problem p = random_problem(ELEMENT_F32, (shape){8, 2, 20, 0});
  call_whole(&p, NULL, 1, 1);
  call_chunks(&p, NULL, NULL, 1, 1);
  call_combine(&p, NULL, NULL, NULL, 1, 1);
  memset(p.begins, 0, (size_t)(p.sequences + 1) * 4);
  call_whole(&p, NULL, 0, p.items);
  call_chunks(&p, NULL, NULL, 0, p.items);
  call_combine(&p, NULL, NULL, NULL, 0, p.rows * p.heads);
  release_all();
}

// Tests that NaN in a query affects its row and no other, whatever its low bits.
static void test_not_finite(void) {
  const index rows[] = {1, 3, 30, 1, 30};
  const uint32_t nans[] = {0x7fc00000, 0x7fc00000, 0x7fc00000, 0x7fc001ff,
                           0xffffffff};
  for (int i = 0; i < 5; ++i) {
    const element_type type = i < 3 ? ELEMENT_BF16 : ELEMENT_F32;
    problem p = random_problem(type, (shape){40, rows[i], 100, 0});
    const index row = random_index(0, p.rows * p.heads - 1);
    p.q[row * p.head_dim + 39] = float_of(nans[i]);
    p.has_sinks = 0;
    compute_expected(&p);
    check_result(&p, "out", whole_of(&p));
    check_result(&p, "combined", combined(&p));
    release_all();
  }
}

int main(void) {
  begin_tests();
  test_shapes();
  test_long();
  test_bits();
  test_no_work();
  test_not_finite();
  return end_tests();
}
