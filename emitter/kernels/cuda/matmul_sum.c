// The sum of the parts of a product, of which each has some of the inputs: see
// matmul.h. Parts are added in order, so that results do not change from run to run.

#include "cuda.h"

enum { THREADS = 256 };

STATED(threads, THREADS);

// Each thread adds four consecutive elements of the `count` of a part.
KERNEL cuda_matmul_sum(const float *parts, float *out, int count, int splits) {
  typedef float float4_t __attribute__((vector_size(16)));
  const index at = block_idx() * THREADS + thread_idx(), fours = count / 4;
  if (at >= fours)
    return;
  const float4_t *from = (const float4_t *)parts + at;
  float4_t sum = *from;
#pragma clang loop unroll_count(4)
  for (int s = 1; s < splits; ++s)
    sum += from[s * fours];
  ((float4_t *)out)[at] = sum;
}
