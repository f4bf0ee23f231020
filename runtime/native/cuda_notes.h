// Included before every file of IREE's CUDA driver, whose launches are noted where they are made: see
// replay.h and kernel_times.h.
//
// A macro's own name is not expanded again, so that what follows is the driver's call with a note beside its first argument.

#ifndef MLXCEL_CUDA_NOTES_H_
#define MLXCEL_CUDA_NOTES_H_

#include "cuda.h"

// Notes a kernel that is about to be launched.
void shim_note_launch(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                      unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                      CUstream stream, void** params);
// Notes that all kernels of a command buffer are launched.
void shim_note_end(CUstream stream);
// Notes other work for a stream, or memory that is allocated: in the stream's order, or at once where a device has no pools.
void shim_note_other(void);

#define cuLaunchKernel(f, gx, gy, gz, bx, by, bz, bytes, stream, params, extra)                                    \
  cuLaunchKernel((shim_note_launch(f, gx, gy, gz, bx, by, bz, bytes, stream, params), (f)), gx, gy, gz, bx, by, bz, \
                 bytes, stream, params, extra)
#define cuEventRecord(event, stream) cuEventRecord((shim_note_end(stream), (event)), stream)
#define cuMemAllocFromPoolAsync(ptr, ...) cuMemAllocFromPoolAsync((shim_note_other(), (ptr)), __VA_ARGS__)
#define cuMemAlloc_v2(ptr, ...) cuMemAlloc_v2((shim_note_other(), (ptr)), __VA_ARGS__)
#define cuMemAllocManaged(ptr, ...) cuMemAllocManaged((shim_note_other(), (ptr)), __VA_ARGS__)
#define cuMemHostAlloc(ptr, ...) cuMemHostAlloc((shim_note_other(), (ptr)), __VA_ARGS__)
#define cuMemcpyAsync(dst, ...) cuMemcpyAsync((shim_note_other(), (dst)), __VA_ARGS__)
// cuda.h has a macro for the name without the version.
#define cuMemcpyHtoDAsync_v2(dst, ...) cuMemcpyHtoDAsync_v2((shim_note_other(), (dst)), __VA_ARGS__)
#define cuMemsetD8Async(dst, ...) cuMemsetD8Async((shim_note_other(), (dst)), __VA_ARGS__)
#define cuMemsetD16Async(dst, ...) cuMemsetD16Async((shim_note_other(), (dst)), __VA_ARGS__)
#define cuMemsetD32Async(dst, ...) cuMemsetD32Async((shim_note_other(), (dst)), __VA_ARGS__)

#endif  // MLXCEL_CUDA_NOTES_H_
