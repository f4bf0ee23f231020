// Copies the numbers of a call to the device's own memory. They arrive in memory of
// the host, which every read of a kernel would cross the bus for.

#include "cuda.h"

enum { THREADS = 256 };

STATED(threads, THREADS);

INLINE void copy(const int32_t *from, int32_t *to, int count) {
  for (int i = (int)thread_idx(); i < count; i += THREADS)
    to[i] = from[i];
}

// Copies positions and the page table of a pool, and sets the counters of its
// attention to zero.
//
//   positions    [rows]
//   slots        [rows]: where the keys and values of each row go
//   pages        [entries]: the pages of all sequences
//   first_pages  [sequences]
// Results
//   own_positions  [rows]
//   row_numbers    [3][rows]: positions, slots, and first pages
//   own_pages      [entries]
//   counters       [count]
KERNEL cuda_stage(const int32_t *positions, const int32_t *slots,
                  const int32_t *pages, const int32_t *first_pages,
                  int32_t *own_positions, int32_t *row_numbers, int32_t *own_pages,
                  int32_t *counters, int rows, int entries, int sequences,
                  int count) {
  wait_for_previous_kernel();
  start_next_kernel();
  copy(positions, own_positions, rows);
  copy(positions, row_numbers, rows);
  copy(slots, row_numbers + rows, rows);
  copy(first_pages, row_numbers + 2 * rows, sequences);
  copy(pages, own_pages, entries);
  for (int i = (int)thread_idx(); i < count; i += THREADS)
    counters[i] = 0;
}
