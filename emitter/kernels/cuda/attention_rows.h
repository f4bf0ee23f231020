// Rows of the cache as attention reads and writes them: eight elements a lane.
#ifndef KERNELS_CUDA_ATTENTION_ROWS_H
#define KERNELS_CUDA_ATTENTION_ROWS_H

#include "../kv_cache.h"
#include "memory.h"

enum { VECTOR = 8 }; // consecutive elements of a row that a lane has

STATED(vector, VECTOR);

// Eight elements as they are stored. A type uses as many words as it needs.
typedef struct {
  uint32_t words[VECTOR];
  uint16_t scale; // of Q8
} raw_vector;

// Returns the number of words of eight elements.
INLINE int raw_words(element_type type) {
  return type == ELEMENT_F32 ? 8 : type == ELEMENT_Q8 ? 2 : 4;
}

// Loads the elements from element i on, or zeros if `there` is 0. Nothing waits for
// them here.
INLINE raw_vector load_raw(const kv_slice *from, index i, int there) {
  raw_vector raw = {.scale = 0};
  const char *at = element_at(from->elements, from->type, i);
  if (from->type == ELEMENT_Q8) {
    const uint2_t two = load_8_if(at, there);
    raw.words[0] = two[0], raw.words[1] = two[1];
    raw.scale = load_2_if(from->scales + (uint64_t)i / CACHE_GROUP, there);
    return raw;
  }
  UNROLL for (int v = 0; v < raw_words(from->type) / 4; ++v) {
    const uint4_t four = load_16_if(at + v * 16, there);
    UNROLL for (int e = 0; e < 4; ++e)
      raw.words[v * 4 + e] = four[e];
  }
  return raw;
}

// Returns a byte, read as a signed number, as a float. Adding it to the lowest bits
// of 2^23 needs no conversion. `bytes` have their signs flipped.
INLINE float signed_byte(uint32_t bytes, int e) {
  return float_of(0x4b000000u | (bytes >> 8 * e & 0xff)) - (0x1p23f + 128.0f);
}

// Widens the elements. Those of Q8 still have to be multiplied by raw_scale().
INLINE void widen_raw(element_type type, const raw_vector *raw, float x[VECTOR]) {
  UNROLL for (int e = 0; e < VECTOR; ++e) {
    switch (type) {
    case ELEMENT_F32: x[e] = float_of(raw->words[e]); break;
    case ELEMENT_BF16:
      x[e] = float_of(e % 2 ? raw->words[e / 2] & 0xffff0000u
                            : raw->words[e / 2] << 16);
      break;
    case ELEMENT_F16:
      x[e] = float_from_f16((uint16_t)(raw->words[e / 2] >> e % 2 * 16));
      break;
    case ELEMENT_Q8:
      x[e] = signed_byte(raw->words[e / 4] ^ 0x80808080u, e % 4);
      break;
    }
  }
}

// Only Q8 has scales: for other types, products with it are left out.
INLINE float raw_scale(element_type type, const raw_vector *raw) {
  return type == ELEMENT_Q8 ? float_from_f16(raw->scale) : 1.0f;
}

// Quantizes this lane's elements of a group of 32, as kernels for CPUs do: groups
// with inf or NaN have that as their scale and zeros, and those below 2^-120 are
// zero. All lanes of the warp must call it.
INLINE raw_vector quantize_raw(const float x[VECTOR]) {
  const float q_max = 127.0f;
  uint32_t largest = 0;
  UNROLL for (int e = 0; e < VECTOR; ++e)
    largest = max_u32(largest, bits_of(x[e]) & 0x7fffffffu);
  UNROLL for (int mask = 1; mask < CACHE_GROUP / VECTOR; mask *= 2)
    largest = max_u32(largest, shuffle_xor_u32(largest, mask));
  const int is_finite = largest < 0x7f800000u, is_zero = largest < 0x03800000u;
  const float inverse =
      is_finite && !is_zero ? q_max / float_of(largest) : 0.0f;
  const float scale = is_zero     ? 0.0f
                      : is_finite ? float_of(largest) / q_max
                                  : float_of(largest);
  raw_vector raw = {.scale = f16_from_float(scale)};
  UNROLL for (int e = 0; e < VECTOR; ++e) {
    const uint32_t step =
        inverse != 0.0f ? (uint32_t)round_to_int(x[e] * inverse) & 0xff : 0;
    raw.words[e / 4] |= step << e % 4 * 8;
  }
  return raw;
}

// Rounds eight elements to what the cache holds. All lanes of the warp must call it.
INLINE raw_vector narrow_to_raw(element_type type, const float x[VECTOR]) {
  if (type == ELEMENT_Q8)
    return quantize_raw(x);
  raw_vector raw = {.scale = 0};
  UNROLL for (int e = 0; e < VECTOR; ++e) {
    if (type == ELEMENT_F32)
      raw.words[e] = bits_of(x[e]);
    else
      raw.words[e / 2] |= (uint32_t)(type == ELEMENT_BF16 ? bf16_from_float(x[e])
                                                          : f16_from_float(x[e]))
                          << e % 2 * 16;
  }
  return raw;
}

// Writes the elements from element i on.
INLINE void store_raw(const kv_slice *to, index i, const raw_vector *raw) {
  const element_type type = to->type;
  char *at = (char *)element_at(to->elements, type, i);
  if (type == ELEMENT_Q8) {
    *(uint2_t *)at = (uint2_t){raw->words[0], raw->words[1]};
    if (i % CACHE_GROUP == 0)
      ((uint16_t *)to->scales)[i / CACHE_GROUP] = raw->scale;
    return;
  }
  UNROLL for (int v = 0; v < raw_words(type) / 4; ++v)
    ((uint4_t *)at)[v] = (uint4_t){raw->words[v * 4], raw->words[v * 4 + 1],
                                   raw->words[v * 4 + 2], raw->words[v * 4 + 3]};
}

#endif
