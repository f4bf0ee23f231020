// Replays of calls on NVIDIA GPUs: the kernels that a call launches, as one CUDA graph.
//
// IREE hands a call to another thread, launches kernel after kernel, and wakes the caller at the end. That takes 0.3 ms of a
// decode step besides the GPU's 1.1 ms (H100, Llama-3.2-1B). A call that is in place launches the same kernels with the same
// parameters every time, so that its second invocation is noted, or a later one if that fails, and those after it are a single
// launch. In it, kernels that wait by themselves begin while those before them end, and load weights meanwhile.

#ifndef MLXCEL_REPLAY_H_
#define MLXCEL_REPLAY_H_

#include <stdbool.h>

#include "iree/base/api.h"

// The kernels of a call.
typedef struct shim_replay_t shim_replay_t;

// Begins to note launches. Returns false if those of another call are being noted, or if there is no CUDA driver.
bool shim_replay_begin(void);
// Ends it. Returns the kernels, or NULL if anything else was done, or if the driver cannot replay them.
shim_replay_t* shim_replay_end(void);
// Launches the kernels.
iree_status_t shim_replay_start(shim_replay_t* replay);
// Waits for them, and not for what was launched later.
iree_status_t shim_replay_wait(shim_replay_t* replay);
void shim_replay_free(shim_replay_t* replay);

#endif  // MLXCEL_REPLAY_H_
