// What a device does, as events with times. IREE's records, the shim's own times and those of the workers end up here.

#ifndef MLXCEL_RECORDING_H_
#define MLXCEL_RECORDING_H_

#include "iree/hal/resource.h"
#include "internal.h"
#include "records.h"

// A function of an executable.
typedef struct shim_function_t {
  uint64_t executable;
  uint32_t ordinal;
  // Owned; NULL if IREE reported no name.
  char* name;
  size_t name_length;
} shim_function_t;

// A moment on the clocks of the device and of the host.
typedef struct shim_moment_t {
  uint64_t tick;
  int64_t host_ns;
} shim_moment_t;

struct shim_recording_t {
  // The recording is IREE's sink.
  iree_hal_resource_t resource;
  shim_device_t* device;
  // True if IREE records the device; the shim's own times need nothing of it.
  bool is_profiling;
  // True if the shim times kernels, because IREE does not.
  bool times_kernels;
  shim_records_t records;
  // Protected by the records' mutex.
  shim_function_t* functions;
  size_t function_count;
  size_t function_capacity;
  // The last two moments that the device told of; the older one has tick 0 until there are two.
  shim_moment_t moments[2];
  // Of each worker, if the device was made to be recorded.
  shim_records_t* workers;
  size_t worker_count;
};

// Stores the name of a function, unless it is known, in profile.c.
iree_status_t shim_profile_name_function(shim_recording_t* recording, uint64_t executable, uint32_t ordinal,
                                          shim_string_t name);

// IREE's calls of the sink, in profile.c.
iree_status_t shim_profile_write(iree_hal_profile_sink_t* sink, const iree_hal_profile_chunk_metadata_t* metadata,
                                   iree_host_size_t count, const iree_const_byte_span_t* chunks);

#endif  // MLXCEL_RECORDING_H_
