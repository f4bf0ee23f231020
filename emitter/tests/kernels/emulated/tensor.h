// Emulation of what tensor.h has: copies, fragments and tensor cores.
#ifndef TESTS_EMULATED_TENSOR_H
#define TESTS_EMULATED_TENSOR_H

#include <stdint.h>
#include <string.h>

typedef char *shared_address;

#define SHARED_ADDRESS(array) ((shared_address)(array))

// ------------------------------------------------------------------ copies

// A copy is done only when its group is waited for, the latest time at which a GPU may
// do it. What it replaces is gone at once, the earliest time.
#define GPU_MAX_COPIES 256
#define GPU_POISON 0xff // bytes of NaN in all float types

typedef struct {
  char *to;
  const void *from;
  int bytes, group;
} gpu_copy;

static struct {
  gpu_copy waiting[GPU_MAX_THREADS][GPU_MAX_COPIES];
  int count[GPU_MAX_THREADS], groups[GPU_MAX_THREADS];
} gpu_copies;

static inline void copy_async(shared_address to, const void *from, int bytes) {
  const index thread = gpu.thread;
  if (gpu_copies.count[thread] == GPU_MAX_COPIES || (uintptr_t)to % 16 ||
      (uintptr_t)from % 16)
    abort();
  memset(to, GPU_POISON, 16);
  gpu_copies.waiting[thread][gpu_copies.count[thread]++] =
      (gpu_copy){to, from, bytes, gpu_copies.groups[thread]};
}

static inline void copy_async_all(shared_address to, const void *from) {
  copy_async(to, from, 16);
}

static inline void commit_copies(void) { ++gpu_copies.groups[gpu.thread]; }

static inline void wait_copies(int pending) {
  const index thread = gpu.thread;
  const int done = gpu_copies.groups[thread] - pending;
  gpu_copy *all = gpu_copies.waiting[thread];
  int left = 0;
  for (int i = 0; i < gpu_copies.count[thread]; ++i) {
    if (all[i].group >= done) {
      all[left++] = all[i];
      continue;
    }
    memset(all[i].to, 0, 16);
    memcpy(all[i].to, all[i].from, (size_t)all[i].bytes);
  }
  gpu_copies.count[thread] = left;
}

// ------------------------------------------------------------ shared memory

static inline uint32_t load_shared_4(shared_address from) {
  uint32_t x;
  memcpy(&x, from, sizeof x);
  return x;
}

static inline uint2_t load_shared_8(shared_address from) {
  uint2_t x;
  memcpy(&x, from, sizeof x);
  return x;
}

static inline uint4_t load_shared_16(shared_address from) {
  uint4_t x;
  memcpy(&x, from, sizeof x);
  return x;
}

static inline void store_shared_4(shared_address to, uint32_t x) {
  memcpy(to, &x, sizeof x);
}

// ---------------------------------------------------------------- fragments

// What a thread has for the other lanes of its warp. There are two, for the reason
// that shuffled values are two.
typedef struct {
  uint32_t a[4], b[2];
  const char *row;
} gpu_fragments;

static gpu_fragments gpu_exchanged[GPU_MAX_THREADS][2];

// Shows `mine` to all lanes. Returns theirs at [lane][0].
static inline gpu_fragments (*gpu_exchange(gpu_fragments mine))[2] {
  const index thread = gpu.thread;
  const unsigned at = gpu.exchanges[thread]++ % 2;
  gpu_exchanged[thread][at] = mine;
  gpu_yield();
  return (gpu_fragments(*)[2])&gpu_exchanged[thread / 32 * 32][at];
}

static inline void load_matrices(shared_address row, uint32_t matrices[4]) {
  const index lane = gpu.thread % 32;
  gpu_fragments(*lanes)[2] = gpu_exchange((gpu_fragments){.row = row});
  for (int i = 0; i < 4; ++i)
    memcpy(&matrices[i], lanes[8 * i + lane / 4][0].row + lane % 4 * 4, 4);
}

static inline float gpu_half(int is_bf16, uint32_t pair, int upper) {
  const uint16_t bits = (uint16_t)(upper ? pair >> 16 : pair);
  return is_bf16 ? float_from_bf16(bits) : float_from_f16_portable(bits);
}

static inline void gpu_mma(int is_bf16, float sums[4], const uint32_t a[4],
                           const uint32_t b[2]) {
  const index lane = gpu.thread % 32;
  gpu_fragments(*lanes)[2] = gpu_exchange(
      (gpu_fragments){{a[0], a[1], a[2], a[3]}, {b[0], b[1]}, NULL});
  for (int i = 0; i < 4; ++i) {
    const index row = lane / 4, column = lane % 4 * 2 + i % 2;
    double sum = sums[i];
    for (int k = 0; k < 16; ++k) {
      const uint32_t *of_a = lanes[row * 4 + k % 8 / 2][0].a;
      const uint32_t *of_b = lanes[column * 4 + k % 8 / 2][0].b;
      sum += (double)gpu_half(is_bf16, of_a[k / 8 * 2 + i / 2], k % 2) *
             gpu_half(is_bf16, of_b[k / 8], k % 2);
    }
    sums[i] = (float)sum;
  }
}

static inline void mma_bf16(float sums[4], const uint32_t a[4],
                            const uint32_t b[2]) {
  gpu_mma(1, sums, a, b);
}

static inline void mma_f16(float sums[4], const uint32_t a[4],
                           const uint32_t b[2]) {
  gpu_mma(0, sums, a, b);
}

static inline uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t x = 0;
  for (int i = 0; i < 2; ++i)
    x |= (uint32_t)bf16_from_float(gpu_half(1, a, i) * gpu_half(1, b, i) +
                                   gpu_half(1, c, i))
         << 16 * i;
  return x;
}

static inline uint32_t permute_bytes(uint32_t low, uint32_t high,
                                     uint32_t choice) {
  const uint64_t bytes = (uint64_t)high << 32 | low;
  uint32_t x = 0;
  for (int i = 0; i < 4; ++i)
    x |= (uint32_t)(bytes >> 8 * (choice >> 4 * i & 7) & 0xff) << 8 * i;
  return x;
}

#endif
