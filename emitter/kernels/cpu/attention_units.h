// The division of attention's work into units, and of units among work items.
//
//   q       [rows][heads][head_dim], rotated, and in units in which weights are
//           2^score
//   cache   [pages][parts][kv_heads][PAGE * head_dim]: part 2 * layer has keys, as
//           [head_dim][PAGE], and the part after it values, as [PAGE][head_dim].
//           Q8's scales have the same leading dimensions and one scale for each 32
//           dimensions: [head_dim / 32][PAGE] and [PAGE][head_dim / 32]
//   sinks   [heads], read only if has_sinks: one more score for each head, without
//           a value, in natural units
//   begins  [sequences + 1]: sequence s has rows begins[s] to begins[s + 1]. Rows
//           from begins[sequences] on are padding, whose results are not written
//   starts  [sequences]: row begins[s] + i is at position starts[s] + i
//   pages   [sequences][table]: position p of sequence s is at p % PAGE of page
//           pages[s][p / PAGE]
//   out     [rows][heads][head_dim]
//
// A row at position p sees positions up to p, or the last `window` of them if
// window is not 0. If causal is 0, it sees those up to its sequence's last row. If
// the bits of the float c, soft_cap, are not 0, scores s become c * tanh(s / c), in
// natural units.
//
// Positions are summed up in pages, and pages in chunks of CHUNK positions. A chunk
// begins with an empty state, and chunks are merged in ascending order. So the bits
// of a row depend neither on other rows nor on how work is divided.
//
// attention_chunks_T() leaves chunk c of a row at c % chunks of these results, where
// chunks is at least how many a row sees. Nothing is written for others.
//
//   partial [rows][chunks][heads][head_dim]: sums weighted by 2^(score - max)
//   max_sum [rows][chunks][heads][2]: max, in units of scores, and the sum of the
//           weights; -inf and 0 if no score is above -inf
//
// head_dim is at most MAX_HEAD_DIM. Q8 takes multiples of 32.
//
// Below, a "row" is one query of one head. A unit is some of the rows of one
// sequence and one kv head, ordered by token, then head. If chunks is not 0, a unit
// is also one chunk.

#ifndef KERNELS_CPU_ATTENTION_UNITS_H
#define KERNELS_CPU_ATTENTION_UNITS_H

#include "attention_tiles.h"

#define CHUNK 1024    // positions
#define MAX_TILES 26  // register tiles that share a converted page
#define MAX_ROWS (MAX_TILES * MR)
#define FEW_ROWS (4 * MR) // maximum of rows that read a page without conversion
#define SCRATCH 40960 // floats for a converted page, weights and sums: 160 KiB
#define READING 4     // rows whose products take as long as reading a page
#define UNITS 2       // units per work item, at least, if there are many rows

typedef struct {
  kv_slice cache;
  const float *q, *sinks;
  const int32_t *begins, *starts, *pages;
  float *out;     // [rows][heads][head_dim], or [rows][chunks][heads][head_dim]
  float *max_sum; // [rows][chunks][heads][2], or NULL
  index layer, sequences, heads, kv_heads, head_dim, parts, table;
  index window, causal;
  index chunks; // chunk c of a row is at c % chunks of results; 0: no chunks
  index items, begin, end;
  float soft_cap; // in units of scores, or 0
} attention;

typedef struct {
  index sequence, row, rows, chunk, kv_head;
} unit;

INLINE index group_of(const attention *a) { return a->heads / a->kv_heads; }

INLINE index tokens_of(const attention *a, index sequence) {
  return a->begins[sequence + 1] - a->begins[sequence];
}

// Returns one past the last position that a token of a sequence sees.
INLINE index seen_end(const attention *a, index sequence, index token) {
  const index last = a->causal ? token : tokens_of(a, sequence) - 1;
  return a->starts[sequence] + last + 1;
}

INLINE index seen_first(const attention *a, index sequence, index token) {
  return a->window
             ? max_index(seen_end(a, sequence, token) - a->window, 0)
             : 0;
}

// Returns a head's dimensions in whole vectors.
INLINE index padded_dims(index head_dim) {
  return divide_up(head_dim, LANES) * LANES;
}

// Returns how many rows may share a unit, whose weights and sums fit beside a
// converted page.
INLINE index most_rows(index head_dim) {
  const index width = padded_dims(head_dim);
  const index fit = (SCRATCH - PAGE * width) / (PAGE + width);
  return min_index(fit / MR * MR, MAX_ROWS);
}

// Returns how many rows a unit has: few enough to balance work, and enough to
// share a page's conversion.
INLINE index rows_per_unit(const attention *a) {
  const index rows = (a->begins[a->sequences] - a->begins[0]) * a->heads;
  const index balanced = rows / (a->items * UNITS) / MR * MR;
  return clamp_index(balanced, 8 * MR, most_rows(a->head_dim));
}

// Finds the unit at *u, of up to u->rows rows and any kv head, and advances *u.
// Returns its cost for each kv head, or 0 if there is none.
static index next_unit(const attention *a, unit *u, unit *found) {
  const index group = group_of(a);
  while (u->sequence < a->sequences &&
         u->row >= tokens_of(a, u->sequence) * group) {
    ++u->sequence;
    u->row = 0;
  }
  if (u->sequence == a->sequences)
    return 0;
  const index all = tokens_of(a, u->sequence) * group;
  const index even = divide_up(divide_up(all, divide_up(all, u->rows)), MR) * MR;
  *found = *u;
  found->rows = min_index(even, all - u->row);
  index first = seen_first(a, u->sequence, u->row / group);
  index end =
      seen_end(a, u->sequence, (u->row + found->rows - 1) / group);
  if (a->chunks) {
    const index last_chunk = (end - 1) / CHUNK;
    found->chunk = max_index(u->chunk, first / CHUNK);
    first = max_index(first, found->chunk * CHUNK);
    end = min_index(end, (found->chunk + 1) * CHUNK);
    u->chunk = found->chunk + 1;
    if (u->chunk <= last_chunk)
      return (divide_up(end, PAGE) - first / PAGE) * (found->rows + READING);
    u->chunk = 0;
  }
  u->row += found->rows;
  return (divide_up(end, PAGE) - first / PAGE) * (found->rows + READING);
}

// Calls compute(a, unit) for the units of items begin..end: those whose part of the
// whole cost begins in the items' part.
INLINE void each_unit(const attention *a,
                      void compute(const attention *a, const unit *u)) {
  const unit start = {.rows = rows_per_unit(a)};
  unit walk = start;
  index total = 0, before = 0, cost;
  unit u;
  while ((cost = next_unit(a, &walk, &u)))
    total += cost * a->kv_heads;
  walk = start;
  while ((cost = next_unit(a, &walk, &u))) {
    // Most units of others are passed by at once.
    const index after = before + cost * a->kv_heads;
    if (after * a->items > total * a->begin &&
        before * a->items < total * a->end) {
      for (u.kv_head = 0; u.kv_head < a->kv_heads; ++u.kv_head) {
        const index at = (before + u.kv_head * cost) * a->items;
        if (at >= total * a->begin && at < total * a->end)
          compute(a, &u);
      }
    }
    before = after;
  }
}

#endif // KERNELS_CPU_ATTENTION_UNITS_H
