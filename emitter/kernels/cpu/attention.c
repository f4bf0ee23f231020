// Entry points of attention. attention_task.h documents what they compute.

#include "attention_task.h"

#if defined(__AVX2__)
#include "attention_few.h"

INLINE void attend_rows(const task *t, index rows) {
  if (rows <= FEW_ROWS) {
    for (index row = 0; row < rows; row += FEW_TILE)
      attend_few(t, row, min_index(FEW_TILE, rows - row));
    return;
  }
  const index parts = divide_up(rows, row_block_for(t->head_dim));
  for (index part = 0; part < parts; ++part) {
    const index first = rows * part / parts;
    attend_many(t, first, rows * (part + 1) / parts - first);
  }
}

#else
#include "attention_rows.h"
#endif

INLINE void attend_as(element_type type, task t, index rows) {
  t.keys.type = t.values.type = type;
  attend_rows(&t, rows);
}

// Calls the code that is specialized for the type of the cache.
static void attend_typed(const task *t, index rows) {
  switch (t->keys.type) {
  case ELEMENT_F32: attend_as(ELEMENT_F32, *t, rows); break;
  case ELEMENT_BF16: attend_as(ELEMENT_BF16, *t, rows); break;
  case ELEMENT_F16: attend_as(ELEMENT_F16, *t, rows); break;
  case ELEMENT_Q8: attend_as(ELEMENT_Q8, *t, rows); break;
  }
}

// Writes results of padding queries: zeros, or a chunk with the weight 0.
INLINE void clear_padding(const task *t, index begin, index end) {
  for (index token = begin; token < end; ++token) {
    for (index head = t->first_head; head < t->first_head + t->group; ++head) {
      const index place = token * t->heads + head;
      if (t->max_sum) {
        t->max_sum[place * 2] = NEGATIVE_INFINITY;
        t->max_sum[place * 2 + 1] = 0.0f;
      } else {
        clear_row(t->sums + place * t->head_dim, t->head_dim);
      }
    }
  }
}

static void attend_items(kv_slice cache, const float *q, const int32_t *positions,
                         const int32_t *lengths, float *out, float *max_sum,
                         index layer, index batch, index tokens, index heads,
                         index kv_heads, index head_dim, index capacity,
                         index tile, index window, index soft_cap,
                         index causal, index chunk, index begin, index end) {
  const index tiles = divide_up(tokens, tile);
  const index span = window ? min_index(window + tokens, capacity) : capacity;
  const index chunks = divide_up(span, chunk);
  const index rows = tokens * heads, group = heads / kv_heads;
  const index head_stride = capacity * head_dim;
  const index slab = kv_heads * head_stride;
  for (index item = begin; item < end; ++item) {
    const index kv_head = item % kv_heads;
    const index first = item / kv_heads % tiles * tile;
    const index part = item / kv_heads / tiles; // of [batch][chunks]
    const index row = part / chunks;
    const index keys = (2 * layer * batch + row) * slab + kv_head * head_stride;
    const index place = max_sum ? part : row;
    task t = {
        .q = q + row * rows * head_dim,
        .keys = kv_slice_at(cache, keys),
        .values = kv_slice_at(cache, keys + batch * slab),
        .sums = out + place * rows * head_dim,
        .max_sum = max_sum ? max_sum + place * rows * 2 : NULL,
        .position = positions[row],
        .token_begin = first,
        .heads = heads,
        .first_head = kv_head * group,
        .group = group,
        .head_dim = head_dim,
        .position_stride = head_dim,
        .capacity = capacity,
        .window = window,
        .seen = causal ? 0 : positions[row] + lengths[row],
        .scale = LOG2_E,
        .soft_cap = float_of((uint32_t)soft_cap) * LOG2_E,
    };
    t.chunk_begin = row_first(&t, 0) + part % chunks * chunk;
    t.chunk_end = t.chunk_begin + chunk;
    // Tokens that attend to nothing in this chunk come first, and padding last.
    const index last = min_index(first + tile, tokens);
    const index valid = clamp_index(lengths[row], first, last);
    attend_typed(&t, (valid - first) * group);
    clear_padding(&t, valid, last);
  }
}

// Defines the entry points for a cache of one type, whose pointers come last here.
#define DEFINE_ATTENTION(name, cache, ...)                                     \
  void attention_##name(const float *q, __VA_ARGS__, ATTENTION_WHOLE) {        \
    attend_items(cache, q, positions, lengths, out, NULL, layer, batch,        \
                 tokens, heads, kv_heads, head_dim, capacity, tile, window,    \
                 soft_cap, causal, capacity, begin, end);                              \
  }                                                                            \
  void attention_chunks_##name(const float *q, __VA_ARGS__,                    \
                               ATTENTION_CHUNKS) {                             \
    attend_items(cache, q, positions, lengths, partial, max_sum, layer, batch, \
                 tokens, heads, kv_heads, head_dim, capacity, tile, window,    \
                 soft_cap, causal, chunk, begin, end);                                 \
  }

INLINE kv_slice float_slice(element_type type, const void *elements) {
  return (kv_slice){.type = type, .elements = elements};
}

INLINE kv_slice q8_slice(const int8_t *elements, const uint16_t *scales) {
  return (kv_slice){ELEMENT_Q8, elements, scales};
}

DEFINE_ATTENTION(f32, float_slice(ELEMENT_F32, cache), const float *cache)
DEFINE_ATTENTION(bf16, float_slice(ELEMENT_BF16, cache), const uint16_t *cache)
DEFINE_ATTENTION(f16, float_slice(ELEMENT_F16, cache), const uint16_t *cache)
DEFINE_ATTENTION(q8, q8_slice(cache, scales), const int8_t *cache,
                 const uint16_t *scales)

// Merges the chunks of rows begin..end of [batch][tokens][heads].
void attention_combine(const float *partial, const float *max_sum, float *out,
                       index chunks, index rows, index head_dim, index begin,
                       index end) {
  for (index row = begin; row < end; ++row) {
    // Index of the row in the first chunk of its batch row.
    const index first = row / rows * chunks * rows + row % rows;
    float *target = out + row * head_dim;
    float max = NEGATIVE_INFINITY, sum = 0.0f;
    for (index c = 0; c < chunks; ++c) {
      const float *chunk_state = max_sum + (first + c * rows) * 2;
      if (chunk_state[1] != 0.0f && !(chunk_state[0] <= max))
        max = chunk_state[0];
    }
    clear_row(target, head_dim);
    for (index c = 0; c < chunks; ++c) {
      const float *chunk_state = max_sum + (first + c * rows) * 2;
      if (chunk_state[1] == 0.0f)
        continue;
      const float weight = exp2_poly(chunk_state[0] - max);
      const float *source = partial + (first + c * rows) * head_dim;
      sum += weight * chunk_state[1];
      for (index d = 0; d < head_dim; ++d)
        target[d] += weight * source[d];
    }
    // The sum is 0 only for padding.
    scale_row(target, sum != 0.0f ? 1.0f / sum : 0.0f, head_dim);
  }
}
