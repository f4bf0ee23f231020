// Tests the choice of experts for several tokens, the order of rows, and the sum of
// products.

#include "check.h"

#include "cuda/route.c"

static struct {
  int tokens, experts, active, normalized, tile_rows, max_tiles, width;
  float *logits, *shares, *products, *out;
  int32_t *row_numbers, *chosen, *places, *row_tokens, *tiles;
} call;

static void choose(void) {
  cuda_choose_experts(call.logits, call.row_numbers, call.chosen, call.shares, call.tokens, call.experts,
                      call.active, call.normalized);
}

static void sort(void) {
  cuda_sort_rows(call.chosen, call.places, call.row_tokens, call.tiles,
                 call.tokens * call.active, call.experts, call.active, call.tile_rows,
                 call.max_tiles);
}

static void combine(void) {
  cuda_combine_experts(call.products, call.places, call.shares, call.out, call.tokens,
                       call.width, call.active);
}

static int is_chosen(const int32_t *chosen, int expert, int slots) {
  for (int slot = 0; slot < slots; ++slot)
    if (chosen[slot] == expert)
      return 1;
  return 0;
}

static int has_no_expert(int token) { return call.row_numbers[call.tokens + token] == 0; }

static void check_choice(int token) {
  const float *logits = call.logits + token * call.experts;
  const int32_t *chosen = call.chosen + token * call.active;
  double total = 0;
  for (int slot = 0; has_no_expert(token) && slot < call.active; ++slot) {
    check_equal("no expert", token, (uint32_t)chosen[slot], 0xffffffffu);
    check_equal("no share", token, call.shares[token * call.active + slot] == 0.0f, 1);
  }
  if (has_no_expert(token))
    return;
  for (int slot = 0; slot < call.active; ++slot) {
    int best = -1;
    for (int e = 0; e < call.experts; ++e)
      if (!is_chosen(chosen, e, slot) && (best < 0 || logits[e] > logits[best]))
        best = e;
    check_equal("expert", token, (uint32_t)chosen[slot], (uint32_t)best);
  }
  for (int e = 0; e < call.experts; ++e)
    if (!call.normalized || is_chosen(chosen, e, call.active))
      total += exp(logits[e]);
  for (int slot = 0; slot < call.active; ++slot)
    check_near("share", token, call.shares[token * call.active + slot],
               exp(logits[chosen[slot]]) / total, 0x1p-20);
}

// Every row has a place, in the order of experts and then of rows, and every place a tile
// of its expert.
static void check_order(void) {
  const int rows = call.tokens * call.active;
  int place = 0, tile = 0;
  for (int e = 0; e < call.experts; ++e) {
    const int first = place;
    for (int row = 0; row < rows; ++row)
      if (call.chosen[row] == e) {
        check_equal("place", row, (uint32_t)call.places[row], (uint32_t)place);
        check_equal("token", place, (uint32_t)call.row_tokens[place],
                    (uint32_t)(row / call.active));
        ++place;
      }
    for (int at = first; at < place; at += call.tile_rows, ++tile) {
      const int32_t *found = call.tiles + 3 * tile;
      check_equal("expert of tile", tile, (uint32_t)found[0], (uint32_t)e);
      check_equal("first row", tile, (uint32_t)found[1], (uint32_t)at);
      check_equal("end", tile, (uint32_t)found[2], (uint32_t)place);
    }
  }
  for (; tile < call.max_tiles; ++tile)
    check_equal("no tile", tile, (uint32_t)call.tiles[3 * tile], 0xffffffffu);
}

static void check_sum(int token) {
  for (int i = 0; i < call.width; ++i) {
    double sum = 0, size = 0;
    for (int slot = 0; slot < call.active; ++slot) {
      const int row = token * call.active + slot;
      if (has_no_expert(token))
        continue;
      const double x = call.shares[row] *
                       (double)call.products[call.places[row] * call.width + i];
      sum += x;
      size += fabs(x);
    }
    check_near("sum", token * call.width + i, call.out[token * call.width + i], sum,
               size * 0x1p-21);
  }
}

static int32_t *allocate_numbers(index count) {
  return (int32_t *)allocate_results(count);
}

static void test(int tokens, int experts, int active, int tile_rows) {
  const int rows = tokens * active;
  call.tokens = tokens;
  call.experts = experts;
  call.active = active;
  call.normalized = (int)random_index(0, 1);
  call.tile_rows = tile_rows;
  call.max_tiles = rows / tile_rows + (experts < rows ? experts : rows);
  call.width = 4 * (int)random_index(1, 80);
  at_case("%d tokens with %d of %d experts, tiles of %d, normalized %d", tokens, active,
          experts, tile_rows, call.normalized);
  call.logits = random_floats((index)tokens * experts, (exponents){-2, 2});
  call.products = random_floats((index)rows * call.width, ORDINARY);
  call.row_numbers = allocate_numbers(3 * tokens);
  for (int token = 0; token < tokens; ++token)
    call.row_numbers[tokens + token] = (int32_t)random_index(0, 3);
  call.chosen = allocate_numbers(rows);
  call.shares = allocate_results(rows);
  call.places = allocate_numbers(rows);
  call.row_tokens = allocate_numbers(rows);
  call.tiles = allocate_numbers(3 * call.max_tiles);
  call.out = allocate_results((index)tokens * call.width);
  launch_grid(divide_up(tokens, THREADS / WARP), THREADS, choose);
  launch_grid(1, SORT_THREADS, sort);
  launch_grid(divide_up((index)tokens * call.width / 4, THREADS), THREADS, combine);
  for (int token = 0; token < tokens; ++token) {
    check_choice(token);
    check_sum(token);
  }
  check_order();
  release_all();
}

int main(void) {
  begin_tests();
  const int sizes[][2] = {{1, 1}, {4, 2}, {5, 5}, {33, 3}, {128, 8}, {512, 32}};
  const int tokens[] = {1, 2, 17, 64, 130};
  for (int s = 0; s < 6; ++s)
    for (int t = 0; t < 5; ++t)
      test(tokens[t], sizes[s][0], sizes[s][1], random_u32() & 1 ? 32 : 64);
  return end_tests();
}
