// Time of a device by function. IREE reports chunks of records, which are summed here.

#include <inttypes.h>
#include <string.h>

#include "iree/hal/profile_schema.h"
#include "iree/hal/profile_sink.h"
#include "iree/hal/resource.h"
#include "internal.h"

// One function of an executable.
typedef struct mlxcel_profile_entry_t {
  uint64_t executable;
  uint32_t function;
  // Owned; NULL if IREE reported no name.
  char* name;
  size_t name_length;
  mlxcel_profile_count_t count;
} mlxcel_profile_entry_t;

struct mlxcel_profile_t {
  iree_hal_resource_t resource;
  iree_hal_device_t* device;
  // Protects the entries, because chunks come from any thread.
  iree_slim_mutex_t mutex;
  mlxcel_profile_entry_t* entries;
  size_t entry_count;
  size_t entry_capacity;
};

// Returns the recording that a sink is.
static mlxcel_profile_t* mlxcel_profile_cast(iree_hal_profile_sink_t* sink) { return (mlxcel_profile_t*)sink; }

// Finds the entry of a function, or adds one.
static iree_status_t mlxcel_profile_find_entry(mlxcel_profile_t* profile, uint64_t executable, uint32_t function,
                                               mlxcel_profile_entry_t** out_entry) {
  for (size_t i = 0; i < profile->entry_count; ++i) {
    mlxcel_profile_entry_t* entry = &profile->entries[i];
    if (entry->executable == executable && entry->function == function) {
      *out_entry = entry;
      return iree_ok_status();
    }
  }
  if (profile->entry_count == profile->entry_capacity) {
    size_t capacity = iree_max(2 * profile->entry_capacity, 64);
    IREE_RETURN_IF_ERROR(iree_allocator_realloc(mlxcel_allocator(), capacity * sizeof(*profile->entries),
                                                (void**)&profile->entries));
    profile->entry_capacity = capacity;
  }
  mlxcel_profile_entry_t* entry = &profile->entries[profile->entry_count++];
  memset(entry, 0, sizeof(*entry));
  entry->executable = executable;
  entry->function = function;
  *out_entry = entry;
  return iree_ok_status();
}

// Stores the name of a function.
static iree_status_t mlxcel_profile_add_name(mlxcel_profile_t* profile, const void* data) {
  iree_hal_profile_executable_function_record_t record;
  memcpy(&record, data, sizeof(record));
  if (record.record_length < sizeof(record) + record.name_length) return iree_ok_status();
  mlxcel_profile_entry_t* entry = NULL;
  IREE_RETURN_IF_ERROR(mlxcel_profile_find_entry(profile, record.executable_id, record.function_ordinal, &entry));
  if (entry->name || !record.name_length) return iree_ok_status();
  IREE_RETURN_IF_ERROR(iree_allocator_malloc(mlxcel_allocator(), record.name_length, (void**)&entry->name));
  memcpy(entry->name, (const char*)data + sizeof(record), record.name_length);
  entry->name_length = record.name_length;
  return iree_ok_status();
}

// Adds the time of one dispatch.
static iree_status_t mlxcel_profile_add_span(mlxcel_profile_t* profile, const void* data) {
  iree_hal_profile_host_execution_event_t event;
  memcpy(&event, data, sizeof(event));
  if (event.type != IREE_HAL_PROFILE_QUEUE_EVENT_TYPE_DISPATCH) return iree_ok_status();
  mlxcel_profile_entry_t* entry = NULL;
  IREE_RETURN_IF_ERROR(mlxcel_profile_find_entry(profile, event.executable_id, event.function_ordinal, &entry));
  ++entry->count.calls;
  entry->count.span_ns += event.end_host_time_ns - event.start_host_time_ns;
  return iree_ok_status();
}

// Calls `add` for every record of a chunk. Every kind of record begins with its length.
static iree_status_t mlxcel_profile_add_records(mlxcel_profile_t* profile, iree_const_byte_span_t chunk, size_t size,
                                                iree_status_t (*add)(mlxcel_profile_t* profile, const void* record)) {
  for (size_t at = 0; at + size <= chunk.data_length;) {
    uint32_t length = 0;
    memcpy(&length, chunk.data + at, sizeof(length));
    if (length < size || at + length > chunk.data_length) {
      return iree_make_status(IREE_STATUS_DATA_LOSS, "a profile record of %u bytes, expected at least %zu", length,
                              size);
    }
    IREE_RETURN_IF_ERROR(add(profile, chunk.data + at));
    at += length;
  }
  return iree_ok_status();
}

// Receives chunks of records.
static iree_status_t mlxcel_profile_write(iree_hal_profile_sink_t* sink,
                                          const iree_hal_profile_chunk_metadata_t* metadata,
                                          iree_host_size_t count, const iree_const_byte_span_t* chunks) {
  mlxcel_profile_t* profile = mlxcel_profile_cast(sink);
  bool names = iree_string_view_equal(metadata->content_type, IREE_HAL_PROFILE_CONTENT_TYPE_EXECUTABLE_FUNCTIONS);
  bool spans = iree_string_view_equal(metadata->content_type, IREE_HAL_PROFILE_CONTENT_TYPE_HOST_EXECUTION_EVENTS);
  if (spans && (metadata->flags & IREE_HAL_PROFILE_CHUNK_FLAG_TRUNCATED)) {
    return iree_make_status(IREE_STATUS_DATA_LOSS, "%" PRIu64 " records were lost", metadata->dropped_record_count);
  }
  iree_status_t status = iree_ok_status();
  iree_slim_mutex_lock(&profile->mutex);
  for (iree_host_size_t i = 0; iree_status_is_ok(status) && i < count; ++i) {
    if (names) {
      status = mlxcel_profile_add_records(profile, chunks[i], sizeof(iree_hal_profile_executable_function_record_t),
                                          mlxcel_profile_add_name);
    } else if (spans) {
      status = mlxcel_profile_add_records(profile, chunks[i], sizeof(iree_hal_profile_host_execution_event_t),
                                          mlxcel_profile_add_span);
    }
  }
  iree_slim_mutex_unlock(&profile->mutex);
  return status;
}

static void mlxcel_profile_destroy(iree_hal_profile_sink_t* sink) {
  mlxcel_profile_t* profile = mlxcel_profile_cast(sink);
  for (size_t i = 0; i < profile->entry_count; ++i) {
    iree_allocator_free(mlxcel_allocator(), profile->entries[i].name);
  }
  iree_allocator_free(mlxcel_allocator(), profile->entries);
  iree_slim_mutex_deinitialize(&profile->mutex);
  iree_hal_device_release(profile->device);
  iree_allocator_free(mlxcel_allocator(), profile);
}

static iree_status_t mlxcel_profile_begin_session(iree_hal_profile_sink_t* sink,
                                                  const iree_hal_profile_chunk_metadata_t* metadata) {
  (void)sink, (void)metadata;
  return iree_ok_status();
}

static iree_status_t mlxcel_profile_end_session(iree_hal_profile_sink_t* sink,
                                                const iree_hal_profile_chunk_metadata_t* metadata,
                                                iree_status_code_t code) {
  (void)sink, (void)metadata, (void)code;
  return iree_ok_status();
}

static const iree_hal_profile_sink_vtable_t mlxcel_profile_vtable = {
    .destroy = mlxcel_profile_destroy,
    .begin_session = mlxcel_profile_begin_session,
    .write = mlxcel_profile_write,
    .end_session = mlxcel_profile_end_session,
};

mlxcel_error_t* mlxcel_profile_begin(mlxcel_device_t* device, mlxcel_profile_t** out_profile) {
  *out_profile = NULL;
  mlxcel_profile_t* profile = NULL;
  iree_status_t status = iree_allocator_malloc(mlxcel_allocator(), sizeof(*profile), (void**)&profile);
  if (!iree_status_is_ok(status)) return mlxcel_error_from_status(status);
  memset(profile, 0, sizeof(*profile));
  iree_hal_resource_initialize(&mlxcel_profile_vtable, &profile->resource);
  iree_slim_mutex_initialize(&profile->mutex);
  profile->device = device->device;
  iree_hal_device_retain(profile->device);
  iree_hal_device_profiling_options_t options = {
      .data_families = IREE_HAL_DEVICE_PROFILING_DATA_HOST_EXECUTION_EVENTS |
                       IREE_HAL_DEVICE_PROFILING_DATA_EXECUTABLE_METADATA,
      .sink = (iree_hal_profile_sink_t*)profile,
  };
  status = iree_hal_device_profiling_begin(profile->device, &options);
  if (iree_status_is_ok(status)) {
    *out_profile = profile;
  } else {
    iree_hal_profile_sink_release((iree_hal_profile_sink_t*)profile);
  }
  return mlxcel_error_from_status(status);
}

mlxcel_error_t* mlxcel_profile_flush(mlxcel_profile_t* profile) {
  return mlxcel_error_from_status(iree_hal_device_profiling_flush(profile->device));
}

mlxcel_error_t* mlxcel_profile_end(mlxcel_profile_t* profile,
                                   void (*found)(void* user, mlxcel_string_t name, mlxcel_profile_count_t count),
                                   void* user) {
  iree_status_t status = iree_hal_device_profiling_end(profile->device);
  for (size_t i = 0; iree_status_is_ok(status) && i < profile->entry_count; ++i) {
    const mlxcel_profile_entry_t* entry = &profile->entries[i];
    if (entry->count.calls) found(user, (mlxcel_string_t){entry->name, entry->name_length}, entry->count);
  }
  iree_hal_profile_sink_release((iree_hal_profile_sink_t*)profile);
  return mlxcel_error_from_status(status);
}
