// Included before every file of IREE's semaphores: a thread that waits for one gives up its processor where IREE has it spin.
//
// The worker that signals a semaphore wakes the thread that waits, and only then notes that it is through. The thread may not
// return before that. Linux often has it take the worker's own processor. There it spun for the rest of a tick or two, 3 to 8
// ms, while the worker could neither note anything nor compute.

#ifndef MLXCEL_SEMAPHORE_WAITS_H_
#define MLXCEL_SEMAPHORE_WAITS_H_

#include "iree/base/threading/processor.h"
#include "iree/base/threading/thread.h"

#define iree_processor_yield iree_thread_yield

#endif  // MLXCEL_SEMAPHORE_WAITS_H_
