// What attention of prompts has in common for all types of the cache: operands, the
// division of work among blocks, and queries.
//
//   q            [sequences][rows][heads][head_dim], neither rotated nor scaled
//   cos, sin     [sequences][rows][pairs], see rope.h
//   cache        as in attention.h; it has the rows' own keys and values already
//   positions    [sequences][rows]: a row sees the keys up to its position. Those of a
//                sequence are consecutive, up to padding rows at its end, which have
//                position 0
//   pages        [sequences][table], first_pages [sequences]: as in attention.h
//   sinks        [heads], read only if has_sinks: one more score for each head, without
//                a value, in natural units
//   out          [sequences][rows][heads][head_dim], of out_type: 0 f32, 1 bf16, 2 f16
//
// `scale` and `soft_cap` are the bits of floats. If window is not 0, a row sees the last
// `window` positions. If soft_cap c is not 0, scores s become c * tanh(s / c).
//
// The queries of a kv head are numbered [rows][heads of the group]. A block computes some
// consecutive ones, so that all heads of the group share the keys and values that it
// reads. Padding rows see what the first row sees, so that they are finite.
#ifndef KERNELS_CUDA_PREFILL_H
#define KERNELS_CUDA_PREFILL_H

#include "../kv_cache.h"
#include "rope.h"
#include "round.h"
#include "tensor_cores.h"

#define LOWEST_FLOAT (-3.40282347e38f)

// How many positions a row sees without a window. Sums with positions are integers too.
#define MAX_SPAN (1 << 30)

typedef struct {
  const float *q, *cos, *sin;
  kv_slice cache;
  const int32_t *positions, *pages, *first_pages; // first_pages may be NULL
  const float *sinks;                             // may be NULL
  void *out;
  element_type out_type;
  int layer, sequences, rows, heads, kv_heads, head_dim, pairs, interleaved;
  int parts, table, span;
  float scale, soft_cap; // in units in which weights are 2^score
  float cap_inverse;     // 2 * log2(e) / soft_cap
} prefill;

// The work of one block.
typedef struct {
  const prefill *p;
  const int32_t *positions, *pages; // of the sequence; pages[position / PAGE]
  index row, keys, page_size, half_size; // elements, the first of a page's keys
  int kv_head, group, first_query, end_query;
  int base;                // the least position of a row
  int first_key, last_key; // that a row sees
} query_block;

// Rows that are padding, and so have lower positions than others, see what `base` sees.
INLINE int position_of(const query_block *b, int query) {
  const int row = min_int(query, b->end_query - 1) / b->group;
  return max_int(b->positions[row], b->base);
}

INLINE int first_key_of(const prefill *p, int position) {
  return max_int(position + 1 - p->span, 0);
}

// Returns the work of this block, of `queries` queries. Blocks are [parts of the
// queries][sequences][kv_heads], the last part first, because it takes longest.
INLINE query_block begin_block(const prefill *p, int queries) {
  const int block = (int)block_idx(), group = p->heads / p->kv_heads;
  const int all = p->rows * group, tiles = (all + queries - 1) / queries;
  const int kv_head = block % p->kv_heads;
  const int s = block / p->kv_heads % p->sequences;
  const int tile = tiles - 1 - block / p->kv_heads / p->sequences;
  const int before = p->first_pages ? p->first_pages[s] : 0;
  const index half_size = (index)p->kv_heads * PAGE * p->head_dim;
  query_block b = {
      .p = p,
      .positions = p->positions + (index)s * p->rows,
      .pages = p->pages + (index)s * p->table - before,
      .row = (index)s * p->rows,
      .keys = 2 * p->layer * half_size + (index)kv_head * PAGE * p->head_dim,
      .page_size = p->parts * half_size,
      .half_size = half_size,
      .kv_head = kv_head,
      .group = group,
      .first_query = tile * queries,
      .end_query = min_int(tile * queries + queries, all),
  };
  b.base = max_int(b.positions[0], b.positions[b.first_query / group]);
  b.first_key = first_key_of(p, b.base);
  int last = b.base;
  for (int i = (int)thread_idx() % WARP; i < queries; i += WARP)
    last = max_int(last, position_of(&b, b.first_query + i));
  for (int mask = 1; mask < WARP; mask *= 2)
    last = max_int(last, (int)shuffle_xor_u32((uint32_t)last, mask));
  b.last_key = last;
  return b;
}

// Returns the place in q and in out of a query.
INLINE index place_of(const query_block *b, int query) {
  const index row = b->row + query / b->group;
  const int head = b->kv_head * b->group + query % b->group;
  return (row * b->p->heads + head) * b->p->head_dim;
}

// Computes dimensions d to d + 3 of a query, rotated and scaled, with zeros past its end.
INLINE void load_query(float x[4], const query_block *b, int query, int d,
                       const rope_kind kind) {
  const prefill *p = b->p;
  const int from = min_int(query, b->end_query - 1);
  const rotation r = rotation_of_row(p->cos, p->sin, b->row + from / b->group,
                                     p->pairs, p->interleaved);
  const int is_there = d < p->head_dim;
  rotate_four(x, &r, p->q + place_of(b, from), is_there ? d : 0, kind);
  UNROLL for (int e = 0; e < 4; ++e)
    x[e] = is_there ? x[e] * p->scale : 0.0f;
}

// Returns the page of the cache that holds positions from `key` on. Where no row sees
// them, any page will do.
INLINE index page_of(const query_block *b, int key) {
  const int seen = max_int(b->first_key, min_int(key, b->last_key));
  return b->pages[seen / PAGE];
}

// Returns cap * tanh(x / cap) in units of log 2: cap * (1 - 2 / (e^(2 x / cap) + 1)).
INLINE float capped(float x, const prefill *p) {
  const float power = exp2_approx(x * p->cap_inverse);
  return p->soft_cap - 2.0f * p->soft_cap * reciprocal_approx(power + 1.0f);
}

// Returns what sums are multiplied by at last: the inverse of the sum of weights, to
// which the sink of a query's head is added.
INLINE float inverse_of_total(const query_block *b, int query, float max,
                              float total) {
  if (!b->p->sinks)
    return 1.0f / total;
  const int head = b->kv_head * b->group + query % b->group;
  const float sink = b->p->sinks[head] * LOG2_E;
  const float most = max_number(max, sink);
  const float factor = exp2_approx(max - most);
  return factor / (total * factor + exp2_approx(sink - most));
}

// Stores two consecutive results of a query, from element `at` of all on.
INLINE void store_pair(const prefill *p, index at, float first, float second) {
  if (p->out_type == ELEMENT_F32)
    *(uint2_t *)((float *)p->out + at) = (uint2_t){bits_of(first), bits_of(second)};
  else
    *(uint32_t *)((uint16_t *)p->out + at) = pack_halves(p->out_type, first, second);
}

// Defines a kernel. `attend` is a function of the work.
#define DEFINE_PREFILL(name, type, of_scales, attend, ...)                     \
  KERNEL cuda_prefill_attention_##name(                                        \
      const float *q, const float *cos, const float *sin, __VA_ARGS__,         \
      const int32_t *row_numbers, const int32_t *pages, const float *sinks,    \
      void *out, int layer,                                                    \
      int sequences, int rows, int heads, int kv_heads, int head_dim,          \
      int pairs, int interleaved, int parts, int table, int window,            \
      uint32_t scale, uint32_t soft_cap, int has_first_pages, int has_sinks,   \
      int out_type) {                                                          \
    const prefill p = {                                                        \
        .q = q,                                                                \
        .cos = cos,                                                            \
        .sin = sin,                                                            \
        .cache = {type, cache, of_scales},                                     \
        .positions = row_numbers,                                              \
        .pages = pages,                                                        \
        .first_pages = has_first_pages ? row_numbers + 2 * sequences * rows : NULL, \
        .sinks = has_sinks ? sinks : NULL,                                     \
        .out = out,                                                            \
        .out_type = (element_type)out_type,                                    \
        .layer = layer,                                                        \
        .sequences = sequences,                                                \
        .rows = rows,                                                          \
        .heads = heads,                                                        \
        .kv_heads = kv_heads,                                                  \
        .head_dim = head_dim,                                                  \
        .pairs = pairs,                                                        \
        .interleaved = interleaved,                                            \
        .parts = parts,                                                        \
        .table = table,                                                        \
        .span = window ? window : MAX_SPAN,                                    \
        .scale = float_of(scale) * LOG2_E,                                     \
        .soft_cap = float_of(soft_cap) * LOG2_E,                               \
        .cap_inverse = 2.0f / float_of(soft_cap),                              \
    };                                                                         \
    attend(&p);                                                                \
  }

#endif
