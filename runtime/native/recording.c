// Recordings of a device: begun, collected from time to time, and ended.

#include <string.h>

#include "kernel_times.h"
#include "recording.h"

int64_t shim_now(void) { return iree_time_now(); }

void shim_record(shim_device_t* device, uint32_t kind, int64_t start_ns, uint64_t bytes) {
  shim_recording_t* recording = device->recording;
  if (!recording) return;
  const shim_record_t record = {
      .event = {.kind = kind, .start_ns = start_ns, .end_ns = iree_time_now(), .bytes = bytes},
  };
  shim_records_add(&recording->records, &record);
}

// Records the memory that the device's allocator has given out, and not taken back.
static void shim_recording_add_memory(shim_recording_t* recording) {
  iree_hal_allocator_statistics_t statistics;
  memset(&statistics, 0, sizeof(statistics));
  iree_hal_allocator_query_statistics(iree_hal_device_allocator(recording->device->device), &statistics);
  const uint64_t allocated = statistics.host_bytes_allocated + statistics.device_bytes_allocated;
  const uint64_t freed = statistics.host_bytes_freed + statistics.device_bytes_freed;
  shim_record(recording->device, MLXCEL_EVENT_BUFFER_BYTES, iree_time_now(), allocated - freed);
}

static void shim_recording_destroy(iree_hal_profile_sink_t* sink) {
  shim_recording_t* recording = (shim_recording_t*)sink;
  for (size_t i = 0; i < recording->function_count; ++i) {
    iree_allocator_free(shim_allocator(), recording->functions[i].name);
  }
  for (size_t i = 0; i < recording->worker_count; ++i) shim_records_deinitialize(&recording->workers[i]);
  iree_allocator_free(shim_allocator(), recording->workers);
  iree_allocator_free(shim_allocator(), recording->functions);
  shim_records_deinitialize(&recording->records);
  iree_allocator_free(shim_allocator(), recording);
}

static iree_status_t shim_recording_begin_session(iree_hal_profile_sink_t* sink,
                                                    const iree_hal_profile_chunk_metadata_t* metadata) {
  (void)sink, (void)metadata;
  return iree_ok_status();
}

static iree_status_t shim_recording_end_session(iree_hal_profile_sink_t* sink,
                                                  const iree_hal_profile_chunk_metadata_t* metadata,
                                                  iree_status_code_t code) {
  (void)sink, (void)metadata, (void)code;
  return iree_ok_status();
}

static const iree_hal_profile_sink_vtable_t shim_recording_vtable = {
    .destroy = shim_recording_destroy,
    .begin_session = shim_recording_begin_session,
    .write = shim_profile_write,
    .end_session = shim_recording_end_session,
};

// Begins IREE's records of the device. CPUs tell times of the host, and GPUs those of their own clock.
static iree_status_t shim_recording_begin_profile(shim_recording_t* recording) {
  const iree_hal_device_profiling_data_families_t families[] = {
      IREE_HAL_DEVICE_PROFILING_DATA_HOST_EXECUTION_EVENTS | IREE_HAL_DEVICE_PROFILING_DATA_MEMORY_EVENTS |
          IREE_HAL_DEVICE_PROFILING_DATA_EXECUTABLE_METADATA,
      IREE_HAL_DEVICE_PROFILING_DATA_DISPATCH_EVENTS | IREE_HAL_DEVICE_PROFILING_DATA_DEVICE_QUEUE_EVENTS |
          IREE_HAL_DEVICE_PROFILING_DATA_MEMORY_EVENTS | IREE_HAL_DEVICE_PROFILING_DATA_EXECUTABLE_METADATA,
  };
  iree_status_t status = iree_ok_status();
  for (size_t i = 0; i < IREE_ARRAYSIZE(families); ++i) {
    iree_status_ignore(status);
    const iree_hal_device_profiling_options_t options = {
        .data_families = families[i],
        .sink = (iree_hal_profile_sink_t*)recording,
    };
    status = iree_hal_device_profiling_begin(recording->device->device, &options);
    if (iree_status_is_ok(status)) return status;
  }
  return status;
}

shim_error_t* shim_recording_begin(shim_device_t* device, int* out_is_profiling) {
  *out_is_profiling = 0;
  if (device->recording) {
    return shim_error_from_status(
        iree_make_status(IREE_STATUS_FAILED_PRECONDITION, "the device is being recorded already"));
  }
  shim_recording_t* recording = NULL;
  iree_status_t status = iree_allocator_malloc(shim_allocator(), sizeof(*recording), (void**)&recording);
  if (!iree_status_is_ok(status)) return shim_error_from_status(status);
  iree_hal_resource_initialize(&shim_recording_vtable, &recording->resource);
  iree_slim_mutex_initialize(&recording->records.mutex);
  recording->device = device;
  if (device->workers) {
    status = iree_allocator_malloc(shim_allocator(), device->threads * sizeof(*recording->workers),
                                   (void**)&recording->workers);
  }
  if (!iree_status_is_ok(status)) {
    iree_hal_profile_sink_release((iree_hal_profile_sink_t*)recording);
    return shim_error_from_status(status);
  }
  recording->worker_count = device->workers ? device->threads : 0;
  for (size_t i = 0; i < recording->worker_count; ++i) iree_slim_mutex_initialize(&recording->workers[i].mutex);
  // A device that keeps no records is still recorded from outside.
  status = shim_recording_begin_profile(recording);
  recording->is_profiling = iree_status_is_ok(status);
  iree_status_ignore(status);
  recording->times_kernels = !recording->is_profiling && shim_kernel_times_can(device->device);
  *out_is_profiling = recording->is_profiling || recording->times_kernels;
  device->recording = recording;
  shim_workers_record(device->workers, recording->workers, recording->worker_count);
  return NULL;
}

// Returns the name of a function; empty if it is not known.
static shim_string_t shim_recording_name(const shim_recording_t* recording, const shim_record_t* record) {
  for (size_t i = 0; i < recording->function_count; ++i) {
    const shim_function_t* function = &recording->functions[i];
    if (function->executable == record->executable && function->ordinal == record->ordinal) {
      return (shim_string_t){function->name, function->name_length};
    }
  }
  return (shim_string_t){NULL, 0};
}

// Passes on all records of a list, and empties it.
static void shim_recording_pass(shim_recording_t* recording, shim_records_t* records,
                                  void (*found)(void* user, const shim_event_t* event), void* user) {
  iree_slim_mutex_lock(&records->mutex);
  for (size_t i = 0; i < records->count; ++i) {
    shim_event_t event = records->items[i].event;
    if (records->items[i].executable) event.name = shim_recording_name(recording, &records->items[i]);
    // There it told dispatches from each other.
    if (event.kind == MLXCEL_EVENT_WORKGROUPS) event.bytes = 0;
    found(user, &event);
  }
  if (records->lost) {
    const shim_event_t lost = {.kind = MLXCEL_EVENT_LOST, .count = records->lost};
    found(user, &lost);
  }
  records->count = 0;
  records->lost = 0;
  iree_slim_mutex_unlock(&records->mutex);
}

static void shim_recording_pass_all(shim_recording_t* recording,
                                      void (*found)(void* user, const shim_event_t* event), void* user) {
  shim_recording_add_memory(recording);
  shim_recording_pass(recording, &recording->records, found, user);
  for (size_t i = 0; i < recording->worker_count; ++i) {
    shim_recording_pass(recording, &recording->workers[i], found, user);
  }
}

shim_error_t* shim_recording_collect(shim_device_t* device,
                                         void (*found)(void* user, const shim_event_t* event), void* user) {
  shim_recording_t* recording = device->recording;
  if (!recording) return NULL;
  iree_status_t status =
      recording->is_profiling ? iree_hal_device_profiling_flush(device->device) : iree_ok_status();
  shim_recording_pass_all(recording, found, user);
  return shim_error_from_status(status);
}

shim_error_t* shim_recording_end(shim_device_t* device,
                                     void (*found)(void* user, const shim_event_t* event), void* user) {
  shim_recording_t* recording = device->recording;
  if (!recording) return NULL;
  iree_status_t status = recording->is_profiling ? iree_hal_device_profiling_end(device->device) : iree_ok_status();
  shim_recording_pass_all(recording, found, user);
  shim_workers_record(device->workers, NULL, 0);
  device->recording = NULL;
  if (recording->times_kernels) shim_kernel_times_release();
  iree_hal_profile_sink_release((iree_hal_profile_sink_t*)recording);
  return shim_error_from_status(status);
}
