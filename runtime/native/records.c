// Lists of events, each with a lock of its own.

#include "records.h"

void shim_records_add_locked(shim_records_t* records, const shim_record_t* record) {
  if (records->count == records->capacity) {
    const size_t capacity = iree_max(2 * records->capacity, (size_t)256);
    iree_status_t status =
        capacity > MLXCEL_RECORDING_CAPACITY
            ? iree_status_from_code(IREE_STATUS_RESOURCE_EXHAUSTED)
            : iree_allocator_realloc(shim_allocator(), capacity * sizeof(*records->items), (void**)&records->items);
    if (!iree_status_is_ok(status)) {
      iree_status_ignore(status);
      ++records->lost;
      return;
    }
    records->capacity = capacity;
  }
  records->items[records->count++] = *record;
}

void shim_records_add(shim_records_t* records, const shim_record_t* record) {
  iree_slim_mutex_lock(&records->mutex);
  shim_records_add_locked(records, record);
  iree_slim_mutex_unlock(&records->mutex);
}

void shim_records_deinitialize(shim_records_t* records) {
  iree_allocator_free(shim_allocator(), records->items);
  iree_slim_mutex_deinitialize(&records->mutex);
}
