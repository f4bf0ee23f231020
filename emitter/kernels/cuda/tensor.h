// Primitives of products of matrices on NVIDIA GPUs: copies to shared memory that run
// on their own, fragments of matrices, and tensor cores. Tests on a CPU replace them
// with emulated/tensor.h.
#ifndef KERNELS_CUDA_TENSOR_H
#define KERNELS_CUDA_TENSOR_H

#include "cuda.h"

typedef uint32_t uint2_t __attribute__((vector_size(8)));
typedef float float2_t __attribute__((vector_size(8)));

#if defined(__NVPTX__)

// A place in shared memory, in bytes.
typedef uint32_t shared_address;

// Returns the place of an array in shared memory.
#define SHARED_ADDRESS(array) ((shared_address)(uintptr_t)(array))

// All of these are volatile, because clang may move other assembly into branches that
// some lanes do not take. ptxas orders the instructions again in any case.

// Begins a copy of 16 bytes from global to shared memory, of which `bytes` are read
// and the rest are zero.
INLINE void copy_async(shared_address to, const void *from, int bytes) {
  __asm__ volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                   :
                   : "r"(to), "l"(from), "r"(bytes)
                   : "memory");
}

// The same of 16 bytes that are all read.
INLINE void copy_async_all(shared_address to, const void *from) {
  __asm__ volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;"
                   :
                   : "r"(to), "l"(from)
                   : "memory");
}

// Makes a group of the thread's copies since the last one.
INLINE void commit_copies(void) {
  __asm__ volatile("cp.async.commit_group;" : : : "memory");
}

// Waits until at most `pending` of the thread's groups, the latest ones, are not done.
// It must be constant.
INLINE void wait_copies(const int pending) {
  __asm__ volatile("cp.async.wait_group %0;" : : "i"(pending) : "memory");
}

// Loads four matrices of 8 x 8 elements of 16 bits. Lane 8 i + r says where row r of
// matrix i is. Lane l gets elements l % 4 * 2 and the one after it of each row l / 4.
INLINE void load_matrices(shared_address row, uint32_t matrices[4]) {
  __asm__ volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]),
        "=r"(matrices[3])
      : "r"(row)
      : "memory");
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

// Adds the product of 16 x 16 and 16 x 8 elements to 16 x 8 sums. Lane l has
//   a     rows l / 4 and 8 more, columns l % 4 * 2 and one more; then columns + 8
//   b     column l / 4, rows l % 4 * 2 and one more; then rows + 8
//   sums  row l / 4, columns l % 4 * 2 and one more; then row + 8
#define DEFINE_MMA(name, types)                                                \
  INLINE void name(float sums[4], const uint32_t a[4], const uint32_t b[2]) {  \
    __asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32." types            \
                     ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "     \
                     "{%0, %1, %2, %3};"                                       \
                     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]),            \
                       "+f"(sums[3])                                           \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),  \
                       "r"(b[1]));                                             \
  }
DEFINE_MMA(mma_bf16, "bf16.bf16")
DEFINE_MMA(mma_f16, "f16.f16")

// Returns a * b + c of two bf16 each.
INLINE uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t x;
  __asm__("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(x) : "r"(a), "r"(b), "r"(c));
  return x;
}

// Returns four of eight bytes: each hexadecimal digit of `choice` says which, where
// those of `low` are 0 to 3.
INLINE uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t choice) {
  return (uint32_t)__nvvm_prmt((int)low, (int)high, (int)choice);
}

#else
#include "emulated/tensor.h"
#endif

#endif
