// Rounding of pairs of floats to types of 16 bits. Tests on a CPU replace it with
// emulated/round.h.
#ifndef KERNELS_CUDA_ROUND_H
#define KERNELS_CUDA_ROUND_H

#include "cuda.h"

#if defined(__NVPTX__)

// Rounds two floats to the nearest, ties to even.
INLINE uint32_t pack_bf16(float low, float high) {
  uint32_t pair;
  __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

INLINE uint32_t pack_f16(float low, float high) {
  uint32_t pair;
  __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

#else
#include "emulated/round.h"
#endif

// Rounds to a type of 16 bits.
INLINE uint32_t pack_halves(element_type type, float low, float high) {
  return type == ELEMENT_BF16 ? pack_bf16(low, high) : pack_f16(low, high);
}

#endif
