#include "replay.h"

#include "internal.h"

#ifdef MLXCEL_CUDA

#include <pthread.h>

#include "cuda_driver.h"
#include "cuda_notes.h"
#include "kernel_times.h"

struct shim_replay_t {
  CUcontext context;
  CUstream stream;
  CUgraphExec exec;
  // What is recorded after the last launch: another call's kernels may follow in the stream.
  CUevent done;
};

// The launches of the call that is noted: one at a time, whichever thread makes them.
typedef struct notes_t {
  bool active;
  // Whether only kernels of one stream were launched, and all could be noted.
  bool plain;
  CUcontext context;
  CUstream stream;
  CUgraph graph;
  CUgraphNode last;
  size_t count;
} notes_t;

static pthread_mutex_t notes_mutex = PTHREAD_MUTEX_INITIALIZER;
static notes_t notes;
// Not NULL once launches are noted.
static const shim_cuda_driver_t* driver;

// Returns whether a kernel waits by itself for the one before: its module says so, see kernels/cuda/cuda.h.
static bool waits_by_itself(CUfunction function) {
  CUmodule module = NULL;
  size_t size = 0;
  return driver->get_module(&module, function) == CUDA_SUCCESS &&
         driver->get_global(NULL, &size, module, "overlapped_launches") == CUDA_SUCCESS;
}

// Adds a kernel that may begin before the one before has ended.
static bool add_overlapped(const CUDA_KERNEL_NODE_PARAMS* params, CUgraphNode before) {
  const CUgraphEdgeData edge = {
      .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
      .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
  };
  CUgraphNodeParams node = {
      .type = CU_GRAPH_NODE_TYPE_KERNEL,
      .kernel = {.func = params->func,
                 .gridDimX = params->gridDimX,
                 .gridDimY = params->gridDimY,
                 .gridDimZ = params->gridDimZ,
                 .blockDimX = params->blockDimX,
                 .blockDimY = params->blockDimY,
                 .blockDimZ = params->blockDimZ,
                 .sharedMemBytes = params->sharedMemBytes,
                 .kernelParams = params->kernelParams},
  };
  return driver->add_node(&notes.last, notes.graph, &before, &edge, 1, &node) == CUDA_SUCCESS;
}

// Adds a kernel to the graph, after the one before.
static bool add_kernel(const CUDA_KERNEL_NODE_PARAMS* params, CUstream stream) {
  if (notes.count == 0) {
    notes.stream = stream;
    if (driver->get_current(&notes.context) != CUDA_SUCCESS) return false;
    if (driver->graph_create(&notes.graph, 0) != CUDA_SUCCESS) return false;
  }
  if (notes.stream != stream) return false;
  const CUgraphNode before = notes.last;
  if (notes.count && driver->add_node && waits_by_itself(params->func) && add_overlapped(params, before)) return true;
  return driver->add_kernel(&notes.last, notes.graph, &before, notes.count ? 1 : 0, params) == CUDA_SUCCESS;
}

void shim_note_launch(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                      unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                      CUstream stream, void** params) {
  shim_kernel_times_launch(function, (const uint32_t[3]){grid_x, grid_y, grid_z}, stream);
  pthread_mutex_lock(&notes_mutex);
  if (notes.active && notes.plain) {
    const CUDA_KERNEL_NODE_PARAMS kernel = {
        .func = function,
        .gridDimX = grid_x,
        .gridDimY = grid_y,
        .gridDimZ = grid_z,
        .blockDimX = block_x,
        .blockDimY = block_y,
        .blockDimZ = block_z,
        .sharedMemBytes = shared_bytes,
        .kernelParams = params,
    };
    notes.plain = add_kernel(&kernel, stream);
    ++notes.count;
  }
  pthread_mutex_unlock(&notes_mutex);
}

void shim_note_other(void) {
  pthread_mutex_lock(&notes_mutex);
  notes.plain = false;
  pthread_mutex_unlock(&notes_mutex);
}

bool shim_replay_begin(void) {
  pthread_mutex_lock(&notes_mutex);
  driver = shim_cuda_driver();
  const bool is_free = driver && !notes.active;
  if (is_free) notes = (notes_t){.active = true, .plain = true};
  pthread_mutex_unlock(&notes_mutex);
  return is_free;
}

// Makes a graph of what was noted. Returns NULL if the driver or the memory does not allow it.
static shim_replay_t* replay_create(const notes_t* noted) {
  shim_replay_t* replay = NULL;
  iree_status_t status = iree_allocator_malloc(shim_allocator(), sizeof(*replay), (void**)&replay);
  if (!iree_status_is_ok(status)) {
    iree_status_ignore(status);
    return NULL;
  }
  *replay = (shim_replay_t){.context = noted->context, .stream = noted->stream};
  if (driver->event_create(&replay->done, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
      driver->instantiate(&replay->exec, noted->graph, 0) == CUDA_SUCCESS) {
    return replay;
  }
  shim_replay_free(replay);
  return NULL;
}

shim_replay_t* shim_replay_end(void) {
  pthread_mutex_lock(&notes_mutex);
  const notes_t noted = notes;
  notes = (notes_t){0};
  pthread_mutex_unlock(&notes_mutex);
  shim_replay_t* replay = NULL;
  if (noted.plain && noted.count > 0 && driver->set_current(noted.context) == CUDA_SUCCESS) {
    replay = replay_create(&noted);
  }
  if (noted.graph) driver->graph_destroy(noted.graph);
  return replay;
}

iree_status_t shim_replay_start(shim_replay_t* replay) {
  IREE_RETURN_IF_ERROR(shim_cuda_status(driver, driver->set_current(replay->context)));
  IREE_RETURN_IF_ERROR(shim_cuda_status(driver, driver->launch(replay->exec, replay->stream)));
  return shim_cuda_status(driver, driver->event_record(replay->done, replay->stream));
}

iree_status_t shim_replay_wait(shim_replay_t* replay) {
  return shim_cuda_status(driver, driver->event_synchronize(replay->done));
}

void shim_replay_free(shim_replay_t* replay) {
  if (!replay) return;
  if (driver->set_current(replay->context) == CUDA_SUCCESS) {
    if (replay->exec) driver->exec_destroy(replay->exec);
    if (replay->done) driver->event_destroy(replay->done);
  }
  iree_allocator_free(shim_allocator(), replay);
}

#else

bool shim_replay_begin(void) { return false; }

shim_replay_t* shim_replay_end(void) { return NULL; }

iree_status_t shim_replay_start(shim_replay_t* replay) {
  return iree_make_status(IREE_STATUS_UNIMPLEMENTED, "this build has no CUDA driver");
}

iree_status_t shim_replay_wait(shim_replay_t* replay) { return shim_replay_start(replay); }

void shim_replay_free(shim_replay_t* replay) {}

#endif  // MLXCEL_CUDA
