// Copies results that generated code made to where the caller wants them.

#include "cuda.h"

enum { THREADS = 256 };

STATED(threads, THREADS);

KERNEL cuda_copy_f32(const float *from, float *to, int count) {
  const index i = block_idx() * THREADS + thread_idx();
  if (i < count)
    to[i] = from[i];
}
