// Tests products of random weights in groups.
#ifndef TESTS_GROUPS_CASE_H
#define TESTS_GROUPS_CASE_H

#include "grouped.h"

typedef void plain_function(GROUPS_OPERANDS, const int32_t *lengths, float *out,
                            index batch, index tokens, index n, index k,
                            GROUPS_SIZES, index terms, index begin,
                            index end);
typedef void experts_function(GROUPS_OPERANDS, const int32_t *experts,
                              const int32_t *begins, float *out, index n,
                              index k, GROUPS_SIZES, index terms, index begin,
                              index end);

// The functions of one form.
typedef struct {
  const char *name;
  int bits;
  group_form form;
  plain_function *plain;
  experts_function *experts;
} form_functions;

#define FORM(name, bits, form)                                                 \
  (&(form_functions){#name, bits, form, matmul_##name, matmul_##name##_experts})

typedef struct {
  const form_functions *functions;
  grouping by;
  parts rows;
  index m, n, k, groups, terms;
  uint8_t *w, *w_scale;
  int8_t *a;
  float *a_scale, *out;
  int16_t *a_sums;
} problem;

// Returns groups of a random size that divides k, and a random type of scales.
static grouping random_grouping(const form_functions *f, index k) {
  const index sizes[] = {32, 64, 128, k};
  const index types[] = {ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16};
  grouping by = {.name = f->name, .bits = f->bits, .form = f->form};
  do {
    by.group = PICK(sizes);
  } while (k % by.group);
  by.type = (element_type)PICK(types);
  return by;
}

static int8_t *random_activations(kind of, index m, index k) {
  if (of != OPPOSED)
    return of == HIGHEST  ? extreme_bytes(m * k, 127, 127)
           : of == LOWEST ? extreme_bytes(m * k, -127, -127)
                          : random_bytes(m * k, -127, 127);
  int8_t *a = allocate(m * k);
  for (index i = 0; i < m * k; ++i)
    a[i] = (i / HALF + i / k) % 2 ? 127 : -127;
  return a;
}

static problem random_problem(const form_functions *f, kind of, parts rows,
                              index n, index k) {
  const index m = rows.batch * rows.tokens, panels = divide_up(n, PANEL);
  const grouping by = random_grouping(f, k);
  problem p = {.functions = f, .by = by, .rows = rows, .m = m, .n = n, .k = k};
  p.groups = k / GROUP;
  p.terms = random_index(1, 2);
  p.w = random_codes(&by, of, panels, k);
  p.w_scale = random_scales(&by, of, panels, k);
  p.a = random_activations(of, m * p.terms, k);
  p.a_scale = random_floats(m * p.terms * p.groups, ORDINARY);
  p.a_sums = allocate(m * p.terms * p.groups * 4);
  for (index half = 0; half < 2 * m * p.terms * p.groups; ++half) {
    p.a_sums[half] = 0;
    for (index i = 0; i < HALF; ++i)
      p.a_sums[half] += p.a[half * HALF + i];
  }
  p.out = allocate_results(m * n);
  return p;
}

static void call(const problem *p, index begin, index end) {
  p->functions->plain(p->w, p->w_scale, p->a, p->a_scale, p->a_sums,
                      p->rows.lengths, p->out, p->rows.batch, p->rows.tokens,
                      p->n, p->k, p->by.group, p->by.type, p->terms, begin,
                      end);
}

static void at_problem(const problem *p, const char *what) {
  at_case(
      "matmul_%s, %s, %lld x %lld x %lld, groups of %lld, scales of type %d, "
      "terms: %lld",
      p->by.name, what, (long long)p->m, (long long)p->n, (long long)p->k,
      (long long)p->by.group, p->by.type, (long long)p->terms);
}

// Checks column j of every row.
static void check_column(const problem *p, index j) {
  double *d = malloc((size_t)p->k * sizeof *d);
  double *m = malloc((size_t)p->k * sizeof *m);
  double *largest = malloc((size_t)p->k * sizeof *largest);
  for (index at = 0; at < p->k; ++at) {
    const scale by = scale_of(&p->by, p->w_scale, p->k, j, at);
    const int code = code_of(&p->by, p->w, p->k, j, at);
    d[at] = (double)(code - by.zero) * by.d;
    m[at] = by.m;
    largest[at] = fabs((by.zero || by.m != 0 ? 1 << p->by.bits : 256) * (double)by.d) +
                  fabs(by.zero * (double)by.d) + fabs(m[at]);
  }
  for (index i = 0; i < p->m; ++i) {
    const index result = i * p->n + j;
    if (is_padding(&p->rows, i)) {
      check_untouched("padding", p->out, result, result + 1);
      continue;
    }
    double expected = 0, magnitude = 0;
    for (index term = i * p->terms; term < (i + 1) * p->terms; ++term) {
      for (index at = 0; at < p->k; ++at) {
        const double a = (double)p->a[term * p->k + at] *
                         p->a_scale[term * p->groups + at / GROUP];
        expected += a * (d[at] + m[at]);
        magnitude += fabs(a) * largest[at];
      }
    }
    check_near("out", result, p->out[result], expected,
               (magnitude * 0x1p-24 + 0x1p-147) * (double)(p->groups + 5));
  }
  free(d), free(m), free(largest);
}

static void test_case(const form_functions *f, kind of, index m, index n,
                      index k) {
  const problem p = random_problem(f, of, random_parts(m), n, k);
  const index panels = divide_up(n, PANEL), split = panels / 2;
  at_problem(&p, kind_name(of));
  // The kernel may multiply panels in pairs; neither call may write the other half.
  if (m % 2) {
    call(&p, split, panels);
    check_columns_untouched(p.out, m, n, 0, split * PANEL);
    call(&p, 0, split);
  } else {
    call(&p, 0, split);
    check_columns_untouched(p.out, m, n, split * PANEL, n);
    call(&p, split, panels);
  }
  for (index j = 0; j < n; ++j)
    check_column(&p, j);
  release_all();
}

// Tests that a row's result depends neither on other rows of the call nor on its
// panels: m rows and all panels at once give the same bits as other divisions.
static void test_division(const form_functions *f, int single, index m, index n,
                          index k) {
  const problem p = random_problem(f, RANDOM, whole(m), n, k);
  const index panels = divide_up(n, PANEL);
  float *out = allocate_results(m * n);
  at_problem(&p, "divided");
  call(&p, 0, panels);
  for (index row = 0; row < m;) {
    const int32_t rows = (int32_t)rows_of_call(single, row, m);
    const index split = random_index(0, panels);
    problem part = p;
    part.rows = (parts){1, rows, (int32_t *)&rows};
    part.a = p.a + row * p.terms * k;
    part.a_scale = p.a_scale + row * p.terms * p.groups;
    part.a_sums = p.a_sums + row * p.terms * 2 * p.groups;
    part.out = out + row * n;
    call(&part, split, panels);
    call(&part, 0, split);
    row += rows;
  }
  check_same(out, p.out, m * n);
  release_all();
}

// Tests groups with infinity or NaN, as quantize.c returns them.
static void test_not_finite(const form_functions *f, index m) {
  const float bad[] = {INFINITY, NAN};
  for (int b = 0; b < 2; ++b) {
    const problem p = random_problem(f, RANDOM, whole(m), 20, 64);
    const index row = 2, group = row * p.terms * p.groups + 1;
    at_problem(&p, b ? "a scale of NaN" : "a scale of infinity");
    memset(p.a + group * GROUP, 0, GROUP);
    p.a_scale[group] = bad[b];
    p.a_sums[2 * group] = p.a_sums[2 * group + 1] = 0;
    call(&p, 0, divide_up(p.n, PANEL));
    for (index i = 0; i < p.m * p.n; ++i)
      check_equal("is NaN", i, isnan(p.out[i]) != 0, i / p.n == row);
    release_all();
  }
}

static void test_experts(const form_functions *f) {
  const mixture x = random_mixture();
  const index n = random_index(1, 70), k = GROUP * random_index(1, 9);
  const index panels = divide_up(n, PANEL), items = x.segments * panels;
  const index middle = random_index(0, items);
  const problem p =
      random_problem(f, RANDOM, whole(x.rows), x.count * panels * PANEL, k);
  float *out = allocate_results(x.rows * n);
  float *expected = allocate_results(x.rows * n);
  at_problem(&p, "experts");
  f->experts(p.w, p.w_scale, p.a, p.a_scale, p.a_sums, x.experts, x.begins, out,
             n, k, p.by.group, p.by.type, p.terms, middle, items);
  f->experts(p.w, p.w_scale, p.a, p.a_scale, p.a_sums, x.experts, x.begins, out,
             n, k, p.by.group, p.by.type, p.terms, 0, middle);
  for (index s = 0; s < x.segments; ++s) {
    const index row = x.begins[s], first = x.experts[s] * panels;
    const index term = row * p.terms;
    const int32_t rows = x.begins[s + 1] - x.begins[s];
    f->plain(p.w + first * panel_bytes(&p.by, k),
             p.w_scale + first * panel_scale_bytes(&p.by, k), p.a + term * k,
             p.a_scale + term * p.groups, p.a_sums + term * 2 * p.groups, &rows,
             expected + row * n, 1, rows, n, k, p.by.group, p.by.type, p.terms,
             0, panels);
  }
  check_same(out, expected, x.rows * n);
  release_all();
}

static void test_form(const form_functions *f) {
  // Each number of rows is of another kind, if not of all.
  const index step = ONE_IN > 1 ? 3 : 1;
  for (kind of = 0; of < KINDS; ++of) {
    for (index m = 1 + of % step; m <= 20; m += step)
      test_case(f, of, m, random_index(1, 70), GROUP * random_index(1, 10));
    for (index n = 55; n <= 80; n += 3 * step) // several panels at once
      test_case(f, of, 1, n, GROUP * random_index(1, 10));
    test_case(f, of, 61, 9, 544);
    test_case(f, of, 5, 17, 4128);
    test_case(f, of, 8, 9, 4224);
    test_case(f, of, 1, 8, 32);
  }
  for (index m = 1; m <= 40; m += step)
    test_division(f, m % 2, m, random_index(1, 150),
                  GROUP * random_index(1, 10));
  test_division(f, 1, 130, 70, 64);
  test_division(f, 0, 300, 35, 96);
  test_division(f, 0, 9, 65, 4128);
  test_division(f, 0, 15, 17, 2112);
  test_not_finite(f, 4);
  test_not_finite(f, 20);
  for (int i = 0; i < 60; i += step)
    test_experts(f);
}

#endif // TESTS_GROUPS_CASE_H
