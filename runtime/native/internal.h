// What the files of this folder share.

#ifndef MLXCEL_INTERNAL_H_
#define MLXCEL_INTERNAL_H_

#include "iree/base/api.h"
#include "iree/hal/api.h"
#include "iree/vm/api.h"
#include "shim.h"

struct mlxcel_device_t {
  iree_vm_instance_t* instance;
  iree_hal_device_t* device;
  // The VM's view of the device. One for all programs: a device can be put into a group once only.
  iree_vm_module_t* hal_module;
  size_t threads;
};

struct mlxcel_module_t {
  iree_hal_device_t* device;
  iree_vm_context_t* context;
};

// A tensor is a buffer view under another name.
static inline iree_hal_buffer_view_t* mlxcel_tensor_view(const mlxcel_tensor_t* tensor) {
  return (iree_hal_buffer_view_t*)tensor;
}

static inline iree_allocator_t mlxcel_allocator(void) { return iree_allocator_system(); }

static inline iree_string_view_t mlxcel_view(mlxcel_string_t string) {
  return iree_make_string_view(string.data, string.length);
}

// Consumes `status`; NULL when it is ok.
mlxcel_error_t* mlxcel_error(iree_status_t status);

// IREE's name for a mlxcel_dtype_t; NONE when there is none.
iree_hal_element_type_t mlxcel_element_type(uint32_t dtype);

#endif  // MLXCEL_INTERNAL_H_
