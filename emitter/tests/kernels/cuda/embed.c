// Tests rows of embedding tables of every type.

#include "check.h"
#include "cuda/embed.c"

static struct {
  weight_type type;
  int32_t *tokens;
  void *table, *scales;
  float *out, scale;
  int width, vocab;
} call;

static void body(void) {
  const uint32_t scale = bits_of(call.scale);
#define ARGUMENTS call.out, call.width, call.vocab, scale
  switch (call.type) {
  case WEIGHT_F32: cuda_embed_f32(call.tokens, call.table, ARGUMENTS); break;
  case WEIGHT_BF16: cuda_embed_bf16(call.tokens, call.table, ARGUMENTS); break;
  case WEIGHT_F16: cuda_embed_f16(call.tokens, call.table, ARGUMENTS); break;
  case WEIGHT_Q8:
    cuda_embed_q8(call.tokens, call.table, call.scales, ARGUMENTS);
    break;
  case WEIGHT_Q4:
    cuda_embed_q4(call.tokens, call.table, call.scales, ARGUMENTS);
    break;
  }
#undef ARGUMENTS
}

static void fill_table(void) {
  const index count = (index)call.vocab * call.width;
  const element_type type = call.type == WEIGHT_F32    ? ELEMENT_F32
                            : call.type == WEIGHT_BF16 ? ELEMENT_BF16
                                                       : ELEMENT_F16;
  if (call.type != WEIGHT_Q8 && call.type != WEIGHT_Q4) {
    call.table = random_elements(type, count, ORDINARY);
    return;
  }
  const index bytes = call.type == WEIGHT_Q8 ? count : count / 2;
  uint8_t *steps = call.table = allocate(bytes);
  for (index i = 0; i < bytes; ++i)
    steps[i] = (uint8_t)random_index(0, 255);
  call.scales = call.type == WEIGHT_Q8
                    ? (void *)random_floats(call.vocab, (exponents){-12, -8})
                    : random_elements(ELEMENT_F16, count / GROUP, (exponents){-8, -4});
}

static float expected(index token, index at) {
  const index i = token * call.width + at, group = i / GROUP;
  switch (call.type) {
  case WEIGHT_F32: return load_element(call.table, ELEMENT_F32, i);
  case WEIGHT_BF16: return load_element(call.table, ELEMENT_BF16, i);
  case WEIGHT_F16: return load_element(call.table, ELEMENT_F16, i);
  case WEIGHT_Q8:
    return ((const int8_t *)call.table)[i] * ((const float *)call.scales)[token];
  case WEIGHT_Q4: {
    const index in_group = i % GROUP;
    const uint8_t byte = ((const uint8_t *)call.table)[group * 16 + in_group % 16];
    const int step = (in_group < 16 ? byte & 15 : byte >> 4) - 8;
    return step * load_element(call.scales, ELEMENT_F16, group);
  }
  }
  return 0.0f;
}

static void test_rows(weight_type type, int rows, int width) {
  at_case("type %d, %d rows of %d", (int)type, rows, width);
  call.type = type, call.width = width, call.vocab = 7, call.scale = 1.5f;
  fill_table();
  call.tokens = allocate(rows * 4);
  for (int r = 0; r < rows; ++r)
    call.tokens[r] = (int32_t)random_index(0, call.vocab - 1);
  // Past the table, the last row is taken.
  call.tokens[rows - 1] = rows == 1 ? 0 : call.vocab + 5;
  call.out = allocate_results(rows * width);
  launch_grid(rows, EMBED_THREADS, body);
  for (int i = 0; i < rows * width; ++i) {
    const index token = min_index(call.tokens[i / width], call.vocab - 1);
    check_near("element", i, call.out[i], expected(token, i % width) * 1.5f, 1e-6);
  }
  release_all();
}

int main(void) {
  begin_tests();
  for (int type = WEIGHT_F32; type <= WEIGHT_Q4; ++type) {
    test_rows((weight_type)type, 1, 32);
    test_rows((weight_type)type, 5, 96);
    test_rows((weight_type)type, 2, 32 * 300);
  }
  return end_tests();
}
