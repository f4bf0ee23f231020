// Tests products of a single row by one to three matrices of every type.

#include "check.h"

#include "cuda/matvec_bf16.c"
#include "cuda/matvec_f16.c"
#include "cuda/matvec_f32.c"
#include "cuda/matvec_q4.c"
#include "cuda/matvec_q8.c"

static const char *const type_names[] = {"f32", "bf16", "f16", "q8", "q4"};

static struct {
  weight_type type;
  int count, inputs, split, outputs[MAX_MATRICES];
  float *x, *out[MAX_MATRICES];
  void *weights[MAX_MATRICES], *scales[MAX_MATRICES];
} call;

#define CALL(name, n)                                                          \
  case n:                                                                      \
    cuda_matvec_##name##_##n(call.x, ARGUMENTS_##n, call.inputs, call.split);  \
    break;
#define CALLS(name)                                                            \
  switch (call.count) {                                                        \
    CALL(name, 1)                                                              \
    CALL(name, 2)                                                              \
    CALL(name, 3)                                                              \
  }                                                                            \
  break;

static void body(void) {
  void **w = call.weights, **s = call.scales;
  float **o = call.out;
  const int *n = call.outputs;
  switch (call.type) {
#define ARGUMENTS_1 w[0], o[0], n[0]
#define ARGUMENTS_2 w[0], w[1], o[0], o[1], n[0], n[1]
#define ARGUMENTS_3 w[0], w[1], w[2], o[0], o[1], o[2], n[0], n[1], n[2]
  case WEIGHT_F32: CALLS(f32)
  case WEIGHT_BF16: CALLS(bf16)
  case WEIGHT_F16: CALLS(f16)
#undef ARGUMENTS_1
#undef ARGUMENTS_2
#undef ARGUMENTS_3
#define ARGUMENTS_1 w[0], s[0], o[0], n[0]
#define ARGUMENTS_2 w[0], s[0], w[1], s[1], o[0], o[1], n[0], n[1]
#define ARGUMENTS_3                                                            \
  w[0], s[0], w[1], s[1], w[2], s[2], o[0], o[1], o[2], n[0], n[1], n[2]
  case WEIGHT_Q8: CALLS(q8)
  case WEIGHT_Q4: CALLS(q4)
  }
}

static element_type element_of(weight_type type) {
  return type == WEIGHT_F32 ? ELEMENT_F32
                            : type == WEIGHT_BF16 ? ELEMENT_BF16 : ELEMENT_F16;
}

static void fill(int m) {
  const index count = (index)call.outputs[m] * call.inputs;
  if (call.type == WEIGHT_Q8) {
    int8_t *steps = call.weights[m] = allocate(count);
    for (index i = 0; i < count; ++i)
      steps[i] = (int8_t)random_index(-128, 127);
    call.scales[m] = random_floats(call.outputs[m], (exponents){-12, -8});
    return;
  }
  if (call.type == WEIGHT_Q4) {
    uint8_t *steps = call.weights[m] = allocate(count / 2);
    uint16_t *scales = call.scales[m] = allocate(count / GROUP * 2);
    for (index i = 0; i < count / 2; ++i)
      steps[i] = (uint8_t)random_index(0, 255);
    for (index i = 0; i < count / GROUP; ++i)
      scales[i] = (uint16_t)random_bits(ELEMENT_F16, (exponents){-8, -4});
    return;
  }
  const element_type type = element_of(call.type);
  call.weights[m] = allocate(count * element_size(type));
  for (index i = 0; i < count; ++i)
    store_bits(call.weights[m], type, i, random_bits(type, ORDINARY));
}

static double weight(int m, index output, index input) {
  const index at = output * call.inputs + input;
  if (call.type == WEIGHT_Q8)
    return (double)((int8_t *)call.weights[m])[at] *
           ((float *)call.scales[m])[output];
  if (call.type == WEIGHT_Q4) {
    const index group = at / GROUP, place = at % GROUP;
    const uint8_t byte = ((uint8_t *)call.weights[m])[group * 16 + place % 16];
    const int step = (place < 16 ? byte & 15 : byte >> 4) - 8;
    return step *
           (double)float_from_f16_portable(((uint16_t *)call.scales[m])[group]);
  }
  return load_element(call.weights[m], element_of(call.type), at);
}

static void test(weight_type type, int count, int inputs) {
  call.type = type;
  call.count = count;
  call.inputs = inputs;
  call.split = 1 << random_index(0, 3);
  int all = 0;
  for (int m = 0; m < count; ++m)
    all += call.outputs[m] = (int)random_index(1, 40);
  at_case("matvec of %s, %d matrices of %d, %d, %d by %d, split by %d",
          type_names[type], count, call.outputs[0], call.outputs[1],
          call.outputs[2], inputs, call.split);
  call.x = random_floats(inputs, ORDINARY);
  for (int m = 0; m < count; ++m) {
    fill(m);
    call.out[m] = allocate_results(call.outputs[m]);
  }
  launch_grid(divide_up(all, THREADS / WARP / call.split * OUTPUTS), THREADS, body);
  for (int m = 0; m < count; ++m)
    for (int n = 0; n < call.outputs[m]; ++n) {
      double expected = 0, size = 0;
      for (int k = 0; k < inputs; ++k) {
        const double product = weight(m, n, k) * call.x[k];
        expected += product;
        size += fabs(product);
      }
      check_near("out", n, call.out[m][n], expected, size * 0x1p-20);
    }
  release_all();
}

int main(void) {
  begin_tests();
  const int vectors[] = {1, 3, 31, 32, 33, 160, 300};
  for (int type = 0; type < 5; ++type)
    for (int count = 1; count <= MAX_MATRICES; ++count)
      for (int v = 0; v < 7; ++v)
        test((weight_type)type, count,
             vectors[v] * inputs_in_16_bytes((weight_type)type));
  return end_tests();
}
