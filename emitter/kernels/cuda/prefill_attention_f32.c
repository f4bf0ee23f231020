// Attention of prompts with a cache in f32, without tensor cores, which have not its
// precision.
//
// prefill.h documents the operands. Keys and values of the cache pass through shared
// memory in pieces of FLOAT_KEYS positions by PIECE dimensions: all pieces of some
// positions' keys, then all of their values. While a warp computes scores, a lane has a
// key of its own; while it adds values, a lane has two dimensions of each piece. A warp
// computes `rows` queries.

#include "prefill.h"

enum {
  FLOAT_WARPS = 4,
  FLOAT_THREADS = WARP * FLOAT_WARPS,
  FLOAT_ROWS = 8,      // queries of a warp, for heads of up to 128 dimensions
  FLOAT_ROWS_WIDE = 4, // for wider ones
  FLOAT_QUERIES = FLOAT_WARPS * FLOAT_ROWS,
  FLOAT_QUERIES_WIDE = FLOAT_WARPS * FLOAT_ROWS_WIDE,
  FLOAT_KEYS = WARP,
  PIECE = 64,
  // Lanes read four floats each of different rows, without conflicts of banks.
  PIECE_ROW = PIECE + 4,
  PIECE_WORDS = FLOAT_KEYS * PIECE_ROW,
  FLOAT_WIDTH = 256, // of a row at most
};

STATED(float_threads, FLOAT_THREADS);
STATED(float_queries, FLOAT_QUERIES);
STATED(float_queries_wide, FLOAT_QUERIES_WIDE);

SHARED_MEMORY uint32_t pieces[2 * PIECE_WORDS] __attribute__((aligned(16)));
SHARED_MEMORY uint32_t float_queries[FLOAT_QUERIES * 128] __attribute__((aligned(16)));
SHARED_MEMORY uint32_t float_weights[FLOAT_QUERIES * FLOAT_KEYS]
    __attribute__((aligned(16)));

// Returns the word at which a piece is in shared memory: two pieces that follow each other
// are in different places.
INLINE int word_of_piece(int half, int piece, const int width) {
  return (half * (width / PIECE) + piece) % 2 * PIECE_WORDS;
}

// Begins to copy a piece of the keys (half 0) or values (half 1) of the positions from
// `key` on. What no query sees is zero.
INLINE void copy_piece(const query_block *b, int key, int half, int piece,
                       const int width) {
  const int head_dim = b->p->head_dim;
  const index page = b->keys + half * b->half_size + page_of(b, key) * b->page_size;
  const float *from = (const float *)b->p->cache.elements + page;
  const shared_address to =
      ADDRESS_OF(pieces) + (shared_address)(word_of_piece(half, piece, width) * 4);
  UNROLL for (int i = 0; i < FLOAT_KEYS * PIECE / 4 / FLOAT_THREADS; ++i) {
    const int c = i * FLOAT_THREADS + (int)thread_idx();
    const int row = c / (PIECE / 4), column = c % (PIECE / 4) * 4;
    const int d = piece * PIECE + column, at = key + row;
    const int is_there = at >= b->first_key && at <= b->last_key && d < head_dim;
    cp_async_16(to + (shared_address)((row * PIECE_ROW + column) * 4),
                from + (is_there ? at % PAGE * head_dim + d : 0), is_there ? 16 : 0);
  }
}

// Begins to copy the piece after number `piece` of `half`, and waits for that one.
INLINE void next_piece(const query_block *b, int key, int half, int piece,
                       const int width) {
  syncthreads(); // all warps are done with the piece before
  const int is_last = piece == width / PIECE - 1;
  const int next = is_last && half ? key + FLOAT_KEYS : key;
  if (next <= b->last_key)
    copy_piece(b, next, is_last ? !half : half, is_last ? 0 : piece + 1, width);
  cp_async_commit();
  cp_async_wait(1);
  syncthreads();
}

INLINE void load_shared(float x[4], const SHARED_SPACE uint32_t *from) {
  const uint4_t four = *(const SHARED_SPACE uint4_t *)from;
  UNROLL for (int e = 0; e < 4; ++e)
    x[e] = float_of(four[e]);
}

// Adds the products of a piece of this lane's key and the queries' same dimensions.
INLINE void multiply_key_piece(float *scores, int piece, int first, const int rows,
                               const int width) {
  const int lane = (int)thread_idx() % WARP;
  UNROLL for (int d = 0; d < PIECE; d += 4) {
    float key[4];
    load_shared(key, pieces + word_of_piece(0, piece, width) + lane * PIECE_ROW + d);
    UNROLL for (int r = 0; r < rows; ++r) {
      float q[4];
      load_shared(q, float_queries + (first + r) * width + piece * PIECE + d);
      UNROLL for (int e = 0; e < 4; ++e)
        scores[r] = __builtin_fmaf(q[e], key[e], scores[r]);
    }
  }
}

// Adds the products of weights and of this lane's two dimensions of a piece of values.
INLINE void multiply_value_piece(float *sums, int piece, int first, const int rows,
                                 const int width) {
  const int lane = (int)thread_idx() % WARP;
  UNROLL for (int key = 0; key < FLOAT_KEYS; key += 4) {
    float values[4][2];
    UNROLL for (int e = 0; e < 4; ++e)
      UNROLL for (int i = 0; i < 2; ++i)
        values[e][i] = float_of(pieces[word_of_piece(1, piece, width) +
                                       (key + e) * PIECE_ROW + lane * 2 + i]);
    UNROLL for (int r = 0; r < rows; ++r) {
      float weights[4];
      load_shared(weights, float_weights + (first + r) * FLOAT_KEYS + key);
      UNROLL for (int e = 0; e < 4; ++e)
        UNROLL for (int i = 0; i < 2; ++i)
          sums[r * 2 + i] = __builtin_fmaf(weights[e], values[e][i], sums[r * 2 + i]);
    }
  }
}

typedef struct {
  float sums[FLOAT_ROWS * FLOAT_WIDTH / WARP / 2]; // [width / PIECE][rows][2]
  float max[FLOAT_ROWS], total[FLOAT_ROWS];
  int first[FLOAT_ROWS], last[FLOAT_ROWS]; // keys that the rows see
} float_warp;

// Makes scores of this lane's key weights, and multiplies sums so that they fit.
INLINE void weigh_floats(float_warp *w, const float *scores, int key, int first,
                         const prefill *p, const int rows, const int width) {
  const int lane = (int)thread_idx() % WARP, at = key + lane;
  UNROLL for (int r = 0; r < rows; ++r) {
    const float score = p->soft_cap != 0.0f ? capped(scores[r], p) : scores[r];
    const int is_seen = at >= w->first[r] && at <= w->last[r];
    const float seen = is_seen ? score : NEGATIVE_INFINITY;
    const float most = max_number(w->max[r], warp_reduce_max(seen));
    const float factor = exp2_approx(w->max[r] - most);
    const float weight = exp2_approx(seen - most);
    w->max[r] = most;
    w->total[r] = w->total[r] * factor + weight;
    UNROLL for (int piece = 0; piece < width / PIECE; ++piece)
      UNROLL for (int i = 0; i < 2; ++i)
        w->sums[(piece * rows + r) * 2 + i] *= factor;
    float_weights[(first + r) * FLOAT_KEYS + lane] = bits_of(weight);
  }
}

INLINE void write_float_queries(const query_block *b, const int queries,
                                const int width) {
  const prefill *p = b->p;
  for (int at = (int)thread_idx(); at < queries * width / 4; at += FLOAT_THREADS) {
    const int query = b->first_query + at / (width / 4), d = at % (width / 4) * 4;
    float x[4];
#define LOAD(kind) load_query(x, b, query, d, kind)
    WITH_ROPE_KIND(p->pairs, p->interleaved, LOAD)
#undef LOAD
    UNROLL for (int e = 0; e < 4; ++e)
      float_queries[at * 4 + e] = bits_of(x[e]);
  }
}

INLINE void write_float_results(const float_warp *w, const query_block *b, int first,
                                const int rows, const int width) {
  const int lane = (int)thread_idx() % WARP;
  UNROLL for (int r = 0; r < rows; ++r) {
    const int query = b->first_query + first + r;
    const float total = warp_reduce_sum(w->total[r]);
    if (query >= b->end_query)
      continue;
    const float inverse = inverse_of_total(b, query, w->max[r], total);
    const index out = place_of(b, query);
    UNROLL for (int piece = 0; piece < width / PIECE; ++piece)
      if (piece * PIECE + lane * 2 < b->p->head_dim)
        store_pair(b->p, out + piece * PIECE + lane * 2,
                   w->sums[(piece * rows + r) * 2] * inverse,
                   w->sums[(piece * rows + r) * 2 + 1] * inverse);
  }
}

// Computes what one block does.
INLINE void attend_floats(const prefill *p, const int rows, const int width) {
  const query_block b = begin_block(p, FLOAT_WARPS * rows);
  const int first = (int)thread_idx() / WARP * rows; // query of the warp
  const int first_key = b.first_key / FLOAT_KEYS * FLOAT_KEYS;
  copy_piece(&b, first_key, 0, 0, width);
  cp_async_commit();
  write_float_queries(&b, FLOAT_WARPS * rows, width);
  float_warp w;
  UNROLL for (int i = 0; i < rows * width / WARP; ++i)
    w.sums[i] = 0.0f;
  UNROLL for (int r = 0; r < rows; ++r) {
    w.max[r] = LOWEST_FLOAT;
    w.total[r] = 0.0f;
    w.last[r] = position_of(&b, b.first_query + first + r);
    w.first[r] = first_key_of(p, w.last[r]);
  }
  for (int key = first_key; key <= b.last_key; key += FLOAT_KEYS) {
    float scores[FLOAT_ROWS];
    UNROLL for (int r = 0; r < rows; ++r)
      scores[r] = 0.0f;
    UNROLL for (int piece = 0; piece < width / PIECE; ++piece) {
      next_piece(&b, key, 0, piece, width);
      multiply_key_piece(scores, piece, first, rows, width);
    }
    weigh_floats(&w, scores, key, first, p, rows, width);
    UNROLL for (int piece = 0; piece < width / PIECE; ++piece) {
      next_piece(&b, key, 1, piece, width);
      multiply_value_piece(w.sums + piece * rows * 2, piece, first, rows, width);
    }
  }
  write_float_results(&w, &b, first, rows, width);
}

INLINE void attend_f32_64(const prefill *p) { attend_floats(p, FLOAT_ROWS, 64); }
INLINE void attend_f32_128(const prefill *p) { attend_floats(p, FLOAT_ROWS, 128); }
INLINE void attend_f32_256(const prefill *p) {
  attend_floats(p, FLOAT_ROWS_WIDE, 256);
}

DEFINE_PREFILL(f32_64, ELEMENT_F32, NULL, attend_f32_64, const float *cache)
DEFINE_PREFILL(f32_128, ELEMENT_F32, NULL, attend_f32_128, const float *cache)
DEFINE_PREFILL(f32_256, ELEMENT_F32, NULL, attend_f32_256, const float *cache)
