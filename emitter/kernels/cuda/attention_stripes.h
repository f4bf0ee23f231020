// Attention of the heads of a block to its share of the positions: stripes of rows of
// the cache, each of which is in one page.
#ifndef KERNELS_CUDA_ATTENTION_STRIPES_H
#define KERNELS_CUDA_ATTENTION_STRIPES_H

#include "attention_merge.h"

#ifndef ATTENTION_AHEAD
#define ATTENTION_AHEAD 4
#endif
// Rows of f32 take twice as many registers.
#ifndef ATTENTION_AHEAD_F32
#define ATTENTION_AHEAD_F32 2
#endif

enum {
  TOGETHER = 2, // of these rows that share a maximum
  MAX_WIDE = 2, // log 2 of AHEAD, at most
  AHEAD = ATTENTION_AHEAD, // rows that are read before the first is used, at most
  AHEAD_F32 = ATTENTION_AHEAD_F32,
};

enum {
  JOBS = ROWS + 2, // heads that a block prepares: queries, key, value
  ROUNDS = (JOBS + WARPS - 1) / WARPS,
};

// A block's shared memory, in words.
enum {
  STATE_WORDS = WARPS * ROWS,
  SCALE_WORDS = MAX_WIDTH / VECTOR,
};
#define MEMORY_WORDS(width)                                                    \
  ((WARPS * ROWS + JOBS + 2) * (width) + 2 * STATE_WORDS +             \
   2 * SCALE_WORDS + 4)

typedef struct {
  warp_states states;
  SHARED_SPACE float *stages, *heads; // [JOBS][width]
  SHARED_SPACE uint32_t *fresh; // the new key and value, [2][width / VECTOR][VECTOR]
  SHARED_SPACE uint32_t *fresh_scales; // [2][width / VECTOR]
  SHARED_SPACE uint32_t *arrived;
} block_memory;

INLINE block_memory divide_memory(SHARED_SPACE float *all, const int width) {
  block_memory m;
  m.states.sums = all;
  m.stages = all; // before there are states
  m.heads = all + WARPS * ROWS * width;
  m.fresh = (SHARED_SPACE uint32_t *)(m.heads + JOBS * width);
  m.fresh_scales = m.fresh + 2 * width;
  m.arrived = m.fresh_scales + 2 * SCALE_WORDS;
  m.states.max = (SHARED_SPACE float *)(m.arrived + 4);
  m.states.total = m.states.max + STATE_WORDS;
  return m;
}

// The positions that a sequence sees, in stripes of `rows` << `wide`, numbered from
// position 0 on. Stripes do not cross pages.
typedef struct {
  int first, last; // positions
  int wide;        // log 2 of the rows of a lane
  int first_stripe, stripes;
  int chunks; // that are not empty
} division;

INLINE division divide_positions(int position, int window, int chunks,
                                 int busy, const int rows, const int ahead) {
  division d = {.last = position};
  d.first = window ? max_int(position + 1 - window, 0) : 0;
  const int first = (int)((uint32_t)d.first / (uint32_t)rows);
  const int last = (int)((uint32_t)d.last / (uint32_t)rows);
  UNROLL for (int wide = 1; wide <= MAX_WIDE; ++wide)
    d.wide = 1 << wide <= ahead && last - first + 1 > busy << (wide - 1) ? wide : d.wide;
  d.first_stripe = first >> d.wide;
  d.stripes = (last >> d.wide) - d.first_stripe + 1;
  d.chunks = min_int(chunks, d.stripes);
  return d;
}

// A lane's rows of a stripe: keys and values as they are stored.
typedef struct {
  raw_vector keys[AHEAD], values[AHEAD];
} stripe_rows;

// What a lane does with rows.
typedef struct {
  kv_slice cache; // from the layer's and the head's first key of page 0 on
  index page_size, half_size; // elements
  division seen;
  int before; // pages before the table's first one
  int head_dim;
  float soft_cap;
} task;

// Returns the position of this lane's first row of a stripe.
INLINE int position_in(const task *t, int stripe, const int width) {
  const int rows = THREADS / (width / VECTOR);
  return ((t->seen.first_stripe + stripe) << t->seen.wide) * rows +
         (int)thread_idx() / (width / VECTOR);
}

// Returns the entry of the table that has the page of a stripe.
INLINE int page_of(const task *t, int stripe, const int width) {
  const int rows = THREADS / (width / VECTOR);
  const int position = ((t->seen.first_stripe + stripe) << t->seen.wide) * rows;
  return (int)((uint32_t)position / PAGE) - t->before;
}

// Loads this lane's rows of a stripe, which is in `page`. Of rows that the query does
// not see, and of the new one, nothing is read: they are zeros.
INLINE stripe_rows load_stripe(const task *t, int stripe, int32_t page,
                               const int width, const int ahead) {
  const int lanes = width / VECTOR, rows = THREADS / lanes;
  const int d = (int)thread_idx() % lanes * VECTOR;
  const kv_slice keys = kv_slice_at(t->cache, page * t->page_size);
  const kv_slice values = kv_slice_at(keys, t->half_size);
  const int first = position_in(t, stripe, width);
  stripe_rows loaded;
  UNROLL for (int a = 0; a < ahead; ++a) {
    const int position = first + a * rows;
    const int there = a < 1 << t->seen.wide && d < t->head_dim &&
                      position >= t->seen.first && position < t->seen.last;
    const index at = (index)((int)((uint32_t)position % PAGE) * t->head_dim + d);
    loaded.keys[a] = load_raw(&keys, at, there);
    loaded.values[a] = load_raw(&values, at, there);
  }
  return loaded;
}

// Replaces the row of the last position by the new key and value.
INLINE void insert_fresh(element_type type, const task *t,
                         const block_memory *m, int stripe, stripe_rows *loaded,
                         const int width, const int ahead) {
  const int lanes = width / VECTOR, lane = (int)thread_idx() % lanes;
  const int first = position_in(t, stripe, width);
  UNROLL for (int a = 0; a < ahead; ++a)
    if (first + a * (THREADS / lanes) == t->seen.last) {
      UNROLL for (int w = 0; w < raw_words(type); ++w) {
        loaded->keys[a].words[w] = m->fresh[lane * VECTOR + w];
        loaded->values[a].words[w] = m->fresh[width + lane * VECTOR + w];
      }
      loaded->keys[a].scale = (uint16_t)m->fresh_scales[lane];
      loaded->values[a].scale = (uint16_t)m->fresh_scales[SCALE_WORDS + lane];
    }
}

// Returns cap * tanh(x / cap) in units of log 2: cap * (1 - 2 / (e^(2 x / cap) + 1)).
INLINE float capped(float x, float cap) {
  const float power = exp2_approx(x / cap * (2.0f * LOG2_E));
  return cap - 2.0f * cap / (power + 1.0f);
}

// A lane's queries, and the state of each head over the rows that it had.
typedef struct {
  float q[ROWS * VECTOR], sums[ROWS * VECTOR], max[ROWS], sum[ROWS];
} lane_state;

INLINE void begin_state(lane_state *state, const block_memory *m,
                        const int width) {
  const int lane = (int)thread_idx() % (width / VECTOR);
  UNROLL for (int r = 0; r < ROWS; ++r) {
    state->max[r] = LOWEST_FLOAT;
    state->sum[r] = 0.0f;
    UNROLL for (int e = 0; e < VECTOR; ++e) {
      state->q[r * VECTOR + e] = m->heads[r * width + lane * VECTOR + e];
      state->sums[r * VECTOR + e] = 0.0f;
    }
  }
}

// Computes the scores of a row, which are the same in all its lanes.
INLINE void score_row(element_type type, const task *t, const lane_state *state,
                      const raw_vector *key, int there, float scores[ROWS],
                      const int width) {
  float x[VECTOR];
  widen_raw(type, key, x);
  const float scale = raw_scale(type, key);
  UNROLL for (int r = 0; r < ROWS; ++r) {
    float score = 0.0f;
    UNROLL for (int e = 0; e < VECTOR; ++e)
      score = __builtin_fmaf(state->q[r * VECTOR + e], x[e], score);
    if (type == ELEMENT_Q8)
      score *= scale;
    UNROLL for (int mask = 1; mask < width / VECTOR; mask *= 2)
      score += shuffle_xor(score, mask);
    if (t->soft_cap != 0.0f)
      score = capped(score, t->soft_cap);
    scores[r] = there ? score : NEGATIVE_INFINITY;
  }
}

// Adds TOGETHER rows of a stripe to the state, of which it has at least one. The first
// is that of position `first`. What a narrow stripe has not was not loaded.
INLINE void attend_rows(element_type type, const task *t, int first,
                        const raw_vector *keys, const raw_vector *values,
                        lane_state *state, const int width) {
  float weights[TOGETHER * ROWS];
  UNROLL for (int a = 0; a < TOGETHER; ++a) {
    const int position = first + a * (THREADS / (width / VECTOR));
    score_row(type, t, state, &keys[a],
              a < 1 << t->seen.wide && position >= t->seen.first &&
                  position <= t->seen.last,
              weights + a * ROWS, width);
  }
  UNROLL for (int r = 0; r < ROWS; ++r) {
    float most = state->max[r];
    UNROLL for (int a = 0; a < TOGETHER; ++a)
      most = max_float(most, weights[a * ROWS + r]);
    const float before = exp2_approx(state->max[r] - most);
    state->max[r] = most;
    state->sum[r] *= before;
    UNROLL for (int e = 0; e < VECTOR; ++e)
      state->sums[r * VECTOR + e] *= before;
    UNROLL for (int a = 0; a < TOGETHER; ++a) {
      weights[a * ROWS + r] = exp2_approx(weights[a * ROWS + r] - most);
      state->sum[r] += weights[a * ROWS + r];
    }
  }
  UNROLL for (int a = 0; a < TOGETHER; ++a) {
    float x[VECTOR];
    widen_raw(type, &values[a], x);
    const float scale = raw_scale(type, &values[a]);
    UNROLL for (int r = 0; r < ROWS; ++r) {
      const float weight = type == ELEMENT_Q8 ? weights[a * ROWS + r] * scale
                                              : weights[a * ROWS + r];
      UNROLL for (int e = 0; e < VECTOR; ++e)
        state->sums[r * VECTOR + e] =
            __builtin_fmaf(weight, x[e], state->sums[r * VECTOR + e]);
    }
  }
}

// Adds a stripe's rows to the state.
INLINE void attend_stripe(element_type type, const task *t, int stripe,
                          const stripe_rows *loaded, lane_state *state,
                          const int width, const int ahead) {
  const int first = position_in(t, stripe, width);
  UNROLL for (int a = 0; a < ahead; a += TOGETHER)
    if (a < 1 << t->seen.wide)
      attend_rows(type, t, first + a * (THREADS / (width / VECTOR)),
                  loaded->keys + a, loaded->values + a, state, width);
}

#endif
