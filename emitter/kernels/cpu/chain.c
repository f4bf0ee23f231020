// Divides the links of a chain among threads.
//
//   counters  [links][CHAIN_LINK_WORDS], zero before the first thread arrives
//   link      a kernel, whose work is `groups` groups
//   next      weights that a later link reads, `bytes` of them
//
// A dispatch has more workgroups than it needs. Each goes through the links in order:
// it takes groups of a link until none is left, then waits until all are done. No
// link needs more than one thread: who has taken a group finishes it and goes on. So
// a thread that waits for another one too long may leave.
//
// What a link writes is visible to the next one: the last of its writers releases
// the counter that chain_wait() acquires.

#include "chain.h"
#include "simd.h"

// Rounds of waiting until a thread leaves: some 100 us. A thread whose core was taken
// away is gone for longer, and then whoever waits should not burn its core.
#define WAIT_ROUNDS 4000

#define LINE_BYTES 64
#define LINES_A_ROUND 4

INLINE void pause_briefly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

INLINE uint32_t *counters_of(uint32_t *counters, index link) {
  return counters + link * CHAIN_LINK_WORDS;
}

// Returns the number of a group that is now the caller's. There is none if it is
// `groups` or more.
index chain_take(uint32_t *counters, index link, index groups) {
  uint32_t *taken = counters_of(counters, link);
  // Late workgroups only read.
  if (__atomic_load_n(taken, __ATOMIC_RELAXED) >= (uint32_t)groups)
    return groups;
  return __atomic_fetch_add(taken, 1, __ATOMIC_RELAXED);
}

// As chain_take(), after the caller did a group.
index chain_finish_and_take(uint32_t *counters, index link, index groups) {
  __atomic_fetch_add(counters_of(counters, link) + CHAIN_DONE_WORD, 1,
                     __ATOMIC_ACQ_REL);
  return chain_take(counters, link, groups);
}

// Waits until all groups of a link are done, and reads weights ahead meanwhile.
// Returns 0 if that takes too long.
index chain_wait(uint32_t *counters, index link, index groups, const void *next,
                 index bytes) {
  const uint32_t *done = counters_of(counters, link) + CHAIN_DONE_WORD;
  index ahead = 0;
  for (index round = 0; round < WAIT_ROUNDS; ++round) {
    if (__atomic_load_n(done, __ATOMIC_ACQUIRE) >= (uint32_t)groups)
      return 1;
    for (int line = 0; line < LINES_A_ROUND && ahead < bytes; ++line) {
      prefetch(next, ahead);
      ahead += LINE_BYTES;
    }
    pause_briefly();
  }
  return 0;
}
