// The work of each of local-task's threads. IREE records a dispatch from the first workgroup to the last, over all
// threads, so executables of a device that is recorded are changed to report each workgroup.

#include "iree/hal/local/executable_loader.h"
#include "iree/hal/local/local_executable.h"
#include "records.h"

// Workgroups of a dispatch that one thread runs with no more time between them are one record.
#define MLXCEL_WORKERS_GAP_NS 2000

struct shim_workers_t {
  // The functions of an executable that reports. It comes first, so that an executable leads to the rest.
  iree_hal_local_executable_vtable_t vtable;
  // The functions that they stand for. All executables of the one loader share them.
  const iree_hal_local_executable_vtable_t* original;
  // The records of each worker, while the device is recorded. A recording begins and ends while nothing runs.
  shim_records_t* records;
  size_t record_count;
};

// A loader whose executables report.
typedef struct shim_workers_loader_t {
  iree_hal_executable_loader_t base;
  iree_hal_executable_loader_t* loader;
  shim_workers_t* workers;
} shim_workers_loader_t;

// Adds a workgroup to the records of a worker.
static void shim_workers_add(shim_records_t* records, uint32_t worker, uint64_t executable, uint32_t ordinal,
                               const void* dispatch, int64_t start, int64_t end) {
  iree_slim_mutex_lock(&records->mutex);
  shim_record_t* last = records->count ? &records->items[records->count - 1] : NULL;
  // The bindings of a dispatch tell it from others of the same function.
  if (last && last->executable == executable && last->ordinal == ordinal &&
      last->event.bytes == (uint64_t)(uintptr_t)dispatch && start - last->event.end_ns < MLXCEL_WORKERS_GAP_NS) {
    last->event.end_ns = end;
    ++last->event.count;
  } else {
    const shim_record_t record = {
        .event = {.kind = MLXCEL_EVENT_WORKGROUPS, .lane = worker, .start_ns = start, .end_ns = end, .count = 1,
                  .bytes = (uint64_t)(uintptr_t)dispatch},
        .executable = executable,
        .ordinal = ordinal,
    };
    shim_records_add_locked(records, &record);
  }
  iree_slim_mutex_unlock(&records->mutex);
}

static iree_status_t shim_workers_issue_call(iree_hal_local_executable_t* executable, iree_host_size_t ordinal,
                                               const iree_hal_executable_dispatch_state_v0_t* dispatch_state,
                                               const iree_hal_executable_workgroup_state_v0_t* workgroup_state,
                                               uint32_t worker_id) {
  shim_workers_t* workers = (shim_workers_t*)executable->resource.vtable;
  if (worker_id >= workers->record_count) {
    return workers->original->issue_call(executable, ordinal, dispatch_state, workgroup_state, worker_id);
  }
  const int64_t start = iree_time_now();
  iree_status_t status =
      workers->original->issue_call(executable, ordinal, dispatch_state, workgroup_state, worker_id);
  shim_workers_add(&workers->records[worker_id], worker_id, iree_hal_local_executable_profile_id(executable),
                     (uint32_t)ordinal, dispatch_state->binding_ptrs, start, iree_time_now());
  return status;
}

static iree_status_t shim_workers_try_load(iree_hal_executable_loader_t* base,
                                             const iree_hal_executable_params_t* params,
                                             iree_host_size_t worker_capacity, iree_hal_executable_t** out_executable) {
  shim_workers_loader_t* loader = (shim_workers_loader_t*)base;
  IREE_RETURN_IF_ERROR(
      iree_hal_executable_loader_try_load(loader->loader, params, worker_capacity, out_executable));
  iree_hal_local_executable_t* executable = iree_hal_local_executable_cast(*out_executable);
  shim_workers_t* workers = loader->workers;
  if (!workers->original) {
    workers->original = (const iree_hal_local_executable_vtable_t*)executable->resource.vtable;
    workers->vtable = *workers->original;
    workers->vtable.issue_call = shim_workers_issue_call;
  }
  if (executable->resource.vtable == workers->original) {
    // Without pointers to its functions, they are called through the table above.
    executable->dispatch_ptrs = NULL;
    executable->resource.vtable = &workers->vtable;
  }
  return iree_ok_status();
}

static void shim_workers_loader_destroy(iree_hal_executable_loader_t* base) {
  shim_workers_loader_t* loader = (shim_workers_loader_t*)base;
  iree_hal_executable_loader_release(loader->loader);
  iree_allocator_free(shim_allocator(), loader);
}

static iree_status_t shim_workers_infer_format(iree_hal_executable_loader_t* base,
                                                 iree_hal_executable_caching_mode_t mode, iree_const_byte_span_t data,
                                                 iree_host_size_t capacity, char* format, iree_host_size_t* out_size) {
  return iree_hal_executable_loader_infer_format(((shim_workers_loader_t*)base)->loader, mode, data, capacity,
                                                 format, out_size);
}

static bool shim_workers_query_support(iree_hal_executable_loader_t* base, iree_hal_executable_caching_mode_t mode,
                                         iree_string_view_t format) {
  return iree_hal_executable_loader_query_support(((shim_workers_loader_t*)base)->loader, mode, format);
}

static const iree_hal_executable_loader_vtable_t shim_workers_loader_vtable = {
    .destroy = shim_workers_loader_destroy,
    .infer_format = shim_workers_infer_format,
    .query_support = shim_workers_query_support,
    .try_load = shim_workers_try_load,
};

iree_status_t shim_workers_create(shim_workers_t** out_workers) {
  return iree_allocator_malloc(shim_allocator(), sizeof(**out_workers), (void**)out_workers);
}

iree_status_t shim_workers_wrap(shim_workers_t* workers, iree_hal_executable_loader_t** inout_loader) {
  shim_workers_loader_t* loader = NULL;
  IREE_RETURN_IF_ERROR(iree_allocator_malloc(shim_allocator(), sizeof(*loader), (void**)&loader));
  iree_hal_executable_loader_initialize(&shim_workers_loader_vtable, (*inout_loader)->import_provider,
                                        &loader->base);
  loader->loader = *inout_loader;
  loader->workers = workers;
  *inout_loader = &loader->base;
  return iree_ok_status();
}

void shim_workers_record(shim_workers_t* workers, shim_records_t* records, size_t count) {
  if (!workers) return;
  workers->records = records;
  workers->record_count = count;
}

void shim_workers_free(shim_workers_t* workers) { iree_allocator_free(shim_allocator(), workers); }
