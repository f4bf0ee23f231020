// Tests rows of tables.

#include "check.h"
#include "cuda/gather.c"

static struct {
  const float *table;
  int32_t *ids;
  float *out;
  int rows, width;
} call;

static void body(void) {
  cuda_gather(call.table, call.ids, call.out, call.rows, call.width);
}

static void test_rows(int count, int width) {
  at_case("%d rows of %d", count, width);
  call.rows = 7, call.width = width;
  call.table = random_floats(call.rows * width, ORDINARY);
  call.ids = allocate(count * 4);
  for (int r = 0; r < count; ++r)
    call.ids[r] = (int32_t)random_index(0, call.rows - 1);
  // Past the table, the last row is taken.
  call.ids[count - 1] = count == 1 ? 0 : call.rows + 5;
  call.out = allocate_results(count * width);
  launch_grid(count, THREADS, body);
  for (int i = 0; i < count * width; ++i) {
    const index id = min_index(call.ids[i / width], call.rows - 1);
    check_equal("element", i, bits_of(call.out[i]),
                bits_of(call.table[id * width + i % width]));
  }
  release_all();
}

int main(void) {
  begin_tests();
  test_rows(1, 4);
  test_rows(5, 96);
  test_rows(2, 4 * 300);
  return end_tests();
}
