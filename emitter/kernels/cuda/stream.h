// Primitives of kernels that stream weights through a GPU. Tests on a CPU replace
// them with emulated/stream.h.
#ifndef KERNELS_CUDA_STREAM_H
#define KERNELS_CUDA_STREAM_H

#include "cuda.h"

#if defined(__NVPTX__)

#define IN_GLOBAL __attribute__((address_space(1)))

INLINE index grid_dim(void) { return __nvvm_read_ptx_sreg_nctaid_x(); }

// Defines a load of four words, or zeros if not `valid`. Being volatile, it keeps its
// place among other volatile ones and before barriers: the compiler would move it down
// to its use, and with it the wait for memory.
#define DEFINE_LOAD_16(name, instruction)                                      \
  INLINE uint4_t name(const void *p, int valid) {                              \
    uint32_t a, b, c, d;                                                       \
    __asm__ volatile("{\n\t"                                                   \
                     ".reg .pred valid;\n\t"                                   \
                     "setp.ne.s32 valid, %5, 0;\n\t"                           \
                     "mov.b32 %0, 0;\n\t"                                      \
                     "mov.b32 %1, 0;\n\t"                                      \
                     "mov.b32 %2, 0;\n\t"                                      \
                     "mov.b32 %3, 0;\n\t"                                      \
                     "@valid " instruction " {%0, %1, %2, %3}, [%4];\n\t"      \
                     "}"                                                       \
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d)                  \
                     : "l"((const IN_GLOBAL char *)p), "r"(valid));            \
    return (uint4_t){a, b, c, d};                                              \
  }

// What no kernel writes. Weights do not displace what is in L1: they are read once.
DEFINE_LOAD_16(load_stream, "ld.global.nc.L1::no_allocate.v4.b32")
DEFINE_LOAD_16(load_16_bytes, "ld.global.nc.v4.b32")
// What an earlier kernel wrote, possibly after this one had begun.
DEFINE_LOAD_16(load_written_16_bytes, "ld.global.v4.b32")

// Reads eight, four or two bytes likewise, into the lowest bits.
INLINE uint4_t load_8_bytes(const void *p, int valid) {
  uint32_t a, b;
  __asm__ volatile("{\n\t"
                   ".reg .pred valid;\n\t"
                   "setp.ne.s32 valid, %3, 0;\n\t"
                   "mov.b32 %0, 0;\n\t"
                   "mov.b32 %1, 0;\n\t"
                   "@valid ld.global.nc.v2.b32 {%0, %1}, [%2];\n\t"
                   "}"
                   : "=&r"(a), "=&r"(b)
                   : "l"((const IN_GLOBAL char *)p), "r"(valid));
  return (uint4_t){a, b, 0, 0};
}

#define DEFINE_LOAD(name, instruction)                                         \
  INLINE uint32_t name(const void *p, int valid) {                             \
    uint32_t a;                                                                \
    __asm__ volatile("{\n\t"                                                   \
                     ".reg .pred valid;\n\t"                                   \
                     "setp.ne.s32 valid, %2, 0;\n\t"                           \
                     "mov.b32 %0, 0;\n\t"                                      \
                     "@valid " instruction " %0, [%1];\n\t"                    \
                     "}"                                                       \
                     : "=&r"(a)                                                \
                     : "l"((const IN_GLOBAL char *)p), "r"(valid));            \
    return a;                                                                  \
  }
DEFINE_LOAD(load_4_bytes, "ld.global.nc.b32")
DEFINE_LOAD(load_2_bytes, "ld.global.nc.u16")

// Adds the products of four signed bytes by four signed or unsigned ones.
INLINE int32_t dot_signed(uint32_t a, uint32_t b, int32_t sum) {
  int32_t found;
  __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(found) : "r"(a), "r"(b), "r"(sum));
  return found;
}

INLINE int32_t dot_unsigned(uint32_t a, uint32_t b, int32_t sum) {
  int32_t found;
  __asm__("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(found) : "r"(a), "r"(b), "r"(sum));
  return found;
}

#else
#include "emulated/stream.h"
#endif

// An element in f32, or in bf16 or f16, as loaded; the other one is zeros. Converting it
// waits for the load, and so would choosing one of both before.
typedef struct {
  uint32_t wide, narrow;
} raw_element;

INLINE raw_element load_raw(const void *base, element_type type, index i,
                            int valid) {
  const void *p = element_at(base, type, i);
  return (raw_element){load_4_bytes(p, valid && type == ELEMENT_F32),
                       load_2_bytes(p, valid && type != ELEMENT_F32)};
}

INLINE float float_of_half(element_type type, uint32_t bits) {
  return type == ELEMENT_BF16 ? float_from_bf16((uint16_t)bits)
                              : float_from_f16((uint16_t)bits);
}

INLINE float float_of_raw(element_type type, raw_element x) {
  return type == ELEMENT_F32 ? float_of(x.wide) : float_of_half(type, x.narrow);
}

// Elements 4 * i to 4 * i + 3, likewise.
typedef struct {
  uint4_t wide, narrow;
} raw_four;

INLINE raw_four load_raw_four(const void *base, element_type type, int i,
                              int valid) {
  const void *p = element_at(base, type, (index)4 * i);
  return (raw_four){load_16_bytes(p, valid && type == ELEMENT_F32),
                    load_8_bytes(p, valid && type != ELEMENT_F32)};
}

typedef struct {
  float of[4];
} four;

INLINE four four_of(uint4_t words) {
  return (four){{float_of(words[0]), float_of(words[1]), float_of(words[2]),
                 float_of(words[3])}};
}

INLINE uint4_t words_of(four x) {
  return (uint4_t){bits_of(x.of[0]), bits_of(x.of[1]), bits_of(x.of[2]),
                   bits_of(x.of[3])};
}

INLINE four four_of_raw(element_type type, raw_four raw) {
  if (type == ELEMENT_F32)
    return four_of(raw.wide);
  four x;
  UNROLL for (int e = 0; e < 4; ++e)
    x.of[e] = float_of_half(type, raw.narrow[e / 2] >> 16 * (e % 2));
  return x;
}

#endif
