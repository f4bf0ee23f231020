// Merging of the chunks that attention.h computes.

#include "attention.h"

enum { MAX_CHUNKS = 32 }; // one per lane of a warp

STATED(chunks, MAX_CHUNKS);

SHARED_MEMORY float weights[MAX_CHUNKS];

// Merges the chunks of one head of one sequence per block. If has_sinks, `sinks`
// [heads] has one more score for each head, without a value, in natural units.
KERNEL cuda_attention_combine(const float *partial, const float *max_sum,
                              const float *sinks, float *out, int chunks,
                              int heads, int head_dim, int has_sinks) {
  const int thread = (int)thread_idx(), row = (int)block_idx();
  // Index of the head in the first chunk of its sequence.
  const int first = row / heads * chunks * heads + row % heads;
  if (thread < MAX_CHUNKS) {
    const int there = thread < chunks;
    const float *chunk_state = max_sum + (first + (there ? thread : 0) * heads) * 2;
    const float sink = has_sinks ? sinks[row % heads] * LOG2_E : NEGATIVE_INFINITY;
    const float max = there ? chunk_state[0] : NEGATIVE_INFINITY;
    const float most =
        max_float(max_float(LOWEST_FLOAT, sink), warp_reduce_max(max));
    const float weight = exp2_approx(max - most);
    // Sums of a chunk with the weight 0 are undefined.
    const float sum = there && chunk_state[1] != 0.0f ? chunk_state[1] * weight : 0.0f;
    const float total = warp_reduce_sum(sum) + exp2_approx(sink - most);
    weights[thread] = sum != 0.0f ? weight / total : 0.0f;
  }
  syncthreads();
  for (int d = thread; d < head_dim; d += THREADS) {
    float x = 0.0f;
#pragma clang loop unroll_count(8)
    for (int c = 0; c < chunks; ++c)
      x += weights[c] != 0.0f
               ? partial[(index)(first + c * heads) * head_dim + d] * weights[c]
               : 0.0f;
    out[(index)row * head_dim + d] = x;
  }
}
