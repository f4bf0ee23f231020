// Tests norms of the heads of several rows.

#include "check.h"
#include "cuda/norm_heads.c"

static struct {
  float *x[2], *out[2];
  void *weights[2];
  int rows, heads[2], head_dim, norm, norm_type, by_head;
  float epsilon, offset;
} call;

static void body(void) {
  cuda_norm_heads(call.x[0], call.x[1], call.weights[0], call.weights[1], call.out[0],
                  call.out[1], call.rows, call.heads[0], call.heads[1], call.head_dim,
                  call.norm, call.norm_type, call.by_head, bits_of(call.epsilon),
                  bits_of(call.offset));
}

static void check_head(int half, int number) {
  const int dim = call.head_dim, first = number % call.heads[half] * dim;
  const float *x = call.x[half] + (index)number * dim;
  double mean = 0, squares = 0, most = 0;
  for (int d = 0; d < dim; ++d) {
    mean += call.norm == 2 ? x[d] / (double)dim : 0;
    most = fmax(most, fabs(x[d]));
  }
  for (int d = 0; d < dim; ++d)
    squares += (x[d] - mean) * (x[d] - mean);
  const double scale = 1 / sqrt(squares / dim + call.epsilon);
  for (int d = 0; d < dim; ++d) {
    const double w =
        call.offset + load_element(call.weights[half], (element_type)call.norm_type,
                                   (call.by_head ? first : 0) + d);
    const index at = (index)number * dim + d;
    check_near(half ? "key" : "query", at, call.out[half][at],
               (x[d] - mean) * scale * w, most * scale * fabs(w) * 0x1p-18);
  }
}

static void test(int head_dim) {
  call.head_dim = head_dim;
  call.rows = (int)random_index(1, 9);
  call.heads[0] = (int)random_index(1, 9), call.heads[1] = (int)random_index(1, 4);
  call.norm = (int)random_index(1, 2);
  call.norm_type = (int)random_index(0, 2);
  call.by_head = (int)random_index(0, 1);
  call.epsilon = 1e-5f;
  call.offset = random_u32() & 1 ? 1.0f : 0.0f;
  at_case("%d rows of %d and %d heads of %d, norm %d of type %d, by head %d", call.rows,
          call.heads[0], call.heads[1], head_dim, call.norm, call.norm_type, call.by_head);
  for (int half = 0; half < 2; ++half) {
    const int width = call.heads[half] * head_dim;
    call.x[half] = random_floats(call.rows * width, ORDINARY);
    call.weights[half] = random_elements((element_type)call.norm_type,
                                         call.by_head ? width : head_dim, ORDINARY);
    call.out[half] = allocate_results(call.rows * width);
  }
  launch_grid(divide_up(call.rows * (call.heads[0] + call.heads[1]), WARPS), THREADS,
              body);
  for (int half = 0; half < 2; ++half)
    for (int number = 0; number < call.rows * call.heads[half]; ++number)
      check_head(half, number);
  release_all();
}

int main(void) {
  begin_tests();
  const int dims[] = {8, 16, 64, 80, 96, 128, 136, 192, 256};
  for (int i = 0; i < 9; ++i)
    for (int again = 0; again < 8; ++again)
      test(dims[i]);
  return end_tests();
}
