// IREE's records of a device, which come in chunks of one kind.

#include <string.h>

#include "iree/hal/profile_schema.h"
#include "iree/hal/profile_sink.h"
#include "recording.h"

iree_status_t shim_profile_name_function(shim_recording_t* recording, uint64_t executable, uint32_t ordinal,
                                          shim_string_t name) {
  for (size_t i = 0; i < recording->function_count; ++i) {
    const shim_function_t* known = &recording->functions[i];
    if (known->executable == executable && known->ordinal == ordinal) return iree_ok_status();
  }
  if (recording->function_count == recording->function_capacity) {
    const size_t capacity = iree_max(2 * recording->function_capacity, (size_t)64);
    IREE_RETURN_IF_ERROR(iree_allocator_realloc(shim_allocator(), capacity * sizeof(*recording->functions),
                                                (void**)&recording->functions));
    recording->function_capacity = capacity;
  }
  shim_function_t function = {.executable = executable, .ordinal = ordinal, .name_length = name.length};
  IREE_RETURN_IF_ERROR(iree_allocator_malloc(shim_allocator(), name.length, (void**)&function.name));
  memcpy(function.name, name.data, name.length);
  recording->functions[recording->function_count++] = function;
  return iree_ok_status();
}

// Stores the name of a function that a record tells.
static iree_status_t shim_profile_add_function(shim_recording_t* recording, const void* data) {
  iree_hal_profile_executable_function_record_t record;
  memcpy(&record, data, sizeof(record));
  if (record.record_length < sizeof(record) + record.name_length || !record.name_length) return iree_ok_status();
  const shim_string_t name = {(const char*)data + sizeof(record), record.name_length};
  return shim_profile_name_function(recording, record.executable_id, record.function_ordinal, name);
}

// Returns the kind of an operation of a queue.
static uint32_t shim_profile_kind(iree_hal_profile_queue_event_type_t type) {
  switch (type) {
    case IREE_HAL_PROFILE_QUEUE_EVENT_TYPE_DISPATCH:
      return MLXCEL_EVENT_DISPATCH;
    case IREE_HAL_PROFILE_QUEUE_EVENT_TYPE_BARRIER:
      return MLXCEL_EVENT_BARRIER;
    case IREE_HAL_PROFILE_QUEUE_EVENT_TYPE_COPY:
      return MLXCEL_EVENT_COPY;
    case IREE_HAL_PROFILE_QUEUE_EVENT_TYPE_FILL:
      return MLXCEL_EVENT_FILL;
    case IREE_HAL_PROFILE_QUEUE_EVENT_TYPE_UPDATE:
      return MLXCEL_EVENT_UPDATE;
    case IREE_HAL_PROFILE_QUEUE_EVENT_TYPE_READ:
      return MLXCEL_EVENT_READ_FILE;
    case IREE_HAL_PROFILE_QUEUE_EVENT_TYPE_ALLOCA:
      return MLXCEL_EVENT_ALLOCA;
    case IREE_HAL_PROFILE_QUEUE_EVENT_TYPE_DEALLOCA:
      return MLXCEL_EVENT_DEALLOCA;
    default:
      return MLXCEL_EVENT_EXECUTE;
  }
}

// Adds an operation of the CPU.
static iree_status_t shim_profile_add_host_event(shim_recording_t* recording, const void* data) {
  iree_hal_profile_host_execution_event_t event;
  memcpy(&event, data, sizeof(event));
  shim_record_t record = {
      .event = {.kind = shim_profile_kind(event.type), .start_ns = event.start_host_time_ns,
                .end_ns = event.end_host_time_ns, .bytes = event.payload_length, .count = event.tile_count,
                .busy_ns = event.tile_duration_sum_ns},
  };
  memcpy(record.event.workgroups, event.workgroup_count, sizeof(record.event.workgroups));
  if (record.event.kind == MLXCEL_EVENT_DISPATCH) {
    record.executable = event.executable_id;
    record.ordinal = event.function_ordinal;
  }
  shim_records_add_locked(&recording->records, &record);
  return iree_ok_status();
}

// Turns a time of the device's clock into one of the host's, by the last two moments at which both were read.
static int64_t shim_profile_host_time(const shim_recording_t* recording, uint64_t tick) {
  const shim_moment_t *from = &recording->moments[0], *to = &recording->moments[1];
  if (!from->tick || to->tick <= from->tick) return to->host_ns;
  const double rate = (double)(to->host_ns - from->host_ns) / (double)(to->tick - from->tick);
  return to->host_ns - (int64_t)((double)(int64_t)(to->tick - tick) * rate);
}

// Stores a moment at which both clocks were read.
static iree_status_t shim_profile_add_moment(shim_recording_t* recording, const void* data) {
  iree_hal_profile_clock_correlation_record_t record;
  memcpy(&record, data, sizeof(record));
  const uint32_t needed = IREE_HAL_PROFILE_CLOCK_CORRELATION_FLAG_DEVICE_TICK |
                          IREE_HAL_PROFILE_CLOCK_CORRELATION_FLAG_HOST_TIME_BRACKET;
  if ((record.flags & needed) != needed) return iree_ok_status();
  recording->moments[0] = recording->moments[1];
  recording->moments[1] = (shim_moment_t){
      .tick = record.device_tick,
      .host_ns = record.host_time_begin_ns + (record.host_time_end_ns - record.host_time_begin_ns) / 2,
  };
  return iree_ok_status();
}

// Adds a dispatch of a GPU.
static iree_status_t shim_profile_add_device_dispatch(shim_recording_t* recording, const void* data) {
  iree_hal_profile_dispatch_event_t event;
  memcpy(&event, data, sizeof(event));
  shim_record_t record = {
      .event = {.kind = MLXCEL_EVENT_DISPATCH, .start_ns = shim_profile_host_time(recording, event.start_tick),
                .end_ns = shim_profile_host_time(recording, event.end_tick)},
      .executable = event.executable_id,
      .ordinal = event.function_ordinal,
  };
  memcpy(record.event.workgroups, event.workgroup_count, sizeof(record.event.workgroups));
  shim_records_add_locked(&recording->records, &record);
  return iree_ok_status();
}

// Adds another operation of a GPU.
static iree_status_t shim_profile_add_device_event(shim_recording_t* recording, const void* data) {
  iree_hal_profile_queue_device_event_t event;
  memcpy(&event, data, sizeof(event));
  const shim_record_t record = {
      .event = {.kind = shim_profile_kind(event.type), .bytes = event.payload_length,
                .start_ns = shim_profile_host_time(recording, event.start_tick),
                .end_ns = shim_profile_host_time(recording, event.end_tick)},
  };
  // Dispatches have records of their own.
  if (record.event.kind != MLXCEL_EVENT_DISPATCH) shim_records_add_locked(&recording->records, &record);
  return iree_ok_status();
}

// Adds what a pool of memory has given out.
static iree_status_t shim_profile_add_memory(shim_recording_t* recording, const void* data) {
  iree_hal_profile_memory_event_t event;
  memcpy(&event, data, sizeof(event));
  if (!(event.flags & IREE_HAL_PROFILE_MEMORY_EVENT_FLAG_POOL_STATS)) return iree_ok_status();
  const shim_record_t record = {
      .event = {.kind = MLXCEL_EVENT_POOL_BYTES, .start_ns = event.host_time_ns, .end_ns = event.host_time_ns,
                .bytes = event.pool_bytes_reserved, .count = event.pool_id},
  };
  shim_records_add_locked(&recording->records, &record);
  return iree_ok_status();
}

// A kind of chunk.
typedef struct shim_profile_chunk_t {
  iree_string_view_t type;
  // The size of a record without what follows it.
  size_t size;
  iree_status_t (*add)(shim_recording_t* recording, const void* record);
} shim_profile_chunk_t;

// Finds how the records of a chunk are added; `add` is NULL for chunks that say nothing of interest.
static shim_profile_chunk_t shim_profile_chunk(iree_string_view_t type) {
  const shim_profile_chunk_t chunks[] = {
      {IREE_HAL_PROFILE_CONTENT_TYPE_EXECUTABLE_FUNCTIONS, sizeof(iree_hal_profile_executable_function_record_t),
       shim_profile_add_function},
      {IREE_HAL_PROFILE_CONTENT_TYPE_HOST_EXECUTION_EVENTS, sizeof(iree_hal_profile_host_execution_event_t),
       shim_profile_add_host_event},
      {IREE_HAL_PROFILE_CONTENT_TYPE_CLOCK_CORRELATIONS, sizeof(iree_hal_profile_clock_correlation_record_t),
       shim_profile_add_moment},
      {IREE_HAL_PROFILE_CONTENT_TYPE_DISPATCH_EVENTS, sizeof(iree_hal_profile_dispatch_event_t),
       shim_profile_add_device_dispatch},
      {IREE_HAL_PROFILE_CONTENT_TYPE_QUEUE_DEVICE_EVENTS, sizeof(iree_hal_profile_queue_device_event_t),
       shim_profile_add_device_event},
      {IREE_HAL_PROFILE_CONTENT_TYPE_MEMORY_EVENTS, sizeof(iree_hal_profile_memory_event_t),
       shim_profile_add_memory},
  };
  for (size_t i = 0; i < IREE_ARRAYSIZE(chunks); ++i) {
    if (iree_string_view_equal(chunks[i].type, type)) return chunks[i];
  }
  return (shim_profile_chunk_t){.add = NULL};
}

// Adds every record of a span of bytes. Every kind of record begins with its length.
static iree_status_t shim_profile_add_records(shim_recording_t* recording, iree_const_byte_span_t bytes,
                                                const shim_profile_chunk_t* chunk) {
  for (size_t at = 0; at + chunk->size <= bytes.data_length;) {
    uint32_t length = 0;
    memcpy(&length, bytes.data + at, sizeof(length));
    if (length < chunk->size || at + length > bytes.data_length) {
      return iree_make_status(IREE_STATUS_DATA_LOSS, "a profile record of %u bytes, expected at least %zu", length,
                              chunk->size);
    }
    IREE_RETURN_IF_ERROR(chunk->add(recording, bytes.data + at));
    at += length;
  }
  return iree_ok_status();
}

iree_status_t shim_profile_write(iree_hal_profile_sink_t* sink, const iree_hal_profile_chunk_metadata_t* metadata,
                                   iree_host_size_t count, const iree_const_byte_span_t* chunks) {
  shim_recording_t* recording = (shim_recording_t*)sink;
  const shim_profile_chunk_t chunk = shim_profile_chunk(metadata->content_type);
  if (!chunk.add) return iree_ok_status();
  iree_status_t status = iree_ok_status();
  iree_slim_mutex_lock(&recording->records.mutex);
  if (metadata->flags & IREE_HAL_PROFILE_CHUNK_FLAG_TRUNCATED) {
    recording->records.lost += iree_max(metadata->dropped_record_count, (uint64_t)1);
  }
  for (iree_host_size_t i = 0; iree_status_is_ok(status) && i < count; ++i) {
    status = shim_profile_add_records(recording, chunks[i], &chunk);
  }
  iree_slim_mutex_unlock(&recording->records.mutex);
  return status;
}
