// Products of many rows in bf16 with weights in groups, see groups.h, on tensor cores.
//
// They are computed as those of other packed weights, see matmul_packed.h: codes less the
// middle of all are whole numbers that bf16 has exactly. A group's sums are multiplied by
// its scale. What its weights are computed with besides, an offset, is multiplied by the
// sums of x, which the tensor cores compute too: by ones in place of weights.
#ifndef KERNELS_CUDA_MATMUL_GROUPS_H
#define KERNELS_CUDA_MATMUL_GROUPS_H

#include "matmul_packed.h"

#define BF16_ONES 0x3f803f80u
#define BF16_2_TO_120 0x7b807b80u
#define BF16_MINUS_ZERO 0x80008000u

// The words of an output in shared memory, each of all columns in turn.
enum { SCALE_WORD, OFFSET_WORD, UPPER_SCALE_WORD };

// Returns how many words there are: planes follow the numbers.
INLINE int record_words(weight_type type) {
  return (has_halves(type) ? 3 : 2) + planes_of(type);
}

// Returns how the tiles of packed weights are read.
INLINE weight_type packed_as(weight_type type) {
  return is_byte(type) ? WEIGHT_Q8 : WEIGHT_Q4;
}

// A thread's output of a tile, of which it passes on what groups have.
typedef struct {
  const uint32_t *words;
  shared_address to;
  int is_needed, columns;
  raw_group next; // of the step after the one that is being computed
} group_copy;

INLINE group_copy copy_of_groups(shape s, const product *p, const part *of,
                                 shared_address memory) {
  const int thread = (int)thread_idx();
  const int column = min_int(of->column + thread, p->n - 1);
  const int own = p->is_gated ? row_of_pair(column) : column;
  const uint32_t *words =
      p->is_gated && is_of_up(column) ? p->gated.up_scales : p->scales;
  return (group_copy){
      .words = words + (index)own * p->step * p->groups.row_words,
      .to = memory + thread * 4,
      .is_needed = thread < s.columns,
      .columns = s.columns,
  };
}

INLINE raw_group load_next_group(weight_type type, const product *p,
                                 const group_copy *c, int step, int end) {
  return load_group(type, &p->groups, c->words, step, c->is_needed && step < end);
}

// Others see the group after the next barrier.
INLINE void share_group(weight_type type, const product *p, const group_copy *c,
                        int step, raw_group raw) {
  const group_format *f = &p->groups;
  const group_scale g = scale_of_group(type, f, step, raw);
  // What unpack_codes() returns is less this than what the zero point is of.
  const int middle = is_listed(f->form)   ? 0
                     : type == WEIGHT_G4 ? 8
                     : type == WEIGHT_G5 ? 16
                                         : 0;
  const float offset =
      __builtin_fmaf(g.scale, (float)(middle - g.zero), g.minimum);
  if (!c->is_needed)
    return;
  const int words = record_words(type);
  const shared_address to = c->to + step % SCALE_STAGES * words * c->columns * 4;
  store_shared_4(to, bits_of(g.scale));
  store_shared_4(to + OFFSET_WORD * c->columns * 4, bits_of(offset));
  if (has_halves(type))
    store_shared_4(to + UPPER_SCALE_WORD * c->columns * 4, bits_of(g.upper_scale));
  UNROLL for (int i = 0; i < planes_of(type); ++i)
    store_shared_4(to + (words - planes_of(type) + i) * c->columns * 4,
                   raw.planes[i]);
}

// Turns two bytes in E4M3, the upper ones of halves of a word, into bf16, which has them
// with an exponent that is 120 more.
INLINE uint32_t from_e4m3(uint32_t spread) {
  const uint32_t bits = (spread >> 4 & 0x07f007f0u) | (spread & 0x80008000u);
  return fma_bf16x2(bits, BF16_2_TO_120, BF16_MINUS_ZERO);
}

INLINE void unpack_e4m3(uint32_t bytes, uint32_t *first, uint32_t *second) {
  *first = from_e4m3(permute_bytes(bytes, 0, 0x1404));
  *second = from_e4m3(permute_bytes(bytes, 0, 0x3424));
}

// Returns the lists of both bytes of numbers in bf16, the upper ones first, or a list of
// whole numbers.
typedef struct {
  code_list of[2];
} code_lists;

INLINE code_lists lists_of(weight_type type, const group_format *f) {
  if (type != WEIGHT_F4)
    return (code_lists){{list_of(f->form), {{0}}}};
  code_lists made;
  UNROLL for (int i = 0; i < 4; ++i) {
    made.of[0].of[i] = made.of[1].of[i] = 0;
    UNROLL for (int b = 0; b < 4; ++b) {
      const uint16_t bits = bf16_from_float(number_of_code(f->list, 4 * i + b));
      made.of[0].of[i] |= (uint32_t)(bits >> 8) << 8 * b;
      made.of[1].of[i] |= (uint32_t)(bits & 255) << 8 * b;
    }
  }
  return made;
}

// Turns a lane's codes into bf16: of the lower and the upper half of a group, for the two
// instructions that it takes. Of bytes, `word` and `upper_word` have one half each.
INLINE void unpack_codes(weight_type type, const constants *c, int listed,
                         const code_lists *lists, uint32_t word, uint32_t upper_word,
                         const uint32_t planes[2], uint32_t first[STEPS],
                         uint32_t second[STEPS]) {
  const int v = (int)thread_idx() % 4;
  if (type == WEIGHT_F4) {
    const uint2_t upper = look_up_both(&lists->of[0], word);
    const uint2_t lower = look_up_both(&lists->of[1], word);
    UNROLL for (int h = 0; h < STEPS; ++h) {
      first[h] = permute_bytes(lower[h], upper[h], 0x5140);
      second[h] = permute_bytes(lower[h], upper[h], 0x7362);
    }
  } else if (type == WEIGHT_E4M3) {
    unpack_e4m3(word, &first[0], &second[0]);
    unpack_e4m3(upper_word, &first[1], &second[1]);
  } else if (type == WEIGHT_G8) {
    unpack_signed(c, word, &first[0], &second[0]);
    unpack_signed(c, upper_word, &first[1], &second[1]);
  } else if (type == WEIGHT_G4 && listed) {
    const uint2_t numbers = look_up_both(&lists->of[0], word);
    UNROLL for (int h = 0; h < STEPS; ++h)
      unpack_signed(c, numbers[h], &first[h], &second[h]);
  } else {
    UNROLL for (int h = 0; h < STEPS; ++h)
      unpack_unsigned(c, unsigned_codes(type, word, planes, h, v), &first[h],
                      &second[h]);
  }
}

// Computes the sums of a group's inputs for this lane's rows.
INLINE void sum_inputs(shape s, uint2_t x[STEPS][MAX_ROW_TILES],
                       float inputs[MAX_ROW_TILES][2]) {
  const uint32_t ones[4] = {BF16_ONES, BF16_ONES, BF16_ONES, BF16_ONES};
  UNROLL for (int j = 0; j < s.rows / s.warps_m / ROWS; ++j) {
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    UNROLL for (int step = 0; step < STEPS; ++step) {
      const uint32_t pairs[2] = {x[step][j][0], x[step][j][1]};
      mma_bf16(sums, ones, pairs);
    }
    inputs[j][0] = sums[0], inputs[j][1] = sums[1];
  }
}

// What a lane has of an output and of the one 8 after it.
typedef struct {
  float scale[2], upper_scale[2], offset[2];
  uint32_t weights[STEPS][4];
} lane_outputs;

// Loads the outputs of tile `i`, whose codes are `words`. `columns` is where this lane's
// first output is in shared memory.
INLINE lane_outputs outputs_of_tile(weight_type type, shape s, const constants *c,
                                    int listed, const code_lists *lists, int i,
                                    uint32_t words[MAX_OUTPUT_TILES][4],
                                    shared_address columns) {
  const int stride = s.columns * 4, planes = planes_of(type);
  lane_outputs made;
  UNROLL for (int half = 0; half < 2; ++half) {
    const shared_address at = columns + (i * 16 + half * 8) * 4;
    made.scale[half] = float_of(load_shared_4(at));
    made.offset[half] = float_of(load_shared_4(at + OFFSET_WORD * stride));
    made.upper_scale[half] =
        has_halves(type) ? float_of(load_shared_4(at + UPPER_SCALE_WORD * stride))
                         : 0.0f;
    uint32_t plane[2] = {0, 0};
    UNROLL for (int e = 0; e < planes; ++e)
      plane[e] = load_shared_4(at + (record_words(type) - planes + e) * stride);
    const uint32_t *word =
        is_byte(type) ? &words[i][half * 2] : &words[i / 2][i % 2 * 2 + half];
    uint32_t first[STEPS], second[STEPS];
    unpack_codes(type, c, listed, lists, word[0], is_byte(type) ? word[1] : 0,
                 plane, first, second);
    UNROLL for (int step = 0; step < STEPS; ++step) {
      made.weights[step][half] = first[step];
      made.weights[step][half + 2] = second[step];
    }
  }
  return made;
}

// Multiplies the tiles of a group.
INLINE void multiply_outputs(weight_type type, shape s, const product *p,
                             const constants *c, const code_lists *lists,
                             shared_address stage, shared_address columns,
                             transposed_sums sums) {
  const group_form form = p->groups.form;
  const int has_offset =
      form == FORM_ZEROS || form == FORM_MINIMA || form == FORM_SUPERBLOCKS;
  uint32_t words[MAX_OUTPUT_TILES][4];
  uint2_t x[STEPS][MAX_ROW_TILES];
  float inputs[MAX_ROW_TILES][2];
  load_packed(packed_as(type), s, stage, words);
  UNROLL for (int step = 0; step < STEPS; ++step)
    load_x(s, stage, step, x[step]);
  UNROLL for (int j = 0; j < s.rows / s.warps_m / ROWS; ++j)
    inputs[j][0] = inputs[j][1] = 0.0f;
  if (has_offset)
    sum_inputs(s, x, inputs);
  UNROLL for (int i = 0; i < s.columns / s.warps_n / 16; ++i) {
    const lane_outputs of =
        outputs_of_tile(type, s, c, is_listed(form), lists, i, words, columns);
    UNROLL for (int j = 0; j < s.rows / s.warps_m / ROWS; ++j) {
      float lower[4] = {0.0f, 0.0f, 0.0f, 0.0f}, upper[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      UNROLL for (int step = 0; step < STEPS; ++step) {
        const uint32_t pairs[2] = {x[step][j][0], x[step][j][1]};
        mma_bf16(has_halves(type) && step ? upper : lower, of.weights[step], pairs);
      }
      UNROLL for (int e = 0; e < 4; ++e) {
        float *sum = &sums[i][j][e];
        *sum = __builtin_fmaf(lower[e], of.scale[e / 2], *sum);
        if (has_halves(type))
          *sum = __builtin_fmaf(upper[e], of.upper_scale[e / 2], *sum);
        *sum = __builtin_fmaf(inputs[j][e % 2], of.offset[e / 2], *sum);
      }
    }
  }
}

// Computes what one block does. What groups have follows the stages in shared memory.
INLINE void multiply_groups(weight_type type, shape s, const product *p,
                            shared_address memory) {
  const part of = part_of_block(p, s);
  const constants c = constants_of(type, p);
  const code_lists lists = lists_of(type, &p->groups);
  const int lane = (int)thread_idx() % WARP, warp = (int)thread_idx() / WARP;
  const int record_bytes = record_words(type) * s.columns * 4;
  const shared_address records =
      memory + s.stages * (s.rows * GROUP * 2 + s.columns * weight_bytes(type, GROUP));
  const shared_address lane_records =
      records + (warp % s.warps_n * (s.columns / s.warps_n) + lane / 4) * 4;
  ring r = ring_of(type, s, p, &of, memory);
  group_copy groups = copy_of_groups(s, p, &of, records);
  transposed_sums sums;
  UNROLL for (int i = 0; i < s.columns / s.warps_n / 16; ++i)
    UNROLL for (int j = 0; j < s.rows / s.warps_m / ROWS; ++j)
      UNROLL for (int e = 0; e < 4; ++e)
        sums[i][j][e] = 0.0f;
  UNROLL for (int stage = 0; stage < s.stages - 1; ++stage)
    fill_stage(type, s, &r, of.begin + stage);
  share_group(type, p, &groups, of.begin,
              load_next_group(type, p, &groups, of.begin, of.end));
  groups.next = load_next_group(type, p, &groups, of.begin + 1, of.end);
  int from = 0;
  for (int step = of.begin; step < of.end; ++step) {
    cp_async_wait(s.stages - 2);
    syncthreads();
    fill_stage(type, s, &r, step + s.stages - 1);
    share_group(type, p, &groups, step + 1, groups.next);
    groups.next = load_next_group(type, p, &groups, step + 2, of.end);
    multiply_outputs(type, s, p, &c, &lists, memory + from,
                     lane_records + step % SCALE_STAGES * record_bytes, sums);
    from = next_stage(&r, from);
  }
  if (p->is_gated)
    store_gated_transposed(type, s, p, &of, sums);
  else
    store_transposed(type, s, p, &of, sums);
}

INLINE void multiply_g4(shape s, const product *p, shared_address memory) {
  multiply_groups(WEIGHT_G4, s, p, memory);
}

INLINE void multiply_g5(shape s, const product *p, shared_address memory) {
  multiply_groups(WEIGHT_G5, s, p, memory);
}

INLINE void multiply_g6(shape s, const product *p, shared_address memory) {
  multiply_groups(WEIGHT_G6, s, p, memory);
}

INLINE void multiply_g8(shape s, const product *p, shared_address memory) {
  multiply_groups(WEIGHT_G8, s, p, memory);
}

INLINE void multiply_e4m3(shape s, const product *p, shared_address memory) {
  multiply_groups(WEIGHT_E4M3, s, p, memory);
}

INLINE void multiply_f4(shape s, const product *p, shared_address memory) {
  multiply_groups(WEIGHT_F4, s, p, memory);
}

// Returns the bytes of a shape whose weights have so many bits in tiles, and whose outputs
// have so many words.
#define GROUPED_BYTES(bits, words, ...)                                        \
  (SHAPE_BYTES(16, bits, __VA_ARGS__) +                                        \
   SCALE_STAGES * (words) * SHAPE_COLUMNS(__VA_ARGS__) * 4)

#define DEFINE_MATMUL_GROUPS(type, bits, words, name, ...)                     \
  REQUIRE_PAIRS(bits, __VA_ARGS__);                                            \
  DEFINE_SCALED_MATMUL(type##_##name, multiply_##type,                         \
                       GROUPED_BYTES(bits, words, __VA_ARGS__), uint8_t,       \
                       int32_t, GROUPED_NUMBERS,                               \
                       GROUPED_FORMAT(WEIGHT_OF_##type, k), __VA_ARGS__)
#define WEIGHT_OF_g4 WEIGHT_G4
#define WEIGHT_OF_g5 WEIGHT_G5
#define WEIGHT_OF_g6 WEIGHT_G6
#define WEIGHT_OF_g8 WEIGHT_G8
#define WEIGHT_OF_e4m3 WEIGHT_E4M3
#define WEIGHT_OF_f4 WEIGHT_F4

// Defines the kernels of codes in all shapes, or in all but the largest.
#define DEFINE_ALL_MATMUL_GROUPS(type, bits, words)                            \
  DEFINE_MATMUL_GROUPS(type, bits, words, large, 128, 64, 32, 4, 2, 2)         \
  DEFINE_SMALL_MATMUL_GROUPS(type, bits, words)
#define DEFINE_SMALL_MATMUL_GROUPS(type, bits, words)                          \
  DEFINE_MATMUL_GROUPS(type, bits, words, medium, 64, 64, 32, 4, 2, 2)         \
  DEFINE_MATMUL_GROUPS(type, bits, words, small, 32, 64, 32, 6, 1, 2)

#endif
