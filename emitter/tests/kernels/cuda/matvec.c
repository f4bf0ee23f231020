// Tests products of a single row with what comes before and after them, for weights of
// every type.

#include "check.h"
#include "activation_case.h"
#include "row_case.h"

#include "cuda/matvec_bf16.c"
#include "cuda/matvec_e4m3.c"
#include "cuda/matvec_f16.c"
#include "cuda/matvec_f32.c"
#include "cuda/matvec_f4.c"
#include "cuda/matvec_g4.c"
#include "cuda/matvec_g5.c"
#include "cuda/matvec_g6.c"
#include "cuda/matvec_g8.c"
#include "cuda/matvec_q4.c"
#include "cuda/matvec_q8.c"

typedef enum { NORM_MATVEC, NORM_ACTIVATED, NORM_GATED, MATVEC_ADD } kernel_kind;

static const char *const kernel_names[] = {"norm_matvec", "norm_activated",
                                           "norm_gated", "matvec_add"};

static struct {
  weight_type type;
  kernel_kind kind;
  int count, inputs, split, outputs[MAX_MATRICES], firsts[MAX_MATRICES];
  int norm, norm_type, bias_type;
  float epsilon, offset, factor;
  gating gating;
  float *x, *residual, *out[MAX_MATRICES];
  void *norm_weight, *norm_bias;
  random_format format;
  random_weights matrices[MAX_MATRICES];
  void *biases[MAX_MATRICES];
} call;

#define NORM_ARGUMENTS                                                         \
  call.inputs, call.split, call.norm, call.norm_type, bits_of(call.epsilon),   \
      bits_of(call.offset), call.bias_type
#define ACTIVATION                                                             \
  (int)call.gating.activation.kind, bits_of(call.gating.activation.steepness)
#define CALLS(name, ...)                                                       \
  if (call.kind == NORM_GATED)                                                 \
    cuda_norm_gated_##name(ROW, M(0), M(1), o[0], n[0], f[0], f[1],            \
                           NORM_ARGUMENTS, ACTIVATION,                         \
                           bits_of(call.gating.limit),                         \
                           bits_of(call.gating.up_offset) __VA_ARGS__);        \
  else if (call.kind == NORM_ACTIVATED)                                        \
    cuda_norm_activated_##name(ROW, M(0), o[0], n[0], f[0], NORM_ARGUMENTS,    \
                               ACTIVATION __VA_ARGS__);                        \
  else if (call.kind == MATVEC_ADD)                                            \
    cuda_matvec_add_##name(call.x, M(0), call.residual, o[0], n[0], f[0],      \
                           call.inputs, call.split, call.bias_type,            \
                           bits_of(call.factor) __VA_ARGS__);                  \
  else if (call.count == 1)                                                    \
    cuda_norm_matvec_##name##_1(ROW, M(0), o[0], n[0], f[0],                   \
                                NORM_ARGUMENTS __VA_ARGS__);                   \
  else if (call.count == 2)                                                    \
    cuda_norm_matvec_##name##_2(ROW, M(0), M(1), o[0], o[1], n[0], f[0], n[1], \
                                f[1], NORM_ARGUMENTS __VA_ARGS__);             \
  else                                                                         \
    cuda_norm_matvec_##name##_3(ROW, M(0), M(1), M(2), o[0], o[1], o[2], n[0], \
                                f[0], n[1], f[1], n[2], f[2],                  \
                                NORM_ARGUMENTS __VA_ARGS__);                   \
  break;

static void body(void) {
  const random_weights *w = call.matrices;
  void **b = call.biases;
  float **o = call.out;
  const int *n = call.outputs, *f = call.firsts;
#define ROW call.x, call.norm_weight, call.norm_bias
  switch (call.type) {
#define M(m) w[m].weights, b[m]
  case WEIGHT_F32: CALLS(f32, )
  case WEIGHT_BF16: CALLS(bf16, )
  case WEIGHT_F16: CALLS(f16, )
#undef M
#define M(m) w[m].weights, w[m].scales, b[m]
  case WEIGHT_Q8: CALLS(q8, )
  case WEIGHT_Q4: CALLS(q4, )
#define FORMAT , FORMAT_ARGUMENTS(call.format)
  case WEIGHT_G4: CALLS(g4, FORMAT)
  case WEIGHT_G5: CALLS(g5, FORMAT)
  case WEIGHT_G6: CALLS(g6, FORMAT)
  case WEIGHT_G8: CALLS(g8, FORMAT)
  case WEIGHT_E4M3: CALLS(e4m3, FORMAT)
  case WEIGHT_F4: CALLS(f4, FORMAT)
  }
}

// In place of one input, unless it is zero: inf or NaN.
static float strange;

// Fills a matrix, in a buffer that ends where the matrix ends.
static void fill(int m) {
  if (call.bias_type >= 0)
    call.biases[m] = random_elements((element_type)call.bias_type,
                                     call.firsts[m] + call.outputs[m], ORDINARY);
  call.matrices[m] = random_matrix(call.type, call.firsts[m] + call.outputs[m],
                                   call.inputs, &call.format);
}


#define TOLERANCE 0x1p-19

// Computes the input of the products.
static void normalize(void) {
  const int n = call.inputs;
  double mean = 0, squares = 0;
  for (int i = 0; i < n; ++i)
    mean += call.norm >= NORM_LAYER ? call.x[i] / (double)n : 0;
  for (int i = 0; i < n; ++i)
    squares += (call.x[i] - mean) * (call.x[i] - mean);
  const double scale = 1 / sqrt(squares / n + call.epsilon);
  const element_type type = (element_type)call.norm_type;
  for (int i = 0; i < n; ++i) {
    row[i] = call.x[i];
    if (call.norm)
      row[i] = (call.x[i] - mean) * scale *
               (call.offset + load_element(call.norm_weight, type, i));
    if (call.norm == NORM_LAYER)
      row[i] += load_element(call.norm_bias, type, i);
  }
  find_roundings(call.type, n);
}

// Returns an element of a product, with its bias, and adds to `size` what its error is
// relative to.
static double expected_product(int m, int n, double *size) {
  double sum = 0;
  for (int k = 0; k < call.inputs; ++k) {
    const double weight = weight_at(&call.matrices[m], call.firsts[m] + n, k);
    const double product = weight * row[k];
    sum += product;
    *size += fabs(product) + fabs(weight) * roundings[k] / TOLERANCE;
  }
  return call.bias_type < 0
             ? sum
             : sum + load_element(call.biases[m], (element_type)call.bias_type,
                                  call.firsts[m] + n);
}

static void check_output(int m, int n) {
  double size = 1, x = expected_product(m, n, &size), slope = 1;
  if (call.kind == MATVEC_ADD)
    x = call.residual[n] + call.factor * x;
  if (call.kind == NORM_ACTIVATED)
    x = expected_activation(call.gating.activation, x), slope = 1.2;
  if (call.kind == NORM_GATED)
    x = expected_gated(&call.gating, x, expected_product(1, n, &size), &slope);
  check_near("out", n, call.out[m][n], x, slope * size * TOLERANCE);
}

static void choose(weight_type type, kernel_kind kind, int count, int inputs) {
  call.type = type;
  call.kind = kind;
  call.count = count;
  call.inputs = inputs;
  call.format = random_groups(type, inputs);
  const int is_sliced = inputs > vectors_of_shared(type) * inputs_in_16_bytes(type);
  call.split = random_split(type, is_sliced);
  const int has_norm = kind != MATVEC_ADD && inputs <= CAPACITY;
  call.norm = has_norm ? (int)random_index(0, 3) : NORM_NONE;
  call.norm_type = (int)random_index(0, 2);
  call.bias_type = (int)random_index(-1, 2);
  call.gating = random_gating();
  call.epsilon = 1e-5f;
  call.offset = random_u32() & 1 ? 1.0f : 0.0f;
  call.factor = 0.75f;
}

static void test(weight_type type, kernel_kind kind, int count, int inputs) {
  choose(type, kind, count, inputs);
  const int paired = kind == NORM_GATED;
  int units = 0;
  for (int m = 0; m < MAX_MATRICES; ++m)
    call.outputs[m] = m < count ? (int)random_index(1, 40) : 0;
  for (int m = 0; m < MAX_MATRICES; ++m)
    call.firsts[m] = random_u32() & 1 ? (int)random_index(1, 9) : 0;
  if (paired)
    call.outputs[1] = call.outputs[0];
  for (int m = 0; m < (paired ? 1 : count); ++m)
    units += (int)divide_up(call.outputs[m], paired ? 1 : ROWS(type));
  at_case("%s of %s, %d matrices of %d, %d, %d by %d, split by %d, norm %d of %d, "
          "bias of %d, activation %d, limit %g, form %d of %d in runs of %d",
          kernel_names[kind], type_name(type), count, call.outputs[0],
          call.outputs[1], call.outputs[2], inputs, call.split, call.norm,
          call.norm_type, call.bias_type, (int)call.gating.activation.kind,
          call.gating.limit, call.format.form, call.format.type, call.format.run);
  call.x = random_floats(inputs, ORDINARY);
  if (strange != 0)
    call.x[random_index(0, inputs - 1)] = strange;
  call.norm_weight =
      random_elements((element_type)call.norm_type, inputs, ORDINARY);
  call.norm_bias =
      random_elements((element_type)call.norm_type, inputs, ORDINARY);
  call.residual = random_floats(call.outputs[0], ORDINARY);
  for (int m = 0; m < count; ++m) {
    fill(m);
    call.out[m] = allocate_results(call.outputs[m]);
  }
  // Fewer blocks take several units in turn.
  const index all = divide_up(units, WARPS / call.split);
  launch_grid(random_u32() & 1 ? all : random_index(1, all), THREADS, body);
  normalize();
  for (int m = 0; m < (paired ? 1 : count); ++m)
    for (int n = 0; n < call.outputs[m]; ++n)
      if (strange != 0)
        check_equal("finite", n, isfinite(call.out[m][n]) != 0, 0);
      else
        check_output(m, n);
  release_all();
}

int main(void) {
  begin_tests();
  const int vectors[] = {1, 3, 31, 32, 33, 160, 300};
  for (int type = 0; type < WEIGHT_TYPES; ++type) {
    // Rows of groups have whole ones.
    const int size = is_grouped((weight_type)type)
                         ? GROUP
                         : inputs_in_16_bytes((weight_type)type);
    for (int v = 0; v < 7; ++v) {
      for (int count = 1; count <= MAX_MATRICES; ++count)
        test((weight_type)type, NORM_MATVEC, count, vectors[v] * size);
      for (int again = 0; again < 2; ++again) {
        test((weight_type)type, NORM_ACTIVATED, 1, vectors[v] * size);
        test((weight_type)type, NORM_GATED, 2, vectors[v] * size);
        test((weight_type)type, MATVEC_ADD, 1, vectors[v] * size);
      }
    }
    const float unusual[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int u = 0; u < 4; ++u, strange = 0) {
      strange = unusual[u];
      test((weight_type)type, MATVEC_ADD, 1, vectors[u] * size);
    }
    // As much as shared memory has, a little more, and several times as much.
    const int most = vectors_of_shared((weight_type)type) *
                     inputs_in_16_bytes((weight_type)type) / size * size;
    for (int kind = 0; kind < 2; ++kind) {
      test((weight_type)type, kind ? NORM_MATVEC : MATVEC_ADD, kind ? 3 : 1, CAPACITY + GROUP);
      test((weight_type)type, kind ? NORM_MATVEC : MATVEC_ADD, kind ? 3 : 1, most);
      test((weight_type)type, kind ? NORM_MATVEC : MATVEC_ADD, kind ? 3 : 1, most + size);
      test((weight_type)type, kind ? NORM_MATVEC : MATVEC_ADD, kind ? 3 : 1, most * 9 / 4 / size * size);
    }
  }
  return end_tests();
}
