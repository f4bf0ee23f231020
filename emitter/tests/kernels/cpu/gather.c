// Tests rows of tables of every type against a plain look-up.

#include "grouped.h"

#define PANEL_ROWS 16

enum { PLAIN, F32, BF16, F16, Q8, TABLES };

typedef struct {
  int kind;
  index width, step; // of the table's rows, and of the parts of a panel's rows
  const void *table;
  const void *scale;
  const int32_t *ids, *count;
} gather_case;

static element_type type_of(int kind) {
  return kind == BF16  ? ELEMENT_BF16
         : kind == F16 ? ELEMENT_F16
         : kind == Q8  ? ELEMENT_Q8
                       : ELEMENT_F32;
}

static void call(const gather_case *c, float *out, index begin, index end) {
  const index width = c->width, step = c->step;
  switch (c->kind) {
  case PLAIN:
    gather_rows(c->table, c->ids, c->count, out, width, begin, end);
    break;
  case F32:
    gather_panels_f32(c->table, c->ids, c->count, out, width, step, begin, end);
    break;
  case BF16:
    gather_panels_bf16(c->table, c->ids, c->count, out, width, step, begin, end);
    break;
  case F16:
    gather_panels_f16(c->table, c->ids, c->count, out, width, step, begin, end);
    break;
  case Q8:
    gather_panels_q8(c->table, c->scale, c->ids, c->count, out, width, step, begin,
                     end);
    break;
  }
}

// Returns element `i` of the table's row `id`.
static float expected(const gather_case *c, index id, index i) {
  if (c->kind == PLAIN)
    return ((const float *)c->table)[id * c->width + i];
  const index part = i / c->step, parts = c->width / c->step;
  const index at = ((id / PANEL_ROWS * parts + part) * PANEL_ROWS + id % PANEL_ROWS) *
                       c->step +
                   i % c->step;
  const float x = load_element(c->table, type_of(c->kind), at);
  return c->kind == Q8 ? x * ((const float *)c->scale)[id] : x;
}

static void check_case(const gather_case *c, index rows, index begin, index end) {
  float *out = allocate_results(rows * c->width);
  call(c, out, begin, end);
  const index last = min_index(end, *c->count);
  check_untouched("before", out, 0, begin * c->width);
  check_untouched("after", out, max_index(begin, last) * c->width, rows * c->width);
  for (index row = begin; row < last; ++row)
    for (index i = 0; i < c->width; ++i)
      check_equal("out", row * c->width + i, out[row * c->width + i],
                  expected(c, c->ids[row], i));
}

static int32_t *random_ids(index rows, index table_rows) {
  int32_t *ids = allocate(rows * 4);
  for (index row = 0; row < rows; ++row)
    ids[row] = (int32_t)random_index(0, table_rows - 1);
  return ids;
}

static void test_kind(int kind) {
  const index steps[] = {1, 2, 4};
  for (int repeat = 0; repeat < 40; ++repeat) {
    const index table_rows = random_index(1, 70), rows = random_index(1, 9);
    gather_case c = {.kind = kind, .step = kind == PLAIN ? 1 : PICK(steps)};
    c.width = random_index(1, 40) * c.step;
    at_case("kind %d, %lld of %lld rows of %lld", kind, (long long)rows,
            (long long)table_rows, (long long)c.width);
    const index panels = divide_up(table_rows, PANEL_ROWS) * PANEL_ROWS;
    if (kind == Q8) {
      c.table = random_bytes(panels * c.width, -127, 127);
      c.scale = random_floats(table_rows, ORDINARY);
    } else {
      const index all = kind == PLAIN ? table_rows : panels;
      c.table = random_elements(type_of(kind), all * c.width, ORDINARY);
    }
    int32_t *count = allocate(4);
    *count = (int32_t)random_index(0, rows + 1);
    c.ids = random_ids(rows, table_rows), c.count = count;
    const index begin = random_index(0, rows - 1);
    check_case(&c, rows, 0, rows);
    check_case(&c, rows, begin, random_index(begin, rows));
    release_all();
  }
}

// Tests rows of weights in groups.
static void test_groups(int bits, group_form form) {
  const index types[] = {ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16};
  for (int repeat = 0; repeat < 20; ++repeat) {
    grouping by = {.bits = bits, .form = form, .group = GROUP << repeat % 3};
    by.type = (element_type)PICK(types);
    const index rows = random_index(1, 9), table_rows = random_index(1, 70);
    const index width = by.group * random_index(1, 6);
    const index panels = divide_up(table_rows, PANEL);
    at_case("%d bits, form %d, %lld of %lld rows of %lld", bits, form,
            (long long)rows, (long long)table_rows, (long long)width);
    const uint8_t *w = random_codes(&by, RANDOM, panels, width);
    const uint8_t *w_scale = random_scales(&by, RANDOM, panels, width);
    const int32_t *ids = random_ids(rows, table_rows);
    const int32_t count = (int32_t)random_index(0, rows + 1);
    const index begin = random_index(0, rows - 1), last = min_index(rows, count);
    float *out = allocate_results(rows * width);
    gather_groups(w, w_scale, ids, &count, out, width, bits, form, by.group,
                  by.type, begin, rows);
    check_untouched("before", out, 0, begin * width);
    check_untouched("after", out, max_index(begin, last) * width, rows * width);
    for (index row = begin; row < last; ++row)
      for (index i = 0; i < width; ++i) {
        const scale s = scale_of(&by, w_scale, width, ids[row], i);
        const int code = code_of(&by, w, width, ids[row], i);
        check_equal("out", row * width + i, out[row * width + i],
                    (float)(code - s.zero) * s.d + s.m);
      }
    release_all();
  }
}

// Returns whether there is a form of so many bits.
static int has_form(int bits, group_form form) {
  switch (form) {
  case FORM_HALVES:
    return bits == 3 || bits == 6;
  case FORM_HALF_MINIMA:
    return bits == 2;
  case FORM_E2M1:
  case FORM_IQ4:
  case FORM_IQ4_BLOCKS:
  case FORM_E2M1_HALVES:
    return bits == 4;
  default:
    return 1;
  }
}

int main(void) {
  const int widths[] = {2, 3, 4, 5, 6, 8};
  begin_tests();
  for (int kind = 0; kind < TABLES; ++kind)
    test_kind(kind);
  for (int i = 0; i < 6; ++i)
    for (group_form form = 0; form <= FORM_E2M1_HALVES; ++form)
      if (has_form(widths[i], form))
        test_groups(widths[i], form);
  return end_tests();
}
