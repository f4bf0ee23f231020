// The experts of several tokens, and rows sorted by expert.
//
// A row is a token with one of its experts: row t * active + s is that of slot s of token
// t. Products take rows in tiles, each of one expert.
//
//   logits         [tokens][experts], of the router: see choose.h
//   token_experts, token_shares
//                  [tokens][active]
//   places         [tokens][active]: where each row is among the sorted ones
//   row_tokens     [rows]: the token of each sorted row
//   tiles          [max_tiles][3]: an expert, its tile's first sorted row, and the end of
//                  the expert's rows. After the last tile, experts are -1
//   products       [rows][width], of sorted rows
//   out            [tokens][width]: the sum of each token's products by their shares

#include "choose.h"

enum {
  THREADS = 256,
  SORT_THREADS = MAX_EXPERTS,
};

STATED(threads, THREADS);
STATED(sort_threads, SORT_THREADS);

// A warp chooses the experts of a token.
KERNEL cuda_choose_experts(const float *logits, int32_t *token_experts,
                           float *token_shares, int tokens, int experts, int active,
                           int normalized) {
  const int thread = (int)thread_idx(), lane = thread % WARP;
  const int token = (int)block_idx() * (THREADS / WARP) + thread / WARP;
  if (token >= tokens)
    return;
  const choice own = choose_experts(logits + (index)token * experts, experts, normalized,
                                    active, lane);
  if (lane < active) {
    token_experts[token * active + lane] = own.expert;
    token_shares[token * active + lane] = own.share;
  }
}

SHARED_MEMORY int32_t counts[SORT_THREADS];
SHARED_MEMORY int32_t totals[MAX_EXPERTS];

INLINE int tiles_of(int rows, int tile_rows) {
  return (rows + tile_rows - 1) / tile_rows;
}

// One block sorts all rows. Each thread counts the rows of an expert in a part of them,
// and then gives those their places, so that rows of an expert stay in order.
KERNEL cuda_sort_rows(const int32_t *token_experts, int32_t *places,
                      int32_t *row_tokens, int32_t *tiles, int rows, int experts,
                      int active, int tile_rows, int max_tiles) {
  const int thread = (int)thread_idx();
  int width = WARP;
  while (width < experts)
    width *= 2;
  const int parts = SORT_THREADS / width, part = thread / width;
  const int expert = thread % width, size = (rows + parts - 1) / parts;
  const int begin = part * size, end = min_int(begin + size, rows);
  int count = 0;
  for (int row = begin; row < end; ++row)
    count += token_experts[row] == expert;
  counts[thread] = count;
  syncthreads();
  int before = 0, total = 0;
  for (int other = 0; other < parts; ++other) {
    before += other < part ? counts[other * width + expert] : 0;
    total += counts[other * width + expert];
  }
  if (part == 0)
    totals[expert] = total;
  syncthreads();
  int first = 0, first_tile = 0;
  for (int other = 0; other < expert; ++other) {
    first += totals[other];
    first_tile += tiles_of(totals[other], tile_rows);
  }
  if (part == 0)
    for (int tile = 0; tile < tiles_of(total, tile_rows); ++tile) {
      int32_t *to = tiles + 3 * (first_tile + tile);
      to[0] = expert;
      to[1] = first + tile * tile_rows;
      to[2] = first + total;
    }
  if (thread == width - 1)
    for (int tile = first_tile + tiles_of(total, tile_rows); tile < max_tiles; ++tile) {
      int32_t *to = tiles + 3 * tile;
      to[0] = -1;
      to[1] = to[2] = 0;
    }
  int place = first + before;
  for (int row = begin; row < end; ++row)
    if (token_experts[row] == expert) {
      places[row] = place;
      row_tokens[place++] = row / active;
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
    const index row = places[token * active + slot];
    const float4_t x = ((const float4_t *)products)[row * fours + four];
    const float share = token_shares[token * active + slot];
    UNROLL for (int e = 0; e < 4; ++e)
      sum[e] = __builtin_fmaf(share, x[e], sum[e]);
  }
  ((float4_t *)out)[at] = sum;
}
