// The entry points of attention; attention_task.h says what they compute.

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

// Padding queries: zeros, or a chunk that weighs nothing.
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

INLINE void attention(element_type type, const float *q, const void *k_cache,
                      const void *v_cache, const int32_t *position, float *out,
                      float *partial, float *partial_max_sum, index tokens,
                      index valid, index heads, index kv_heads, index head_dim,
                      index position_stride, index head_stride, float scale,
                      index chunk, index chunk_index, index kv_head,
                      index token_begin, index token_end) {
  const index group = heads / kv_heads;
  const index chunk_place = chunk_index * tokens * heads;
  const task t = {
      .type = type,
      .q = q,
      .keys = element_at(k_cache, type, kv_head * head_stride),
      .values = element_at(v_cache, type, kv_head * head_stride),
      .sums = partial ? partial + chunk_place * head_dim : out,
      .max_sum = partial ? partial_max_sum + chunk_place * 2 : NULL,
      .position = *position,
      .token_begin = token_begin,
      .heads = heads,
      .first_head = kv_head * group,
      .group = group,
      .head_dim = head_dim,
      .position_stride = position_stride,
      .scale = scale * LOG2_E,
      .chunk_begin = chunk_index * chunk,
      .chunk_end = chunk_index * chunk + chunk,
  };
  // Tokens that see nothing of this chunk come first, padding comes last.
  const index end = clamp_index(valid, token_begin, token_end);
  attend_rows(&t, (end - token_begin) * group);
  clear_padding(&t, end, token_end);
}

// What every call has; see the top for the shapes of a row of the batch. The
// cache is [2 * layers][batch][kv_heads][capacity][head_dim], each layer's keys
// before its values. Items are [batch][chunks][tiles of queries][kv_heads].
INLINE void attend_items(element_type type, const float *q, const void *cache,
                         const int32_t *positions, const int32_t *lengths,
                         float *out, float *max_sum, index layer, index batch,
                         index tokens, index heads, index kv_heads,
                         index head_dim, index capacity, index tile,
                         index chunk, index begin, index end) {
  const index tiles = divide_up(tokens, tile);
  const index chunks = divide_up(capacity, chunk);
  const index rows = tokens * heads;
  const index slab = kv_heads * capacity * head_dim;
  for (index item = begin; item < end; ++item) {
    const index kv_head = item % kv_heads;
    const index first = item / kv_heads % tiles * tile;
    const index chunk_index = item / kv_heads / tiles % chunks;
    const index row = item / kv_heads / tiles / chunks;
    const index keys = 2 * layer * batch + row;
    float *complete = out + row * rows * head_dim;
    float *partial = out + row * chunks * rows * head_dim;
    attention(type, q + row * rows * head_dim,
              element_at(cache, type, keys * slab),
              element_at(cache, type, (keys + batch) * slab), positions + row,
              max_sum ? NULL : complete, max_sum ? partial : NULL,
              max_sum ? max_sum + row * chunks * rows * 2 : NULL, tokens,
              lengths[row], heads, kv_heads, head_dim, head_dim,
              capacity * head_dim, 1.0f, chunk, chunk_index, kv_head, first,
              min_index(first + tile, tokens));
  }
}

void attention_f32(const float *q, const float *cache,
                   const int32_t *positions, const int32_t *lengths, float *out,
                   index layer, index batch, index tokens, index heads,
                   index kv_heads, index head_dim, index capacity, index tile,
                   index begin, index end) {
  attend_items(ELEMENT_F32, q, cache, positions, lengths, out, NULL, layer, batch,
               tokens, heads, kv_heads, head_dim, capacity, tile, capacity,
               begin, end);
}

void attention_chunks_f32(const float *q, const float *cache,
                          const int32_t *positions, const int32_t *lengths,
                          float *partial, float *max_sum, index layer,
                          index batch, index tokens, index heads,
                          index kv_heads, index head_dim, index capacity,
                          index tile, index chunk, index begin, index end) {
  attend_items(ELEMENT_F32, q, cache, positions, lengths, partial, max_sum, layer,
               batch, tokens, heads, kv_heads, head_dim, capacity, tile, chunk,
               begin, end);
}

void attention_bf16(const float *q, const uint16_t *cache,
                   const int32_t *positions, const int32_t *lengths, float *out,
                   index layer, index batch, index tokens, index heads,
                   index kv_heads, index head_dim, index capacity, index tile,
                   index begin, index end) {
  attend_items(ELEMENT_BF16, q, cache, positions, lengths, out, NULL, layer, batch,
               tokens, heads, kv_heads, head_dim, capacity, tile, capacity,
               begin, end);
}

void attention_chunks_bf16(const float *q, const uint16_t *cache,
                          const int32_t *positions, const int32_t *lengths,
                          float *partial, float *max_sum, index layer,
                          index batch, index tokens, index heads,
                          index kv_heads, index head_dim, index capacity,
                          index tile, index chunk, index begin, index end) {
  attend_items(ELEMENT_BF16, q, cache, positions, lengths, partial, max_sum, layer,
               batch, tokens, heads, kv_heads, head_dim, capacity, tile, chunk,
               begin, end);
}

void attention_f16(const float *q, const uint16_t *cache,
                   const int32_t *positions, const int32_t *lengths, float *out,
                   index layer, index batch, index tokens, index heads,
                   index kv_heads, index head_dim, index capacity, index tile,
                   index begin, index end) {
  attend_items(ELEMENT_F16, q, cache, positions, lengths, out, NULL, layer, batch,
               tokens, heads, kv_heads, head_dim, capacity, tile, capacity,
               begin, end);
}

void attention_chunks_f16(const float *q, const uint16_t *cache,
                          const int32_t *positions, const int32_t *lengths,
                          float *partial, float *max_sum, index layer,
                          index batch, index tokens, index heads,
                          index kv_heads, index head_dim, index capacity,
                          index tile, index chunk, index begin, index end) {
  attend_items(ELEMENT_F16, q, cache, positions, lengths, partial, max_sum, layer,
               batch, tokens, heads, kv_heads, head_dim, capacity, tile, chunk,
               begin, end);
}

// Merges the chunks of rows begin..end of [batch][tokens][heads].
void attention_combine(const float *partial, const float *max_sum, float *out,
                       index chunks, index rows, index head_dim, index begin,
                       index end) {
  for (index row = begin; row < end; ++row) {
    // Row r of chunk c of its part of the batch.
    const index first = row / rows * chunks * rows + row % rows;
    float *target = out + row * head_dim;
    float max = NEGATIVE_INFINITY, sum = 0.0f;
    for (index c = 0; c < chunks; ++c) {
      const float *of_chunk = max_sum + (first + c * rows) * 2;
      if (of_chunk[1] != 0.0f && !(of_chunk[0] <= max))
        max = of_chunk[0];
    }
    clear_row(target, head_dim);
    for (index c = 0; c < chunks; ++c) {
      const float *of_chunk = max_sum + (first + c * rows) * 2;
      if (of_chunk[1] == 0.0f)
        continue;
      const float weight = exp2_poly(of_chunk[0] - max);
      const float *source = partial + (first + c * rows) * head_dim;
      sum += weight * of_chunk[1];
      for (index d = 0; d < head_dim; ++d)
        target[d] += weight * source[d];
    }
    // Only padding sums to nothing.
    scale_row(target, sum != 0.0f ? 1.0f / sum : 0.0f, head_dim);
  }
}
