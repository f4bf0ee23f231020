// Argmax of each row of logits, after they are scaled and capped. Ties give the lowest
// index, and NaN gives the length of the row.
//
//   logits   [rows][length]: x becomes x * scale, and then, if the cap c is not 0,
//            c * tanh(x / c)
//   out      [rows]
//   partial  [rows][parts][2], between blocks: bits of the largest element, and where
//            it is
//   scaled   [rows][length]: what the logits become; written only if scale is not 1 or
//            cap is not 0
//   scale, cap
//            bits of floats
//
// Blocks are [rows][parts]: each looks at every PART elements of a row that are its own.
// The last block of a row that is done compares what all have found.

#include "memory.h"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP,
  AHEAD = 16, // elements that a thread reads before it compares the first
  PART = THREADS * AHEAD,
  MAX_ROWS = 1024, // in more than one part
};

STATED(part, PART);
STATED(max_rows, MAX_ROWS);
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
SHARED_MEMORY uint32_t arrived;

// Returns the best of the threads of a block, in its first warp.
INLINE best block_reduce_best(best found, int thread) {
  found = warp_reduce_best(found);
  if (thread % WARP == 0) {
    values[thread / WARP] = found.value;
    places[thread / WARP] = found.at;
  }
  syncthreads();
  const int warp = thread % WARP % WARPS;
  return warp_reduce_best((best){values[warp], places[warp]});
}

INLINE float scaled_logit(float x, float scale, float cap) {
  x *= scale;
  return cap == 0.0f
             ? x
             : cap - 2.0f * cap / (exp2_approx(x * (2.0f * LOG2_E / cap)) + 1.0f);
}

// Blocks of each row that are done. The last one makes it zero again.
GLOBAL_MEMORY uint32_t done[MAX_ROWS];

KERNEL cuda_argmax(const float *logits, int32_t *out, int32_t *partial,
                   float *scaled, int length, int parts, uint32_t scale,
                   uint32_t cap) {
  const int thread = (int)thread_idx(), block = (int)block_idx();
  const int row_number = block / parts, part = block - row_number * parts;
  const float *row = logits + (index)row_number * length;
  const float by = float_of(scale), limit = float_of(cap);
  const int is_scaled = by != 1.0f || limit != 0.0f;
  best found = {0.0f, NOWHERE};
  wait_for_previous_kernel();
  for (int i = part * PART + thread; i < length; i += parts * PART) {
    float x[AHEAD];
    UNROLL for (int a = 0; a < AHEAD; ++a)
      x[a] = i + a * THREADS < length ? row[i + a * THREADS] : row[i];
    UNROLL for (int a = 0; a < AHEAD; ++a) {
      // Past the end, the first element is read again.
      const int at = i + a * THREADS < length ? i + a * THREADS : i;
      if (is_scaled) {
        x[a] = scaled_logit(x[a], by, limit);
        scaled[(index)row_number * length + at] = x[a];
      }
      found = better(found, (best){x[a], x[a] == x[a] ? (uint32_t)at : INVALID});
    }
  }
  found = block_reduce_best(found, thread);
  if (parts > 1) {
    if (thread == 0) {
      partial[2 * block] = (int32_t)bits_of(found.value);
      partial[2 * block + 1] = (int32_t)found.at;
      arrived = atomic_count_ordered(&done[row_number], (uint32_t)parts);
    }
    syncthreads();
    if ((int)arrived != parts - 1)
      return;
    found = (best){0.0f, NOWHERE};
    const int32_t *from = partial + 2 * row_number * parts;
    for (int i = thread; i < parts; i += THREADS)
      found = better(found, (best){float_of((uint32_t)from[2 * i]),
                                   (uint32_t)from[2 * i + 1]});
    found = block_reduce_best(found, thread);
  }
  if (thread == 0)
    out[row_number] = found.at == INVALID ? length : (int32_t)found.at;
}
