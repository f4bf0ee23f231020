// Primitives of kernels for NVIDIA GPUs. Tests on a CPU replace them with
// emulated/cuda.h.
#ifndef KERNELS_CUDA_CUDA_H
#define KERNELS_CUDA_CUDA_H

#include "../common.h"

#if defined(__NVPTX__)

// Unrolls a loop over an array, so that its elements are registers.
#define UNROLL _Pragma("clang loop unroll(full)")

// Declares a kernel. Arguments are operands, results, then numbers.
#define KERNEL __attribute__((nvptx_kernel)) void

// Qualifies what a pointer into shared memory points to.
#define SHARED_SPACE __attribute__((address_space(3)))

// Declares an array in shared memory.
#define SHARED_MEMORY static SHARED_SPACE __attribute__((loader_uninitialized))

// Declares an array in global memory, of zeros when the kernel is loaded.
#define IN_GLOBAL_MEMORY __attribute__((address_space(1)))
#define GLOBAL_MEMORY static IN_GLOBAL_MEMORY

INLINE index thread_idx(void) { return __nvvm_read_ptx_sreg_tid_x(); }
INLINE index block_idx(void) { return __nvvm_read_ptx_sreg_ctaid_x(); }

// Waits until all threads of the block are here.
INLINE void syncthreads(void) { __syncthreads(); }

// From sm_90 on, a kernel may begin before the one ahead of it has ended: when all blocks
// of that one have let it, or have ended. Then every thread has to wait before it reads
// what the kernel ahead writes, and before it writes. What kernels before that one have
// written can be read if the one ahead waited before it let this one start. At least one
// thread has to wait before it ends, so that who waits for this kernel waits for those
// ahead too.
//
// build.rs leaves out of PTX for sm_80 what these comments mark, and the declaration.
#define OVERLAPPED(instruction) "//overlapped " instruction

// Says to whoever launches the kernel that it waits.
const int overlapped_launches = 1;

// Lets the next kernel begin as soon as all blocks of this one have.
INLINE void start_next_kernel(void) {
  __asm__ volatile(OVERLAPPED("griddepcontrol.launch_dependents;"));
}

// Waits until the kernels ahead have ended and what they wrote can be read.
INLINE void wait_for_previous_kernel(void) {
  __asm__ volatile(OVERLAPPED("griddepcontrol.wait;") ::: "memory");
}

// Returns x of the lane whose number differs in the bits of `mask`. All lanes of
// the warp must call it.
INLINE uint32_t shuffle_xor_u32(uint32_t x, int mask) {
  return (uint32_t)__nvvm_shfl_sync_bfly_i32(-1, (int)x, mask, 31);
}

// Returns 2^x to within two units in the last place, and 0 for -inf.
INLINE float exp2_approx(float x) { return __nvvm_ex2_approx_f(x); }

// Returns 1 / sqrt(x) to within two units in the last place.
INLINE float rsqrt_approx(float x) { return __nvvm_rsqrt_approx_f(x); }

// Returns four of the eight bytes of `high` and `low`: byte i is number
// choice >> 4 * i & 7, where low has numbers 0 to 3.
INLINE uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t choice) {
  return (uint32_t)__nvvm_prmt((int)low, (int)high, (int)choice);
}

#else
#include "emulated/cuda.h"
#endif

#define WARP 32

// Exports a constant that the emitter repeats. A test finds it in the object and
// compares.
#define STATED(name, value) const int stated_##name = (value)

// Loads of a lane, of at most 16 bytes.
typedef uint32_t uint2_t __attribute__((vector_size(8)));
typedef uint32_t uint4_t __attribute__((vector_size(16)));
typedef float float2_t __attribute__((vector_size(8)));

INLINE float shuffle_xor(float x, int mask) {
  return float_of(shuffle_xor_u32(bits_of(x), mask));
}

INLINE float max_float(float a, float b) { return a < b ? b : a; }
INLINE float min_float(float a, float b) { return b < a ? b : a; }
INLINE uint32_t max_u32(uint32_t a, uint32_t b) { return a < b ? b : a; }
INLINE int max_int(int a, int b) { return a < b ? b : a; }
INLINE int min_int(int a, int b) { return a < b ? a : b; }

INLINE float warp_reduce_max(float x) {
  for (int mask = 1; mask < WARP; mask *= 2)
    x = max_float(x, shuffle_xor(x, mask));
  return x;
}

INLINE float warp_reduce_sum(float x) {
  for (int mask = 1; mask < WARP; mask *= 2)
    x += shuffle_xor(x, mask);
  return x;
}

#endif
