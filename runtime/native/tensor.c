#include "internal.h"

// IREE's element types, indexed by mlxcel_dtype_t.
static const iree_hal_element_type_t mlxcel_element_types[] = {
    IREE_HAL_ELEMENT_TYPE_NONE,     IREE_HAL_ELEMENT_TYPE_BOOL_8,   IREE_HAL_ELEMENT_TYPE_INT_8,
    IREE_HAL_ELEMENT_TYPE_INT_16,   IREE_HAL_ELEMENT_TYPE_INT_32,   IREE_HAL_ELEMENT_TYPE_INT_64,
    IREE_HAL_ELEMENT_TYPE_FLOAT_16, IREE_HAL_ELEMENT_TYPE_BFLOAT_16, IREE_HAL_ELEMENT_TYPE_FLOAT_32,
    IREE_HAL_ELEMENT_TYPE_FLOAT_64,
};

iree_hal_element_type_t mlxcel_element_type(uint32_t dtype) {
  return dtype < IREE_ARRAYSIZE(mlxcel_element_types) ? mlxcel_element_types[dtype] : IREE_HAL_ELEMENT_TYPE_NONE;
}

uint32_t mlxcel_tensor_dtype(const mlxcel_tensor_t* tensor) {
  iree_hal_element_type_t type = iree_hal_buffer_view_element_type(mlxcel_tensor_view(tensor));
  for (uint32_t i = 1; i < IREE_ARRAYSIZE(mlxcel_element_types); ++i) {
    if (mlxcel_element_types[i] == type) return i;
  }
  return MLXCEL_DTYPE_OTHER;
}

size_t mlxcel_tensor_rank(const mlxcel_tensor_t* tensor) {
  return iree_hal_buffer_view_shape_rank(mlxcel_tensor_view(tensor));
}

size_t mlxcel_tensor_dim(const mlxcel_tensor_t* tensor, size_t axis) {
  return (size_t)iree_hal_buffer_view_shape_dim(mlxcel_tensor_view(tensor), axis);
}

size_t mlxcel_tensor_size(const mlxcel_tensor_t* tensor) {
  return (size_t)iree_hal_buffer_view_byte_length(mlxcel_tensor_view(tensor));
}

mlxcel_error_t* mlxcel_tensor_read(mlxcel_device_t* device, mlxcel_tensor_t* tensor, void* target,
                                   size_t length) {
  return mlxcel_error_from_status(iree_hal_device_transfer_d2h(
      device->device, iree_hal_buffer_view_buffer(mlxcel_tensor_view(tensor)), 0, target, length,
      IREE_HAL_TRANSFER_BUFFER_FLAG_DEFAULT, iree_infinite_timeout()));
}

void mlxcel_tensor_free(mlxcel_tensor_t* tensor) { iree_hal_buffer_view_release(mlxcel_tensor_view(tensor)); }
