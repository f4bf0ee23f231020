// Tests copies of several lengths.

#include "check.h"
#include "cuda/copy.c"

static struct {
  const float *from;
  float *to;
  int count;
} call;

static void body(void) { cuda_copy_f32(call.from, call.to, call.count); }

static void test_copy(int count) {
  at_case("copy of %d", count);
  call.from = random_floats(count, ORDINARY);
  call.to = allocate_results(count);
  call.count = count;
  launch_grid(divide_up(count, THREADS), THREADS, body);
  for (int i = 0; i < count; ++i)
    check_equal("element", i, bits_of(call.to[i]), bits_of(call.from[i]));
  release_all();
}

int main(void) {
  begin_tests();
  const int counts[] = {1, 8, 255, 256, 257, 1000};
  for (int i = 0; i < 6; ++i)
    test_copy(counts[i]);
  return end_tests();
}
