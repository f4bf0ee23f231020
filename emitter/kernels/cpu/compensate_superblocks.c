// Rounds weights to superblocks of 4 or 5 bits, each column to its target. Units are
// chosen at the first column of a superblock, and scales and minima at the first of
// their group.

#include "compensate.h"
#include "superblocks.h"

// Units of a superblock, and scales and minima of its groups, for each row.
typedef struct {
  floats D, M, s[IN_BLOCK], t[IN_BLOCK];
} row_blocks;

// Chooses units, scales and minima as quantize_superblocks() does.
static void choose_blocks(const panel *p, const floats *targets, index begin,
                          index groups, float most, row_blocks *to) {
  for (index row = 0; row < ROWS; row += BLOCKS) {
    weight_groups blocks;
    for (index lane = 0; lane < GROUPS; ++lane) {
      const index g = lane % IN_BLOCK;
      for (index i = 0; i < GROUP; ++i) {
        const index c = g * GROUP + i;
        const float x = g < groups ? targets[c][row + lane / IN_BLOCK] : 0.0f;
        blocks.x[i][lane] = x;
        blocks.w[i][lane] = g < groups ? p->pivots[begin + c] : 0.0f;
      }
    }
    limit(&blocks, GROUP);
    superblocks of;
    bytes codes[GROUP];
    quantize_two(&blocks, most, &of, codes);
    for (index lane = 0; lane < GROUPS; ++lane) {
      const index at = row + lane / IN_BLOCK, g = lane % IN_BLOCK;
      to->D[at] = of.D[lane];
      to->M[at] = of.M[lane];
      to->s[g][at] = of.s[lane];
      to->t[g][at] = of.t[lane];
    }
  }
}

// Chooses the scales and minima of a group again, for units that stay.
static void choose_group(const weight_groups *groups, float most, row_blocks *to,
                         index group) {
  shifted_groups shifted;
  shift_groups(groups, &shifted);
  const fits start = best_fits(&shifted, groups->w, most);
  superblocks of = {.D = to->D, .M = to->M};
  of.s = rounded(ratio(start.scale, of.D, 0.0f), 0.0f, LARGEST_SCALE);
  of.t = rounded(ratio(start.least, of.M, 0.0f), 0.0f, LARGEST_SCALE);
  search(groups, &of, most);
  to->s[group] = of.s;
  to->t[group] = of.t;
}

// Rounds the columns of a group from `column` on.
static void round_group(const panel *p, const floats *targets, fits by,
                        float most, index column, int8_t *codes) {
  const floats inverse = ratio(1.0f, by.scale, 0.0f);
  for (index i = 0; i < GROUP; ++i) {
    const floats target = completed(p, targets[i], column + i);
    const floats c = code(target, by.least, inverse, most);
    store_column(p, column + i, c, by.scale * c - by.least, codes);
  }
}

// Results have the shapes of those of quantize_superblocks().
void compensate_superblocks(const float *w, const float *factor,
                            const float *pivots, int8_t *codes,
                            uint16_t *unit, uint16_t *least, int8_t *scales,
                            int8_t *minima, float *errors, index n, index k,
                            index bits, index begin, index end) {
  const float most = (float)((1 << bits) - 1);
  const index blocks = divide_up(k, BLOCK), in_row = k / GROUP;
  for (index at = begin; at < end; ++at) {
    const panel p = load_panel(w, factor, pivots, errors, n, k, at);
    for (index block = 0; block < blocks; ++block) {
      const index first = block * BLOCK;
      const index groups = min_index(BLOCK, k - first) / GROUP;
      floats targets[BLOCK];
      row_blocks of;
      load_targets(&p, targets, first, groups * GROUP);
      choose_blocks(&p, targets, first, groups, most, &of);
      for (index g = 0; g < groups; ++g) {
        const index column = first + g * GROUP, group = column / GROUP;
        floats *own = targets + g * GROUP;
        add_errors(&p, own, group, first, column);
        if (g > 0) {
          weight_groups rows;
          for (index i = 0; i < GROUP; ++i) {
            rows.x[i] = own[i];
            rows.w[i] = pivots[column + i];
          }
          limit(&rows, GROUP);
          choose_group(&rows, most, &of, g);
        }
        const fits by = {of.D * of.s[g], of.M * of.t[g]};
        round_group(&p, own, by, most, column, codes);
        for (index row = 0; row < p.count; ++row) {
          scales[(p.first + row) * in_row + group] = (int8_t)of.s[g][row];
          minima[(p.first + row) * in_row + group] = (int8_t)of.t[g][row];
        }
      }
      for (index row = 0; row < p.count; ++row) {
        unit[(p.first + row) * blocks + block] = f16_from_float(of.D[row]);
        least[(p.first + row) * blocks + block] = f16_from_float(of.M[row]);
      }
    }
  }
}
