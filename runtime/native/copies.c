#include "internal.h"

// The buffers of a measurement.
typedef struct copies_t {
  iree_hal_device_t* device;
  iree_hal_buffer_t* source;
  iree_hal_buffer_t* target;
} copies_t;

// Copies all of the source to the target `count` times, in one submission, and waits.
static iree_status_t shim_copies_run(const copies_t* copies, iree_host_size_t count) {
  iree_hal_transfer_command_t* commands = NULL;
  IREE_RETURN_IF_ERROR(iree_allocator_malloc_array(shim_allocator(), count, sizeof(*commands), (void**)&commands));
  for (iree_host_size_t i = 0; i < count; ++i) {
    commands[i] = (iree_hal_transfer_command_t){
        .type = IREE_HAL_TRANSFER_COMMAND_TYPE_COPY,
        .copy = {.source_buffer = copies->source,
                 .target_buffer = copies->target,
                 .length = iree_hal_buffer_byte_length(copies->source)},
    };
  }
  iree_hal_command_buffer_t* command_buffer = NULL;
  iree_status_t status = iree_hal_create_transfer_command_buffer(
      copies->device, IREE_HAL_COMMAND_BUFFER_MODE_ONE_SHOT, IREE_HAL_QUEUE_AFFINITY_ANY, count, commands,
      &command_buffer);
  iree_allocator_free(shim_allocator(), commands);
  iree_hal_semaphore_t* done = NULL;
  if (iree_status_is_ok(status)) {
    status = iree_hal_semaphore_create(copies->device, IREE_HAL_QUEUE_AFFINITY_ANY, 0, IREE_HAL_SEMAPHORE_FLAG_DEFAULT,
                                       &done);
  }
  uint64_t value = 1;
  if (iree_status_is_ok(status)) {
    const iree_hal_semaphore_list_t signals = {.count = 1, .semaphores = &done, .payload_values = &value};
    status = iree_hal_device_queue_execute(copies->device, IREE_HAL_QUEUE_AFFINITY_ANY,
                                           iree_hal_semaphore_list_empty(), signals, command_buffer,
                                           iree_hal_buffer_binding_table_empty(), IREE_HAL_EXECUTE_FLAG_NONE);
  }
  if (iree_status_is_ok(status)) {
    status = iree_hal_semaphore_wait(done, value, iree_infinite_timeout(), IREE_ASYNC_WAIT_FLAG_NONE);
  }
  iree_hal_command_buffer_release(command_buffer);
  iree_hal_semaphore_release(done);
  return status;
}

shim_error_t* shim_device_time_copies(shim_device_t* device, size_t length, int64_t least_ns, uint64_t* out_count,
                                      int64_t* out_ns) {
  *out_count = 0;
  *out_ns = 0;
  const iree_hal_buffer_params_t params = shim_device_memory();
  copies_t copies = {.device = device->device};
  iree_status_t status = shim_allocate_buffer(device, params, length, &copies.source);
  if (iree_status_is_ok(status)) status = shim_allocate_buffer(device, params, length, &copies.target);
  // The first one warms up.
  if (iree_status_is_ok(status)) status = shim_copies_run(&copies, 1);
  // Starting and waiting take some 0.1 ms, whatever is copied.
  for (iree_host_size_t count = 1; iree_status_is_ok(status); count *= 4) {
    const int64_t start = shim_now();
    status = shim_copies_run(&copies, count);
    *out_count = count;
    *out_ns = shim_now() - start;
    if (*out_ns >= least_ns) break;
  }
  iree_hal_buffer_release(copies.source);
  iree_hal_buffer_release(copies.target);
  return shim_error_from_status(status);
}
