// Tests products of many rows with the experts of a mixture, with weights of every type.

#include "check.h"
#include "activation_case.h"
#include "matrix_case.h"

#include "cuda/matmul_experts_bf16.c"
#include "cuda/matmul_experts_e4m3.c"
#include "cuda/matmul_experts_f16.c"
#include "cuda/matmul_experts_f32.c"
#include "cuda/matmul_experts_f4.c"
#include "cuda/matmul_experts_g4.c"
#include "cuda/matmul_experts_g5.c"
#include "cuda/matmul_experts_g6.c"
#include "cuda/matmul_experts_g8.c"
#include "cuda/matmul_experts_q4.c"
#include "cuda/matmul_experts_q8.c"

enum { MAX_TILES = 40 };

static struct {
  int gated, experts, tokens, rows, n, k;
  int expert_rows, up, step, max_tiles, bias_type;
  int expert_of[256]; // of each sorted row
  int32_t *tiles, *row_tokens;
  void *x, *out, *biases;
  random_weights weights;
  gating gating;
} call;

#define GATED                                                                  \
  call.biases, call.tiles, call.row_tokens, call.out, call.n,                  \
      call.expert_rows, call.up, call.step, call.max_tiles, call.k,            \
      call.bias_type, (int)call.gating.activation.kind,                        \
      bits_of(call.gating.activation.steepness), bits_of(call.gating.limit),   \
      bits_of(call.gating.up_offset)
#define RUN(name, more, ...)                                                   \
  static void run_##name(void) {                                               \
    if (call.gated)                                                            \
      cuda_matmul_experts_gated_##name(call.x, __VA_ARGS__, GATED more);       \
    else                                                                       \
      cuda_matmul_experts_##name(call.x, __VA_ARGS__, call.biases, call.tiles, \
                                 call.out, call.n, call.max_tiles, call.k,     \
                                 call.bias_type more);                         \
  }
#define PLAIN(name) RUN(name, , call.weights.weights)
#define SCALED(name) RUN(name, , call.weights.weights, call.weights.scales)
#define FORMAT , FORMAT_ARGUMENTS(call.weights.format)
#define GROUPED(name) RUN(name, FORMAT, call.weights.weights, call.weights.scales)
PLAIN(bf16_medium)
PLAIN(bf16_small)
PLAIN(f16_medium)
PLAIN(f16_small)
PLAIN(f32_medium)
SCALED(q8_medium)
SCALED(q8_small)
SCALED(q4_medium)
SCALED(q4_small)
GROUPED(g4_medium)
GROUPED(g4_small)
GROUPED(g5_medium)
GROUPED(g5_small)
GROUPED(g6_medium)
GROUPED(g6_small)
GROUPED(g8_medium)
GROUPED(g8_small)
GROUPED(e4m3_medium)
GROUPED(e4m3_small)
GROUPED(f4_medium)
GROUPED(f4_small)

typedef struct {
  const char *name;
  void (*run)(void);
  int rows, columns, threads;
  weight_type type;
} kernel;

#define SHAPE(name)                                                            \
  #name, run_##name, stated_##name##_rows, stated_##name##_columns,            \
      stated_##name##_threads

static const kernel kernels[] = {
    {SHAPE(bf16_medium), WEIGHT_BF16}, {SHAPE(bf16_small), WEIGHT_BF16},
    {SHAPE(f16_medium), WEIGHT_F16},   {SHAPE(f16_small), WEIGHT_F16},
    {SHAPE(f32_medium), WEIGHT_F32},   {SHAPE(q8_medium), WEIGHT_Q8},
    {SHAPE(q8_small), WEIGHT_Q8},      {SHAPE(q4_medium), WEIGHT_Q4},
    {SHAPE(q4_small), WEIGHT_Q4},
    {SHAPE(g4_medium), WEIGHT_G4},     {SHAPE(g4_small), WEIGHT_G4},
    {SHAPE(g5_medium), WEIGHT_G5},     {SHAPE(g5_small), WEIGHT_G5},
    {SHAPE(g6_medium), WEIGHT_G6},     {SHAPE(g6_small), WEIGHT_G6},
    {SHAPE(g8_medium), WEIGHT_G8},     {SHAPE(g8_small), WEIGHT_G8},
    {SHAPE(e4m3_medium), WEIGHT_E4M3}, {SHAPE(e4m3_small), WEIGHT_E4M3},
    {SHAPE(f4_medium), WEIGHT_F4},     {SHAPE(f4_small), WEIGHT_F4},
};

static element_type type_of_rows(weight_type type) {
  return is_packed(type) ? ELEMENT_BF16 : element_of(type);
}

// Divides sorted rows among experts, some of which have none, and into tiles.
static void divide(const kernel *tested) {
  int tile = 0;
  call.rows = 0;
  for (int e = 0; e < call.experts; ++e) {
    const int count = random_u32() & 3 ? (int)random_index(1, 70) : 0;
    const int end = count + call.rows > 256 ? 256 : count + call.rows;
    for (int first = call.rows; first < end; first += tested->rows) {
      const int32_t found[] = {e, first, end};
      memcpy(call.tiles + 3 * tile++, found, sizeof found);
    }
    while (call.rows < end)
      call.expert_of[call.rows++] = e;
  }
  call.max_tiles = tile + (int)random_index(1, 3);
  for (; tile < call.max_tiles; ++tile)
    call.tiles[3 * tile] = -1;
}

// Returns an element of a product with its bias, and adds to `size` what its error is
// relative to.
static double expected_product(weight_type type, int row, int output, double *size) {
  const int from = call.gated ? call.row_tokens[row] : row;
  const index at = (index)call.expert_of[row] * call.expert_rows + output;
  double sum = call.bias_type == NO_BIAS
                   ? 0
                   : load_element(call.biases, (element_type)call.bias_type, at);
  *size += fabs(sum);
  for (int k = 0; k < call.k; ++k) {
    const double product =
        weight_at(&call.weights, at, k) *
        load_element(call.x, type_of_rows(type), (index)from * call.k + k);
    sum += product;
    *size += fabs(product);
  }
  return sum;
}

static void check_output(weight_type type, int row, int output) {
  const index at = (index)row * call.n + output;
  double size = 0, slope = 0;
  const double x = expected_product(type, row, output * call.step, &size);
  if (!call.gated) {
    check_near("out", at, ((float *)call.out)[at], x, size * 0x1p-20);
    return;
  }
  const element_type of = type_of_rows(type);
  const double rounding = of == ELEMENT_BF16  ? 0x1p-8
                          : of == ELEMENT_F16 ? 0x1p-11
                                              : 0x1p-24;
  const double up =
      expected_product(type, row, call.up + output * call.step, &size);
  const double expected = expected_gated(&call.gating, x, up, &slope);
  check_near("gated", at, load_element(call.out, of, at), expected,
             (slope + 1) * (size + 1) * 0x1p-19 + fabs(expected) * rounding);
}

static void test(const kernel *tested, int gated, int k) {
  const index outputs[] = {8, 16, 24, 56, 64, 72, 120};
  const element_type of = type_of_rows(tested->type);
  call.gated = gated;
  call.experts = (int)random_index(1, 6);
  call.tokens = (int)random_index(1, 60);
  call.k = k;
  call.n = (int)PICK(outputs);
  // The rows of a gate and of up follow each other, or take turns.
  call.step = gated ? (int)random_index(1, 2) : 1;
  call.up = call.step == 2 ? 1 : gated ? call.n : 0;
  call.expert_rows = gated ? 2 * call.n : call.n;
  call.bias_type = (int)random_index(NO_BIAS, ELEMENT_F16);
  call.gating = random_gating();
  call.tiles = (int32_t *)allocate_results(3 * MAX_TILES);
  divide(tested);
  at_case("%s of %d rows, %d outputs of %d inputs, gated %d, step %d, biases %d, "
          "%d experts",
          tested->name, call.rows, call.n, k, gated, call.step, call.bias_type,
          call.experts);
  call.row_tokens = (int32_t *)allocate_results(call.rows + 1);
  for (int row = 0; row < call.rows; ++row)
    call.row_tokens[row] = (int32_t)random_index(0, call.tokens - 1);
  const index rows = gated ? call.tokens : call.rows + 1;
  call.x = random_elements(of, rows * k, ORDINARY);
  const random_format format = random_groups(tested->type, k);
  call.weights = random_matrix(tested->type, (index)call.experts * call.expert_rows, k,
                               &format);
  const element_type bias_type =
      call.bias_type == NO_BIAS ? ELEMENT_F32 : (element_type)call.bias_type;
  call.biases =
      random_elements(bias_type, (index)call.experts * call.expert_rows, ORDINARY);
  const index count = (index)(call.rows + 1) * call.n;
  const index bytes = count * (gated ? element_size(of) : 4);
  call.out = memset(allocate(bytes), 0xff, (size_t)bytes); // NaN
  const int columns = tested->columns / (gated ? 2 : 1);
  launch_grid(divide_up(call.n, columns) * call.max_tiles, tested->threads, tested->run);
  for (int row = 0; row < call.rows; ++row)
    for (int output = 0; output < call.n; ++output)
      check_output(tested->type, row, output);
  release_all();
}

int main(void) {
  begin_tests();
  rounds_lists = 1;
  const index inputs[] = {32, 64, 96, 128, 160, 192};
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i)
    for (int gated = 0; gated < 2; ++gated)
      for (int again = 0; again < 4; ++again)
        test(&kernels[i], gated, (int)PICK(inputs));
  return end_tests();
}
