// Rows of embedding tables in f32. A block has a row.
//
//   tokens  [rows]: past the table, its last row is taken
//   table   [vocab][width], in the checkpoint's type, or quantized as in weights.h
//   out     [rows][width]: rows times `scale`, the bits of a float

#include "weights.h"

enum { EMBED_THREADS = 256 };

STATED(embed_threads, EMBED_THREADS);

INLINE void embed(weight_type type, const int32_t *tokens, const void *table,
                  const void *scales, float *out, int width, int vocab,
                  uint32_t scale) {
  const index row = block_idx();
  const int size = inputs_in_16_bytes(type);
  // No kernel of this call writes tokens or tables. Only the store has to wait.
  const index token = max_int(0, min_int(tokens[row], vocab - 1));
  const uint4_t *from = (const uint4_t *)table + token * (width / size);
  for (int i = (int)thread_idx(); i < width / size; i += EMBED_THREADS) {
    float factor = float_of(scale);
    const uint4_t words = from[i];
    if (type == WEIGHT_Q8)
      factor *= ((const float *)scales)[token];
    if (type == WEIGHT_Q4)
      factor *= float_from_f16(
          ((const uint16_t *)scales)[token * (width / size) + i]);
    wait_for_previous_kernel();
    UNROLL for (int part = 0; part < size / 4; ++part) {
      float w[4];
      widen(type, words, part, w);
      UNROLL for (int e = 0; e < 4; ++e)
        out[row * width + i * size + part * 4 + e] = w[e] * factor;
    }
  }
  wait_for_previous_kernel();
  start_next_kernel();
}

#define DEFINE_EMBED(name, type, element)                                      \
  KERNEL cuda_embed_##name(const int32_t *tokens, const element *table,        \
                           float *out, int width, int vocab, uint32_t scale) { \
    embed(type, tokens, table, 0, out, width, vocab, scale);                   \
  }
#define DEFINE_SCALED_EMBED(name, type, element, scale_type)                   \
  KERNEL cuda_embed_##name(const int32_t *tokens, const element *table,        \
                           const scale_type *scales, float *out, int width,    \
                           int vocab, uint32_t scale) {                        \
    embed(type, tokens, table, scales, out, width, vocab, scale);              \
  }

DEFINE_EMBED(f32, WEIGHT_F32, float)
DEFINE_EMBED(bf16, WEIGHT_BF16, uint16_t)
DEFINE_EMBED(f16, WEIGHT_F16, uint16_t)
DEFINE_SCALED_EMBED(q8, WEIGHT_Q8, int8_t, float)
DEFINE_SCALED_EMBED(q4, WEIGHT_Q4, uint8_t, uint16_t)
