#define _GNU_SOURCE
#if defined(__linux__)
#include <sched.h>
#endif

#include "internal.h"

int shim_thread_set_batch(int is_batch) {
#if defined(__linux__)
  const struct sched_param none = {0};
  const int from = is_batch ? SCHED_OTHER : SCHED_BATCH;
  // 0 is the calling thread. One with another policy keeps it.
  if (sched_getscheduler(0) != from) return 0;
  return sched_setscheduler(0, is_batch ? SCHED_BATCH : SCHED_OTHER, &none) == 0;
#else
  (void)is_batch;
  return 0;
#endif
}
