// Helpers of all kernel tests: random input, buffers with guarded ends, and
// reports.
//
// A test names its case with at_case(), allocates buffers, calls the kernel,
// compares every result with a reference in exact integers or doubles, and ends
// the case with release_all().
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#define _POSIX_C_SOURCE 200809L // for mprotect, which is not in C

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__linux__)
#include <sys/syscall.h>
long syscall(long number, ...); // in unistd.h, but not in POSIX
#endif
#include <unistd.h>

#include "common.h"

#define SHARED static inline // which allows unused functions

// ----------------------------------------------------------------- reports

#define MAX_REPORTS 20
// Programs for emulators, which are 30 times as slow, have more time.
#ifndef MAX_SECONDS
#define MAX_SECONDS 120
#endif
// One in how many cases the longest loops take.
#ifndef ONE_IN
#define ONE_IN 1
#endif

static char current_case[256];
static long long checks, failures;

__attribute__((format(printf, 1, 2))) SHARED void at_case(const char *format,
                                                          ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(current_case, sizeof current_case, format, arguments);
  va_end(arguments);
}

SHARED void fail(const char *what, index at, double found, double expected) {
  if (failures++ < MAX_REPORTS)
    fprintf(stderr, "%s: %s[%lld]: found %.9g, expected %.9g\n", current_case,
            what, (long long)at, found, expected);
}

// Checks that `found` is near `expected`. NaN is near only NaN.
SHARED void check_near(const char *what, index at, double found,
                       double expected, double tolerance) {
  ++checks;
  if (isnan(expected) ? !isnan(found)
                      : !(found == expected ||
                          fabs(found - expected) <= tolerance))
    fail(what, at, found, expected);
}

SHARED void check_equal(const char *what, index at, double found,
                        double expected) {
  check_near(what, at, found, expected, 0);
}

// Reports a signal, with functions that a signal handler may call.
SHARED void report_crash(int number) {
  const char *text = number == SIGALRM ? ": timed out\n"
                     : number == SIGSEGV || number == SIGBUS
                         ? ": accessed memory out of bounds\n"
                         : ": undefined behavior\n";
  const size_t length = strlen(current_case);
  if (write(STDERR_FILENO, current_case, length) < 0 ||
      write(STDERR_FILENO, text, strlen(text)) < 0)
    _exit(3);
  _exit(2);
}

SHARED void begin_tests(void) {
#if defined(__AMX_TILE__) && defined(__linux__)
  // Linux gives a process AMX only on request: arch_prctl(ARCH_REQ_XCOMP_PERM,
  // XFEATURE_XTILEDATA). If it refuses, nothing can run these kernels.
  if (syscall(SYS_arch_prctl, 0x1023, 18) != 0) {
    perror("no AMX");
    exit(0);
  }
#endif
  // clang's traps are SIGILL or SIGTRAP, depending on the machine.
  const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGALRM};
  for (int i = 0; i < 5; ++i)
    signal(signals[i], report_crash);
  alarm(MAX_SECONDS);
}

// Returns the exit status.
SHARED int end_tests(void) {
  fprintf(stderr, "%lld of %lld checks failed\n", failures, checks);
  return failures != 0 || checks == 0;
}

// ----------------------------------------------------------------- buffers

#define MAX_BUFFERS 32
#define MARGIN 64 // minimum of guarded bytes before a buffer
#define MARGIN_BYTE 0xa5

typedef struct {
  unsigned char *block, *start;
  size_t usable; // bytes of the block before the guard page
} buffer;

static buffer buffers[MAX_BUFFERS];
static int buffer_count;

// Allocates a buffer that ends at a guard page, so that every access past its end
// is detected. Its start is aligned for an element and no more, which is all that
// kernels may rely on.
SHARED void *allocate(index bytes) {
  const index page = sysconf(_SC_PAGESIZE);
  const index usable = divide_up(bytes + MARGIN, page) * page;
  unsigned char *block = aligned_alloc((size_t)page, (size_t)(usable + page));
  if (buffer_count == MAX_BUFFERS || !block ||
      mprotect(block + usable, (size_t)page, PROT_NONE) != 0) {
    perror("cannot allocate");
    exit(3);
  }
  unsigned char *start = block + usable - bytes;
  memset(block, MARGIN_BYTE, (size_t)(usable - bytes));
  buffers[buffer_count++] = (buffer){block, start, (size_t)usable};
  return start;
}

// Releases all but the first `kept` buffers.
SHARED void release_from(int kept) {
  for (; buffer_count > kept; --buffer_count) {
    const buffer *b = &buffers[buffer_count - 1];
    for (unsigned char *p = b->block; p < b->start; ++p)
      if (*p != MARGIN_BYTE)
        fail("byte before a buffer", p - b->start, *p, MARGIN_BYTE);
    mprotect(b->block + b->usable, (size_t)sysconf(_SC_PAGESIZE),
             PROT_READ | PROT_WRITE);
    free(b->block);
  }
}

SHARED void release_all(void) { release_from(0); }

// Content of results before they are written: a NaN that no arithmetic gives.
#define UNTOUCHED_BITS 0x7fc5a000u

SHARED float *allocate_results(index count) {
  float *x = allocate(count * 4);
  for (index i = 0; i < count; ++i)
    x[i] = float_of(UNTOUCHED_BITS);
  return x;
}

SHARED void check_untouched(const char *what, const float *x, index begin,
                            index end) {
  for (index i = begin; i < end; ++i)
    if (bits_of(x[i]) != UNTOUCHED_BITS)
      fail(what, i, x[i], float_of(UNTOUCHED_BITS));
}

// ------------------------------------------------------------------ random

static uint64_t random_state = 88172645463325252u;

SHARED uint32_t random_u32(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state >> 32);
}

// Returns a random number from low to high, both inclusive.
SHARED index random_index(index low, index high) {
  return low + (index)(random_u32() % (uint64_t)(high - low + 1));
}

SHARED index pick(const index *choices, size_t bytes) {
  return choices[random_index(0, (index)(bytes / sizeof *choices) - 1)];
}
#define PICK(choices) pick(choices, sizeof(choices))

// A range of magnitudes, from 2^low to 2^(high + 1). Below a type's normal numbers
// it gives subnormal ones.
typedef struct {
  int low, high;
} exponents;

#define ORDINARY ((exponents){-4, 0})

SHARED uint32_t random_bits(element_type type, exponents range) {
  const int mantissa_bits = type == ELEMENT_F32    ? 23
                            : type == ELEMENT_BF16 ? 7
                                                   : 10;
  const int bias = type == ELEMENT_F16 ? 15 : 127;
  const int sign_bit = type == ELEMENT_F32 ? 31 : 15;
  const index field = random_index(range.low, range.high) + bias;
  const uint32_t exponent =
      (uint32_t)max_index(0, min_index(field, 2 * bias));
  const uint32_t mantissa = random_u32() & ((1u << mantissa_bits) - 1);
  return (random_u32() & 1) << sign_bit | exponent << mantissa_bits | mantissa;
}

SHARED void store_bits(void *base, element_type type, index i, uint32_t bits) {
  if (type == ELEMENT_F32)
    ((uint32_t *)base)[i] = bits;
  else
    ((uint16_t *)base)[i] = (uint16_t)bits;
}

SHARED void *random_elements(element_type type, index count, exponents range) {
  void *x = allocate(count * element_size(type));
  for (index i = 0; i < count; ++i)
    store_bits(x, type, i, random_bits(type, range));
  return x;
}

SHARED float *random_floats(index count, exponents range) {
  return random_elements(ELEMENT_F32, count, range);
}

SHARED int8_t *random_bytes(index count, index low, index high) {
  int8_t *x = allocate(count);
  for (index i = 0; i < count; ++i)
    x[i] = (int8_t)random_index(low, high);
  return x;
}

// Returns bytes that are each one of two extremes.
SHARED int8_t *extreme_bytes(index count, int8_t one, int8_t other) {
  int8_t *x = allocate(count);
  for (index i = 0; i < count; ++i)
    x[i] = random_u32() & 1 ? one : other;
  return x;
}

// ---------------------------------------------------------------- matrices

// The division of a product's rows into batch rows.
typedef struct {
  index batch, tokens;
  int32_t *lengths;
} parts;

SHARED parts whole(index rows) {
  parts p = {1, rows, allocate(sizeof *p.lengths)};
  *p.lengths = (int32_t)rows;
  return p;
}

// Divides rows into one batch row or two, of which some end in padding. Lengths out
// of range count as the nearest in range.
SHARED parts random_parts(index rows) {
  const index batch = rows % 2 ? 1 : 2, tokens = rows / batch;
  parts p = {batch, tokens, allocate(batch * (index)sizeof *p.lengths)};
  for (index b = 0; b < batch; ++b)
    p.lengths[b] = (int32_t)(random_u32() & 1 ? random_index(-1, tokens + 1)
                                              : tokens);
  return p;
}

SHARED int is_padding(const parts *p, index row) {
  return row % p->tokens >= p->lengths[row / p->tokens];
}

// Checks that another call's columns of out [m][n] are unwritten.
SHARED void check_columns_untouched(const float *out, index m, index n,
                                    index begin, index end) {
  for (index row = 0; row < m; ++row)
    check_untouched("another call's column", out, row * n + begin,
                    row * n + end);
}

// Rows of a mixture of experts, in segments of which some are empty.
typedef struct {
  index count; // of experts
  index segments, rows;
  int32_t *experts, *begins;
} mixture;

SHARED mixture random_mixture(void) {
  mixture x = {.count = random_index(1, 5), .segments = random_index(1, 6)};
  x.experts = allocate(x.segments * 4);
  x.begins = allocate((x.segments + 1) * 4);
  x.begins[0] = 0;
  for (index s = 0; s < x.segments; ++s) {
    const index rows = random_index(0, 2) ? random_index(0, 3)
                                          : random_index(0, 40);
    x.experts[s] = (int32_t)random_index(0, x.count - 1);
    x.begins[s + 1] = x.begins[s] + (int32_t)rows;
  }
  x.rows = x.begins[x.segments];
  return x;
}

// Checks that results of two ways to divide rows and panels among calls are the same
// to the bit.
SHARED void check_same(const float *found, const float *expected, index count) {
  for (index i = 0; i < count; ++i) {
    check_equal("out", i, found[i], expected[i]);
    check_equal("bits of out", i, bits_of(found[i]), bits_of(expected[i]));
  }
}

// Returns how many of the rows from `row` to `end` a call gets: one, or a random
// number.
SHARED index rows_of_call(int single, index row, index end) {
  return single ? 1 : random_index(1, min_index(40, end - row));
}

#endif // TESTS_CHECK_H
