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

// Looks up rows in groups.
INLINE void embed_groups(weight_type type, const int32_t *tokens,
                         const uint8_t *table, const int32_t *scales, float *out,
                         int width, int vocab, uint32_t scale, group_format f) {
  const index row = block_idx();
  const int groups = width / GROUP, halves = is_byte(type) ? 2 : 1;
  const code_list list = list_of(f.form);
  if (type == WEIGHT_F4)
    share_numbers(f.list);
  const index token = max_int(0, min_int(tokens[row], vocab - 1));
  const uint4_t *from = (const uint4_t *)table + token * (groups * halves);
  const uint32_t *words = (const uint32_t *)scales + token * f.row_words;
  for (int g = (int)thread_idx(); g < groups; g += EMBED_THREADS) {
    const raw_group raw = load_group(type, &f, words, g, 1);
    const group_scale by = scale_of_group(type, &f, g, raw);
    wait_for_previous_kernel();
    UNROLL for (int i = 0; i < 4 * halves; ++i) {
      const uint32_t word = from[g * halves + i / 4][i % 4];
      const uint2_t codes =
          signed_codes(type, is_listed(f.form), &list, word, raw.planes, i);
      float floats[2][4] = {{0.0f}};
      if (type == WEIGHT_E4M3)
        e4m3_numbers(word, floats[0]);
      if (type == WEIGHT_F4)
        UNROLL for (int half = 0; half < 2; ++half)
          numbers_of_codes(word, 4 * half, floats[half]);
      UNROLL for (int half = 0; half < 2 / halves; ++half)
        UNROLL for (int b = 0; b < 4; ++b) {
          const int code = (int8_t)(codes[half] >> 8 * b) - by.zero;
          const float number = has_floats(type) ? floats[half][b] : (float)code;
          const float d = half ? by.upper_scale : by.scale;
          const float w = number * d + by.minimum;
          out[row * width + g * GROUP + half * 16 + i * 4 + b] =
              w * float_of(scale);
        }
    }
  }
  wait_for_previous_kernel();
  start_next_kernel();
}

#define DEFINE_GROUPED_EMBED(name, type)                                       \
  KERNEL cuda_embed_##name(const int32_t *tokens, const uint8_t *table,        \
                           const int32_t *scales, float *out, int width,       \
                           int vocab, uint32_t scale, GROUP_NUMBERS) {         \
    embed_groups(type, tokens, table, scales, out, width, vocab, scale,        \
                 group_format_of(type, width, format, row_words, second));     \
  }

DEFINE_EMBED(f32, WEIGHT_F32, float)
DEFINE_EMBED(bf16, WEIGHT_BF16, uint16_t)
DEFINE_EMBED(f16, WEIGHT_F16, uint16_t)
DEFINE_SCALED_EMBED(q8, WEIGHT_Q8, int8_t, float)
DEFINE_SCALED_EMBED(q4, WEIGHT_Q4, uint8_t, uint16_t)
DEFINE_GROUPED_EMBED(g4, WEIGHT_G4)
DEFINE_GROUPED_EMBED(g5, WEIGHT_G5)
DEFINE_GROUPED_EMBED(g6, WEIGHT_G6)
DEFINE_GROUPED_EMBED(g8, WEIGHT_G8)
DEFINE_GROUPED_EMBED(e4m3, WEIGHT_E4M3)
DEFINE_GROUPED_EMBED(f4, WEIGHT_F4)
