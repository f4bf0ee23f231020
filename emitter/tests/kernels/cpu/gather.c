// Tests rows of tables of every type against a plain look-up.

#include "check.h"
#include "cpu/kernels.h"

#define PANEL_ROWS 16
#define GROUP 32

enum { PLAIN, F32, BF16, F16, Q8, Q4, KINDS };

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
  default:
    gather_panels_q4(c->table, c->scale, c->ids, c->count, out, width, begin, end);
  }
}

// Returns element `i` of the table's row `id`.
static float expected(const gather_case *c, index id, index i) {
  if (c->kind == PLAIN)
    return ((const float *)c->table)[id * c->width + i];
  if (c->kind == Q4) {
    const index groups = c->width / GROUP, at = i % GROUP;
    const index group = id / Q4_COLUMNS * groups + i / GROUP;
    const index column = id % Q4_COLUMNS, j = at % 16 / 4, e = at % 4;
    const uint8_t byte =
        ((const uint8_t *)c->table)[((group * 4 + j) * Q4_COLUMNS + column) * 4 + e];
    const int nibble = at < 16 ? byte & 15 : byte >> 4;
    const uint16_t scale = ((const uint16_t *)c->scale)[group * Q4_COLUMNS + column];
    return (float)(nibble - 8) * float_from_f16_portable(scale);
  }
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

static void test_kind(int kind) {
  const index steps[] = {1, 2, 4};
  for (int repeat = 0; repeat < 40; ++repeat) {
    const index table_rows = random_index(1, 70), rows = random_index(1, 9);
    gather_case c = {.kind = kind, .step = kind == PLAIN ? 1 : PICK(steps)};
    c.width = kind == Q4 ? random_index(1, 5) * GROUP : random_index(1, 40) * c.step;
    at_case("kind %d, %lld of %lld rows of %lld", kind, (long long)rows,
            (long long)table_rows, (long long)c.width);
    const index panels = divide_up(table_rows, PANEL_ROWS) * PANEL_ROWS;
    const index columns = divide_up(table_rows, Q4_COLUMNS) * Q4_COLUMNS;
    if (kind == Q4) {
      c.table = random_bytes(columns * c.width / 2, -128, 127);
      c.scale = random_elements(ELEMENT_F16, columns * c.width / GROUP, ORDINARY);
    } else if (kind == Q8) {
      c.table = random_bytes(panels * c.width, -127, 127);
      c.scale = random_floats(table_rows, ORDINARY);
    } else {
      const index all = kind == PLAIN ? table_rows : panels;
      c.table = random_elements(type_of(kind), all * c.width, ORDINARY);
    }
    int32_t *ids = allocate(rows * 4), *count = allocate(4);
    for (index row = 0; row < rows; ++row)
      ids[row] = (int32_t)random_index(0, table_rows - 1);
    *count = (int32_t)random_index(0, rows + 1);
    c.ids = ids, c.count = count;
    const index begin = random_index(0, rows - 1);
    check_case(&c, rows, 0, rows);
    check_case(&c, rows, begin, random_index(begin, rows));
    release_all();
  }
}

int main(void) {
  begin_tests();
  for (int kind = 0; kind < KINDS; ++kind)
    test_kind(kind);
  return end_tests();
}
