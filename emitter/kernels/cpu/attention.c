// Entry points of attention. attention_units.h documents what they compute.

#include "attention_units.h"

// The rows of a unit in one chunk, and what is known of its rows.
typedef struct {
  float *sums;      // [rows][width]
  float *weights;   // [rows][PAGE]
  float *converted; // [head_dim][PAGE] or [PAGE][width]
  index width;      // head_dim in whole vectors
  index tile_rows;  // of each register tile but the last
  index place[MAX_ROWS];                // [row of the call][head]
  index first[MAX_ROWS], end[MAX_ROWS]; // positions seen
  float max[MAX_TILES][ROW_LANES], sum[MAX_TILES][ROW_LANES];
  float scales[2][PAGE * MAX_HEAD_DIM / CACHE_GROUP];
} unit_state;

INLINE float max_at(const unit_state *s, index row) {
  return s->max[row / s->tile_rows][row % s->tile_rows];
}

INLINE float sum_at(const unit_state *s, index row) {
  return s->sum[row / s->tile_rows][row % s->tile_rows];
}

// ---------------------------------------------------------------- chunks

// Adds the chunk `source` with its maximum and sum to the state in *max, *sum and
// target. An empty state has the sum 0.
INLINE void merge_chunk(float *target, float *max, float *sum,
                        const float *source, float chunk_max, float chunk_sum,
                        index head_dim) {
  if (chunk_sum == 0.0f)
    return;
  const int is_first = *sum == 0.0f;
  const float largest = is_first || chunk_max > *max ? chunk_max : *max;
  lanes factors = 0.0f;
  factors[0] = *max - largest;
  factors[1] = chunk_max - largest;
  factors = exp2_of(factors);
  const lanes old = factors[0], new = factors[1];
  for (index d = 0; d < head_dim; d += LANES) {
    const index count = head_dim - d;
    const lanes added = load_some_floats(source + d, count);
    const lanes merged =
        is_first ? added
                 : multiply_add(added, new,
                                load_some_floats(target + d, count) * old);
    store_some_floats(target + d, merged, count);
  }
  *sum = is_first ? chunk_sum : *sum * factors[0] + chunk_sum * factors[1];
  *max = largest;
}

// Divides the weighted sums of a row by the sum of weights, with that of the
// head's sink. An empty state has no sums yet: it gives NaN, or zeros with a sink.
INLINE void finish_row(float *target, float max, float sum, const float *sink,
                       index head_dim) {
  const int is_empty = sum == 0.0f;
  lanes by = 1.0f;
  if (sink) {
    const float score = *sink * LOG2_E;
    const float largest = score > max ? score : max;
    lanes factors = 0.0f;
    factors[0] = max - largest;
    factors[1] = score - largest;
    factors = exp2_of(factors);
    sum = sum * factors[0] + factors[1];
    by = factors[0];
  }
  by = by / sum;
  for (index d = 0; d < head_dim; d += LANES) {
    const index count = head_dim - d;
    const lanes x = is_empty ? 0.0f : load_some_floats(target + d, count);
    store_some_floats(target + d, x * by, count);
  }
}

// ---------------------------------------------------------------- pages

INLINE void convert_scales(const uint16_t *scales, index count, float *to) {
  for (index i = 0; i < count; i += LANES)
    store_some_floats(to + i,
                      count - i >= LANES ? lanes_from_f16(scales + i) : 0.0f,
                      count - i);
}

// Returns a half of a page: 0 for keys, 1 for values.
INLINE page_half half_of(const attention *a, const unit *u, index page,
                         index half, float *scales) {
  const index part = page * a->parts + 2 * a->layer + half;
  const index size = PAGE * a->head_dim;
  const kv_slice slice =
      kv_slice_at(a->cache, (part * a->kv_heads + u->kv_head) * size);
  if (slice.type == ELEMENT_Q8)
    convert_scales(slice.scales, size / CACHE_GROUP, scales);
  return (page_half){slice.type, slice.elements, scales, NULL, a->head_dim};
}

INLINE const char *ahead_of(const attention *a, const unit *u, index page,
                            index half) {
  const index part = page * a->parts + 2 * a->layer + half;
  return element_at(a->cache.elements, a->cache.type,
                    (part * a->kv_heads + u->kv_head) * PAGE * a->head_dim);
}

// Converts keys or values to floats. Rows of values become `width` floats, padded
// with zeros.
INLINE void convert(element_type type, const page_half *from, index half,
                    index width, float *to) {
  const index rows = half ? PAGE : from->width;
  const index columns = half ? from->width : PAGE;
  const index row_bytes = columns * element_size(type);
  for (index r = 0; r < rows; ++r) {
    prefetch_next(from, r * row_bytes, row_bytes);
    for (index d = 0; d < columns; d += LANES) {
      const index at = r * columns + d;
      lanes x = columns - d < LANES
                    ? load_some_elements(from->elements, type, at, columns - d)
                    : load_elements(from->elements, type, at);
      if (type == ELEMENT_Q8)
        x *= half ? (lanes)from->scales[at / CACHE_GROUP]
                  : load_floats(from->scales + r / CACHE_GROUP * PAGE + d);
      store_floats(to + r * width + d, x);
    }
  }
}

static page_half converted_half(const unit_state *s, const page_half *from,
                                index half) {
  const index width = half ? s->width : PAGE;
  float *to = s->converted;
  switch (from->type) {
  case ELEMENT_F32: convert(ELEMENT_F32, from, half, width, to); break;
  case ELEMENT_BF16: convert(ELEMENT_BF16, from, half, width, to); break;
  case ELEMENT_F16: convert(ELEMENT_F16, from, half, width, to); break;
  case ELEMENT_Q8: convert(ELEMENT_Q8, from, half, width, to); break;
  }
  return (page_half){ELEMENT_F32, to, NULL, NULL, half ? width : from->width};
}

// Returns whether keys or values are converted, because many tiles read them.
INLINE int is_converted(const attention *a, const unit *u, index half) {
  return u->rows > FEW_ROWS &&
         (a->cache.type != ELEMENT_F32 || (half && a->head_dim % LANES != 0));
}

// ---------------------------------------------------------------- units

// Prepares a register tile for a page. Returns whether any of its rows sees it.
INLINE int tile_at(const attention *a, const unit *u, unit_state *s, index t,
                   index position, row_tile *tile) {
  int is_seen = 0;
  tile->rows = min_index(s->tile_rows, u->rows - t * s->tile_rows);
  tile->weights = s->weights + t * s->tile_rows * PAGE;
  tile->max = s->max[t];
  tile->sum = s->sum[t];
  for (index r = 0; r < tile->rows; ++r) {
    const index row = t * s->tile_rows + r;
    tile->q[r] = a->q + s->place[row] * a->head_dim;
    tile->sums[r] = s->sums + row * s->width;
    tile->first[r] = clamp_index(s->first[row] - position, 0, PAGE);
    tile->end[r] = clamp_index(s->end[row] - position, 0, PAGE);
    is_seen |= tile->first[r] < tile->end[r];
  }
  return is_seen;
}

// Adds one page to all rows. `next` is the page after it, or negative.
static void add_page(const attention *a, const unit *u, unit_state *s,
                     index position, index page, index next) {
  row_tile tiles[MAX_TILES];
  int is_seen[MAX_TILES];
  const index count = divide_up(u->rows, s->tile_rows);
  page_half halves[2];
  for (index half = 0; half < 2; ++half)
    halves[half] = half_of(a, u, page, half, s->scales[half]);
  // Whichever half is read, the next one comes to the cache.
  halves[0].ahead = halves[1].elements;
  halves[1].ahead = next < 0 ? NULL : ahead_of(a, u, next, 0);
  if (is_converted(a, u, 0))
    halves[0] = converted_half(s, &halves[0], 0);
  for (index t = 0; t < count; ++t) {
    is_seen[t] = tile_at(a, u, s, t, position, &tiles[t]);
    if (is_seen[t]) {
      score_rows(&tiles[t], &halves[0]);
      weigh_rows(&tiles[t], a->soft_cap);
      halves[0].ahead = NULL;
    }
  }
  if (is_converted(a, u, 1))
    halves[1] = converted_half(s, &halves[1], 1);
  for (index t = 0; t < count; ++t) {
    if (is_seen[t]) {
      add_rows(&tiles[t], &halves[1]);
      halves[1].ahead = NULL;
    }
  }
}

// Computes the state of all rows in one chunk.
static void add_chunk(const attention *a, const unit *u, unit_state *s,
                      index chunk) {
  const int32_t *pages = a->pages + u->sequence * a->table;
  const index first = max_index(s->first[0], chunk * CHUNK);
  const index end = min_index(s->end[u->rows - 1], (chunk + 1) * CHUNK);
  for (index t = 0; t < MAX_TILES && t * s->tile_rows < u->rows; ++t) {
    for (index r = 0; r < ROW_LANES; ++r) {
      s->max[t][r] = NEGATIVE_INFINITY;
      s->sum[t][r] = 0.0f;
    }
  }
  for (index i = 0; i < u->rows * s->width; i += LANES)
    store_floats(s->sums + i, 0.0f);
  for (index page = first / PAGE; page * PAGE < end; ++page)
    add_page(a, u, s, page * PAGE, pages[page],
             (page + 1) * PAGE < end ? pages[page + 1] : -1);
}

// Writes the state of a chunk as results that attention_combine() merges.
static void write_chunk(const attention *a, const unit *u, const unit_state *s) {
  const index begin = u->chunk * CHUNK;
  for (index row = 0; row < u->rows; ++row) {
    if (s->first[row] >= begin + CHUNK || s->end[row] <= begin)
      continue;
    const index token = s->place[row] / a->heads;
    const index at = (token * a->chunks + u->chunk % a->chunks) * a->heads +
                     s->place[row] % a->heads;
    const float sum = sum_at(s, row);
    a->max_sum[at * 2] = sum == 0.0f ? NEGATIVE_INFINITY : max_at(s, row);
    a->max_sum[at * 2 + 1] = sum;
    for (index d = 0; d < a->head_dim; d += LANES)
      store_some_floats(a->out + at * a->head_dim + d,
                        load_floats(s->sums + row * s->width + d),
                        a->head_dim - d);
  }
}

// Computes rows in all chunks and writes their results.
static void compute_whole(const attention *a, const unit *u, unit_state *s) {
  float max[MAX_ROWS], sum[MAX_ROWS];
  for (index row = 0; row < u->rows; ++row)
    max[row] = NEGATIVE_INFINITY, sum[row] = 0.0f;
  const index last = (s->end[u->rows - 1] - 1) / CHUNK;
  for (index chunk = s->first[0] / CHUNK; chunk <= last; ++chunk) {
    add_chunk(a, u, s, chunk);
    for (index row = 0; row < u->rows; ++row)
      merge_chunk(a->out + s->place[row] * a->head_dim, &max[row], &sum[row],
                  s->sums + row * s->width, max_at(s, row), sum_at(s, row),
                  a->head_dim);
  }
  for (index row = 0; row < u->rows; ++row)
    finish_row(a->out + s->place[row] * a->head_dim, max[row], sum[row],
               a->sinks ? a->sinks + s->place[row] % a->heads : NULL,
               a->head_dim);
}

static void compute_unit(const attention *a, const unit *u) {
  _Alignas(64) float scratch[SCRATCH];
  unit_state s;
  const index group = group_of(a);
  s.width = padded_dims(a->head_dim);
  s.tile_rows = divide_up(u->rows, divide_up(u->rows, MR));
  s.converted = scratch;
  s.weights = s.converted + PAGE * s.width;
  s.sums = s.weights + u->rows * PAGE;
  for (index row = 0; row < u->rows; ++row) {
    const index token = (u->row + row) / group;
    const index head = u->kv_head * group + (u->row + row) % group;
    s.place[row] = (a->begins[u->sequence] + token) * a->heads + head;
    s.first[row] = seen_first(a, u->sequence, token);
    s.end[row] = seen_end(a, u->sequence, token);
  }
  if (a->chunks) {
    add_chunk(a, u, &s, u->chunk);
    write_chunk(a, u, &s);
  } else {
    compute_whole(a, u, &s);
  }
}

// ---------------------------------------------------------- entry points

INLINE kv_slice float_slice(element_type type, const void *elements) {
  return (kv_slice){.type = type, .elements = elements};
}

INLINE kv_slice q8_slice(const int8_t *elements, const uint16_t *scales) {
  return (kv_slice){ELEMENT_Q8, elements, scales};
}

#define SHARED_FIELDS                                                          \
  .q = q, .begins = begins, .starts = starts, .pages = pages, .layer = layer,  \
  .sequences = sequences, .heads = heads, .kv_heads = kv_heads,                \
  .head_dim = head_dim, .parts = parts, .table = table, .window = window,      \
  .causal = causal, .items = items, .begin = begin, .end = end,                \
  .soft_cap = float_of((uint32_t)soft_cap) * LOG2_E

// Defines the entry points for a cache of one type, whose pointers come last here.
#define DEFINE_ATTENTION(name, slice, ...)                                     \
  void attention_##name(const float *q, __VA_ARGS__, ATTENTION_WHOLE) {        \
    (void)rows;                                                                \
    const attention a = {.cache = slice,                                       \
                         .out = out,                                           \
                         .sinks = has_sinks ? sinks : NULL,                    \
                         SHARED_FIELDS};                                       \
    each_unit(&a, compute_unit);                                               \
  }                                                                            \
  void attention_chunks_##name(const float *q, __VA_ARGS__,                    \
                               ATTENTION_CHUNKS) {                             \
    (void)rows;                                                                \
    const attention a = {.cache = slice,                                       \
                         .out = partial,                                       \
                         .max_sum = max_sum,                                   \
                         .chunks = chunks,                                     \
                         SHARED_FIELDS};                                       \
    each_unit(&a, compute_unit);                                               \
  }

DEFINE_ATTENTION(f32, float_slice(ELEMENT_F32, cache), const float *cache)
DEFINE_ATTENTION(bf16, float_slice(ELEMENT_BF16, cache), const uint16_t *cache)
DEFINE_ATTENTION(f16, float_slice(ELEMENT_F16, cache), const uint16_t *cache)
DEFINE_ATTENTION(q8, q8_slice(cache, scales), const int8_t *cache,
                 const uint16_t *scales)

// Merges the chunks that attention_chunks_T() left, of rows begin..end of
// [rows][heads]. Chunk c of a row is at c % chunks.
void attention_combine(const float *partial, const float *max_sum,
                       const float *sinks, const int32_t *begins,
                       const int32_t *starts, float *out, index chunks,
                       index rows, index sequences, index heads,
                       index head_dim, index window, index causal,
                       index has_sinks, index begin, index end) {
  const attention a = {.begins = begins, .starts = starts, .window = window,
                       .causal = causal};
  (void)rows;
  index sequence = 0;
  for (index row = begin; row < end; ++row) {
    const index token = row / heads, head = row % heads;
    while (sequence < sequences && token >= begins[sequence + 1])
      ++sequence;
    if (sequence == sequences)
      return; // padding
    const index in_sequence = token - begins[sequence];
    const index last = (seen_end(&a, sequence, in_sequence) - 1) / CHUNK;
    float *target = out + row * head_dim;
    float max = NEGATIVE_INFINITY, sum = 0.0f;
    for (index c = seen_first(&a, sequence, in_sequence) / CHUNK; c <= last;
         ++c) {
      const index at = (token * chunks + c % chunks) * heads + head;
      merge_chunk(target, &max, &sum, partial + at * head_dim, max_sum[at * 2],
                  max_sum[at * 2 + 1], head_dim);
    }
    finish_row(target, max, sum, has_sinks ? sinks + head : NULL, head_dim);
  }
}
