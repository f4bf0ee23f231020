// Types and functions that the files of this folder share.

#ifndef MLXCEL_INTERNAL_H_
#define MLXCEL_INTERNAL_H_

#include "iree/base/api.h"
#include "iree/hal/api.h"
#include "iree/vm/api.h"
#include "shim.h"

struct mlxcel_device_t {
  iree_vm_instance_t* instance;
  iree_hal_device_t* device;
  // The VM module of the device. All programs share it, because a device can be in one group only.
  iree_vm_module_t* hal_module;
  size_t threads;
};

struct mlxcel_module_t {
  iree_hal_device_t* device;
  iree_vm_context_t* context;
};

// Returns the buffer view that a tensor is.
static inline iree_hal_buffer_view_t* mlxcel_tensor_view(const mlxcel_tensor_t* tensor) {
  return (iree_hal_buffer_view_t*)tensor;
}

// Returns the allocator of all objects.
iree_allocator_t mlxcel_allocator(void);

// Returns a string as IREE's type.
static inline iree_string_view_t mlxcel_string_view(mlxcel_string_t string) {
  return iree_make_string_view(string.data, string.length);
}

// Turns `status` into an error and frees it. Returns NULL if the status is ok.
mlxcel_error_t* mlxcel_error_from_status(iree_status_t status);

// The most dimensions of a tensor that is allocated here.
#define MLXCEL_MAX_RANK 8

// Computes the dimensions and the size in bytes of a type.
iree_status_t mlxcel_type_size(const mlxcel_type_t* type, iree_hal_dim_t dims[MLXCEL_MAX_RANK],
                               iree_device_size_t* out_size);

// Returns IREE's type of an mlxcel_dtype_t, or NONE.
iree_hal_element_type_t mlxcel_element_type(uint32_t dtype);

#endif  // MLXCEL_INTERNAL_H_
