#include "kernel_times.h"

#ifdef MLXCEL_CUDA

#include <pthread.h>
#include <string.h>

#include "cuda_driver.h"
#include "cuda_notes.h"
#include "recording.h"

// A place in the stream.
typedef struct mark_t {
  CUevent event;
  // The kernel that comes next, or NULL.
  CUfunction function;
  uint32_t grid[3];
} mark_t;

// The kernels of the call that is timed: one at a time, whichever thread launches them.
typedef struct times_t {
  bool active;
  // Whether something could not be noted.
  bool failed;
  CUcontext context;
  CUstream stream;
  size_t count;
} times_t;

static pthread_mutex_t times_mutex = PTHREAD_MUTEX_INITIALIZER;
static times_t times;
static const shim_cuda_driver_t* driver;
// Events are kept for the next call in their context, until its recording ends.
static mark_t* marks;
static size_t capacity;
static size_t event_count;
static CUcontext event_context;

bool shim_kernel_times_can(iree_hal_device_t* device) {
  return iree_string_view_equal(iree_hal_device_id(device), IREE_SV("cuda")) && shim_cuda_driver();
}

bool shim_kernel_times_begin(shim_recording_t* recording) {
  if (!recording || !recording->times_kernels) return false;
  pthread_mutex_lock(&times_mutex);
  driver = shim_cuda_driver();
  const bool is_free = driver && !times.active;
  if (is_free) times = (times_t){.active = true};
  pthread_mutex_unlock(&times_mutex);
  return is_free;
}

// Destroys the events that are kept, and leaves the thread the context that it had.
static void destroy_events(void) {
  CUcontext current = NULL;
  if (!event_count || driver->get_current(&current) != CUDA_SUCCESS) return;
  // A context that is gone took its events along.
  if (driver->set_current(event_context) == CUDA_SUCCESS) {
    for (size_t i = 0; i < event_count; ++i) driver->event_destroy(marks[i].event);
  }
  event_count = 0;
  driver->set_current(current);
}

// Puts an event into the stream.
static bool add_mark(CUfunction function, const uint32_t grid[3], CUstream stream) {
  if (times.count == 0) {
    times.stream = stream;
    if (driver->get_current(&times.context) != CUDA_SUCCESS) return false;
    if (times.context != event_context) destroy_events();
    event_context = times.context;
  }
  if (times.stream != stream) return false;
  if (times.count == capacity) {
    const size_t more = iree_max(2 * capacity, (size_t)256);
    iree_status_t status = iree_allocator_realloc(shim_allocator(), more * sizeof(*marks), (void**)&marks);
    const bool is_there = iree_status_is_ok(status);
    iree_status_ignore(status);
    if (!is_there) return false;
    capacity = more;
  }
  mark_t* mark = &marks[times.count];
  if (times.count == event_count) {
    if (driver->event_create(&mark->event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
    ++event_count;
  }
  mark->function = function;
  memcpy(mark->grid, grid, sizeof(mark->grid));
  ++times.count;
  return driver->event_record(mark->event, stream) == CUDA_SUCCESS;
}

static void note(CUfunction function, const uint32_t grid[3], CUstream stream) {
  pthread_mutex_lock(&times_mutex);
  const bool is_wanted = function || (times.count && marks[times.count - 1].function);
  if (times.active && !times.failed && is_wanted) times.failed = !add_mark(function, grid, stream);
  pthread_mutex_unlock(&times_mutex);
}

void shim_kernel_times_launch(CUfunction function, const uint32_t grid[3], CUstream stream) {
  note(function, grid, stream);
}

void shim_note_end(CUstream stream) { note(NULL, (const uint32_t[3]){0, 0, 0}, stream); }

// Records the kernel between two places, whose times are relative to `now`.
static bool record_kernel(shim_recording_t* recording, const mark_t* mark, int64_t start_ns, int64_t end_ns) {
  const char* name = NULL;
  const bool has_name = driver->function_name && driver->function_name(&name, mark->function) == CUDA_SUCCESS && name;
  const shim_string_t text = has_name ? (shim_string_t){name, strlen(name)} : (shim_string_t){"kernel", 6};
  const uint64_t executable = (uint64_t)(uintptr_t)mark->function;
  iree_slim_mutex_lock(&recording->records.mutex);
  iree_status_t status = shim_profile_name_function(recording, executable, 0, text);
  const bool is_known = iree_status_is_ok(status);
  iree_status_ignore(status);
  const shim_record_t record = {
      .event = {.kind = MLXCEL_EVENT_DISPATCH, .start_ns = start_ns, .end_ns = end_ns,
                .workgroups = {mark->grid[0], mark->grid[1], mark->grid[2]}},
      .executable = executable,
  };
  if (is_known) shim_records_add_locked(&recording->records, &record);
  iree_slim_mutex_unlock(&recording->records.mutex);
  return is_known;
}

// Records all kernels of the call that has ended.
static bool record_kernels(shim_recording_t* recording) {
  if (times.count == 0) return true;
  if (times.failed || driver->set_current(times.context) != CUDA_SUCCESS) return false;
  // An event that the host waits for tells what time of the host the other ones were at.
  if (!add_mark(NULL, (const uint32_t[3]){0, 0, 0}, times.stream)) return false;
  const mark_t* last = &marks[times.count - 1];
  if (driver->event_synchronize(last->event) != CUDA_SUCCESS) return false;
  const int64_t now = iree_time_now();
  int64_t start_ns = 0;
  for (size_t i = 0; i < times.count; ++i) {
    float ms = 0.0f;
    if (driver->event_elapsed(&ms, marks[i].event, last->event) != CUDA_SUCCESS) return false;
    const int64_t at = now - (int64_t)((double)ms * 1e6);
    if (i && marks[i - 1].function && !record_kernel(recording, &marks[i - 1], start_ns, at)) return false;
    start_ns = at;
  }
  return true;
}

void shim_kernel_times_end(shim_recording_t* recording) {
  pthread_mutex_lock(&times_mutex);
  times.active = false;
  if (!record_kernels(recording)) {
    iree_slim_mutex_lock(&recording->records.mutex);
    recording->records.lost += iree_max(times.count, (size_t)1);
    iree_slim_mutex_unlock(&recording->records.mutex);
  }
  pthread_mutex_unlock(&times_mutex);
}

void shim_kernel_times_release(void) {
  pthread_mutex_lock(&times_mutex);
  // Those that time another device's call are released with its own recording.
  if (!times.active) destroy_events();
  pthread_mutex_unlock(&times_mutex);
}

#else

bool shim_kernel_times_can(iree_hal_device_t* device) {
  (void)device;
  return false;
}

bool shim_kernel_times_begin(shim_recording_t* recording) {
  (void)recording;
  return false;
}

void shim_kernel_times_end(shim_recording_t* recording) { (void)recording; }

void shim_kernel_times_release(void) {}

#endif  // MLXCEL_CUDA
