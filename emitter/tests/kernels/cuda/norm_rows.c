// Tests sums of the residual stream and their norms.

#include "check.h"
#include "cuda/norm_rows.c"

static struct {
  float *x, *parts, *gates, *sum;
  void *after_weight, *weight, *bias, *out;
  int rows, width, splits, gated, norm, norm_type, out_type, after, after_type;
  float epsilon, offset, after_epsilon, after_offset, factor;
} call;

static void body(void) {
  cuda_norm_rows(call.x, call.parts, call.gates, call.after_weight, call.weight,
                 call.bias, call.sum, call.out, call.rows, call.width, call.splits,
                 call.gated, call.norm, call.norm_type, call.out_type,
                 bits_of(call.epsilon), bits_of(call.offset), call.after,
                 call.after_type, bits_of(call.after_epsilon),
                 bits_of(call.after_offset), bits_of(call.factor));
}

#define MAX_WIDTH 6000
static double row[MAX_WIDTH];

static double sums[MAX_WIDTH], sizes[MAX_WIDTH];

// Computes a row of the sum, and checks it.
static void check_sum(int r) {
  double squares = 0;
  for (int i = 0; i < call.width; ++i) {
    sums[i] = sizes[i] = 0;
    for (int s = 0; s < call.splits; ++s) {
      const index at = ((index)s * call.rows + r) * call.width + i;
      sums[i] += call.parts[at];
      sizes[i] += fabs(call.parts[at]);
    }
    squares += sums[i] * sums[i];
  }
  const double deviation = sqrt(squares / call.width + call.after_epsilon);
  const double gate = call.gated ? 1 / (1 + exp(-call.gates[r])) : 1;
  for (int i = 0; i < call.width; ++i) {
    const index at = (index)r * call.width + i;
    double by = call.factor * gate;
    if (call.after)
      by *= (call.after_offset + load_element(call.after_weight,
                                              (element_type)call.after_type, i)) /
            deviation;
    row[i] = call.x[at] + by * sums[i];
    if (call.splits)
      check_near("sum", i, call.sum[at], row[i],
                 (fabs(call.x[at]) + fabs(by) * sizes[i]) *
                     (call.after || call.gated ? 0x1p-19 : 0x1p-20));
  }
}

static void check_norm(int r) {
  const int n = call.width, is_layer = call.norm >= NORM_LAYER;
  double mean = 0, squares = 0, most = 0;
  for (int i = 0; i < n; ++i) {
    mean += is_layer ? row[i] / n : 0;
    most = fmax(most, fabs(row[i]));
  }
  for (int i = 0; i < n; ++i)
    squares += (row[i] - mean) * (row[i] - mean);
  const double scale = 1 / sqrt(squares / n + call.epsilon);
  const element_type type = (element_type)call.norm_type;
  for (int i = 0; i < n; ++i) {
    const double w = call.offset + load_element(call.weight, type, i);
    const double b = call.norm == NORM_LAYER ? load_element(call.bias, type, i) : 0;
    const double expected = (row[i] - mean) * scale * w + b;
    const double found =
        load_element(call.out, (element_type)call.out_type, (index)r * n + i);
    // Halves have 8 or 11 bits, and in f16 small numbers have fewer.
    const double step = call.out_type == ELEMENT_F32 ? 0x1p-18 : 0x1p-8;
    check_near("out", i, found, expected,
               fabs(expected) * step + most * scale * fabs(w) * 0x1p-18 + 0x1p-24);
  }
}

static void test(int width, int splits, int norm, int out_type, int after) {
  call.rows = 3;
  call.width = width;
  call.splits = splits;
  call.norm = norm;
  call.norm_type = (int)random_index(0, 2);
  call.out_type = out_type;
  call.after = after;
  call.after_type = (int)random_index(0, 2);
  call.gated = random_u32() & 1;
  call.after_epsilon = 1e-6f;
  call.after_offset = random_u32() & 1 ? 1.0f : 0.0f;
  call.epsilon = 1e-5f;
  call.offset = random_u32() & 1 ? 1.0f : 0.0f;
  call.factor = 0.75f;
  at_case("rows of %d, %d parts, gated %d, norm %d before and %d of type %d, results of "
          "type %d", width, splits, call.gated, after, norm, call.norm_type, out_type);
  const exponents ordinary = {-3, 2};
  const index count = (index)call.rows * width;
  call.x = random_floats(count, ordinary);
  call.parts = random_floats(count * (splits ? splits : 1), ordinary);
  call.gates = random_floats(call.rows, ordinary);
  call.after_weight = random_elements((element_type)call.after_type, width, ordinary);
  call.weight = random_elements((element_type)call.norm_type, width, ordinary);
  call.bias = random_elements((element_type)call.norm_type, width, ordinary);
  call.sum = allocate_results(count);
  call.out = allocate_results(count);
  launch_grid(call.rows, THREADS, body);
  for (int r = 0; r < call.rows; ++r) {
    check_sum(r);
    if (norm != NORM_NONE)
      check_norm(r);
  }
  release_all();
}

int main(void) {
  begin_tests();
  const int widths[] = {4, 64, 1000, 1024, 4096, 5000};
  for (int w = 0; w < 6; ++w)
    for (int norm = 0; norm < 4; ++norm)
      for (int out_type = 0; out_type < 3; ++out_type) {
        test(widths[w], (int)random_index(1, 8), norm, out_type, 0);
        test(widths[w], (int)random_index(1, 8), norm, out_type, 1);
        test(widths[w], 0, norm, out_type, 0);
      }
  return end_tests();
}
