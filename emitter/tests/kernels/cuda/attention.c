// Tests attention of single queries, in chunks that are merged.

#include "attention_case.h"

#include "cuda/attention_bf16.c"
#include "cuda/attention_combine.c"
#include "cuda/attention_f16.c"
#include "cuda/attention_f32.c"
#include "cuda/attention_q8.c"

static struct {
  const problem *p;
  float *sums, *max_sum, *out;
  int rows, chunks;
} call;

static void attend_body(void) {
  const problem *p = call.p;
#define ARGUMENTS                                                              \
  p->positions, p->lengths, call.sums, call.max_sum, (int)p->layer,            \
      (int)p->batch, 1, (int)p->heads, (int)p->kv_heads, (int)p->head_dim,     \
      (int)p->capacity, call.rows, (int)p->window, bits_of(p->soft_cap), 1,    \
      call.chunks
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
  cuda_attention_combine(call.sums, call.max_sum, call.out, call.chunks,
                         (int)call.p->heads, (int)call.p->head_dim);
}

static void test_problem(problem p) {
  compute_expected(&p);
  const index rows = p.head_dim <= 128 ? 4 : 2;
  const index chunks = random_index(0, 9) ? random_index(1, 4) : MAX_CHUNKS;
  const index tiles = divide_up(p.heads / p.kv_heads, rows);
  const index results = p.batch * chunks * p.heads;
  call.p = &p;
  call.rows = (int)rows;
  call.chunks = (int)chunks;
  call.sums = allocate_results(results * p.head_dim);
  call.max_sum = allocate_results(results * 2);
  call.out = allocate_results(p.batch * p.heads * p.head_dim);
  launch_grid(p.batch * chunks * tiles * p.kv_heads, THREADS, attend_body);
  launch_grid(p.batch * p.heads, THREADS, combine_body);
  check_result(&p, "out", call.out);
  release_all();
}

int main(void) {
  begin_tests();
  const index head_dims[] = {8, 16, 32, 40, 64, 72, 80, 96, 128, 136, 192, 256};
  for (int i = 0; i < 12; ++i)
    for (int type = 0; type < TYPES; ++type) {
      const element_type of = (element_type)type;
      if (of == ELEMENT_Q8 && head_dims[i] % SCALED != 0)
        continue;
      test_problem(random_single(of, head_dims[i], 20, 0));
      test_problem(random_single(of, head_dims[i], 600, random_index(0, 2) == 0));
    }
  return end_tests();
}
