// The experts of several tokens, and rows sorted by expert.
//
// A row is a token with one of its experts: row t * active + s is that of slot s of token
// t. Products take rows in tiles, each of one expert.
//
//   logits         [tokens][experts], of the router: see choose.h
//   row_numbers    [3][tokens], of which the second are slots, see attention.h: those of
//                  padding are 0. Padding has no experts
//   token_experts, token_shares
//                  [tokens][active]: -1 and 0 for padding
//   places         [tokens][active]: where each row is among the sorted ones
//   row_tokens     [rows]: the token of each sorted row
//   tiles          [max_tiles][3]: an expert, its tile's first sorted row, and the end of
//                  the expert's rows. After the last tile, experts are -1
//   products       [rows][width], of sorted rows
//   out            [tokens][width]: the sum of each token's products by their shares

#include "choose.h"
#include "memory.h"

enum {
  THREADS = 256,
  SORT_THREADS = MAX_EXPERTS,
  SORT_WARPS = SORT_THREADS / WARP,
  AT_ONCE = 8, // rows whose experts are read before the first is used
};

STATED(threads, THREADS);
STATED(sort_threads, SORT_THREADS);

// A warp chooses the experts of a token.
KERNEL cuda_choose_experts(const float *logits, const int32_t *row_numbers,
                           int32_t *token_experts, float *token_shares, int tokens,
                           int experts, int active, int normalized) {
  const int thread = (int)thread_idx(), lane = thread % WARP;
  const int token = (int)block_idx() * (THREADS / WARP) + thread / WARP;
  if (token >= tokens)
    return;
  const choice own = choose_experts(logits + (index)token * experts, experts, normalized,
                                    active, lane);
  const int is_padding = row_numbers[tokens + token] == 0;
  if (lane < active) {
    token_experts[token * active + lane] = is_padding ? -1 : own.expert;
    token_shares[token * active + lane] = is_padding ? 0.0f : own.share;
  }
}

SHARED_MEMORY int32_t counts[SORT_THREADS];
SHARED_MEMORY int32_t warp_rows[SORT_WARPS];
SHARED_MEMORY int32_t warp_tiles[SORT_WARPS];

// Reads the experts of rows from `row` on. Past the end there are none.
INLINE void load_experts(int32_t to[AT_ONCE], const int32_t *token_experts, int row,
                         int end) {
  UNROLL for (int i = 0; i < AT_ONCE; ++i)
    to[i] = row + i < end ? token_experts[row + i] : -1;
}

// Returns the sum of x of this lane and of those before it.
INLINE int scan_warp(int x) {
  const int lane = (int)thread_idx() % WARP;
  for (int step = 1; step < WARP; step *= 2) {
    const int before = (int)shuffle_u32((uint32_t)x, max_int(lane - step, 0));
    x += lane >= step ? before : 0;
  }
  return x;
}

// An expert's rows and tiles, and those of the experts before it.
typedef struct {
  int rows, tiles, first_row, first_tile;
} place;

// Returns the place of this thread's expert, which has so many rows. Tiles have 2^shift.
// Threads of several parts know the same of an expert.
INLINE place place_expert(int expert, int rows, int shift) {
  const int warp = expert / WARP, tiles = (rows + (1 << shift) - 1) >> shift;
  const int rows_here = scan_warp(rows), tiles_here = scan_warp(tiles);
  if (expert % WARP == WARP - 1) {
    warp_rows[warp] = rows_here;
    warp_tiles[warp] = tiles_here;
  }
  syncthreads();
  place found = {rows, tiles, rows_here - rows, tiles_here - tiles};
  for (int other = 0; other < warp; ++other) {
    found.first_row += warp_rows[other];
    found.first_tile += warp_tiles[other];
  }
  return found;
}

// One block sorts all rows. Each thread counts the rows of an expert in a part of them,
// and then gives those their places, so that rows of an expert stay in order. A tile has a
// power of two of rows.
KERNEL cuda_sort_rows(const int32_t *token_experts, int32_t *places,
                      int32_t *row_tokens, int32_t *tiles, int rows, int experts,
                      int active, int tile_rows, int max_tiles) {
  const int thread = (int)thread_idx(), shift = __builtin_ctz((unsigned)tile_rows);
  int width = WARP;
  while (width < experts)
    width *= 2;
  const int parts = SORT_THREADS / width, part = thread / width;
  const int expert = thread % width, size = (rows + parts - 1) / parts;
  const int begin = part * size, end = min_int(begin + size, rows);
  int32_t found[AT_ONCE];
  int count = 0;
  for (int row = begin; row < end; row += AT_ONCE) {
    load_experts(found, token_experts, row, end);
    UNROLL for (int i = 0; i < AT_ONCE; ++i)
      count += found[i] == expert;
  }
  counts[thread] = count;
  syncthreads();
  int before = 0, total = 0;
  for (int other = 0; other < parts; ++other) {
    before += other < part ? counts[other * width + expert] : 0;
    total += counts[other * width + expert];
  }
  const place at = place_expert(expert, total, shift);
  for (int tile = part; tile < at.tiles; tile += parts) {
    int32_t *to = tiles + 3 * (at.first_tile + tile);
    to[0] = expert;
    to[1] = at.first_row + (tile << shift);
    to[2] = at.first_row + total;
  }
  int all = 0;
  for (int warp = 0; warp < width / WARP; ++warp)
    all += warp_tiles[warp];
  for (int tile = all + thread; tile < max_tiles; tile += SORT_THREADS) {
    int32_t *to = tiles + 3 * tile;
    to[0] = -1;
    to[1] = to[2] = 0;
  }
  int next = at.first_row + before;
  for (int row = begin; row < end; row += AT_ONCE) {
    load_experts(found, token_experts, row, end);
    UNROLL for (int i = 0; i < AT_ONCE; ++i)
      if (found[i] == expert) {
        places[row + i] = next;
        row_tokens[next++] = (row + i) / active;
      }
  }
}

// Each thread computes four consecutive elements.
KERNEL cuda_combine_experts(const float *products, const int32_t *places,
                            const float *token_shares, float *out, int tokens,
                            int width, int active) {
  typedef float float4_t __attribute__((vector_size(16)));
  const index at = block_idx() * THREADS + thread_idx(), fours = width / 4;
  if (at >= (index)tokens * fours)
    return;
  const index token = at / fours, four = at - token * fours;
  float4_t sum = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int slot = 0; slot < active; ++slot) {
    const float share = token_shares[token * active + slot];
    if (share == 0.0f) // padding has no place
      continue;
    const index row = places[token * active + slot];
    const float4_t x = ((const float4_t *)products)[row * fours + four];
    UNROLL for (int e = 0; e < 4; ++e)
      sum[e] = __builtin_fmaf(share, x[e], sum[e]);
  }
  ((float4_t *)out)[at] = sum;
}
