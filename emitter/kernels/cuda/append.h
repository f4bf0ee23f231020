// Writing of keys and values to the cache on NVIDIA GPUs.
//
//   k, v      [rows][kv_heads][head_dim]: keys are not yet rotated
//   cos, sin  [rows][pairs], see rope.h
//   slots     [rows]: a row goes to place slots[r] % PAGE of page slots[r] / PAGE. Padding
//             rows share slot 0, which nobody reads
//
// attention.h documents the cache. Floats are rounded to the nearest, ties to even.
// Q8 quantizes groups of 32 dimensions to whole numbers of at most 127 in magnitude.
//
// A thread writes ROPE_DIMS dimensions of a key or of a value.
#ifndef KERNELS_CUDA_APPEND_H
#define KERNELS_CUDA_APPEND_H

#include "../kv_cache.h"
#include "rope.h"
#include "tensor_cores.h"

enum {
  APPEND_THREADS = 256,
  GROUP_LANES = CACHE_GROUP / ROPE_DIMS, // lanes that share a scale
};

STATED(append_threads, APPEND_THREADS);
STATED(append_dims, ROPE_DIMS);

typedef struct {
  const float *k, *v, *cos, *sin;
  const int32_t *slots;
  void *cache;
  uint16_t *scales; // of Q8
  int layer, rows, kv_heads, head_dim, pairs, interleaved, parts;
} append;

// Writes four dimensions, at element `at`, in eight bits. All lanes of the warp call it.
INLINE void append_q8(const append *a, index at, const float x[4], int is_there) {
  // Inf and NaN are the largest as integers. Their group becomes zero with such a scale.
  uint32_t largest = 0;
  UNROLL for (int e = 0; e < 4; ++e) {
    const uint32_t bits = bits_of(x[e]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  for (int mask = 1; mask < GROUP_LANES; mask *= 2) {
    const uint32_t other = shuffle_xor_u32(largest, mask);
    largest = other > largest ? other : largest;
  }
  const float absmax = float_of(largest);
  const int is_finite = largest < 0x7f800000u;
  const int is_zero = largest < 0x03800000u; // 2^-120: the inverse would overflow
  const float scale = !is_finite ? absmax : is_zero ? 0.0f : absmax / 127.0f;
  const float inverse = is_zero || !is_finite ? 0.0f : 127.0f / absmax;
  uint32_t bytes = 0;
  UNROLL for (int e = 0; e < 4; ++e)
    bytes |= ((uint32_t)round_to_int(x[e] * inverse) & 0xff) << 8 * e;
  if (!is_there)
    return;
  *(uint32_t *)((int8_t *)a->cache + at) = is_finite ? bytes : 0;
  if (at % CACHE_GROUP == 0)
    a->scales[at / CACHE_GROUP] = (uint16_t)pack_f16(scale, 0.0f);
}

INLINE void append_four(const append *a, const element_type type, index at,
                        const float x[4]) {
  if (type == ELEMENT_F32)
    *(uint4_t *)((float *)a->cache + at) =
        (uint4_t){bits_of(x[0]), bits_of(x[1]), bits_of(x[2]), bits_of(x[3])};
  else
    *(uint2_t *)((uint16_t *)a->cache + at) =
        type == ELEMENT_BF16
            ? (uint2_t){pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3])}
            : (uint2_t){pack_f16(x[0], x[1]), pack_f16(x[2], x[3])};
}

// Computes what one block does. Threads are
// [rows][keys, values][kv_heads][head_dim / ROPE_DIMS].
INLINE void append_block(const append *a, const element_type type) {
  const int share = a->head_dim / ROPE_DIMS;
  const int count = a->rows * 2 * a->kv_heads * share;
  const int thread = (int)block_idx() * APPEND_THREADS + (int)thread_idx();
  const int is_there = thread < count;
  const int at = is_there ? thread : count - 1; // lanes past the end only exchange
  const int d = at % share * ROPE_DIMS, kv_head = at / share % a->kv_heads;
  const int half = at / share / a->kv_heads % 2;
  const int row = at / share / a->kv_heads / 2;
  const float *x = (half ? a->v : a->k) +
                   ((index)row * a->kv_heads + kv_head) * a->head_dim;
  float four[ROPE_DIMS];
  if (half) {
    load_four(four, x + d);
  } else {
    const rotation r =
        rotation_of_row(a->cos, a->sin, row, a->pairs, a->interleaved);
#define ROTATE(kind) rotate_four(four, &r, x, d, kind)
    WITH_ROPE_KIND(a->pairs, a->interleaved, ROTATE)
#undef ROTATE
  }
  const int slot = a->slots[row];
  const index part = (index)(slot / PAGE) * a->parts + 2 * a->layer + half;
  const index place = (part * a->kv_heads + kv_head) * PAGE + slot % PAGE;
  const index to = place * a->head_dim + d;
  if (type == ELEMENT_Q8)
    append_q8(a, to, four, is_there);
  else if (is_there)
    append_four(a, type, to, four);
}

// Defines the kernel for a cache of one type.
#define DEFINE_APPEND(name, type, of_scales, ...)                              \
  KERNEL cuda_append_##name(const float *k, const float *v, const float *cos,  \
                            const float *sin, __VA_ARGS__,                     \
                            const int32_t *row_numbers, int layer, int rows,   \
                            int kv_heads, int head_dim, int pairs,             \
                            int interleaved, int parts) {                      \
    const append a = {k,     v,    cos, sin, row_numbers + rows, cache,        \
                      of_scales, layer, rows, kv_heads, head_dim, pairs,       \
                      interleaved, parts};                                     \
    append_block(&a, type);                                                    \
  }

#endif
