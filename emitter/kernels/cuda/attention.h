// Attention on NVIDIA GPUs of a decode step, whole: one query for each sequence.
//
// Operands
//   q            [sequences][heads][head_dim], as projections give it
//   k, v         [sequences][kv_heads][head_dim], of the query's position
//   cos, sin     [sequences][pairs], of the query's position
//   q_norm       [head_dim], or [heads][head_dim] if norm_by_head: weights of the norm
//                of heads, in norm_type: 0 f32, 1 bf16, 2 f16
//   k_norm       [head_dim], or [kv_heads][head_dim] if norm_by_head
//   cache        [pages][parts][kv_heads][PAGE][head_dim]: part 2 * layer has keys
//                and the part after it values. Q8's scales have the same leading
//                dimensions and one scale for each 32 elements of a row. The new key
//                and value are written to it
//   counters     [sequences][kv_heads][tiles] of a tile of ROWS heads, at most: zero
//                before and after
//   row_numbers  [3][sequences]: positions, slots and first pages. A query's position is
//                the last that it sees; its slot is page * PAGE + place; first pages
//                are read only if has_first_pages: else all are 0
//   pages        [sequences][table]: position p of sequence s is at p % PAGE of page
//                pages[s][p / PAGE - first_pages[s]]
//   sinks        [heads], read only if has_sinks: one more score for each head,
//                without a value
// Results
//   out          [sequences][heads][head_dim], in out_type: 0 f32, 1 bf16, 2 f16. That of
//                padding is not written if there are no more than MOST_LIVE sequences
//   partial      [sequences][chunks][heads][head_dim]: sums of values times weights,
//                then [sequences][chunks][heads][2]: the largest score and the sum of
//                weights, between blocks
// Numbers
//   chunks       parts into which the positions of a sequence are divided at most, if
//                none is padding: others divide those of padding among them
//   busy         parts that give every multiprocessor a block: with few positions,
//                lanes have fewer rows at once to make so many. Likewise
//   window       if not 0, a query sees the last `window` positions
//   soft_cap     bits of the float c. If not 0, scores s become c * tanh(s / c)
//   pairs        of dimensions that are rotated: i and i + pairs, or 2 * i and
//                2 * i + 1 if interleaved
//   norm         of heads: 0 none, 1 RMS, 2 layer. Its weights are offset + q_norm
//   epsilon, offset, clip, scale  bits of floats. If clip is not 0, q, k and v are
//                clipped to that magnitude, after the norm. Scores are multiplied by
//                scale
//
// Padding sequences have position 0 and slots in page 0.
//
// Time is mostly latency. So what needs no other number is loaded first, then the
// first rows of the cache, and the norm and the rotation are computed meanwhile. All but
// heads is there before the kernel ahead has ended, if that one lets this one start
// only after it has waited itself.
// A block computes up to ROWS heads of one kv head. `width / 8` lanes share a row of
// the cache. Blocks take stripes of positions, of which every lane has up to AHEAD
// rows, in turn. Few positions make narrow stripes, so that there is one for every
// multiprocessor. The block that has the last position takes the new key and value
// from registers, rounded as in the cache. The last block that is done merges.

#ifndef KERNELS_CUDA_ATTENTION_H
#define KERNELS_CUDA_ATTENTION_H

#include "attention_heads.h"
#include "attention_stripes.h"

typedef struct {
  const float *q, *k, *v, *cos, *sin;
  const void *q_norm, *k_norm;
  int32_t *counters;
  const int32_t *positions, *pages, *first_pages, *slots;
  const float *sinks;
  void *out;
  float *partial, *max_sum;
} decode_buffers;

typedef struct {
  int layer, sequences, heads, kv_heads, head_dim, parts, table, chunks, busy;
  int window;
  uint32_t soft_cap;
  int has_first_pages, has_sinks, pairs, interleaved;
  int norm, norm_type, norm_by_head;
  uint32_t epsilon, offset, clip, scale;
  int out_type;
} decode_numbers;

enum {
  MAX_CHUNKS = 128,     // merging more costs more than they gain
  MOST_LIVE = 2 * WARP, // sequences of which it is known which are padding
};

STATED(max_chunks, MAX_CHUNKS);
STATED(most_live, MOST_LIVE);

// What a block computes.
typedef struct {
  int sequence, chunk, kv_head, tile, tiles;
  int chunks, busy; // of the sequence
  int first_state;  // of its chunks, among those of all
  int count;      // heads
  int first_head; // of the sequence
} block_place;

// Divides by shifting where it can: most numbers of heads and chunks are powers of
// two, and nothing can be loaded before.
INLINE int quotient(int a, int b) {
  const uint32_t x = (uint32_t)a, y = (uint32_t)b;
  return (int)((y & (y - 1)) == 0 ? x >> __builtin_popcount(y - 1) : x / y);
}

// Returns the bits that any lane of the warp has.
INLINE uint32_t shared_bits(uint32_t bits) {
  for (int mask = 1; mask < WARP; mask *= 2)
    bits |= shuffle_xor_u32(bits, mask);
  return bits;
}

// Returns a bit for each sequence that is not padding, of up to MOST_LIVE.
INLINE uint64_t live_sequences(const int32_t *slots, int sequences) {
  const int lane = (int)thread_idx() % WARP;
  uint32_t slot[2], live[2] = {0};
  UNROLL for (int half = 0; half < 2; ++half) {
    const int s = half * WARP + lane;
    slot[half] = load_4_if(slots + s, s < sequences);
  }
  UNROLL for (int half = 0; half < 2; ++half)
    if (half * WARP < sequences)
      live[half] = shared_bits(slot[half] != 0 ? 1u << lane : 0);
  return (uint64_t)live[1] << WARP | live[0];
}

// Divides the blocks among sequences that are not padding. Blocks that are left have a
// chunk past all.
INLINE void divide_chunks(block_place *at, const decode_numbers *n, uint64_t live,
                          int part) {
  const int count = max_int(__builtin_popcountll(live), 1);
  at->chunks = min_int(quotient(n->chunks * n->sequences, count), MAX_CHUNKS);
  at->busy = quotient(n->busy * n->sequences, count);
  const int place = quotient(part, at->chunks);
  at->first_state = place * at->chunks;
  at->chunk = place < count ? part - at->first_state : MAX_CHUNKS;
  for (int before = 0; before < place && live != 0; ++before)
    live &= live - 1;
  at->sequence = live != 0 ? __builtin_ctzll(live) : 0;
}

// Blocks are [sequences][chunks][tiles][kv_heads].
INLINE block_place place_block(const decode_numbers *n, const int32_t *slots) {
  const int block = (int)block_idx();
  const int group = quotient(n->heads, n->kv_heads);
  const int tiles = (group + ROWS - 1) / ROWS;
  const int above = quotient(block, n->kv_heads);
  const int part = quotient(above, tiles);
  const int sequence = n->sequences == 1 ? 0 : quotient(part, n->chunks);
  const int kv_head = block - above * n->kv_heads, tile = above - part * tiles;
  block_place at = {
      .sequence = sequence,
      .chunk = part - sequence * n->chunks,
      .kv_head = kv_head,
      .tile = tile,
      .tiles = tiles,
      .chunks = n->chunks,
      .busy = n->busy,
      .first_state = sequence * n->chunks,
      .count = min_int(ROWS, group - tile * ROWS),
      .first_head = kv_head * group + tile * ROWS,
  };
  if (n->sequences > 1 && n->sequences <= MOST_LIVE)
    divide_chunks(&at, n, live_sequences(slots, n->sequences), part);
  return at;
}

// Heads that this warp prepares, in rounds, and what rotates them.
typedef struct {
  lane_head heads[ROUNDS];
  lane_rotation rotation;
} warp_heads;

// Loads what rotates heads, and the weights of their norms.
INLINE void prepare_warp(const decode_buffers *b, const decode_numbers *n,
                         const head_form *form, const block_place *at,
                         warp_heads *warps, const int width) {
  const int warp = (int)thread_idx() / WARP;
  const index s = at->sequence;
  warps->rotation =
      load_rotation(form, b->cos + s * n->pairs, b->sin + s * n->pairs, width);
  UNROLL for (int round = 0; round < ROUNDS; ++round) {
    const int job = round * WARPS + warp;
    const int head = at->first_head + (job < at->count ? job : 0);
    const int of_head = job < ROWS ? head : at->kv_head;
    const void *weights = n->norm == NORM_NONE || job > ROWS ? NULL
                          : job < ROWS                       ? b->q_norm
                                                             : b->k_norm;
    load_norm_weights(form, weights,
                      n->norm_by_head ? (index)of_head * n->head_dim : 0,
                      &warps->heads[round], width);
  }
}

// Loads the heads, which the kernel before has written.
INLINE void load_heads(const decode_buffers *b, const decode_numbers *n,
                       const head_form *form, const block_place *at,
                       warp_heads *warps, const int width) {
  const int warp = (int)thread_idx() / WARP;
  const index s = at->sequence;
  const index row = s * n->kv_heads + at->kv_head;
  UNROLL for (int round = 0; round < ROUNDS; ++round) {
    const int job = round * WARPS + warp;
    const int head = at->first_head + (job < at->count ? job : 0);
    const float *x = job < ROWS    ? b->q + (s * n->heads + head) * n->head_dim
                     : job == ROWS ? b->k + row * n->head_dim
                                   : b->v + row * n->head_dim;
    load_head(form, x, &warps->heads[round], width);
  }
}

// Rounds the new key or value as the cache holds it, and keeps it in shared memory.
// If `writes`, it is also written to the cache, from element `slot` on.
INLINE void keep_fresh(const kv_slice *cache, const block_memory *m, int half,
                       index slot, int writes, int head_dim, const int width) {
  const element_type type = cache->type;
  const int lane = (int)thread_idx() % WARP, lanes = width / VECTOR;
  float x[VECTOR];
  syncwarp();
  UNROLL for (int e = 0; e < VECTOR; ++e)
    x[e] = m->heads[(ROWS + half) * width + lane % lanes * VECTOR + e];
  const raw_vector raw = narrow_to_raw(type, x);
  if (lane >= lanes)
    return;
  UNROLL for (int w = 0; w < raw_words(type); ++w)
    m->fresh[half * width + lane * VECTOR + w] = raw.words[w];
  m->fresh_scales[half * SCALE_WORDS + lane] = raw.scale;
  if (writes && lane * VECTOR < head_dim)
    store_raw(cache, slot + lane * VECTOR, &raw);
}

// Prepares queries and, if this block has the last position, the new key and value.
// If it `writes`, these go to the cache from the element `slot` on, and half_size
// elements after it.
INLINE void prepare_heads(const kv_slice *cache, const warp_heads *loaded,
                          const head_form *form, const block_memory *m,
                          int has_last, index slot, index half_size, int writes,
                          float q_factor, const int width) {
  const int warp = (int)thread_idx() / WARP;
  UNROLL for (int round = 0; round < ROUNDS; ++round) {
    const int job = round * WARPS + warp, half = job - ROWS;
    if (job < ROWS || (job < JOBS && has_last)) {
      finish_head(form, loaded->heads[round],
                  form->norm != NORM_NONE && job <= ROWS,
                  &loaded->rotation, job <= ROWS,
                  job < ROWS ? q_factor : 1.0f, m->stages + job * width,
                  m->heads + job * width, width);
      if (job >= ROWS)
        keep_fresh(cache, m, half, slot + half * half_size, writes,
                   form->head_dim, width);
    }
  }
}

INLINE head_form form_of(const decode_numbers *n) {
  return (head_form){
      .norm = (norm_kind)n->norm,
      .norm_type = (element_type)n->norm_type,
      .epsilon = float_of(n->epsilon),
      .offset = float_of(n->offset),
      .clip = float_of(n->clip),
      .head_dim = n->head_dim,
      .pairs = n->pairs,
      .interleaved = n->interleaved,
  };
}

// Returns whether this block has the stripe of the last position.
INLINE int has_last_stripe(const division *d, int chunk) {
  const int last = d->stripes - 1;
  return chunk == (d->chunks == d->stripes ? last : last % d->chunks);
}

// Attends to this block's stripes, the first of which is already loaded.
INLINE lane_state attend_stripes(element_type type, const task *t,
                                 const block_memory *m, stripe_rows loaded,
                                 const int32_t *pages, int chunk, int has_last,
                                 const int width, const int ahead) {
  lane_state state;
  begin_state(&state, m, width);
  for (int stripe = chunk;;) {
    // The number of a page is read ahead, so that its rows need not wait for it.
    const int next = stripe + t->seen.chunks, ends = next >= t->seen.stripes;
    const int32_t page = ends ? 0 : pages[page_of(t, next, width)];
    if (has_last && stripe == t->seen.stripes - 1)
      insert_fresh(type, t, m, stripe, &loaded, width, ahead);
    attend_stripe(type, t, stripe, &loaded, &state, width, ahead);
    if (ends)
      return state;
    stripe = next;
    loaded = load_stripe(t, stripe, page, width, ahead);
  }
}

// Merges what the block's warps found. The last block that is done with its chunk
// merges all of them.
INLINE void finish_block(const destination *to, const block_memory *m,
                         lane_state *state, int32_t *counter, int chunk,
                         int chunks, const int width) {
  merge_warp(state->max, state->sum, state->sums, &m->states, width);
  syncthreads();
  merge_block(to, &m->states, chunk, chunks == 1, width);
  if (chunks == 1)
    return;
  syncthreads();
  if (thread_idx() == 0)
    *m->arrived = (uint32_t)atomic_add_ordered(counter, 1);
  syncthreads();
  if ((int)*m->arrived != chunks - 1)
    return;
  merge_chunks(to, chunks, width);
  if (thread_idx() == 0)
    *counter = 0;
}

// Computes what one block does.
INLINE void attend_block(kv_slice cache, const decode_buffers *b,
                         const decode_numbers *n, SHARED_SPACE float *memory,
                         const int width, const int ahead) {
  const block_memory m = divide_memory(memory, width);
  const block_place at = place_block(n, b->slots);
  const int lane = (int)thread_idx() % WARP;
  const index s = at.sequence;
  const int32_t *pages = b->pages + s * n->table;
  // Only the kernel before writes heads: what is older can be read while that one runs.
  // Most pages are among the table's first ones, which need not wait for positions.
  const int32_t position = (int32_t)load_4_if(b->positions + s, 1);
  const int32_t first_entries = (int32_t)load_4_if(pages + lane, lane < n->table);
  const int32_t before =
      (int32_t)load_4_if(b->first_pages + s, n->has_first_pages);
  const int32_t slot = (int32_t)load_4_if(b->slots + s, 1);
  const head_form form = form_of(n);
  warp_heads loaded;
  prepare_warp(b, n, &form, &at, &loaded, width);

  const index row_size = n->head_dim;
  const index head_size = PAGE * row_size, half_size = n->kv_heads * head_size;
  const index first_key = 2 * n->layer * half_size + at.kv_head * head_size;
  const task t = {
      .cache = kv_slice_at(cache, first_key),
      .page_size = n->parts * half_size,
      .half_size = half_size,
      .seen = divide_positions(position, n->window, at.chunks, at.busy,
                               THREADS / (width / VECTOR), ahead),
      .before = before,
      .head_dim = n->head_dim,
      .soft_cap = float_of(n->soft_cap) * LOG2_E,
  };
  // Need not wait: blocks of the first chunk do.
  if (at.chunk >= t.seen.chunks)
    return;
  const int entry = page_of(&t, at.chunk, width);
  const int32_t page =
      entry < WARP ? (int32_t)shuffle_u32((uint32_t)first_entries, entry)
                   : pages[entry];
  const stripe_rows rows = load_stripe(&t, at.chunk, page, width, ahead);
  start_next_kernel();
  wait_for_previous_kernel();
  load_heads(b, n, &form, &at, &loaded, width);

  const int has_last = has_last_stripe(&t.seen, at.chunk);
  prepare_heads(&t.cache, &loaded, &form, &m, has_last,
                slot / PAGE * t.page_size + slot % PAGE * row_size, half_size,
                at.tile == 0, float_of(n->scale) * LOG2_E, width);
  syncthreads();
  lane_state state = attend_stripes(cache.type, &t, &m, rows, pages, at.chunk,
                                    has_last, width, ahead);

  const index head = s * n->heads + at.first_head;
  const index state_at = (index)at.first_state * n->heads + at.first_head;
  const destination results = {
      .out = (char *)b->out + head * n->head_dim * (n->out_type == ELEMENT_F32 ? 4 : 2),
      .out_type = (element_type)n->out_type,
      .partial = b->partial + state_at * n->head_dim,
      .max_sum = b->max_sum + state_at * 2,
      .sinks = n->has_sinks ? b->sinks + at.first_head : NULL,
      .heads = n->heads,
      .head_dim = n->head_dim,
      .count = at.count,
  };
  finish_block(&results, &m, &state,
               b->counters + (s * n->kv_heads + at.kv_head) * at.tiles + at.tile,
               at.chunk, t.seen.chunks, width);
}

// Defines the kernel for a cache of one type and heads of up to `width` dimensions.
#define DEFINE_ATTENTION_WIDTH(name, width, ahead, type, scales, ...)          \
  KERNEL cuda_decode_attention_##name##_##width(                               \
      const float *q, const float *k, const float *v, const float *cos,        \
      const float *sin, const void *q_norm, const void *k_norm, __VA_ARGS__,   \
      int32_t *counters, const int32_t *row_numbers, const int32_t *pages,     \
      const float *sinks, void *out, float *partial, int layer, int sequences,  \
      int heads, int kv_heads, int head_dim, int parts, int table, int chunks, \
      int busy, int window, uint32_t soft_cap, int has_first_pages,            \
      int has_sinks, int pairs, int interleaved, int norm, int norm_type,      \
      int norm_by_head, uint32_t epsilon, uint32_t offset, uint32_t clip,      \
      uint32_t scale, int out_type) {                                          \
    _Alignas(16) SHARED_MEMORY float memory[MEMORY_WORDS(width)];              \
    const decode_buffers buffers = {                                           \
        q,                                                                     \
        k,                                                                     \
        v,                                                                     \
        cos,                                                                   \
        sin,                                                                   \
        q_norm,                                                                \
        k_norm,                                                                \
        counters,                                                              \
        row_numbers,                                                           \
        pages,                                                                 \
        row_numbers + 2 * sequences,                                           \
        row_numbers + sequences,                                               \
        sinks,                                                                 \
        out,                                                                   \
        partial,                                                               \
        partial + (index)sequences * chunks * heads * head_dim};               \
    const decode_numbers numbers = {                                           \
        layer,  sequences, heads,           kv_heads,  head_dim, parts,        \
        table,  chunks,    busy,            window,    soft_cap, has_first_pages, \
        has_sinks, pairs,  interleaved,     norm,      norm_type, norm_by_head, \
        epsilon, offset,   clip,            scale,     out_type};              \
    attend_block((kv_slice){type, cache, scales}, &buffers, &numbers, memory,  \
                 width, ahead);                                                \
  }

// Defines the kernels for a cache of one type.
#define DEFINE_ATTENTION(name, ahead, type, scales, ...)                       \
  DEFINE_ATTENTION_WIDTH(name, 64, ahead, type, scales, __VA_ARGS__)           \
  DEFINE_ATTENTION_WIDTH(name, 128, ahead, type, scales, __VA_ARGS__)          \
  DEFINE_ATTENTION_WIDTH(name, 256, ahead, type, scales, __VA_ARGS__)

#endif
