// Emulation of a GPU on a CPU. The threads of a block are coroutines of one thread:
// each runs until it has to wait for others. launch_grid() launches a kernel.
#ifndef TESTS_EMULATED_CUDA_H
#define TESTS_EMULATED_CUDA_H

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define KERNEL static void
// All of it together, to fill it before each block.
#define SHARED_SPACE
#define SHARED_MEMORY static __attribute__((section("gpu_shared"), aligned(16)))
#define IN_GLOBAL_MEMORY
#define GLOBAL_MEMORY static
#define UNROLL

#define GPU_MAX_THREADS 1024
#define GPU_STACK_BYTES (64 << 10)

static struct {
  // Contexts are only for starting threads: unlike jumps, they make a system call at
  // every switch.
  ucontext_t scheduler, first[GPU_MAX_THREADS];
  jmp_buf back, threads[GPU_MAX_THREADS];
  char *stacks;
  int begun[GPU_MAX_THREADS], running[GPU_MAX_THREADS];
  int at_barrier[GPU_MAX_THREADS];
  // The last two values that a thread passed to a shuffle: it may pass the next one
  // before another thread has read this one.
  uint32_t shuffled[GPU_MAX_THREADS][2];
  unsigned exchanges[GPU_MAX_THREADS];
  index thread, block, blocks, count, arrived;
  void (*body)(void);
} gpu;

INLINE index thread_idx(void) { return gpu.thread; }
INLINE index block_idx(void) { return gpu.block; }
INLINE void start_next_kernel(void) {}
INLINE void wait_for_previous_kernel(void) {}
INLINE float exp2_approx(float x) { return exp2f(x); }
INLINE float rsqrt_approx(float x) { return 1.0f / sqrtf(x); }

INLINE uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t choice) {
  const uint64_t bytes = (uint64_t)high << 32 | low;
  uint32_t x = 0;
  for (int i = 0; i < 4; ++i)
    x |= (uint32_t)(bytes >> 8 * (choice >> 4 * i & 7) & 0xff) << 8 * i;
  return x;
}

// Lets every other thread run up to its next wait.
static inline void gpu_yield(void) {
  const index thread = gpu.thread;
  if (setjmp(gpu.threads[thread]) == 0)
    longjmp(gpu.back, 1);
}

static inline void syncthreads(void) {
  const index round = gpu.arrived / gpu.count;
  const index thread = gpu.thread;
  ++gpu.arrived;
  gpu.at_barrier[thread] = 1;
  while (gpu.arrived / gpu.count == round)
    gpu_yield();
  gpu.at_barrier[thread] = 0;
}

static inline uint32_t shuffle_xor_u32(uint32_t x, int mask) {
  const index thread = gpu.thread;
  const unsigned at = gpu.exchanges[thread]++ % 2;
  gpu.shuffled[thread][at] = x;
  gpu_yield();
  return gpu.shuffled[thread ^ mask][at];
}

static inline void gpu_thread(void) {
  const index thread = gpu.thread;
  gpu.body();
  gpu.running[thread] = 0;
  longjmp(gpu.back, 1);
}

// Resumes the thread until it waits or ends.
static inline void gpu_resume(index thread) {
  gpu.thread = thread;
  if (setjmp(gpu.back) != 0)
    return;
  if (gpu.begun[thread])
    longjmp(gpu.threads[thread], 1);
  gpu.begun[thread] = 1;
  swapcontext(&gpu.scheduler, &gpu.first[thread]);
}

// The linker's names for where the section is. A program may have none.
extern char __start_gpu_shared[] __attribute__((weak));
extern char __stop_gpu_shared[] __attribute__((weak));

// Fills shared memory with NaN, which a block must not rely on.
static inline void gpu_poison_shared(void) {
  if (__start_gpu_shared)
    memset(__start_gpu_shared, 0xff,
           (size_t)(__stop_gpu_shared - __start_gpu_shared));
}

// Lets the threads of a warp run until each ends or waits for other warps. Returns how
// many ended. As a warp is as far ahead of others as it can be, a barrier that is
// missing is noticed.
static inline index gpu_run_warp(index begin, index end) {
  index ended = 0;
  int goes_on;
  do {
    goes_on = 0;
    for (index t = begin; t < end; ++t)
      if (gpu.running[t]) {
        gpu_resume(t);
        ended += !gpu.running[t];
        goes_on |= gpu.running[t] && !gpu.at_barrier[t];
      }
  } while (goes_on);
  return ended;
}

// Calls `body` in every thread of every block. The last block comes first, because
// the order of blocks is arbitrary.
static inline void launch_grid(index blocks, index threads, void (*body)(void)) {
  if (!gpu.stacks)
    gpu.stacks = malloc((size_t)GPU_MAX_THREADS * GPU_STACK_BYTES);
  gpu.body = body;
  gpu.count = threads;
  gpu.blocks = blocks;
  for (gpu.block = blocks - 1; gpu.block >= 0; --gpu.block) {
    for (index t = 0; t < threads; ++t) {
      getcontext(&gpu.first[t]);
      gpu.first[t].uc_stack.ss_sp = gpu.stacks + t * GPU_STACK_BYTES;
      gpu.first[t].uc_stack.ss_size = GPU_STACK_BYTES;
      gpu.first[t].uc_link = NULL;
      makecontext(&gpu.first[t], gpu_thread, 0);
      gpu.begun[t] = 0;
      gpu.running[t] = 1;
      gpu.exchanges[t] = 0;
      gpu.at_barrier[t] = 0;
    }
    gpu.arrived = 0;
    gpu_poison_shared();
    for (index left = threads; left > 0;)
      for (index t = 0; t < threads; t += 32)
        left -= gpu_run_warp(t, min_index(t + 32, threads));
  }
}

#endif
