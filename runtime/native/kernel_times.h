// Times of kernels on NVIDIA GPUs, for recordings: IREE's CUDA driver tells none.
//
// While a call is timed, an event is put into the stream before each kernel, and one after the last kernel of a command
// buffer. So a time is that from a kernel's turn to the next one's: it has the gap between them, about a microsecond, and
// what the GPU waits for the host if that launches more slowly than the kernels run. Calls that are timed are not replayed.

#ifndef MLXCEL_KERNEL_TIMES_H_
#define MLXCEL_KERNEL_TIMES_H_

#include <stdbool.h>

#include "internal.h"

// Returns whether kernels of a device can be timed.
bool shim_kernel_times_can(iree_hal_device_t* device);
// Begins to time the kernels that are launched. Returns false if the recording does not want that, is NULL, or if those of
// another call are being timed.
bool shim_kernel_times_begin(shim_recording_t* recording);
// Ends it, when the call has ended, and records the kernels. What could not be timed counts as lost.
void shim_kernel_times_end(shim_recording_t* recording);

// Destroys the events of earlier calls, whose device is about to be closed.
void shim_kernel_times_release(void);

#ifdef MLXCEL_CUDA
#include "cuda.h"
// Notes that a kernel is about to be launched.
void shim_kernel_times_launch(CUfunction function, const uint32_t grid[3], CUstream stream);
#endif

#endif  // MLXCEL_KERNEL_TIMES_H_
