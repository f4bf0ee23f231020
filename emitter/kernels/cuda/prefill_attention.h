// Attention of prompts on NVIDIA GPUs by tensor cores, with a cache of 16 bits or of q8.
//
// prefill.h documents the operands. Kernels are for heads of up to `width` dimensions:
// zeros are added to shorter ones.
//
// Keys and values of the cache pass through a ring of tiles in shared memory: the keys of
// some positions, then their values, then the next positions' keys, and so on. Each
// QUERY_WARPS warps compute 16 queries each with some keys of a tile, and KEY_WARPS such
// sets of warps share the keys, and merge their results at the end. A warp computes its
// scores as sums of tensor cores, and weights 2^(score - max) of them, which are in place
// to be multiplied by the values. Queries and weights are rounded to the type of the
// tiles. Q8 is converted to f16: so small errors of a product of a byte and a scale are
// less than those of queries.
#ifndef KERNELS_CUDA_PREFILL_ATTENTION_H
#define KERNELS_CUDA_PREFILL_ATTENTION_H

#include "prefill.h"

#ifndef QUERY_WARPS
#define QUERY_WARPS 4
#endif
#ifndef KEY_WARPS
#define KEY_WARPS 2
#endif
#ifndef TILE_BYTES
#define TILE_BYTES 16384
#endif
#ifndef RING
#define RING 3
#endif

enum {
  PREFILL_THREADS = WARP * QUERY_WARPS * KEY_WARPS,
  WARP_QUERIES = 16,
  QUERIES = WARP_QUERIES * QUERY_WARPS, // of a block
  MAX_WIDTH = 256,
  CHUNK_BYTES = 16, // that are copied at once
  RAW_CHUNKS = (TILE_BYTES / 2 / CHUNK_BYTES + PREFILL_THREADS - 1) / PREFILL_THREADS, // of q8 per thread
  SLICE = 64, // dimensions that are merged at once
  SLICE_SUMS = SLICE / 8 * 4,
  MERGE_WORDS = (SLICE_SUMS + 4) * WARP,
  TILE_WORDS = TILE_BYTES / 4,
};

_Static_assert(QUERY_WARPS * KEY_WARPS / 2 * MERGE_WORDS <= TILE_WORDS * RING,
               "merging needs more shared memory than the tiles");

STATED(prefill_threads, PREFILL_THREADS);
STATED(queries, QUERIES);

SHARED_MEMORY uint32_t tiles[TILE_WORDS * RING] __attribute__((aligned(16)));

INLINE int keys_of_tile(const int width) { return TILE_BYTES / 2 / width; }

// Rows of a tile are in order, but chunks of row r are exchanged by r % 8: so the same
// chunk of eight rows is in eight different places among the banks of shared memory.
INLINE int place_of_chunk(int row, int chunk, const int width) {
  return (row * (width / 8) + (chunk ^ row % 8)) * CHUNK_BYTES;
}

// ------------------------------------------------------------------- tiles

// Tile n has keys (n even) or values of the positions from that of key_of_tile() on.
typedef struct {
  shared_address ring;
  int first, count; // the first position, and the number of tiles
  int slot;         // of the current tile
  // What a thread has read for the next tile of q8.
  uint4_t raw[RAW_CHUNKS];
  uint32_t scales[(RAW_CHUNKS + 1) / 2]; // two f16 each
} tile_ring;

INLINE int key_of_tile(const tile_ring *t, int n, const int width) {
  return t->first + n / 2 * keys_of_tile(width);
}

INLINE int is_key_seen(const query_block *b, int key) {
  return key >= b->first_key && key <= b->last_key;
}

// Begins to copy tile n to a slot of the ring. Keys that no query sees are zero, because
// they may be of any value, even NaN.
INLINE void copy_tile(const query_block *b, const tile_ring *t, int n, int slot,
                      const int width) {
  const int columns = width / 8, rows = PREFILL_THREADS / columns; // of a step
  const int part_keys = min_int(keys_of_tile(width), PAGE), head_dim = b->p->head_dim;
  const int row = (int)thread_idx() / columns, chunk = (int)thread_idx() % columns;
  // Steps are of whole eights of rows, so that chunks are exchanged alike.
  const shared_address to =
      t->ring + (shared_address)(slot * TILE_BYTES + place_of_chunk(row, chunk, width));
  UNROLL for (int part = 0; part < keys_of_tile(width); part += part_keys) {
    const int key = key_of_tile(t, n, width) + part;
    const index page = b->keys + n % 2 * b->half_size + page_of(b, key) * b->page_size;
    const uint16_t *from = (const uint16_t *)b->p->cache.elements + page +
                           (key % PAGE + row) * head_dim + chunk * 8;
    UNROLL for (int i = 0; i < part_keys; i += rows) {
      if (rows > part_keys && row >= part_keys)
        break;
      const int is_there = is_key_seen(b, key + row + i) && chunk * 8 < head_dim;
      cp_async_16(to + (shared_address)((part + i) * width * 2), from + i * head_dim,
                  is_there ? CHUNK_BYTES : 0);
    }
  }
}

// Reads this thread's bytes of tile n of q8.
INLINE void read_raw(const query_block *b, tile_ring *t, int n, const int width) {
  const int columns = width / 16, head_dim = b->p->head_dim;
  UNROLL for (int i = 0; i < RAW_CHUNKS; ++i) {
    const int row = (int)thread_idx() / columns + i * (PREFILL_THREADS / columns);
    const int chunk = (int)thread_idx() % columns;
    const int key = key_of_tile(t, n, width) + row;
    t->raw[i] = (uint4_t){0, 0, 0, 0};
    if (i % 2 == 0)
      t->scales[i / 2] = 0;
    if (row >= keys_of_tile(width) || !is_key_seen(b, key) || chunk * 16 >= head_dim)
      continue;
    const index at = b->keys + n % 2 * b->half_size + page_of(b, key) * b->page_size +
                     key % PAGE * head_dim + chunk * 16;
    t->raw[i] = *(const uint4_t *)((const int8_t *)b->p->cache.elements + at);
    t->scales[i / 2] |= (uint32_t)b->p->cache.scales[at / CACHE_GROUP] << i % 2 * 16;
  }
}

// Writes what read_raw() has read to a slot of the ring, as f16.
INLINE void write_raw(const tile_ring *t, int slot, const int width) {
  const int columns = width / 16;
  UNROLL for (int i = 0; i < RAW_CHUNKS; ++i) {
    const int row = (int)thread_idx() / columns + i * (PREFILL_THREADS / columns);
    const int chunk = (int)thread_idx() % columns;
    if (row >= keys_of_tile(width))
      continue;
    const uint32_t both = t->scales[i / 2];
    const uint32_t scale = permute_bytes(both, both, i % 2 ? 0x3232 : 0x1010);
    UNROLL for (int half = 0; half < 2; ++half) {
      const int to = slot * TILE_WORDS + place_of_chunk(row, 2 * chunk + half, width) / 4;
      UNROLL for (int e = 0; e < 2; ++e) {
        // The lowest bits of f16's 1024 count ones.
        const uint32_t bytes = t->raw[i][half * 2 + e] ^ 0x80808080u;
        UNROLL for (int pair = 0; pair < 2; ++pair) {
          const uint32_t high = permute_bytes(bytes, 0x64646464u, pair ? 0x4342 : 0x4140);
          tiles[to + e * 2 + pair] =
              multiply_f16x2(subtract_f16x2(high, 0x64806480u), scale);
        }
      }
    }
  }
}

// Begins to fill the ring, up to but not including slot `end`.
INLINE void fill_slots(const query_block *b, tile_ring *t, int begin, int end,
                       const element_type type, const int width) {
  if (type == ELEMENT_Q8) {
    if (begin == 0)
      read_raw(b, t, 0, width);
    return;
  }
  UNROLL for (int slot = begin; slot < end; ++slot) {
    if (slot < t->count)
      copy_tile(b, t, slot, slot, width);
    cp_async_commit();
  }
}

// Waits for tile n, and begins to read others. All warps are done with the tile before.
INLINE void next_tile(const query_block *b, tile_ring *t, int n,
                      const element_type type, const int width) {
  t->slot = t->slot == RING - 1 ? 0 : t->slot + 1;
  if (type == ELEMENT_Q8) {
    syncthreads();
    if (n + 1 < t->count)
      write_raw(t, t->slot == RING - 1 ? 0 : t->slot + 1, width);
    if (n + 2 < t->count)
      read_raw(b, t, n + 2, width);
    return;
  }
  cp_async_wait(RING - 2);
  syncthreads();
  if (n + RING - 1 < t->count)
    copy_tile(b, t, n + RING - 1, t->slot == 0 ? RING - 1 : t->slot - 1, width);
  cp_async_commit();
}

// ----------------------------------------------------------------- queries

// What a warp keeps of its queries. Lane l has numbers of rows l / 4 and l / 4 + 8.
typedef struct {
  uint32_t q[MAX_WIDTH / 16 * 4];
  float sums[MAX_WIDTH / 8 * 4];
  float max[2], total[2];
  int last[2];         // the last key that a row sees
  int lowest, highest; // last keys of all rows of the warp
} query_warp;

INLINE int warp_of_block(void) { return (int)thread_idx() / WARP; }
INLINE int lane_of_warp(void) { return (int)thread_idx() % WARP; }
INLINE int query_warp_of(void) { return warp_of_block() % QUERY_WARPS; }
INLINE int key_warp_of(void) { return warp_of_block() / QUERY_WARPS; }

INLINE void mma(const element_type type, float sums[4], const uint32_t a[4],
                const uint32_t b[2]) {
  if (type == ELEMENT_BF16)
    mma_bf16(sums, a, b);
  else
    mma_f16(sums, a, b);
}

// Writes four dimensions of one of the block's queries to shared memory, to its place in
// a tile that begins at byte `to`.
INLINE void write_query(const query_block *b, int to, int at, const rope_kind kind,
                        const element_type type, const int width) {
  const int query = at / (width / 4), d = at % (width / 4) * 4;
  const int word = (to + place_of_chunk(query, d / 8, width)) / 4 + d % 8 / 2;
  float x[4];
  load_query(x, b, b->first_query + query, d, kind);
  tiles[word] = pack_halves(type, x[0], x[1]);
  tiles[word + 1] = pack_halves(type, x[2], x[3]);
}

INLINE void write_queries(const query_block *b, int to, const rope_kind kind,
                          const element_type type, const int width) {
  const int thread = (int)thread_idx(), steps = QUERIES * width / 4 / PREFILL_THREADS;
  if (kind == ROPE_UNALIGNED) { // is rare
#pragma clang loop unroll(disable)
    for (int i = 0; i < steps; ++i)
      write_query(b, to, i * PREFILL_THREADS + thread, kind, type, width);
    return;
  }
#pragma clang loop unroll_count(4)
  for (int i = 0; i < steps; ++i)
    write_query(b, to, i * PREFILL_THREADS + thread, kind, type, width);
}

INLINE void stage_queries(const query_block *b, int to, const element_type type,
                          const int width) {
#define WRITE(kind) write_queries(b, to, kind, type, width)
  WITH_ROPE_KIND(b->p->pairs, b->p->interleaved, WRITE)
#undef WRITE
}

// Returns the largest of all rows of the warp.
INLINE int max_of_rows(int x) {
  for (int mask = 4; mask < WARP; mask *= 2)
    x = max_int(x, (int)shuffle_xor_u32((uint32_t)x, mask));
  return x;
}

INLINE void begin_warp(query_warp *w, const query_block *b, shared_address queries,
                       const int width) {
  const int lane = lane_of_warp(), row = query_warp_of() * WARP_QUERIES;
  UNROLL for (int k = 0; k < width / 16; ++k)
    ldmatrix_x4(w->q + k * 4, queries + (shared_address)place_of_chunk(
                                            row + lane % 16, 2 * k + lane / 16, width));
  UNROLL for (int i = 0; i < width / 8 * 4; ++i)
    w->sums[i] = 0.0f;
  UNROLL for (int r = 0; r < 2; ++r) {
    w->max[r] = LOWEST_FLOAT;
    w->total[r] = 0.0f;
    w->last[r] = position_of(b, b->first_query + row + lane / 4 + r * 8);
  }
  w->lowest = -max_of_rows(-min_int(w->last[0], w->last[1]));
  w->highest = max_of_rows(max_int(w->last[0], w->last[1]));
}

// --------------------------------------------------------------- attention

// Computes the scores of a tile's keys from row `first` on.
INLINE void multiply_keys(const query_warp *w, float *scores, shared_address tile,
                          int first, const int keys, const element_type type,
                          const int width) {
  const int lane = lane_of_warp();
  const shared_address row =
      tile + (shared_address)((first + lane % 8 + lane / 16 * 8) * width * 2);
  const int exchanged = (lane / 8 % 2 ^ lane % 8) * CHUNK_BYTES;
  UNROLL for (int i = 0; i < keys / 2; ++i)
    scores[i] = 0.0f;
  UNROLL for (int k = 0; k < width / 16; ++k)
    UNROLL for (int n = 0; n < keys / 16; ++n) {
      uint32_t of_keys[4];
      ldmatrix_x4(of_keys, row + (shared_address)((k * 32 ^ exchanged) + n * 32 * width));
      mma(type, scores + n * 8, w->q + k * 4, of_keys);
      mma(type, scores + n * 8 + 4, w->q + k * 4, of_keys + 2);
    }
}

// Adds the values of a tile from row `first` on, times weights.
INLINE void multiply_values(query_warp *w, const uint32_t *weights, shared_address tile,
                            int first, const int keys, const element_type type,
                            const int width) {
  const int lane = lane_of_warp();
  const shared_address row = tile + (shared_address)((first + lane % 16) * width * 2);
  const int exchanged = (lane / 16 ^ lane % 8) * CHUNK_BYTES;
  UNROLL for (int k = 0; k < keys / 16; ++k)
    UNROLL for (int n = 0; n < width / 16; ++n) {
      uint32_t values[4];
      ldmatrix_x4_trans(values,
                        row + (shared_address)((n * 32 ^ exchanged) + k * 32 * width));
      mma(type, w->sums + n * 8, weights + k * 4, values);
      mma(type, w->sums + n * 8 + 4, weights + k * 4, values + 2);
    }
}

// Makes scores of the keys from `key` on weights, and multiplies sums so that they fit.
INLINE void weigh(query_warp *w, float *scores, uint32_t *weights, int key,
                  const int keys, const prefill *p, const element_type type,
                  const int width) {
  const int column = lane_of_warp() % 4 * 2;
  if (p->soft_cap != 0.0f)
    UNROLL for (int i = 0; i < keys / 2; ++i)
      scores[i] = capped(scores[i], p);
  if (key + p->span <= w->highest || key + keys - 1 > w->lowest)
    UNROLL for (int i = 0; i < keys / 2; ++i) {
      const int before = w->last[i % 4 / 2] - column - key - (i / 4 * 8 + i % 2);
      scores[i] = (uint32_t)before < (uint32_t)p->span ? scores[i] : NEGATIVE_INFINITY;
    }
  float factors[2];
  UNROLL for (int r = 0; r < 2; ++r) {
    float most = w->max[r];
    UNROLL for (int i = 0; i < keys / 4; ++i)
      most = max_number(most, scores[i / 2 * 4 + r * 2 + i % 2]);
    most = max_number(most, shuffle_xor(most, 1));
    most = max_number(most, shuffle_xor(most, 2));
    factors[r] = exp2_approx(w->max[r] - most);
    w->max[r] = most;
    w->total[r] *= factors[r];
  }
  UNROLL for (int i = 0; i < keys / 2; ++i) {
    scores[i] = exp2_approx(scores[i] - w->max[i % 4 / 2]);
    w->total[i % 4 / 2] += scores[i];
  }
  UNROLL for (int i = 0; i < keys / 4; ++i)
    weights[i] = pack_halves(type, scores[2 * i], scores[2 * i + 1]);
  UNROLL for (int i = 0; i < width / 8 * 4; ++i)
    w->sums[i] *= factors[i % 4 / 2];
}

// Adds to this warp the sums of the warp that wrote them to `from`: SLICE_SUMS of
// dimensions, for which `factors` are those of the two warps.
INLINE void merge_slice(query_warp *w, int first, int from, const float factors[4]) {
  UNROLL for (int i = 0; i < SLICE_SUMS; ++i)
    w->sums[first + i] = w->sums[first + i] * factors[i % 4 / 2] +
                         float_of(tiles[from + i * WARP]) * factors[2 + i % 4 / 2];
}

// Merges the warps that computed the same queries with other keys. The first ones get all.
INLINE void merge_warps(query_warp *w, const int width) {
  const int mine = key_warp_of();
  for (int step = KEY_WARPS / 2; step > 0; step /= 2) {
    const int is_sender = mine >= step && mine < 2 * step;
    const int at = ((is_sender ? mine - step : mine) * QUERY_WARPS + query_warp_of()) *
                       MERGE_WORDS + lane_of_warp();
    float factors[4];
    UNROLL for (int slice = 0; slice < width / SLICE; ++slice) {
      syncthreads();
      if (is_sender) {
        UNROLL for (int i = 0; i < SLICE_SUMS; ++i)
          tiles[at + i * WARP] = bits_of(w->sums[slice * SLICE_SUMS + i]);
        UNROLL for (int r = 0; r < 2; ++r) {
          tiles[at + (SLICE_SUMS + r) * WARP] = bits_of(w->max[r]);
          tiles[at + (SLICE_SUMS + 2 + r) * WARP] = bits_of(w->total[r]);
        }
      }
      syncthreads();
      if (mine >= step)
        continue;
      if (slice == 0)
        UNROLL for (int r = 0; r < 2; ++r) {
          const float other = float_of(tiles[at + (SLICE_SUMS + r) * WARP]);
          const float most = max_number(w->max[r], other);
          factors[r] = exp2_approx(w->max[r] - most);
          factors[2 + r] = exp2_approx(other - most);
          w->max[r] = most;
          w->total[r] =
              w->total[r] * factors[r] +
              float_of(tiles[at + (SLICE_SUMS + 2 + r) * WARP]) * factors[2 + r];
        }
      merge_slice(w, slice * SLICE_SUMS, at, factors);
    }
  }
}

INLINE void write_results(const query_warp *w, const query_block *b, const int width) {
  const int lane = lane_of_warp();
  UNROLL for (int r = 0; r < 2; ++r) {
    const int query =
        b->first_query + query_warp_of() * WARP_QUERIES + lane / 4 + r * 8;
    if (query >= b->end_query)
      continue;
    const float inverse = inverse_of_total(b, query, w->max[r], w->total[r]);
    const index out = place_of(b, query) + lane % 4 * 2;
    UNROLL for (int n = 0; n < width / 8; ++n)
      if (n * 8 < b->p->head_dim)
        store_pair(b->p, out + n * 8, w->sums[n * 4 + r * 2] * inverse,
                   w->sums[n * 4 + r * 2 + 1] * inverse);
  }
}

// Computes what one block does.
INLINE void attend_prompt(const prefill *p, const element_type type, const int width) {
  const int keys = keys_of_tile(width) / KEY_WARPS; // of a warp
  const int query_slots = (QUERIES * width * 2 + TILE_BYTES - 1) / TILE_BYTES;
  const int queries_at = (RING - query_slots) * TILE_BYTES;
  const query_block b = begin_block(p, QUERIES);
  tile_ring t = {.ring = ADDRESS_OF(tiles), .slot = RING - 1};
  t.first = b.first_key / keys_of_tile(width) * keys_of_tile(width);
  t.count = 2 * ((b.last_key - t.first) / keys_of_tile(width) + 1);
  query_warp w;
  // The queries are in the last slots, until the ring gets there.
  fill_slots(&b, &t, 0, RING - query_slots, type, width);
  stage_queries(&b, queries_at, type, width);
  syncthreads();
  begin_warp(&w, &b, t.ring + (shared_address)queries_at, width);
  if (query_slots > 1 && type != ELEMENT_Q8) {
    syncthreads();
    fill_slots(&b, &t, RING - query_slots, RING - 1, type, width);
  }
  if (type == ELEMENT_Q8) {
    write_raw(&t, 0, width);
    read_raw(&b, &t, 1, width);
  }

  const int first = key_warp_of() * keys; // in a tile
  for (int n = 0; n < t.count; n += 2) {
    const int key = key_of_tile(&t, n, width) + first;
    const int sees = key + keys - 1 + p->span > w.lowest && key <= w.highest;
    float scores[TILE_BYTES / 2 / 64 / KEY_WARPS / 2];
    uint32_t weights[TILE_BYTES / 2 / 64 / KEY_WARPS / 4];
    next_tile(&b, &t, n, type, width);
    if (sees) {
      multiply_keys(&w, scores, t.ring + (shared_address)(t.slot * TILE_BYTES), first,
                    keys, type, width);
      weigh(&w, scores, weights, key, keys, p, type, width);
    }
    next_tile(&b, &t, n + 1, type, width);
    if (sees)
      multiply_values(&w, weights, t.ring + (shared_address)(t.slot * TILE_BYTES), first,
                      keys, type, width);
  }

  UNROLL for (int r = 0; r < 2; ++r) {
    w.total[r] += shuffle_xor(w.total[r], 1);
    w.total[r] += shuffle_xor(w.total[r], 2);
  }
  merge_warps(&w, width);
  if (key_warp_of() == 0)
    write_results(&w, &b, width);
}

// Defines the kernels for a cache of one type.
#define ATTEND(name, type, width)                                              \
  static inline __attribute__((always_inline)) void attend_##name##_##width(   \
      const prefill *p) {                                                      \
    attend_prompt(p, type, width);                                             \
  }
#define DEFINE_WIDTH(name, type, of_scales, width, ...)                        \
  ATTEND(name, type, width)                                                    \
  DEFINE_PREFILL(name##_##width, type, of_scales, attend_##name##_##width,     \
                 __VA_ARGS__)

#ifdef WITHOUT_256
#define DEFINE_PREFILL_ATTENTION(name, type, of_scales, ...)                   \
  DEFINE_WIDTH(name, type, of_scales, 64, __VA_ARGS__)                         \
  DEFINE_WIDTH(name, type, of_scales, 128, __VA_ARGS__)
#else
#define DEFINE_PREFILL_ATTENTION(name, type, of_scales, ...)                   \
  DEFINE_WIDTH(name, type, of_scales, 64, __VA_ARGS__)                         \
  DEFINE_WIDTH(name, type, of_scales, 128, __VA_ARGS__)                        \
  DEFINE_WIDTH(name, type, of_scales, 256, __VA_ARGS__)
#endif

#endif
