// Tests that the numbers of a call are copied, and that counters become zero.

#include "check.h"
#include "cuda/stage.c"

static struct {
  int32_t *positions, *slots, *pages, *first_pages;
  int32_t *own_positions, *row_numbers, *own_pages, *counters;
  int rows, entries, sequences, count;
} call;

static void body(void) {
  cuda_stage(call.positions, call.slots, call.pages, call.first_pages,
             call.own_positions, call.row_numbers, call.own_pages, call.counters,
             call.rows, call.entries, call.sequences, call.count);
}

static int32_t *random_numbers(int count) {
  int32_t *numbers = allocate(count * 4);
  for (int i = 0; i < count; ++i)
    numbers[i] = (int32_t)random_u32();
  return numbers;
}

static void check_copy(const char *what, const int32_t *found, const int32_t *expected,
                       int count) {
  for (int i = 0; i < count; ++i)
    check_equal(what, i, found[i], expected[i]);
}

static void test_call(int rows, int entries, int sequences, int count) {
  at_case("%d rows, %d entries, %d sequences", rows, entries, sequences);
  call.rows = rows, call.entries = entries;
  call.sequences = sequences, call.count = count;
  call.positions = random_numbers(rows), call.slots = random_numbers(rows);
  call.pages = random_numbers(entries), call.first_pages = random_numbers(sequences);
  call.own_positions = random_numbers(rows), call.own_pages = random_numbers(entries);
  call.row_numbers = random_numbers(3 * rows), call.counters = random_numbers(count);
  launch_grid(1, THREADS, body);
  check_copy("own position", call.own_positions, call.positions, rows);
  check_copy("position", call.row_numbers, call.positions, rows);
  check_copy("slot", call.row_numbers + rows, call.slots, rows);
  check_copy("first page", call.row_numbers + 2 * rows, call.first_pages, sequences);
  check_copy("page", call.own_pages, call.pages, entries);
  for (int i = 0; i < count; ++i)
    check_equal("counter", i, call.counters[i], 0);
  release_all();
}

int main(void) {
  begin_tests();
  test_call(1, 64, 0, 8);
  test_call(1, 64, 1, 8);
  test_call(8, 8 * 72, 8, 8 * 16);
  test_call(512, 2048, 1, 300);
  return end_tests();
}
