// Types and functions that the files of this folder share.

#ifndef MLXCEL_INTERNAL_H_
#define MLXCEL_INTERNAL_H_

#include "iree/base/api.h"
#include "iree/hal/api.h"
#include "iree/hal/local/executable_loader.h"
#include "iree/vm/api.h"
#include "shim.h"

// What makes the executables of a device report their workgroups, see workers.c.
typedef struct shim_workers_t shim_workers_t;
typedef struct shim_recording_t shim_recording_t;
// Records that one thread at a time adds.
typedef struct shim_records_t shim_records_t;

struct shim_device_t {
  iree_vm_instance_t* instance;
  iree_hal_device_t* device;
  // The VM module of the device. All programs share it, because a device can be in one group only.
  iree_vm_module_t* hal_module;
  size_t threads;
  // The number that CUDA has for it, or -1 if it is of another driver.
  int cuda;
  // NULL if workers do not report.
  shim_workers_t* workers;
  // NULL if nothing is recorded.
  shim_recording_t* recording;
};

struct shim_module_t {
  // Outlives the module.
  shim_device_t* owner;
  iree_hal_device_t* device;
  iree_vm_context_t* context;
};

// Returns the buffer view that a tensor is.
static inline iree_hal_buffer_view_t* shim_tensor_view(const shim_tensor_t* tensor) {
  return (iree_hal_buffer_view_t*)tensor;
}

// Returns the allocator of all objects.
iree_allocator_t shim_allocator(void);

// Returns a string as IREE's type.
static inline iree_string_view_t shim_string_view(shim_string_t string) {
  return iree_make_string_view(string.data, string.length);
}

// Turns `status` into an error and frees it. Returns NULL if the status is ok.
shim_error_t* shim_error_from_status(iree_status_t status);

// The most dimensions of a tensor that is allocated here.
#define MLXCEL_MAX_RANK 32

// Computes the dimensions and the size in bytes of a type.
iree_status_t shim_type_size(const shim_type_t* type, iree_hal_dim_t dims[MLXCEL_MAX_RANK],
                               iree_device_size_t* out_size);

// Returns IREE's type of an shim_dtype_t, or NONE.
iree_hal_element_type_t shim_element_type(uint32_t dtype);

// Returns the time at which something begins that may be recorded; 0 if nothing is.
static inline int64_t shim_recorded_now(const shim_device_t* device) {
  return device->recording ? shim_now() : 0;
}

// Records that something happened from `start_ns` until now, if the device is recorded.
void shim_record(shim_device_t* device, uint32_t kind, int64_t start_ns, uint64_t bytes);

// Returns what buffers in a device's own memory are allocated with.
iree_hal_buffer_params_t shim_device_memory(void);

// Returns what buffers in the host's memory are allocated with, which the device reads and writes over the bus.
iree_hal_buffer_params_t shim_host_memory(void);

// Allocates a buffer.
iree_status_t shim_allocate_buffer(shim_device_t* device, iree_hal_buffer_params_t params, iree_device_size_t size,
                                     iree_hal_buffer_t** out_buffer);

// Replaces the VM module of a device by one that records how long programs wait.
iree_status_t shim_waits_wrap(shim_device_t* device);

// Makes what reports the workgroups of executables.
iree_status_t shim_workers_create(shim_workers_t** out_workers);
// Replaces a loader by one whose executables report. `workers` outlives them.
iree_status_t shim_workers_wrap(shim_workers_t* workers, iree_hal_executable_loader_t** inout_loader);
// Sets where the workgroups of each worker are recorded; 0 for nowhere. Nothing runs meanwhile.
void shim_workers_record(shim_workers_t* workers, shim_records_t* records, size_t count);
void shim_workers_free(shim_workers_t* workers);

#endif  // MLXCEL_INTERNAL_H_
