// Tests products of a single row with the experts of a mixture, for weights of every type.

#include "check.h"
#include "activation_case.h"
#include "row_case.h"

#include "cuda/experts_bf16.c"
#include "cuda/experts_e4m3.c"
#include "cuda/experts_f16.c"
#include "cuda/experts_f32.c"
#include "cuda/experts_f4.c"
#include "cuda/experts_g4.c"
#include "cuda/experts_g5.c"
#include "cuda/experts_g6.c"
#include "cuda/experts_g8.c"
#include "cuda/experts_q4.c"
#include "cuda/experts_q8.c"

static struct {
  weight_type type;
  int gated, experts, active, normalized;
  int outputs, rows, up, step, inputs, split; // inputs of one expert
  int norm, bias_type;
  float epsilon, factor;
  gating gating;
  float *x, *norm_weight, *logits, *residual, *out, *shares;
  int32_t *chosen;
  random_weights weights;
  void *biases;
} call;

#define CALLS(name, ...)                                                       \
  if (call.gated)                                                              \
    cuda_experts_gated_##name(                                                 \
        call.x, call.norm_weight, NULL, call.logits, W, call.out, call.chosen, \
        call.shares, call.outputs, call.rows, call.up, call.step,              \
        call.experts, call.active, call.normalized, call.inputs, call.split,   \
        call.norm, ELEMENT_F32, bits_of(call.epsilon), 0, call.bias_type,      \
        (int)call.gating.activation.kind,                                      \
        bits_of(call.gating.activation.steepness), bits_of(call.gating.limit), \
        bits_of(call.gating.up_offset) __VA_ARGS__);                           \
  else                                                                         \
    cuda_experts_add_##name(call.x, call.chosen, call.shares, W,               \
                            call.residual, call.out, call.outputs,             \
                            call.active, call.active * call.inputs,            \
                            call.split, call.bias_type,                        \
                            bits_of(call.factor) __VA_ARGS__);                 \
  break;

static void body(void) {
  switch (call.type) {
#define W call.weights.weights, call.biases
  case WEIGHT_F32: CALLS(f32, )
  case WEIGHT_BF16: CALLS(bf16, )
  case WEIGHT_F16: CALLS(f16, )
#undef W
#define W call.weights.weights, call.weights.scales, call.biases
  case WEIGHT_Q8: CALLS(q8, )
  case WEIGHT_Q4: CALLS(q4, )
#define FORMAT , FORMAT_ARGUMENTS(call.weights.format)
  case WEIGHT_G4: CALLS(g4, FORMAT)
  case WEIGHT_G5: CALLS(g5, FORMAT)
  case WEIGHT_G6: CALLS(g6, FORMAT)
  case WEIGHT_G8: CALLS(g8, FORMAT)
  case WEIGHT_E4M3: CALLS(e4m3, FORMAT)
  case WEIGHT_F4: CALLS(f4, FORMAT)
  }
}

#define TOLERANCE 0x1p-18

// Returns the product of a part of `row` by a row of an expert, with its bias, and adds to
// `size` what its error is relative to.
static double expected_product(int expert, int output, int first, double *size) {
  const index at = (index)expert * call.rows + output;
  double sum = 0;
  for (int k = 0; k < call.inputs; ++k) {
    const double weight = weight_at(&call.weights, at, k), x = row[first + k];
    sum += weight * x;
    *size += fabs(weight * x) + fabs(weight) * roundings[first + k] / TOLERANCE;
  }
  return sum;
}

static double bias(int expert, int output) {
  const index at = (index)expert * call.rows + output;
  return call.bias_type < 0
             ? 0
             : load_element(call.biases, (element_type)call.bias_type, at);
}

static int is_chosen(int expert, int slots) {
  for (int slot = 0; slot < slots; ++slot)
    if (call.chosen[slot] == expert)
      return 1;
  return 0;
}

static void check_choice(void) {
  double total = 0;
  for (int slot = 0; slot < call.active; ++slot) {
    int best = -1;
    for (int e = 0; e < call.experts; ++e)
      if (!is_chosen(e, slot) && (best < 0 || call.logits[e] > call.logits[best]))
        best = e;
    check_equal("expert", slot, (uint32_t)call.chosen[slot], (uint32_t)best);
    total += exp(call.logits[best]);
  }
  for (int e = 0; e < call.experts; ++e)
    total += call.normalized || is_chosen(e, call.active) ? 0 : exp(call.logits[e]);
  for (int slot = 0; slot < call.active; ++slot)
    check_near("share", slot, call.shares[slot],
               exp(call.logits[call.chosen[slot]]) / total, 0x1p-20);
}

static void check_gated(void) {
  double squares = 0;
  for (int i = 0; i < call.inputs; ++i)
    squares += (double)call.x[i] * call.x[i];
  const double scale = 1 / sqrt(squares / call.inputs + call.epsilon);
  for (int i = 0; i < call.inputs; ++i)
    row[i] = call.x[i] * (call.norm ? scale * call.norm_weight[i] : 1);
  find_roundings(call.type, call.inputs);
  for (int slot = 0; slot < call.active; ++slot)
    for (int n = 0; n < call.outputs; ++n) {
      const int e = call.chosen[slot], at = n * call.step, up_at = call.up + at;
      double size = 1, slope;
      const double gate = expected_product(e, at, 0, &size) + bias(e, at);
      const double up = expected_product(e, up_at, 0, &size) + bias(e, up_at);
      const double x = expected_gated(&call.gating, gate, up, &slope);
      check_near("out", slot * call.outputs + n, call.out[slot * call.outputs + n],
                 x * call.shares[slot], slope * size * TOLERANCE);
    }
}

static void check_sum(void) {
  for (int i = 0; i < call.active * call.inputs; ++i)
    row[i] = call.x[i];
  find_roundings(call.type, call.active * call.inputs);
  for (int n = 0; n < call.outputs; ++n) {
    double size = 1, sum = 0;
    for (int slot = 0; slot < call.active; ++slot) {
      const int e = call.chosen[slot];
      sum += expected_product(e, n, slot * call.inputs, &size);
      sum += call.shares[slot] * bias(e, n);
    }
    check_near("out", n, call.out[n], call.residual[n] + call.factor * sum,
               size * TOLERANCE);
  }
}

// Makes what the kernel before has written.
static void choose(void) {
  for (int slot = 0; slot < call.active; ++slot) {
    do
      call.chosen[slot] = (int)random_index(0, call.experts - 1);
    while (is_chosen(call.chosen[slot], slot));
    call.shares[slot] = 1.0f / (float)(1 + slot);
  }
}

static void test(weight_type type, int gated, int experts, int active, int inputs) {
  call.type = type;
  call.gated = gated;
  call.experts = experts;
  call.active = active;
  call.inputs = inputs;
  call.normalized = (int)random_index(0, 1);
  call.outputs = (int)random_index(1, 20);
  call.step = gated ? (int)random_index(1, 2) : 1;
  call.up = call.step == 2 ? 1 : call.outputs;
  call.rows = gated ? 2 * call.outputs : call.outputs;
  const int vectors = inputs * (call.gated ? 1 : call.active) / inputs_in_16_bytes(type);
  const int is_sliced = vectors > vectors_of_shared(type);
  call.split = random_split(type, is_sliced);
  call.norm = inputs <= CAPACITY ? (int)random_index(0, 1) : 0;
  call.bias_type = (int)random_index(-1, 2);
  call.gating = random_gating();
  call.epsilon = 1e-5f;
  call.factor = 0.75f;
  at_case("%s of %s, %d of %d experts, %d by %d, split by %d, step %d, norm %d, bias %d, "
          "normalized %d",
          gated ? "gated" : "add", type_name(type), active, experts, call.outputs,
          inputs, call.split, call.step, call.norm, call.bias_type, call.normalized);
  const index rows = (index)experts * call.rows;
  call.x = random_floats(gated ? inputs : active * inputs, ORDINARY);
  call.norm_weight = random_floats(inputs, ORDINARY);
  call.logits = random_floats(experts, (exponents){-2, 2});
  if (experts > 2)
    call.logits[2] = call.logits[0]; // equal ones
  call.residual = random_floats(call.outputs, ORDINARY);
  const random_format format = random_groups(type, inputs);
  call.weights = random_matrix(type, rows, inputs, &format);
  if (call.bias_type >= 0)
    call.biases = random_elements((element_type)call.bias_type, rows, ORDINARY);
  call.chosen = (int32_t *)allocate_results(active);
  call.shares = allocate_results(active);
  call.out = allocate_results(gated ? active * call.outputs : call.outputs);
  if (!gated)
    choose();
  const int units = gated ? active * call.outputs
                          : (int)divide_up(call.outputs, ROWS(type));
  const index all = divide_up(units, WARPS / call.split);
  launch_grid(random_u32() & 1 ? all : random_index(1, all), THREADS, body);
  if (gated) {
    check_choice();
    check_gated();
  } else {
    check_sum();
  }
  release_all();
}

int main(void) {
  begin_tests();
  const int sizes[][2] = {{1, 1}, {4, 2}, {5, 5}, {33, 3}, {128, 8}, {512, 16}};
  const int vectors[] = {1, 3, 24, 33, 96};
  for (int type = 0; type < WEIGHT_TYPES; ++type) {
    const int size = is_grouped((weight_type)type)
                         ? GROUP
                         : inputs_in_16_bytes((weight_type)type);
    for (int s = 0; s < 6; ++s)
      for (int gated = 0; gated < 2; ++gated)
        test((weight_type)type, gated, sizes[s][0], sizes[s][1],
             vectors[random_index(0, 4)] * size);
    // Too long for shared memory.
    test((weight_type)type, 0, 3, 2, CAPACITY);
    test((weight_type)type, 1, 2, 1, CAPACITY + GROUP);
  }
  return end_tests();
}
