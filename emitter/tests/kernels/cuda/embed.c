// Tests rows of embedding tables of every type.

#include "check.h"
#include "matrix_case.h"

#include "cuda/embed.c"

static struct {
  weight_type type;
  int32_t *tokens;
  random_weights table;
  float *out, scale;
  int width, vocab;
} call;

static void body(void) {
  const uint32_t scale = bits_of(call.scale);
#define TABLE call.tokens, call.table.weights
#define ARGUMENTS call.out, call.width, call.vocab, scale
#define SCALED TABLE, call.table.scales, ARGUMENTS
#define GROUPED SCALED, FORMAT_ARGUMENTS(call.table.format)
  switch (call.type) {
  case WEIGHT_F32: cuda_embed_f32(TABLE, ARGUMENTS); break;
  case WEIGHT_BF16: cuda_embed_bf16(TABLE, ARGUMENTS); break;
  case WEIGHT_F16: cuda_embed_f16(TABLE, ARGUMENTS); break;
  case WEIGHT_Q8: cuda_embed_q8(SCALED); break;
  case WEIGHT_Q4: cuda_embed_q4(SCALED); break;
  case WEIGHT_G4: cuda_embed_g4(GROUPED); break;
  case WEIGHT_G5: cuda_embed_g5(GROUPED); break;
  case WEIGHT_G6: cuda_embed_g6(GROUPED); break;
  case WEIGHT_G8: cuda_embed_g8(GROUPED); break;
  case WEIGHT_E4M3: cuda_embed_e4m3(GROUPED); break;
  case WEIGHT_F4: cuda_embed_f4(GROUPED); break;
  }
}

static void test_rows(weight_type type, int rows, int width) {
  at_case("type %d, %d rows of %d", (int)type, rows, width);
  call.type = type, call.width = width, call.vocab = 7, call.scale = 1.5f;
  const random_format format = random_groups(type, width);
  call.table = random_matrix(type, call.vocab, width, &format);
  call.tokens = allocate(rows * 4);
  for (int r = 0; r < rows; ++r)
    call.tokens[r] = (int32_t)random_index(0, call.vocab - 1);
  // Past the table, the last row is taken.
  call.tokens[rows - 1] = rows == 1 ? 0 : call.vocab + 5;
  call.out = allocate_results(rows * width);
  launch_grid(rows, EMBED_THREADS, body);
  for (int i = 0; i < rows * width; ++i) {
    const index token = min_index(call.tokens[i / width], call.vocab - 1);
    const double expected = weight_at(&call.table, token, i % width) * call.scale;
    check_near("element", i, call.out[i], expected, fabs(expected) * 1e-6 + 1e-4);
  }
  release_all();
}

int main(void) {
  begin_tests();
  for (int type = WEIGHT_F32; type < WEIGHT_TYPES; ++type) {
    test_rows((weight_type)type, 1, 32);
    test_rows((weight_type)type, 5, 96);
    test_rows((weight_type)type, 2, 32 * 300);
  }
  return end_tests();
}
