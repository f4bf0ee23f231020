// Tests the routing of random logits.

#include "check.h"
#include "cpu/kernels.h"

typedef struct {
  index batch, tokens, experts, active, normalized;
  int32_t *lengths;
  float *logits;
} problem;

static index rows_of(const problem *p) {
  return p->batch * p->tokens * p->active;
}

static index segments_of(const problem *p) {
  return p->batch * p->tokens == 1 ? p->active : p->experts;
}

// Returns how many logits of the row are larger than one, or equal and before it.
static index rank_of(const float *logits, index experts, index expert) {
  index rank = 0;
  for (index e = 0; e < experts; ++e)
    rank += logits[e] > logits[expert] ||
            (logits[e] == logits[expert] && e < expert);
  return rank;
}

static void check_token(const problem *p, index t, const float *weights,
                        const int32_t *slots, const int32_t *row_tokens,
                        const int32_t *row_experts) {
  const float *logits = p->logits + t * p->experts;
  double all = 0, active = 0;
  for (index e = 0; e < p->experts; ++e) {
    const double weight = exp(logits[e]);
    all += weight;
    active += rank_of(logits, p->experts, e) < p->active ? weight : 0;
  }
  for (index j = 0; j < p->active; ++j) {
    const int32_t slot = slots[t * p->active + j], expert = row_experts[slot];
    check_equal("row's token", t, row_tokens[slot], (double)t);
    check_equal("rank", j, (double)rank_of(logits, p->experts, expert),
                (double)j);
    check_near("weight", j, weights[t * p->active + j],
               exp(logits[expert]) / (p->normalized ? active : all), 0x1p-21);
  }
}

static void test_problem(const problem *p) {
  const index rows = rows_of(p), segments = segments_of(p);
  float *weights = allocate_results(rows);
  int32_t *slots = allocate(rows * 4), *row_tokens = allocate(rows * 4);
  int32_t *row_experts = allocate(rows * 4);
  int32_t *experts = allocate(segments * 4);
  int32_t *begins = allocate((segments + 1) * 4);
  index real = 0, in_segments = 0;
  route(p->logits, p->lengths, weights, slots, row_tokens, row_experts,
        experts, begins, p->batch, p->tokens, p->experts, p->active,
        p->normalized, 0, 1);
  for (index t = 0; t < p->batch * p->tokens; ++t) {
    if (t % p->tokens < p->lengths[t / p->tokens]) {
      check_token(p, t, weights, slots, row_tokens, row_experts);
      real += p->active;
      continue;
    }
    for (index j = t * p->active; j < (t + 1) * p->active; ++j) {
      check_equal("padding's weight", j, weights[j], 0);
      check_equal("padding's row", j, slots[j], 0);
    }
  }
  check_equal("first segment", 0, begins[0], 0);
  for (index s = 0; s < segments; ++s)
    for (index row = begins[s]; row < begins[s + 1]; ++row, ++in_segments)
      check_equal("row's expert", row, row_experts[row], experts[s]);
  check_equal("rows in segments", 0, (double)in_segments, (double)real);
  release_all();
}

static void test_random(index batch, index tokens, int ties) {
  const index experts = random_index(1, 140);
  problem p = {.batch = batch,
               .tokens = tokens,
               .experts = experts,
               .active = random_index(1, min_index(experts, 12)),
               .normalized = random_index(0, 1)};
  at_case("route, %lld x %lld tokens, %lld of %lld experts", (long long)batch,
          (long long)tokens, (long long)p.active, (long long)experts);
  p.lengths = allocate(batch * 4);
  for (index b = 0; b < batch; ++b)
    p.lengths[b] = (int32_t)(tokens == 1 ? 1 : random_index(0, tokens));
  p.logits = random_floats(batch * tokens * experts, (exponents){-3, 2});
  for (index i = 0; ties && i < batch * tokens * experts; ++i)
    p.logits[i] = (float)random_index(0, 3);
  test_problem(&p);
}

// Tests that rows and experts are in range for any logits.
static void test_not_finite(void) {
  const float bad[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 3; ++i) {
    int32_t length = 3, slots[6], row_tokens[6], row_experts[6];
    int32_t experts[5], begins[6];
    float logits[15], weights[6];
    at_case("route, logits of %g", bad[i]);
    for (index j = 0; j < 15; ++j)
      logits[j] = bad[i];
    route(logits, &length, weights, slots, row_tokens, row_experts, experts,
          begins, 1, 3, 5, 2, 1, 0, 1);
    for (index j = 0; j < 6; ++j) {
      check_equal("a row", j, slots[j] >= 0 && slots[j] < 6, 1);
      check_equal("an expert", j, row_experts[j] >= 0 && row_experts[j] < 5, 1);
    }
  }
}

int main(void) {
  begin_tests();
  route(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1, 1, 1, 1, 1, 1, 1);
  for (int i = 0; i < 60; ++i) {
    test_random(1, 1, i % 3 == 0);
    test_random(random_index(1, 3), random_index(1, 40), i % 3 == 0);
  }
  test_not_finite();
  return end_tests();
}
