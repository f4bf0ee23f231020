// Tests products of many rows and gated ones, with weights of every type.

#include "check.h"
#include "activation_case.h"
#include "matrix_case.h"

#include "cuda/matmul_bf16.c"
#include "cuda/matmul_e4m3.c"
#include "cuda/matmul_f16.c"
#include "cuda/matmul_f32.c"
#include "cuda/matmul_f4.c"
#include "cuda/matmul_g4.c"
#include "cuda/matmul_g5.c"
#include "cuda/matmul_g6.c"
#include "cuda/matmul_g8.c"
#include "cuda/matmul_q4.c"
#include "cuda/matmul_q8.c"
#include "cuda/matmul_sum.c"

// Shapes that kernels may have, but those above do not.
DEFINE_MATMUL_BF16(odd, 32, 32, 16, 4, 2, 1)
DEFINE_MATMUL_BF16(deep, 32, 96, 64, 2, 2, 2)

static struct {
  int count, m, k, splits, n[MAX_MATRICES];
  int bias_type;
  void *x, *biases[MAX_MATRICES];
  random_format format;
  random_weights matrices[MAX_MATRICES];
  float *out[MAX_MATRICES], *sum[MAX_MATRICES];
  void *gated;
  gating gating;
} call;

#define SIZES call.m, call.k, call.splits, call.bias_type
#define W(i) call.matrices[i].weights
#define S(i) call.matrices[i].scales
#define B(i) call.biases[i]
#define O(i) call.out[i]
#define N(i) call.n[i]
#define GATED                                                                  \
  call.gated, N(0), call.m, call.k, call.bias_type,                            \
      (int)call.gating.activation.kind,                                        \
      bits_of(call.gating.activation.steepness), bits_of(call.gating.limit),   \
      bits_of(call.gating.up_offset)
#define RUN(name, more, one, two, three)                                       \
  static void gate_##name(void) {                                              \
    cuda_matmul_gated_##name(call.x, one, two, GATED more);                    \
  }                                                                            \
  static void run_##name(void) {                                               \
    if (call.count == 1)                                                       \
      cuda_matmul_##name##_1(call.x, one, O(0), N(0), SIZES more);             \
    else if (call.count == 2)                                                  \
      cuda_matmul_##name##_2(call.x, one, two, O(0), O(1), N(0), N(1),         \
                             SIZES more);                                      \
    else                                                                       \
      cuda_matmul_##name##_3(call.x, one, two, three, O(0), O(1), O(2), N(0),  \
                             N(1), N(2), SIZES more);                          \
  }
#define BIASED(i) W(i), B(i)
#define ALL(i) W(i), S(i), B(i)
#define PLAIN(name) RUN(name, , BIASED(0), BIASED(1), BIASED(2))
#define SCALED(name) RUN(name, , ALL(0), ALL(1), ALL(2))
#define FORMAT , FORMAT_ARGUMENTS(call.format)
#define GROUPED(name) RUN(name, FORMAT, ALL(0), ALL(1), ALL(2))
PLAIN(bf16_large)
PLAIN(bf16_medium)
PLAIN(bf16_small)
PLAIN(odd)
PLAIN(deep)
PLAIN(f16_large)
PLAIN(f16_medium)
PLAIN(f16_small)
PLAIN(f32_large)
PLAIN(f32_medium)
SCALED(q8_large)
SCALED(q8_medium)
SCALED(q8_small)
SCALED(q4_large)
SCALED(q4_medium)
SCALED(q4_small)
GROUPED(g4_large)
GROUPED(g4_medium)
GROUPED(g4_small)
GROUPED(g5_large)
GROUPED(g5_medium)
GROUPED(g5_small)
GROUPED(g6_large)
GROUPED(g6_medium)
GROUPED(g6_small)
GROUPED(g8_large)
GROUPED(g8_medium)
GROUPED(g8_small)
GROUPED(e4m3_large)
GROUPED(e4m3_medium)
GROUPED(e4m3_small)
GROUPED(f4_medium)
GROUPED(f4_small)

static int summed; // the matrix whose parts are added

static void run_sum(void) {
  cuda_matmul_sum(call.out[summed], call.sum[summed], call.m * call.n[summed],
                  call.splits);
}

typedef struct {
  const char *name;
  void (*run)(void), (*gate)(void);
  int rows, columns, threads;
  weight_type type;
} kernel;

#define SHAPE(name)                                                            \
  #name, run_##name, gate_##name, stated_##name##_rows,                        \
      stated_##name##_columns, stated_##name##_threads

static const kernel kernels[] = {
    {SHAPE(bf16_large), WEIGHT_BF16}, {SHAPE(bf16_medium), WEIGHT_BF16},
    {SHAPE(bf16_small), WEIGHT_BF16},
    {SHAPE(odd), WEIGHT_BF16},          {SHAPE(deep), WEIGHT_BF16},
    {SHAPE(f16_large), WEIGHT_F16},   {SHAPE(f16_medium), WEIGHT_F16},
    {SHAPE(f16_small), WEIGHT_F16},
    {SHAPE(f32_large), WEIGHT_F32},    {SHAPE(f32_medium), WEIGHT_F32},
    {SHAPE(q8_large), WEIGHT_Q8},     {SHAPE(q8_medium), WEIGHT_Q8},
    {SHAPE(q8_small), WEIGHT_Q8},
    {SHAPE(q4_large), WEIGHT_Q4},     {SHAPE(q4_medium), WEIGHT_Q4},
    {SHAPE(q4_small), WEIGHT_Q4},
    {SHAPE(g4_large), WEIGHT_G4},
    {SHAPE(g4_medium), WEIGHT_G4},
    {SHAPE(g4_small), WEIGHT_G4},
    {SHAPE(g5_large), WEIGHT_G5},
    {SHAPE(g5_medium), WEIGHT_G5},
    {SHAPE(g5_small), WEIGHT_G5},
    {SHAPE(g6_large), WEIGHT_G6},
    {SHAPE(g6_medium), WEIGHT_G6},
    {SHAPE(g6_small), WEIGHT_G6},
    {SHAPE(g8_large), WEIGHT_G8},
    {SHAPE(g8_medium), WEIGHT_G8},
    {SHAPE(g8_small), WEIGHT_G8},
    {SHAPE(e4m3_large), WEIGHT_E4M3},
    {SHAPE(e4m3_medium), WEIGHT_E4M3},
    {SHAPE(e4m3_small), WEIGHT_E4M3},
    {SHAPE(f4_medium), WEIGHT_F4},
    {SHAPE(f4_small), WEIGHT_F4},
};

static element_type type_of_rows(weight_type type) {
  return is_packed(type) ? ELEMENT_BF16 : element_of(type);
}

static void fill(weight_type type, int i) {
  // Nothing reads biases that are not there.
  B(i) = call.bias_type == NO_BIAS
             ? NULL
             : random_elements((element_type)call.bias_type, call.n[i], ORDINARY);
  call.matrices[i] = random_matrix(type, call.n[i], call.k, &call.format);
}

#define MAX_INPUTS 8192
static double weights_of[2][MAX_INPUTS];

// Decodes the weights of an output of matrix i, which all rows multiply.
static void decode(int i, int output, double *decoded) {
  for (int k = 0; k < call.k; ++k)
    decoded[k] = weight_at(&call.matrices[i], output, k);
}

// Returns an element of a product by decoded weights of matrix i, and adds to `size` what
// its error is relative to.
static double expected_product(weight_type type, int i, int row, int output,
                               const double *decoded, double *size) {
  double sum = call.bias_type == NO_BIAS
                   ? 0
                   : load_element(B(i), (element_type)call.bias_type, output);
  *size += fabs(sum);
  for (int k = 0; k < call.k; ++k) {
    const double product =
        decoded[k] *
        load_element(call.x, type_of_rows(type), (index)row * call.k + k);
    sum += product;
    *size += fabs(product);
  }
  return sum;
}

static void check_matrix(weight_type type, int i) {
  for (int output = 0; output < call.n[i]; ++output) {
    decode(i, output, weights_of[0]);
    for (int row = 0; row < call.m; ++row) {
      double size = 0;
      const double expected =
          expected_product(type, i, row, output, weights_of[0], &size);
      const index at = (index)row * call.n[i] + output;
      check_near("out", at, call.sum[i][at], expected, size * 0x1p-20);
      if (call.splits == 1)
        check_equal("only part", at, call.out[i][at], call.sum[i][at]);
    }
  }
}

static void choose_rows(void) {
  const index rows[] = {1, 2, 17, 31, 32, 63, 64, 65, 130};
  call.m = (int)PICK(rows);
}

static void test(const kernel *tested, int count, int k, int splits) {
  const index outputs[] = {8, 16, 56, 64, 72, 120, 136};
  // Only of packed weights, in one part.
  const index odd_outputs[] = {1, 8, 57, 64, 83, 120, 131};
  const int may_be_odd = is_packed(tested->type) && splits == 1;
  choose_rows();
  call.count = count, call.k = k, call.splits = splits;
  call.format = random_groups(tested->type, k);
  for (int i = 0; i < MAX_MATRICES; ++i)
    call.n[i] = i >= count ? 0 : (int)(may_be_odd ? PICK(odd_outputs) : PICK(outputs));
  at_case("%s of %d rows by %d, %d, %d outputs of %d inputs, in %d parts, form %d",
          tested->name, call.m, N(0), N(1), N(2), k, splits, call.format.form);
  call.x = random_elements(type_of_rows(tested->type), (index)call.m * k, ORDINARY);
  call.bias_type = (int)random_index(NO_BIAS, 2);
  index tiles = 0;
  for (int i = 0; i < count; ++i) {
    fill(tested->type, i);
    call.out[i] = allocate_results((index)splits * call.m * N(i));
    call.sum[i] = allocate_results((index)call.m * N(i));
    tiles += divide_up(call.m, tested->rows) * divide_up(N(i), tested->columns);
  }
  launch_grid(tiles * splits, tested->threads, tested->run);
  for (summed = 0; summed < count; ++summed) {
    const index elements = (index)call.m * N(summed);
    if (elements % 4 == 0)
      launch_grid(divide_up(elements / 4, THREADS), THREADS, run_sum);
    else
      memcpy(call.sum[summed], call.out[summed], (size_t)elements * 4);
    check_matrix(tested->type, summed);
  }
  release_all();
}

static void check_gated(weight_type type) {
  const element_type of = type_of_rows(type);
  const double rounding = of == ELEMENT_BF16  ? 0x1p-8
                          : of == ELEMENT_F16 ? 0x1p-11
                                              : 0x1p-24;
  for (int output = 0; output < N(0); ++output) {
    for (int i = 0; i < 2; ++i)
      decode(i, output, weights_of[i]);
    for (int row = 0; row < call.m; ++row) {
      double size = 0, slope = 0;
      const double gate =
          expected_product(type, 0, row, output, weights_of[0], &size);
      const double up = expected_product(type, 1, row, output, weights_of[1], &size);
      const double expected = expected_gated(&call.gating, gate, up, &slope);
      const double error = (slope + 1) * (size + 1) * 0x1p-19;
      const index at = (index)row * N(0) + output;
      check_near("gated", at, load_element(call.gated, of, at), expected,
                 error + fabs(expected) * rounding);
    }
  }
}

static void test_gated(const kernel *tested, int k) {
  const index outputs[] = {8, 16, 24, 32, 56, 64, 72, 120};
  const element_type of = type_of_rows(tested->type);
  choose_rows();
  call.count = 2, call.k = k, N(0) = N(1) = (int)PICK(outputs);
  call.format = random_groups(tested->type, k);
  call.gating = random_gating();
  at_case("%s gated, of %d rows by %d outputs of %d inputs, activation %d, limit %g",
          tested->name, call.m, N(0), k, (int)call.gating.activation.kind,
          call.gating.limit);
  const index count = (index)call.m * N(0), bytes = count * element_size(of);
  call.x = random_elements(of, (index)call.m * k, ORDINARY);
  call.bias_type = (int)random_index(NO_BIAS, 2);
  fill(tested->type, 0);
  fill(tested->type, 1);
  call.gated = memset(allocate(bytes), 0xff, (size_t)bytes); // NaN
  launch_grid(divide_up(call.m, tested->rows) * divide_up(N(0), tested->columns / 2),
              tested->threads, tested->gate);
  check_gated(tested->type);
  release_all();
}

int main(void) {
  begin_tests();
  rounds_lists = 1;
  const index inputs[] = {32, 64, 96, 128, 160, 192, 224};
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i) {
    for (int k = 32; k <= 256; k += 32)
      test(&kernels[i], 1, k, 1);
    for (int splits = 1; splits <= 5; ++splits)
      test(&kernels[i], (int)random_index(1, MAX_MATRICES), (int)PICK(inputs),
           splits);
    for (int count = 2; count <= MAX_MATRICES; ++count)
      test(&kernels[i], count, (int)PICK(inputs), 1);
    for (int k = 32; k <= 256; k += 32)
      test_gated(&kernels[i], k);
  }
  return end_tests();
}
