// Attention on NVIDIA GPUs of one query for each sequence, in chunks.
//
//   q            [sequences][heads][head_dim], in units in which weights are 2^score
//   cache        [pages][parts][kv_heads][PAGE][head_dim]: part 2 * layer has keys
//                and the part after it values. Q8's scales have the same leading
//                dimensions and one scale for each 32 elements of a row
//   positions    [sequences]: the query's position, which is the last that it sees
//   pages        [sequences][table]: position p of sequence s is at p % PAGE of page
//                pages[s][p / PAGE - first_pages[s]]
//   first_pages  [sequences], read only if has_first_pages: else all are 0
//   partial      [sequences][chunks][heads][head_dim]: weighted sums of values, not
//                written if the chunk is empty
//   max_sum      [sequences][chunks][heads][2]: the largest score and the sum of
//                weights; -inf and 0 if the chunk is empty
//
// If window is not 0, a query sees the last `window` positions. If the bits of the
// float c, soft_cap, are not 0, scores s become c * tanh(s / c), in natural units.
// Padding sequences have position 0 and page 0.
//
// A block computes up to `rows` heads of one kv head, over one of `chunks` equal
// parts of the pages that the query sees, a page at a time. Eight lanes share a row
// of the cache, each in turn with eight consecutive elements. So a warp reads four
// rows at a time, in whole cache lines. Every eight lanes keep a maximum and sums,
// which are merged at the end.

#ifndef KERNELS_CUDA_ATTENTION_H
#define KERNELS_CUDA_ATTENTION_H

#include "../kv_cache.h"
#include "cuda.h"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP,
  ROW_LANES = 8,
  VECTOR = 8, // elements that a lane reads at once
  WARP_ROWS = WARP / ROW_LANES,
  BLOCK_ROWS = THREADS / ROW_LANES,
  AHEAD = PAGE / BLOCK_ROWS, // rows that are read before the first is used
  NARROW = 128, // elements of a narrow row of the cache, at most
  NARROW_ROWS = 4, // heads per block if rows are narrow
  WIDE_ROWS = 2,
  MAX_ROWS = NARROW_ROWS,
  MAX_ELEMENTS = 64, // elements of these rows per lane
  STATE = MAX_ELEMENTS * ROW_LANES,
};

STATED(threads, THREADS);
STATED(vector, VECTOR);
STATED(narrow, NARROW);
STATED(narrow_rows, NARROW_ROWS);
STATED(wide_rows, WIDE_ROWS);

#define LOWEST_FLOAT (-3.40282347e38f)

typedef struct {
  kv_slice cache;
  const int32_t *pages; // of the sequence, from the chunk's first one on
  const float *q;
  float *partial, *max_sum;
  index keys, page_size, half_size; // elements, the first of a page's keys
  int first, end;                   // positions from the chunk's first page on
  int head_dim;
  float soft_cap;
} task;

typedef uint32_t uint2_t __attribute__((vector_size(8)));

INLINE float from_halves(element_type type, uint32_t bits) {
  return type == ELEMENT_BF16 ? float_from_bf16((uint16_t)bits)
                              : float_from_f16((uint16_t)bits);
}

// Loads eight elements, the index of the first of which is a multiple of eight.
INLINE void load_vector(const kv_slice *from, index i, float x[VECTOR]) {
  switch (from->type) {
  case ELEMENT_F32:
    UNROLL for (int half = 0; half < 2; ++half) {
      const uint4_t four =
          *(const uint4_t *)((const float *)from->elements + i + half * 4);
      UNROLL for (int e = 0; e < 4; ++e)
        x[half * 4 + e] = float_of(four[e]);
    }
    break;
  case ELEMENT_BF16:
  case ELEMENT_F16: {
    const uint4_t pairs =
        *(const uint4_t *)((const uint16_t *)from->elements + i);
    UNROLL for (int e = 0; e < 4; ++e) {
      x[2 * e] = from_halves(from->type, pairs[e] & 0xffff);
      x[2 * e + 1] = from_halves(from->type, pairs[e] >> 16);
    }
    break;
  }
  case ELEMENT_Q8: {
    const uint2_t fours =
        *(const uint2_t *)((const int8_t *)from->elements + i);
    const float scale = float_from_f16(from->scales[i / CACHE_GROUP]);
    UNROLL for (int e = 0; e < VECTOR; ++e)
      x[e] = (float)(int8_t)(fours[e / 4] >> e % 4 * 8) * scale;
    break;
  }
  }
}

// Loads this lane's elements of the row that begins at element `at`, with zeros
// past its end.
INLINE void load_row_part(const kv_slice *from, index at, index head_dim, index lane,
                        const int vectors, float *x) {
  UNROLL for (int v = 0; v < vectors; ++v) {
    const index first = (v * ROW_LANES + lane) * VECTOR;
    if (first < head_dim)
      load_vector(from, at + first, x + v * VECTOR);
    else
      UNROLL for (int e = 0; e < VECTOR; ++e)
        x[v * VECTOR + e] = 0.0f;
  }
}

// Returns cap * tanh(x / cap) in units of log 2: cap * (1 - 2 / (e^(2 x / cap) + 1)).
INLINE float capped(float x, float cap) {
  const float power = exp2_approx(x / cap * (2.0f * LOG2_E));
  return cap - 2.0f * cap / (power + 1.0f);
}

SHARED_MEMORY float warp_sums[WARPS * STATE];
SHARED_MEMORY float warp_max[WARPS * MAX_ROWS];
SHARED_MEMORY float warp_weights[WARPS * MAX_ROWS];

// Computes `count` of at most `rows` heads, of which each lane has `vectors` vectors.
INLINE void attend(const task *t, index count, const int rows,
                   const int vectors) {
  const int size = vectors * VECTOR;
  const int thread = (int)thread_idx(), warp = thread / WARP;
  const int lane = thread % ROW_LANES;
  const kv_slice queries = {ELEMENT_F32, t->q, 0};
  float q[MAX_ELEMENTS], sums[MAX_ELEMENTS], max[MAX_ROWS], sum[MAX_ROWS];
  UNROLL for (int r = 0; r < rows; ++r) {
    const index row = r < count ? r : 0;
    load_row_part(&queries, row * t->head_dim, t->head_dim, lane, vectors,
                q + r * size);
    UNROLL for (int e = 0; e < size; ++e)
      sums[r * size + e] = 0.0f;
    max[r] = LOWEST_FLOAT;
    sum[r] = 0.0f;
  }

  // All lanes of a warp do the same number of iterations. The number of a page is
  // read one page ahead, so that its rows need not wait for it.
  int32_t page = t->pages[0];
  for (int base = 0; base < t->end; base += PAGE) {
    const kv_slice of_keys = kv_slice_at(t->cache, t->keys + page * t->page_size);
    const kv_slice of_values = kv_slice_at(of_keys, t->half_size);
    if (base + PAGE < t->end)
      page = t->pages[base / PAGE + 1];
    float keys[MAX_ELEMENTS], values[MAX_ELEMENTS];
    UNROLL for (int a = 0; a < AHEAD; ++a) {
      // Rows that the query does not see may be of any value, even NaN.
      const int position = base + a * BLOCK_ROWS + thread / ROW_LANES;
      const int from = max_int(t->first, min_int(position, t->end - 1));
      const index at = (index)(from - base) * t->head_dim;
      load_row_part(&of_keys, at, t->head_dim, lane, vectors, keys + a * size);
      load_row_part(&of_values, at, t->head_dim, lane, vectors,
                    values + a * size);
    }
    UNROLL for (int a = 0; a < AHEAD; ++a) {
      const int position = base + a * BLOCK_ROWS + thread / ROW_LANES;
      const int there = position >= t->first && position < t->end;
      UNROLL for (int r = 0; r < rows; ++r) {
        float score = 0.0f;
        UNROLL for (int e = 0; e < size; ++e)
          score = __builtin_fmaf(q[r * size + e], keys[a * size + e], score);
        UNROLL for (int mask = 1; mask < ROW_LANES; mask *= 2)
          score += shuffle_xor(score, mask);
        if (t->soft_cap != 0.0f)
          score = capped(score, t->soft_cap);
        score = there ? score : NEGATIVE_INFINITY;
        const float most = max_float(max[r], score);
        const float before = exp2_approx(max[r] - most);
        const float weight = exp2_approx(score - most);
        max[r] = most;
        sum[r] = sum[r] * before + weight;
        UNROLL for (int e = 0; e < size; ++e)
          sums[r * size + e] = __builtin_fmaf(weight, values[a * size + e],
                                              sums[r * size + e] * before);
      }
    }
  }

  UNROLL for (int r = 0; r < rows; ++r) {
    float most = max[r];
    UNROLL for (int mask = ROW_LANES; mask < WARP; mask *= 2)
      most = max_float(most, shuffle_xor(most, mask));
    const float factor = exp2_approx(max[r] - most);
    float total = sum[r] * factor;
    UNROLL for (int mask = ROW_LANES; mask < WARP; mask *= 2)
      total += shuffle_xor(total, mask);
    UNROLL for (int e = 0; e < size; ++e) {
      float x = sums[r * size + e] * factor;
      UNROLL for (int mask = ROW_LANES; mask < WARP; mask *= 2)
        x += shuffle_xor(x, mask);
      const index d = (e / VECTOR * ROW_LANES + lane) * VECTOR + e % VECTOR;
      if (thread % WARP < ROW_LANES && d < t->head_dim)
        warp_sums[warp * STATE + r * size * ROW_LANES + d] = x;
    }
    if (thread % WARP == 0) {
      warp_max[warp * MAX_ROWS + r] = most;
      warp_weights[warp * MAX_ROWS + r] = total;
    }
  }
  syncthreads();

  for (int r = 0; r < count; ++r) {
    float most = LOWEST_FLOAT, factors[WARPS], total = 0.0f;
    UNROLL for (int w = 0; w < WARPS; ++w)
      most = max_float(most, warp_max[w * MAX_ROWS + r]);
    UNROLL for (int w = 0; w < WARPS; ++w) {
      factors[w] = exp2_approx(warp_max[w * MAX_ROWS + r] - most);
      total += warp_weights[w * MAX_ROWS + r] * factors[w];
    }
    for (index d = thread; d < t->head_dim; d += THREADS) {
      float x = 0.0f;
      UNROLL for (int w = 0; w < WARPS; ++w)
        x += warp_sums[w * STATE + r * size * ROW_LANES + d] * factors[w];
      t->partial[r * t->head_dim + d] = x;
    }
    if (thread == 0) {
      t->max_sum[r * 2] = most;
      t->max_sum[r * 2 + 1] = total;
    }
  }
}

// Computes what one block does. Blocks are
// [sequences][chunks][groups of `rows` heads][kv_heads].
INLINE void attend_block(kv_slice cache, const float *q, const int32_t *positions,
                         const int32_t *pages, const int32_t *first_pages,
                         float *partial, float *max_sum, int layer, int heads,
                         int kv_heads, int head_dim, int parts, int table,
                         int rows, int window, uint32_t soft_cap, int chunks) {
  const int block = (int)block_idx(), group = heads / kv_heads;
  const int blocks = (group + rows - 1) / rows;
  const int kv_head = block % kv_heads;
  const int first_row = block / kv_heads % blocks * rows;
  const int part = block / kv_heads / blocks; // of [sequences][chunks]
  const int s = part / chunks, chunk = part % chunks;
  const int end = positions[s] + 1;
  const int first = window ? max_int(end - window, 0) : 0;
  const int first_page = first / PAGE;
  const int seen_pages = (end - 1) / PAGE + 1 - first_page;
  const int share = (seen_pages + chunks - 1) / chunks;
  const int page = first_page + chunk * share; // the chunk's first
  const int before = first_pages ? first_pages[s] : 0;
  const index half_size = (index)kv_heads * PAGE * head_dim;
  const index head = kv_head * group + first_row;
  const index place = (index)part * heads + head;
  const task t = {
      .cache = cache,
      .pages = pages + (index)s * table + (page - before),
      .q = q + ((index)s * heads + head) * head_dim,
      .partial = partial + place * head_dim,
      .max_sum = max_sum + place * 2,
      .keys = 2 * layer * half_size + (index)kv_head * PAGE * head_dim,
      .page_size = parts * half_size,
      .half_size = half_size,
      .first = max_int(first - page * PAGE, 0),
      .end = min_int(end - page * PAGE, share * PAGE),
      .head_dim = head_dim,
      .soft_cap = float_of(soft_cap) * LOG2_E,
  };
  const index count = min_index(rows, group - first_row);
  if (t.end <= 0) {
    for (index r = thread_idx(); r < count; r += THREADS) {
      t.max_sum[r * 2] = NEGATIVE_INFINITY;
      t.max_sum[r * 2 + 1] = 0.0f;
    }
    return;
  }
  if (head_dim <= 64)
    attend(&t, count, NARROW_ROWS, 1);
  else if (head_dim <= NARROW)
    attend(&t, count, NARROW_ROWS, 2);
  else
    attend(&t, count, WIDE_ROWS, 4);
}

// Defines the kernel for a cache of one type.
#define DEFINE_ATTENTION(name, type, scales, ...)                              \
  KERNEL cuda_attention_##name(                                                \
      const float *q, __VA_ARGS__, const int32_t *positions,                   \
      const int32_t *pages, const int32_t *first_pages, float *partial,        \
      float *max_sum, int layer, int sequences, int heads, int kv_heads,       \
      int head_dim, int parts, int table, int rows, int window,                \
      uint32_t soft_cap, int chunks, int has_first_pages) {                    \
    (void)sequences;                                                           \
    attend_block((kv_slice){type, cache, scales}, q, positions, pages,         \
                 has_first_pages ? first_pages : NULL, partial, max_sum,       \
                 layer, heads, kv_heads, head_dim, parts, table, rows, window, \
                 soft_cap, chunks);                                            \
  }

#endif
