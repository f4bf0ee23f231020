// Merging of the chunks that attention.h computes.

#include "attention.h"

enum { MAX_CHUNKS = 32 }; // one per lane of a warp

STATED(chunks, MAX_CHUNKS);

SHARED_MEMORY float weights[MAX_CHUNKS];

// Merges the chunks of one row of [batch][heads] per block.
KERNEL cuda_attention_combine(const float *partial_sums, const float *max_sum,
                              float *out, int chunks, int rows, int head_dim) {
  const int thread = (int)thread_idx(), row = (int)block_idx();
  // Index of the row in the first chunk of its batch row.
  const int first = row / rows * chunks * rows + row % rows;
  if (thread < MAX_CHUNKS) {
    const int there = thread < chunks;
    const float *chunk_state = max_sum + (first + (there ? thread : 0) * rows) * 2;
    const float max = there ? chunk_state[0] : NEGATIVE_INFINITY;
    const float most = max_float(LOWEST_FLOAT, warp_reduce_max(max));
    const float weight = exp2_approx(max - most);
    // Sums of a chunk with the weight 0 are undefined.
    const float sum = there && chunk_state[1] != 0.0f ? chunk_state[1] * weight : 0.0f;
    const float total = warp_reduce_sum(sum);
    weights[thread] = sum != 0.0f ? weight / total : 0.0f;
  }
  syncthreads();
  for (int d = thread; d < head_dim; d += THREADS) {
    float x = 0.0f;
#pragma clang loop unroll_count(8)
    for (int c = 0; c < chunks; ++c)
      x += weights[c] != 0.0f
               ? partial_sums[(index)(first + c * rows) * head_dim + d] *
                     weights[c]
               : 0.0f;
    out[(index)row * head_dim + d] = x;
  }
}
