// Rounds weights to superblocks of 6 bits, each column to its target. Units and scales
// are chosen at the first column of a superblock: to choose scales again at each half
// gains nothing in 6 bits.

#include "compensate.h"
#include "halves.h"

#define IN_BLOCK (BLOCK / HALF)

// Units of a superblock, and scales of its halves of groups, for each row.
typedef struct {
  floats D, s[IN_BLOCK];
} row_blocks;

// Chooses units and scales as quantize_halves() does.
static void choose_blocks(const panel *p, const floats *targets, index begin,
                          index halves, row_blocks *to) {
  for (index row = 0; row < ROWS; ++row) {
    weight_groups groups;
    for (index g = 0; g < IN_BLOCK; ++g) {
      for (index i = 0; i < HALF; ++i) {
        const index c = g * HALF + i;
        groups.x[i][g] = g < halves ? targets[c][row] : 0.0f;
        groups.w[i][g] = g < halves ? p->pivots[begin + c] : 0.0f;
      }
    }
    limit(&groups, HALF);
    bytes scales, codes[HALF];
    to->D[row] = quantize_one(&groups, &scales, codes);
    for (index g = 0; g < IN_BLOCK; ++g)
      to->s[g][row] = (float)scales[g];
  }
}

// Results have the shapes of those of quantize_halves().
void compensate_halves(const float *w, const float *factor, const float *pivots,
                       int8_t *codes, uint16_t *unit, int8_t *scales,
                       float *errors, index n, index k, index begin,
                       index end) {
  const index blocks = divide_up(k, BLOCK), in_row = k / HALF;
  for (index at = begin; at < end; ++at) {
    const panel p = load_panel(w, factor, pivots, errors, n, k, at);
    for (index block = 0; block < blocks; ++block) {
      const index first = block * BLOCK, columns = min_index(BLOCK, k - first);
      floats targets[BLOCK];
      row_blocks of;
      load_targets(&p, targets, first, columns);
      choose_blocks(&p, targets, first, columns / HALF, &of);
      for (index i = 0; i < columns; ++i) {
        const index column = first + i;
        if (i % STRIP == 0)
          add_errors(&p, targets + i, column / STRIP, first, column);
        const floats scale = of.D * of.s[i / HALF];
        const floats c =
            code(completed(&p, targets[i], column), inverse_of(scale));
        store_column(&p, column, c - LOWEST_CODE, scale * c, codes);
      }
      for (index row = 0; row < p.count; ++row) {
        int8_t *own = scales + (p.first + row) * in_row + first / HALF;
        for (index g = 0; g < columns / HALF; ++g)
          own[g] = (int8_t)of.s[g][row];
        unit[(p.first + row) * blocks + block] = f16_from_float(of.D[row]);
      }
    }
  }
}
