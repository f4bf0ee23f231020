// Recordings of a device: begun, collected from time to time, and ended.

#include <string.h>

#include "recording.h"

int64_t mlxcel_now(void) { return iree_time_now(); }

void mlxcel_record(mlxcel_device_t* device, uint32_t kind, int64_t start_ns, uint64_t bytes) {
  mlxcel_recording_t* recording = device->recording;
  if (!recording) return;
  const mlxcel_record_t record = {
      .event = {.kind = kind, .start_ns = start_ns, .end_ns = iree_time_now(), .bytes = bytes},
  };
  mlxcel_records_add(&recording->records, &record);
}

// Records the memory that the device's allocator has given out, and not taken back.
static void mlxcel_recording_add_memory(mlxcel_recording_t* recording) {
  iree_hal_allocator_statistics_t statistics;
  memset(&statistics, 0, sizeof(statistics));
  iree_hal_allocator_query_statistics(iree_hal_device_allocator(recording->device->device), &statistics);
  const uint64_t allocated = statistics.host_bytes_allocated + statistics.device_bytes_allocated;
  const uint64_t freed = statistics.host_bytes_freed + statistics.device_bytes_freed;
  mlxcel_record(recording->device, MLXCEL_EVENT_BUFFER_BYTES, iree_time_now(), allocated - freed);
}

static void mlxcel_recording_destroy(iree_hal_profile_sink_t* sink) {
  mlxcel_recording_t* recording = (mlxcel_recording_t*)sink;
  for (size_t i = 0; i < recording->function_count; ++i) {
    iree_allocator_free(mlxcel_allocator(), recording->functions[i].name);
  }
  for (size_t i = 0; i < recording->worker_count; ++i) mlxcel_records_deinitialize(&recording->workers[i]);
  iree_allocator_free(mlxcel_allocator(), recording->workers);
  iree_allocator_free(mlxcel_allocator(), recording->functions);
  mlxcel_records_deinitialize(&recording->records);
  iree_allocator_free(mlxcel_allocator(), recording);
}

static iree_status_t mlxcel_recording_begin_session(iree_hal_profile_sink_t* sink,
                                                    const iree_hal_profile_chunk_metadata_t* metadata) {
  (void)sink, (void)metadata;
  return iree_ok_status();
}

static iree_status_t mlxcel_recording_end_session(iree_hal_profile_sink_t* sink,
                                                  const iree_hal_profile_chunk_metadata_t* metadata,
                                                  iree_status_code_t code) {
  (void)sink, (void)metadata, (void)code;
  return iree_ok_status();
}

static const iree_hal_profile_sink_vtable_t mlxcel_recording_vtable = {
    .destroy = mlxcel_recording_destroy,
    .begin_session = mlxcel_recording_begin_session,
    .write = mlxcel_profile_write,
    .end_session = mlxcel_recording_end_session,
};

// Begins IREE's records of the device. CPUs tell times of the host, and GPUs those of their own clock.
static iree_status_t mlxcel_recording_begin_profile(mlxcel_recording_t* recording) {
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

mlxcel_error_t* mlxcel_recording_begin(mlxcel_device_t* device, int* out_is_profiling) {
  *out_is_profiling = 0;
  if (device->recording) {
    return mlxcel_error_from_status(
        iree_make_status(IREE_STATUS_FAILED_PRECONDITION, "the device is being recorded already"));
  }
  mlxcel_recording_t* recording = NULL;
  iree_status_t status = iree_allocator_malloc(mlxcel_allocator(), sizeof(*recording), (void**)&recording);
  if (!iree_status_is_ok(status)) return mlxcel_error_from_status(status);
  iree_hal_resource_initialize(&mlxcel_recording_vtable, &recording->resource);
  iree_slim_mutex_initialize(&recording->records.mutex);
  recording->device = device;
  if (device->workers) {
    status = iree_allocator_malloc(mlxcel_allocator(), device->threads * sizeof(*recording->workers),
                                   (void**)&recording->workers);
  }
  if (!iree_status_is_ok(status)) {
    iree_hal_profile_sink_release((iree_hal_profile_sink_t*)recording);
    return mlxcel_error_from_status(status);
  }
  recording->worker_count = device->workers ? device->threads : 0;
  for (size_t i = 0; i < recording->worker_count; ++i) iree_slim_mutex_initialize(&recording->workers[i].mutex);
  // A device that keeps no records is still recorded from outside.
  status = mlxcel_recording_begin_profile(recording);
  recording->is_profiling = iree_status_is_ok(status);
  iree_status_ignore(status);
  *out_is_profiling = recording->is_profiling;
  device->recording = recording;
  mlxcel_workers_record(device->workers, recording->workers, recording->worker_count);
  return NULL;
}

// Returns the name of a function; empty if it is not known.
static mlxcel_string_t mlxcel_recording_name(const mlxcel_recording_t* recording, const mlxcel_record_t* record) {
  for (size_t i = 0; i < recording->function_count; ++i) {
    const mlxcel_function_t* function = &recording->functions[i];
    if (function->executable == record->executable && function->ordinal == record->ordinal) {
      return (mlxcel_string_t){function->name, function->name_length};
    }
  }
  return (mlxcel_string_t){NULL, 0};
}

// Passes on all records of a list, and empties it.
static void mlxcel_recording_pass(mlxcel_recording_t* recording, mlxcel_records_t* records,
                                  void (*found)(void* user, const mlxcel_event_t* event), void* user) {
  iree_slim_mutex_lock(&records->mutex);
  for (size_t i = 0; i < records->count; ++i) {
    mlxcel_event_t event = records->items[i].event;
    if (records->items[i].executable) event.name = mlxcel_recording_name(recording, &records->items[i]);
    // There it told dispatches from each other.
    if (event.kind == MLXCEL_EVENT_WORKGROUPS) event.bytes = 0;
    found(user, &event);
  }
  if (records->lost) {
    const mlxcel_event_t lost = {.kind = MLXCEL_EVENT_LOST, .count = records->lost};
    found(user, &lost);
  }
  records->count = 0;
  records->lost = 0;
  iree_slim_mutex_unlock(&records->mutex);
}

static void mlxcel_recording_pass_all(mlxcel_recording_t* recording,
                                      void (*found)(void* user, const mlxcel_event_t* event), void* user) {
  mlxcel_recording_add_memory(recording);
  mlxcel_recording_pass(recording, &recording->records, found, user);
  for (size_t i = 0; i < recording->worker_count; ++i) {
    mlxcel_recording_pass(recording, &recording->workers[i], found, user);
  }
}

mlxcel_error_t* mlxcel_recording_collect(mlxcel_device_t* device,
                                         void (*found)(void* user, const mlxcel_event_t* event), void* user) {
  mlxcel_recording_t* recording = device->recording;
  if (!recording) return NULL;
  iree_status_t status =
      recording->is_profiling ? iree_hal_device_profiling_flush(device->device) : iree_ok_status();
  mlxcel_recording_pass_all(recording, found, user);
  return mlxcel_error_from_status(status);
}

mlxcel_error_t* mlxcel_recording_end(mlxcel_device_t* device,
                                     void (*found)(void* user, const mlxcel_event_t* event), void* user) {
  mlxcel_recording_t* recording = device->recording;
  if (!recording) return NULL;
  iree_status_t status = recording->is_profiling ? iree_hal_device_profiling_end(device->device) : iree_ok_status();
  mlxcel_recording_pass_all(recording, found, user);
  mlxcel_workers_record(device->workers, NULL, 0);
  device->recording = NULL;
  iree_hal_profile_sink_release((iree_hal_profile_sink_t*)recording);
  return mlxcel_error_from_status(status);
}
