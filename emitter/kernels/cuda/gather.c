// Rows of tables that kernels write, as the residual stream is. A block has a row.
//
//   table  [rows][width]
//   ids    [...]: past the table, its last row is taken
//   out    [...][width]
//
// Rows of embeddings are read before the kernels ahead have ended: see embed.c. These may
// not be, so that this file is compiled for no instruction set in which kernels overlap.
// The width is a multiple of 4, and table and out are aligned to four elements.

#include "cuda.h"

enum { THREADS = 256 };

STATED(threads, THREADS);

KERNEL cuda_gather(const float *table, const int32_t *ids, float *out, int rows,
                   int width) {
  const index row = block_idx();
  const index id = max_int(0, min_int(ids[row], rows - 1));
  const uint4_t *from = (const uint4_t *)(table + id * width);
  uint4_t *to = (uint4_t *)(out + row * width);
  for (int i = (int)thread_idx(); i < width / 4; i += THREADS)
    to[i] = from[i];
}
