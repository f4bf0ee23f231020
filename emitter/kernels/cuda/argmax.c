// Argmax of each row, one row per block. Ties give the lowest index, and NaN gives
// the length of the row.

#include "cuda.h"

enum {
  THREADS = 1024,
  WARPS = THREADS / WARP,
  AHEAD = 16, // elements that a thread reads before it compares the first
};

STATED(threads, THREADS);

typedef struct {
  float value;
  uint32_t at; // NOWHERE before the first element, INVALID after NaN
} best;

#define NOWHERE 0xfffffffeu
#define INVALID 0xffffffffu

INLINE best better(best a, best b) {
  if (a.at == INVALID || b.at == NOWHERE)
    return a;
  if (b.at == INVALID || a.at == NOWHERE)
    return b;
  return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}

INLINE best warp_reduce_best(best x) {
  for (int mask = 1; mask < WARP; mask *= 2) {
    const best other = {shuffle_xor(x.value, mask),
                        shuffle_xor_u32(x.at, mask)};
    x = better(x, other);
  }
  return x;
}

SHARED_MEMORY float values[WARPS];
SHARED_MEMORY uint32_t places[WARPS];

KERNEL cuda_argmax(const float *logits, int32_t *out, int length) {
  const index thread = thread_idx();
  const float *row = logits + block_idx() * length;
  best found = {0.0f, NOWHERE};
  wait_for_previous_kernel();
  for (int i = (int)thread; i < length; i += AHEAD * THREADS) {
    float x[AHEAD];
    UNROLL for (int a = 0; a < AHEAD; ++a)
      x[a] = i + a * THREADS < length ? row[i + a * THREADS] : row[i];
    UNROLL for (int a = 0; a < AHEAD; ++a) {
      // Past the end, the first element is read again.
      const int at = i + a * THREADS < length ? i + a * THREADS : i;
      found = better(found, (best){x[a], x[a] == x[a] ? (uint32_t)at : INVALID});
    }
  }
  found = warp_reduce_best(found);
  if (thread % WARP == 0) {
    values[thread / WARP] = found.value;
    places[thread / WARP] = found.at;
  }
  syncthreads();
  if (thread < WARP) {
    found = warp_reduce_best((best){values[thread], places[thread]});
    if (thread == 0)
      out[block_idx()] = found.at == INVALID ? length : (int32_t)found.at;
  }
}
