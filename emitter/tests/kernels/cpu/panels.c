// Tests that panels have every element of the rows at its place, and zeros past the
// last row.

#include "check.h"
#include "cpu/kernels.h"

#define PANEL_ROWS 16

typedef void pack(const void *, void *, index, index, index, index);

typedef struct {
  pack *function;
  index bytes; // of an element
} subject;

static const subject SUBJECTS[] = {{panels_f32, 4},
                                   {panels_bf16, 2},
                                   {panels_f16, 2},
                                   {panels_bf16_pairs, 4}};

static uint32_t element_of(const void *from, index bytes, index at) {
  return bytes == 4 ? ((const uint32_t *)from)[at] : ((const uint16_t *)from)[at];
}

static void test_case(const subject *s, index rows, index k) {
  at_case("%lld rows of %lld elements of %lld bytes", (long long)rows, (long long)k,
          (long long)s->bytes);
  const index panels = divide_up(rows, PANEL_ROWS);
  const index count = panels * PANEL_ROWS * k, words = divide_up(count * s->bytes, 4);
  unsigned char *w = allocate((size_t)(rows * k * s->bytes));
  for (index i = 0; i < rows * k * s->bytes; ++i)
    w[i] = (unsigned char)random_index(0, 255);
  float *out = allocate_results(words);
  const index begin = random_index(0, panels - 1), end = random_index(begin, panels);
  s->function(w, out, rows, k, begin, end);
  const index in_panel = PANEL_ROWS * k;
  check_untouched("before", out, 0, begin * in_panel * s->bytes / 4);
  check_untouched("after", out, end * in_panel * s->bytes / 4, words);
  for (index at = begin * in_panel; at < end * in_panel; ++at) {
    const index row = at / in_panel * PANEL_ROWS + at % PANEL_ROWS;
    const index i = at % in_panel / PANEL_ROWS;
    const uint32_t expected = row < rows ? element_of(w, s->bytes, row * k + i) : 0;
    check_equal("out", at, element_of(out, s->bytes, at), expected);
  }
  release_all();
}

int main(void) {
  begin_tests();
  for (int i = 0; i < 4; ++i)
    for (int repeat = 0; repeat < 40; ++repeat) {
      // Whole tiles are 16 elements of 4 bytes or 32 of 2.
      const index k = repeat % 2 ? random_index(1, 100) : 32 * random_index(1, 3);
      test_case(&SUBJECTS[i], random_index(1, 70), k);
    }
  return end_tests();
}
