// Tests of products with weights that are floating-point numbers of few bits. The
// reference decodes weights and scales by their definitions. A file for each width
// includes this, after it has defined
//
//   NAME, GATHER                     the kernels of products and, if there is one, of rows
//   ACTIVATION, activation           the type of activations, as an element_type and in C
//   INPUTS                           numbers of inputs are multiples of it
//   CODE_BITS                        bits of a code
//   KINDS                            kinds of codes
//   KIND_OF(p)                       that of a problem, after a comma, if the kernel is
//                                    told
//   STORED_CODE(panel, column, input)  the code of an input, of a panel's column
//   NUMBER_OF(kind, code)            the number of a code

#include "check.h"
#include "cpu/kernels.h"
#include "floats_case.h"

#define PANEL 16
#define UNIT_GROUPS 16
#define IN_E4M3 4
#define JOINED_(x, y) x##y
#define JOINED(x, y) JOINED_(x, y)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

typedef struct {
  parts rows;
  index m, n, k, group, groups, kind;
  index type; // of scales
  uint8_t *w, *w_scale;
  activation *a;
  float *out;
} problem;

static index bytes_of_weights(index k) { return PANEL * k * CODE_BITS / 8; }

static index bytes_of_scales(const problem *p) {
  return p->type == IN_E4M3
             ? divide_up(p->groups, UNIT_GROUPS) * PANEL * (4 + UNIT_GROUPS)
             : p->groups * PANEL * element_size((element_type)p->type);
}

static uint8_t *random_scales(const problem *p, index panels) {
  const index count = panels * bytes_of_scales(p);
  if (p->type != IN_E4M3)
    return random_elements((element_type)p->type,
                           count / element_size((element_type)p->type), ORDINARY);
  uint8_t *scales = random_e4m3(count);
  const index block = PANEL * (4 + UNIT_GROUPS);
  for (index i = 0; i < count; i += block)
    for (index lane = 0; lane < PANEL; ++lane) {
      const uint32_t unit = random_bits(ELEMENT_F32, ORDINARY);
      memcpy(scales + i + 4 * lane, &unit, sizeof unit);
    }
  return scales;
}

static double scale_of(const problem *p, index panel, index group, index lane) {
  const uint8_t *of_panel = p->w_scale + panel * bytes_of_scales(p);
  if (p->type != IN_E4M3)
    return load_element(of_panel, (element_type)p->type, group * PANEL + lane);
  const uint8_t *block =
      of_panel + group / UNIT_GROUPS * PANEL * (4 + UNIT_GROUPS);
  float unit;
  memcpy(&unit, block + 4 * lane, sizeof unit);
  return unit *
         e4m3_number(block[PANEL * (4 + group % UNIT_GROUPS) + lane]);
}

static problem random_problem(parts rows, index n, index k) {
  const index types[] = {ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16, IN_E4M3};
  const index sizes[] = {16, 32, 128, 128 + INPUTS, k};
  const index panels = divide_up(n, PANEL);
  problem p = {.rows = rows, .m = rows.batch * rows.tokens, .n = n, .k = k};
  p.kind = random_index(0, KINDS - 1);
  p.type = PICK(types);
  p.group = min_index(PICK(sizes), k);
  p.groups = divide_up(k, p.group);
  p.w = random_e4m3(panels * bytes_of_weights(k));
  p.w_scale = random_scales(&p, panels);
  p.a = random_elements(ACTIVATION, p.m * k, ORDINARY);
  p.out = allocate_results(p.m * n);
  return p;
}

static void call(const problem *p, index begin, index end) {
  NAME(p->w, p->w_scale, p->a, p->rows.lengths, p->out, p->rows.batch,
       p->rows.tokens, p->n, p->k, p->group, p->type KIND_OF(p), begin, end);
}

// Returns the code of an input of a column.
static uint8_t code_of(const problem *p, index column, index input) {
  const uint8_t *panel = p->w + column / PANEL * bytes_of_weights(p->k);
  return (uint8_t)STORED_CODE(panel, column % PANEL, input);
}

static void check_one(const problem *p, index i, index j) {
  if (is_padding(&p->rows, i)) {
    check_untouched("padding", p->out, i * p->n + j, i * p->n + j + 1);
    return;
  }
  double expected = 0, magnitude = 0;
  for (index at = 0; at < p->k; ++at) {
    const double scale = scale_of(p, j / PANEL, at / p->group, j % PANEL);
    const double number = NUMBER_OF(p->kind, code_of(p, j, at));
    const double a = load_element(p->a, ACTIVATION, i * p->k + at);
    const double product = a * number * scale;
    expected += product;
    magnitude += fabs(product);
  }
  check_near("out", i * p->n + j, p->out[i * p->n + j], expected,
             (magnitude * 0x1p-24 + 0x1p-149) * (double)(p->k + 4));
}

static index random_inputs(index most) {
  return random_index(1, most / INPUTS) * INPUTS;
}

static void test_case(index m, index n, index k) {
  const problem p = random_problem(random_parts(m), n, k);
  const index panels = divide_up(n, PANEL), split = panels / 2;
  at_case(TEXT(NAME) " %lld x %lld x %lld, groups of %lld, scales of type %lld",
          (long long)m, (long long)n, (long long)k, (long long)p.group, (long long)p.type);
  call(&p, split, panels);
  check_columns_untouched(p.out, m, n, 0, split * PANEL);
  call(&p, 0, split);
  for (index i = 0; i < m; ++i)
    for (index j = 0; j < n; ++j)
      check_one(&p, i, j);
  release_all();
}

// Tests that a row's result depends neither on other rows of the call nor on its
// panels.
static void test_division(int single, index m, index n, index k) {
  const problem p = random_problem(whole(m), n, k);
  const index panels = divide_up(n, PANEL);
  float *out = allocate_results(m * n);
  at_case(TEXT(NAME) " %lld x %lld x %lld, divided", (long long)m, (long long)n,
          (long long)k);
  call(&p, 0, panels);
  for (index row = 0; row < m;) {
    const int32_t rows = (int32_t)rows_of_call(single, row, m);
    const index split = random_index(0, panels);
    problem part = p;
    part.rows = (parts){1, rows, (int32_t *)&rows};
    part.a = p.a + row * k;
    part.out = out + row * n;
    call(&part, split, panels);
    call(&part, 0, split);
    row += rows;
  }
  check_same(out, p.out, m * n);
  release_all();
}

static void test_experts(void) {
  const mixture x = random_mixture();
  const index n = random_index(1, 70), k = random_inputs(300);
  const index panels = divide_up(n, PANEL), items = x.segments * panels;
  const index middle = random_index(0, items);
  const problem p = random_problem(whole(x.rows), x.count * panels * PANEL, k);
  float *out = allocate_results(x.rows * n);
  problem part = p;
  part.out = allocate_results(x.rows * n);
  const float *expected = part.out;
  at_case("experts, %lld x %lld x %lld of %lld", (long long)x.rows, (long long)n,
          (long long)k, (long long)x.count);
  for (int second = 0; second < 2; ++second)
    JOINED(NAME, _experts)(p.w, p.w_scale, p.a, x.experts, x.begins, out, n, k,
                           p.group, p.type KIND_OF(&p), second ? 0 : middle,
                           second ? middle : items);
  for (index s = 0; s < x.segments; ++s) {
    const index row = x.begins[s], first = x.experts[s] * panels * PANEL;
    const int32_t rows = x.begins[s + 1] - x.begins[s];
    part.w = p.w + first / PANEL * bytes_of_weights(k);
    part.w_scale = p.w_scale + first / PANEL * bytes_of_scales(&p);
    part.a = p.a + row * k;
    part.out = (float *)expected + row * n;
    part.n = n;
    part.rows = (parts){1, rows, (int32_t *)&rows};
    call(&part, 0, panels);
  }
  check_same(out, expected, x.rows * n);
  release_all();
}

#ifdef GATHER

// Tests that rows of weights are the numbers that products multiply by.
static void test_gather(index n, index k, index rows) {
  const problem p = random_problem(whole(1), n, k);
  int32_t *ids = allocate(rows * 4), *count = allocate(4);
  float *out = allocate_results(rows * k);
  const index middle = random_index(0, rows);
  at_case(TEXT(GATHER) " of %lld x %lld, groups of %lld", (long long)n,
          (long long)k, (long long)p.group);
  *count = (int32_t)random_index(0, rows);
  for (index row = 0; row < rows; ++row)
    ids[row] = (int32_t)random_index(0, n - 1);
  GATHER(p.w, p.w_scale, ids, count, out, k, p.group, p.type KIND_OF(&p), middle,
         rows);
  GATHER(p.w, p.w_scale, ids, count, out, k, p.group, p.type KIND_OF(&p), 0,
         middle);
  for (index row = 0; row < *count; ++row)
    for (index at = 0; at < k; ++at) {
      const double expected =
          NUMBER_OF(p.kind, code_of(&p, ids[row], at)) *
          scale_of(&p, ids[row] / PANEL, at / p.group, ids[row] % PANEL);
      check_near("number", row * k + at, out[row * k + at], expected,
                 fabs(expected) * 0x1p-23);
    }
  check_untouched("padding", out, *count * k, rows * k);
  release_all();
}

static void test_rows(void) {
  for (int i = 0; i < 30; ++i)
    test_gather(random_index(1, 70), random_inputs(600), random_index(1, 9));
}

#endif

static void test_products(void) {
  for (index m = 1; m <= 24; ++m)
    test_case(m, random_index(1, 70), random_inputs(300));
  for (index n = 110; n <= 160; n += 5)
    test_case(1, n, random_inputs(300)); // several panels at once
  test_case(31, 33, 256 + INPUTS);
  test_case(7, 35, 4100);
  test_case(1, 1, INPUTS);
  for (index m = 1; m <= 20; ++m)
    test_division(m % 2, m, random_index(1, 150), random_inputs(300));
  test_division(1, 40, 70, 256 + INPUTS);
  test_division(0, 60, 35, 132);
  test_division(0, 9, 65, 4100);
  for (int i = 0; i < 30; ++i)
    test_experts();
}
