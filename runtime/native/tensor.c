#include "internal.h"

// IREE's element types, indexed by shim_dtype_t.
static const iree_hal_element_type_t shim_element_types[] = {
    IREE_HAL_ELEMENT_TYPE_NONE,     IREE_HAL_ELEMENT_TYPE_BOOL_8,   IREE_HAL_ELEMENT_TYPE_INT_8,
    IREE_HAL_ELEMENT_TYPE_INT_16,   IREE_HAL_ELEMENT_TYPE_INT_32,   IREE_HAL_ELEMENT_TYPE_INT_64,
    IREE_HAL_ELEMENT_TYPE_FLOAT_16, IREE_HAL_ELEMENT_TYPE_BFLOAT_16, IREE_HAL_ELEMENT_TYPE_FLOAT_32,
    IREE_HAL_ELEMENT_TYPE_FLOAT_64, IREE_HAL_ELEMENT_TYPE_COMPLEX_FLOAT_64, IREE_HAL_ELEMENT_TYPE_FLOAT_8_E5M2,
    IREE_HAL_ELEMENT_TYPE_FLOAT_8_E4M3_FN, IREE_HAL_ELEMENT_TYPE_FLOAT_8_E5M2_FNUZ,
    IREE_HAL_ELEMENT_TYPE_FLOAT_8_E4M3_FNUZ, IREE_HAL_ELEMENT_TYPE_FLOAT_8_E8M0_FNU,
};

iree_hal_element_type_t shim_element_type(uint32_t dtype) {
  return dtype < IREE_ARRAYSIZE(shim_element_types) ? shim_element_types[dtype] : IREE_HAL_ELEMENT_TYPE_NONE;
}

iree_status_t shim_type_size(const shim_type_t* type, iree_hal_dim_t dims[MLXCEL_MAX_RANK],
                               iree_device_size_t* out_size) {
  if (type->rank > MLXCEL_MAX_RANK) {
    return iree_make_status(IREE_STATUS_INVALID_ARGUMENT, "rank %zu, expected at most %d", type->rank,
                            MLXCEL_MAX_RANK);
  }
  if (shim_element_type(type->dtype) == IREE_HAL_ELEMENT_TYPE_NONE) {
    return iree_make_status(IREE_STATUS_INVALID_ARGUMENT, "element type %u is not known", type->dtype);
  }
  for (size_t i = 0; i < type->rank; ++i) dims[i] = (iree_hal_dim_t)type->dims[i];
  return iree_hal_buffer_compute_view_size(type->rank, dims, shim_element_type(type->dtype),
                                           IREE_HAL_ENCODING_TYPE_DENSE_ROW_MAJOR, out_size);
}

iree_status_t shim_allocate_buffer(shim_device_t* device, iree_hal_buffer_params_t params, iree_device_size_t size,
                                     iree_hal_buffer_t** out_buffer) {
  const int64_t start = shim_recorded_now(device);
  iree_status_t status =
      iree_hal_allocator_allocate_buffer(iree_hal_device_allocator(device->device), params, size, out_buffer);
  shim_record(device, MLXCEL_EVENT_ALLOCATE, start, size);
  return status;
}

// Writes zeros to all of a buffer, from blocks on the host: not every driver fills a buffer outside a program.
static iree_status_t shim_fill_zeros(iree_hal_device_t* device, iree_hal_buffer_t* buffer) {
  const iree_device_size_t block = 1 << 20;
  void* zeros = NULL;
  IREE_RETURN_IF_ERROR(iree_allocator_malloc(shim_allocator(), block, &zeros));
  const iree_device_size_t size = iree_hal_buffer_byte_length(buffer);
  iree_status_t status = iree_ok_status();
  for (iree_device_size_t at = 0; iree_status_is_ok(status) && at < size; at += block) {
    status = iree_hal_device_transfer_h2d(device, zeros, buffer, at, iree_min(block, size - at),
                                          IREE_HAL_TRANSFER_BUFFER_FLAG_DEFAULT, iree_infinite_timeout());
  }
  iree_allocator_free(shim_allocator(), zeros);
  return status;
}

iree_hal_buffer_params_t shim_device_memory(void) {
  return (iree_hal_buffer_params_t){
      .type = IREE_HAL_MEMORY_TYPE_DEVICE_LOCAL,
      .usage = IREE_HAL_BUFFER_USAGE_DEFAULT,
  };
}

iree_hal_buffer_params_t shim_host_memory(void) {
  return (iree_hal_buffer_params_t){
      .type = IREE_HAL_MEMORY_TYPE_HOST_LOCAL | IREE_HAL_MEMORY_TYPE_DEVICE_VISIBLE,
      .usage = IREE_HAL_BUFFER_USAGE_DEFAULT | IREE_HAL_BUFFER_USAGE_MAPPING,
  };
}

shim_error_t* shim_tensor_create(shim_device_t* device, const shim_type_t* type, uint32_t memory, int zeros,
                                     shim_tensor_t** out_tensor) {
  *out_tensor = NULL;
  iree_hal_dim_t dims[MLXCEL_MAX_RANK];
  iree_device_size_t size = 0;
  iree_status_t status = shim_type_size(type, dims, &size);
  const iree_hal_buffer_params_t params =
      memory == MLXCEL_MEMORY_HOST ? shim_host_memory() : shim_device_memory();
  iree_hal_buffer_t* buffer = NULL;
  if (iree_status_is_ok(status)) {
    status = shim_allocate_buffer(device, params, size, &buffer);
  }
  if (iree_status_is_ok(status) && zeros) status = shim_fill_zeros(device->device, buffer);
  iree_hal_buffer_view_t* view = NULL;
  if (iree_status_is_ok(status)) {
    status = iree_hal_buffer_view_create(buffer, type->rank, dims, shim_element_type(type->dtype),
                                         IREE_HAL_ENCODING_TYPE_DENSE_ROW_MAJOR, shim_allocator(), &view);
  }
  iree_hal_buffer_release(buffer);
  *out_tensor = (shim_tensor_t*)view;
  return shim_error_from_status(status);
}

// Returns the type of integers of the same size that says nothing about a sign. Compiled functions give some results with it and
// some without.
static iree_hal_element_type_t shim_signless(iree_hal_element_type_t type) {
  const iree_hal_numerical_type_t numerical_type = iree_hal_element_numerical_type(type);
  const bool has_sign = numerical_type == IREE_HAL_NUMERICAL_TYPE_INTEGER_SIGNED ||
                        numerical_type == IREE_HAL_NUMERICAL_TYPE_INTEGER_UNSIGNED;
  return has_sign ? iree_hal_make_element_type(IREE_HAL_NUMERICAL_TYPE_INTEGER, iree_hal_element_bit_count(type)) : type;
}

uint32_t shim_tensor_dtype(const shim_tensor_t* tensor) {
  const iree_hal_element_type_t type =
      shim_signless(iree_hal_buffer_view_element_type(shim_tensor_view(tensor)));
  for (uint32_t i = 1; i < IREE_ARRAYSIZE(shim_element_types); ++i) {
    if (shim_signless(shim_element_types[i]) == type) return i;
  }
  return MLXCEL_DTYPE_OTHER;
}

size_t shim_tensor_rank(const shim_tensor_t* tensor) {
  return iree_hal_buffer_view_shape_rank(shim_tensor_view(tensor));
}

size_t shim_tensor_dim(const shim_tensor_t* tensor, size_t axis) {
  return (size_t)iree_hal_buffer_view_shape_dim(shim_tensor_view(tensor), axis);
}

size_t shim_tensor_size(const shim_tensor_t* tensor) {
  return (size_t)iree_hal_buffer_view_byte_length(shim_tensor_view(tensor));
}

shim_error_t* shim_tensor_read(shim_device_t* device, shim_tensor_t* tensor, size_t offset, void* target,
                                   size_t length) {
  const int64_t start = shim_recorded_now(device);
  iree_status_t status = iree_hal_device_transfer_d2h(
      device->device, iree_hal_buffer_view_buffer(shim_tensor_view(tensor)), offset, target, length,
      IREE_HAL_TRANSFER_BUFFER_FLAG_DEFAULT, iree_infinite_timeout());
  shim_record(device, MLXCEL_EVENT_READ, start, length);
  return shim_error_from_status(status);
}

shim_error_t* shim_tensor_write(shim_device_t* device, shim_tensor_t* tensor, const void* source,
                                    size_t length) {
  const int64_t start = shim_recorded_now(device);
  iree_status_t status = iree_hal_device_transfer_h2d(
      device->device, source, iree_hal_buffer_view_buffer(shim_tensor_view(tensor)), 0, length,
      IREE_HAL_TRANSFER_BUFFER_FLAG_DEFAULT, iree_infinite_timeout());
  shim_record(device, MLXCEL_EVENT_WRITE, start, length);
  return shim_error_from_status(status);
}

shim_error_t* shim_tensor_first(shim_tensor_t* tensor, shim_tensor_t** out_first) {
  *out_first = NULL;
  iree_hal_buffer_view_t* view = shim_tensor_view(tensor);
  iree_hal_dim_t dims[MLXCEL_MAX_RANK];
  const iree_host_size_t rank = iree_hal_buffer_view_shape_rank(view);
  iree_status_t status = iree_ok_status();
  if (rank == 0 || rank > MLXCEL_MAX_RANK || iree_hal_buffer_view_shape_dim(view, 0) == 0) {
    status = iree_make_status(IREE_STATUS_INVALID_ARGUMENT, "the tensor has no first element");
  }
  if (iree_status_is_ok(status)) {
    memcpy(dims, iree_hal_buffer_view_shape_dims(view), rank * sizeof(dims[0]));
    dims[0] = 1;
    status = iree_hal_buffer_view_create(iree_hal_buffer_view_buffer(view), rank, dims,
                                         iree_hal_buffer_view_element_type(view),
                                         iree_hal_buffer_view_encoding_type(view), shim_allocator(),
                                         (iree_hal_buffer_view_t**)out_first);
  }
  return shim_error_from_status(status);
}

void shim_tensor_retain(shim_tensor_t* tensor) { iree_hal_buffer_view_retain(shim_tensor_view(tensor)); }

void shim_tensor_free(shim_tensor_t* tensor) { iree_hal_buffer_view_release(shim_tensor_view(tensor)); }
