// Access to global memory whose place and order matter, and what threads of a warp
// or of several blocks exchange. Tests on a CPU replace it with emulated/memory.h.
#ifndef KERNELS_CUDA_MEMORY_H
#define KERNELS_CUDA_MEMORY_H

#include "cuda.h"

#if defined(__NVPTX__)

// Waits until all lanes of the warp are here and see each other's shared memory.
INLINE void syncwarp(void) { __nvvm_bar_warp_sync(-1); }

// Returns x of the lane of this number. All lanes of the warp must call it.
INLINE uint32_t shuffle_u32(uint32_t x, int lane) {
  return (uint32_t)__nvvm_shfl_sync_idx_i32(-1, (int)x, lane, 31);
}

INLINE uint64_t global_address(const void *p) {
  return (uint64_t)(const __attribute__((address_space(1))) void *)p;
}

// The following load global memory, or give zeros without loading if `there` is 0.
// They need no branch, and stay in the order in which they are written.
INLINE uint4_t load_16_if(const void *p, int there) {
  uint32_t a, b, c, d;
  __asm__ volatile("{\n\t"
                   ".reg .pred there;\n\t"
                   "setp.ne.s32 there, %5, 0;\n\t"
                   "mov.b32 %0, 0;\n\t"
                   "mov.b32 %1, 0;\n\t"
                   "mov.b32 %2, 0;\n\t"
                   "mov.b32 %3, 0;\n\t"
                   "@there ld.global.v4.b32 {%0, %1, %2, %3}, [%4];\n\t"
                   "}"
                   : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d)
                   : "l"(global_address(p)), "r"(there));
  return (uint4_t){a, b, c, d};
}

INLINE uint2_t load_8_if(const void *p, int there) {
  uint32_t a, b;
  __asm__ volatile("{\n\t"
                   ".reg .pred there;\n\t"
                   "setp.ne.s32 there, %3, 0;\n\t"
                   "mov.b32 %0, 0;\n\t"
                   "mov.b32 %1, 0;\n\t"
                   "@there ld.global.v2.b32 {%0, %1}, [%2];\n\t"
                   "}"
                   : "=&r"(a), "=&r"(b)
                   : "l"(global_address(p)), "r"(there));
  return (uint2_t){a, b};
}

INLINE uint32_t load_4_if(const void *p, int there) {
  uint32_t x;
  __asm__ volatile("{\n\t"
                   ".reg .pred there;\n\t"
                   "setp.ne.s32 there, %2, 0;\n\t"
                   "mov.b32 %0, 0;\n\t"
                   "@there ld.global.b32 %0, [%1];\n\t"
                   "}"
                   : "=&r"(x)
                   : "l"(global_address(p)), "r"(there));
  return x;
}

INLINE uint16_t load_2_if(const void *p, int there) {
  uint16_t x;
  __asm__ volatile("{\n\t"
                   ".reg .pred there;\n\t"
                   "setp.ne.s32 there, %2, 0;\n\t"
                   "mov.b16 %0, 0;\n\t"
                   "@there ld.global.b16 %0, [%1];\n\t"
                   "}"
                   : "=&h"(x)
                   : "l"(global_address(p)), "r"(there));
  return x;
}

// Adds to a number in global memory and returns what it was. What threads wrote
// before, up to a barrier of their block that the caller passed, is seen by those that
// read after a barrier that follows a later addition.
INLINE int32_t atomic_add_ordered(int32_t *to, int32_t x) {
  int32_t before;
  __asm__ volatile("atom.global.add.acq_rel.gpu.s32 %0, [%1], %2;"
                   : "=r"(before)
                   : "l"(global_address(to)), "r"(x)
                   : "memory");
  return before;
}

// Counts to `end`, and begins again with zero, as atomic_add_ordered() adds.
INLINE uint32_t atomic_count_ordered(IN_GLOBAL_MEMORY uint32_t *to, uint32_t end) {
  uint32_t before;
  __asm__ volatile("atom.global.inc.acq_rel.gpu.u32 %0, [%1], %2;"
                   : "=r"(before)
                   : "l"(to), "r"(end - 1)
                   : "memory");
  return before;
}

#else
#include "emulated/memory.h"
#endif

#endif
