// Products of small matrices by the lanes of a warp, and copies to shared memory that
// run beside them.
//
// In all products, sums are 16 x 8 floats: lane l has columns l % 4 * 2 and the next
// one of row l / 4, then of the row 8 below. Numbers of 16 bits are bf16 or f16, two
// in a register, the first in the lower half. Tests on a CPU replace all of this with
// emulated/tensor_cores.h.
#ifndef KERNELS_CUDA_TENSOR_CORES_H
#define KERNELS_CUDA_TENSOR_CORES_H

#include "round.h"

#if defined(__NVPTX__)

// All assembly that lanes run together is volatile, because clang may move other assembly
// into branches that some lanes do not take. ptxas orders the instructions again in any
// case.

// An address in shared memory, in bytes.
typedef uint32_t shared_address;

// Returns where an array in shared memory is.
#define ADDRESS_OF(array) ((shared_address)(uintptr_t)(array))

// Loads four matrices of 8 x 8 numbers of 16 bits. Lane i gives the address of row
// i % 8 of matrix i / 8, which is 16 bytes long and aligned. Register m gets two
// consecutive numbers of matrix m: lane l has columns l % 4 * 2 and the next one of
// row l / 4.
INLINE void ldmatrix_x4(uint32_t x[4], shared_address row) {
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(row)
                   : "memory");
}

// The same of transposed matrices.
INLINE void ldmatrix_x4_trans(uint32_t x[4], shared_address row) {
  __asm__ volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
      : "r"(row)
      : "memory");
}

// Adds a 16 x 16 matrix times a 16 x 8 matrix to sums. Registers of a are rows l / 4 and
// 8 below of columns l % 4 * 2 and the next one, then the same 8 columns on. Those of b
// are rows l % 4 * 2 and the next one of column l / 4, then 8 rows below.
INLINE void mma_bf16(float sums[4], const uint32_t a[4], const uint32_t b[2]) {
  __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                   "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                   : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

INLINE void mma_f16(float sums[4], const uint32_t a[4], const uint32_t b[2]) {
  __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                   "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                   : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Begins to copy 16 aligned bytes to shared memory. Only the first `bytes` of them are
// read, the rest is zero.
INLINE void cp_async_16(shared_address to, const void *from, int bytes) {
  __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                   "l"(from), "r"(bytes)
                   : "memory");
}

// The same, and the L2 cache fetches the 128 bytes around them.
INLINE void cp_async_16_of_128(shared_address to, const void *from, int bytes) {
  __asm__ volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                   :
                   : "r"(to), "l"(from), "r"(bytes)
                   : "memory");
}

// The same of 16 bytes that are all read.
INLINE void cp_async_16_of_128_all(shared_address to, const void *from) {
  __asm__ volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;"
                   :
                   : "r"(to), "l"(from)
                   : "memory");
}

// Ends this thread's current group of copies.
INLINE void cp_async_commit(void) {
  __asm__ volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most the last `groups` groups of this thread's copies are under way.
// It must be constant.
INLINE void cp_async_wait(const int groups) {
  __asm__ volatile("cp.async.wait_group %0;" ::"i"(groups) : "memory");
}

INLINE uint32_t load_shared_4(shared_address from) {
  uint32_t x;
  __asm__ volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
  return x;
}

INLINE uint2_t load_shared_8(shared_address from) {
  uint32_t low, high;
  __asm__ volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                   : "=r"(low), "=r"(high)
                   : "r"(from)
                   : "memory");
  return (uint2_t){low, high};
}

INLINE uint4_t load_shared_16(shared_address from) {
  uint32_t x[4];
  __asm__ volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(from)
                   : "memory");
  return (uint4_t){x[0], x[1], x[2], x[3]};
}

INLINE void store_shared_4(shared_address to, uint32_t x) {
  __asm__ volatile("st.shared.u32 [%0], %1;" : : "r"(to), "r"(x) : "memory");
}

// Computes with two f16 numbers each.
INLINE uint32_t subtract_f16x2(uint32_t a, uint32_t b) {
  uint32_t pair;
  __asm__("sub.rn.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
  return pair;
}

INLINE uint32_t multiply_f16x2(uint32_t a, uint32_t b) {
  uint32_t pair;
  __asm__("mul.rn.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
  return pair;
}

// Returns a * b + c of two bf16 numbers each.
INLINE uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t x;
  __asm__("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(x) : "r"(a), "r"(b), "r"(c));
  return x;
}

// Returns 1 / x to within a unit in the last place, and 0 for inf.
INLINE float reciprocal_approx(float x) { return __nvvm_rcp_approx_ftz_f(x); }

// Returns the larger one, or the other one if one is NaN.
INLINE float max_number(float a, float b) { return __nvvm_fmax_f(a, b); }

#else
#include "emulated/tensor_cores.h"
#endif

#endif
