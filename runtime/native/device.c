#include <pthread.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "iree/async/frontier_tracker.h"
#include "iree/async/util/proactor_pool.h"
#include "iree/base/threading/numa.h"
#ifdef MLXCEL_CUDA
#include "iree/hal/drivers/cuda/api.h"
#endif
#include "iree/hal/drivers/init.h"
#include "iree/hal/drivers/local_task/task_driver.h"
#include "iree/hal/local/executable_plugin_manager.h"
#include "iree/hal/local/loaders/registration/init.h"
#include "iree/modules/hal/module.h"
#include "iree/task/api.h"
#include "internal.h"
#ifdef MLXCEL_CUDA
#include "cuda_driver.h"
#endif

// The stack of a worker thread. IREE's default of 128 KiB overflows if the tiles of a dispatch lie on the stack, and
// the process dies. Pages that are never used take no memory.
#define MLXCEL_WORKER_STACK_SIZE (2 * 1024 * 1024)

int shim_request_amx(void) {
#if defined(__linux__) && defined(__x86_64__)
  const long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  const long tile_data = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return 0;
#endif
}

// Creates the workers of local-task.
//
// The driver registry takes their number and stack size from command line flags of the process, so local-task is
// created without it.
static iree_status_t shim_task_executor_create(size_t threads, iree_task_executor_t** out_executor) {
  iree_task_topology_t topology;
  iree_task_topology_initialize(&topology);
  iree_status_t status = iree_task_topology_initialize_from_physical_cores(
      IREE_TASK_TOPOLOGY_NODE_ID_ANY, IREE_TASK_TOPOLOGY_PERFORMANCE_LEVEL_ANY,
      IREE_TASK_TOPOLOGY_DISTRIBUTION_COMPACT, threads ? threads : IREE_TASK_TOPOLOGY_MAX_GROUP_COUNT, &topology);
  // With more workers than cores, the operating system places the threads.
  if (iree_status_is_ok(status)) {
    iree_host_size_t cores = iree_task_topology_group_count(&topology);
    iree_host_size_t wanted = threads ? threads : iree_max(cores, 1);
    if (cores < wanted) {
      iree_task_topology_deinitialize(&topology);
      iree_task_topology_initialize_from_group_count(wanted, &topology);
    }
  }
  if (iree_status_is_ok(status)) {
    iree_task_executor_options_t options;
    iree_task_executor_options_initialize(&options);
    options.worker_stack_size = MLXCEL_WORKER_STACK_SIZE;
    status = iree_task_executor_create(options, &topology, shim_allocator(), out_executor);
  }
  iree_task_topology_deinitialize(&topology);
  return status;
}

// Creates the driver local-task.
static iree_status_t shim_task_driver_create(size_t threads, shim_workers_t* workers, size_t* out_threads,
                                               iree_hal_driver_t** out_driver) {
  iree_allocator_t allocator = shim_allocator();
  if (threads > IREE_TASK_TOPOLOGY_MAX_GROUP_COUNT) {
    return iree_make_status(IREE_STATUS_INVALID_ARGUMENT, "%zu threads, expected at most %d", threads,
                            (int)IREE_TASK_TOPOLOGY_MAX_GROUP_COUNT);
  }
  iree_task_executor_t* executor = NULL;
  iree_status_t status = shim_task_executor_create(threads, &executor);
  iree_hal_executable_plugin_manager_t* plugins = NULL;
  if (iree_status_is_ok(status)) {
    *out_threads = iree_task_executor_worker_count(executor);
    status = iree_hal_executable_plugin_manager_create(/*capacity=*/0, allocator, &plugins);
  }
  iree_hal_executable_loader_t* loaders[8] = {NULL};
  iree_host_size_t loader_count = 0;
  if (iree_status_is_ok(status)) {
    status = iree_hal_create_all_available_executable_loaders(plugins, IREE_ARRAYSIZE(loaders), &loader_count,
                                                              loaders, allocator);
  }
  for (iree_host_size_t i = 0; workers && iree_status_is_ok(status) && i < loader_count; ++i) {
    status = shim_workers_wrap(workers, &loaders[i]);
  }
  iree_hal_allocator_t* device_allocator = NULL;
  if (iree_status_is_ok(status)) {
    status = iree_hal_allocator_create_heap(IREE_SV("local"), allocator, allocator, &device_allocator);
  }
  if (iree_status_is_ok(status)) {
    iree_hal_task_device_params_t params;
    iree_hal_task_device_params_initialize(&params);
    status = iree_hal_task_driver_create(IREE_SV("local-task"), &params, 1, &executor, loader_count, loaders,
                                         device_allocator, allocator, out_driver);
  }
  iree_hal_allocator_release(device_allocator);
  for (iree_host_size_t i = 0; i < loader_count; ++i) iree_hal_executable_loader_release(loaders[i]);
  iree_hal_executable_plugin_manager_release(plugins);
  iree_task_executor_release(executor);
  return status;
}

#ifdef MLXCEL_CUDA
// Creates the driver cuda, whose pools keep their memory. By default they give it back whenever the device is idle, that
// is, after every step, and the next step gets it from the operating system.
static iree_status_t shim_cuda_driver_create(iree_hal_driver_t** out_driver) {
  iree_hal_cuda_driver_options_t options;
  iree_hal_cuda_driver_options_initialize(&options);
  iree_hal_cuda_device_params_t params;
  iree_hal_cuda_device_params_initialize(&params);
  params.command_buffer_mode = IREE_HAL_CUDA_COMMAND_BUFFER_MODE_STREAM;
  params.memory_pools.device_local.release_threshold = UINT64_MAX;
  params.memory_pools.other.release_threshold = UINT64_MAX;
  return iree_hal_cuda_driver_create(IREE_SV("cuda"), &options, &params, shim_allocator(), out_driver);
}
#endif

// Creates a driver by name through IREE's registry.
static iree_status_t shim_registry_driver_create(iree_string_view_t name, iree_hal_driver_t** out_driver) {
  iree_allocator_t allocator = shim_allocator();
#ifdef MLXCEL_CUDA
  if (iree_string_view_equal(name, IREE_SV("cuda"))) return shim_cuda_driver_create(out_driver);
#endif
  iree_hal_driver_registry_t* registry = NULL;
  IREE_RETURN_IF_ERROR(iree_hal_driver_registry_allocate(allocator, &registry));
  iree_status_t status = iree_hal_register_all_available_drivers(registry);
  if (iree_status_is_ok(status)) {
    status = iree_hal_driver_registry_try_create(registry, name, allocator, out_driver);
  }
  iree_hal_driver_registry_free(registry);
  return status;
}

#ifdef MLXCEL_CUDA
// Adds what CUDA tells of a GPU. It knows parts of a GPU (MIG), and GPUs where NVML is missing: on Jetson, and in containers
// that got nothing but `compute`.
static void shim_cuda_describe(iree_hal_device_id_t id, shim_found_t* found) {
  const shim_cuda_driver_t* driver = shim_cuda_driver();
  // IREE's numbers are those of CUDA from 1 on.
  const CUdevice device = (CUdevice)(id - 1);
  int major = 0, minor = 0, version = 0;
  size_t bytes = 0;
  if (!driver) return;
  if (driver->device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) == CUDA_SUCCESS &&
      driver->device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) == CUDA_SUCCESS) {
    found->compute_capability[0] = major;
    found->compute_capability[1] = minor;
  }
  if (driver->driver_version(&version) == CUDA_SUCCESS) found->cuda = version;
  if (driver->device_memory(&bytes, device) == CUDA_SUCCESS) found->memory_bytes = bytes;
}
#endif

shim_error_t* shim_driver_list(shim_string_t name, void (*found)(void* user, const shim_found_t* device),
                                   void* user) {
  iree_hal_driver_t* driver = NULL;
  iree_host_size_t count = 0;
  iree_hal_device_info_t* infos = NULL;
  iree_status_t status = shim_registry_driver_create(shim_string_view(name), &driver);
  if (iree_status_is_ok(status)) {
    status = iree_hal_driver_query_available_devices(driver, shim_allocator(), &count, &infos);
  }
  for (iree_host_size_t i = 0; iree_status_is_ok(status) && i < count; ++i) {
    shim_found_t device = {
        .name = {infos[i].name.data, infos[i].name.size},
        .path = {infos[i].path.data, infos[i].path.size},
    };
#ifdef MLXCEL_CUDA
    if (iree_string_view_equal(shim_string_view(name), IREE_SV("cuda"))) {
      shim_cuda_describe(infos[i].device_id, &device);
    }
#endif
    found(user, &device);
  }
  iree_allocator_free(shim_allocator(), infos);
  iree_hal_driver_release(driver);
  return shim_error_from_status(status);
}

// Creates a driver and opens one of its devices.
static iree_status_t shim_hal_device_create(iree_string_view_t name, int64_t index, size_t threads,
                                              shim_workers_t* workers, size_t* out_threads,
                                              iree_hal_device_t** out_device) {
  iree_allocator_t allocator = shim_allocator();
  *out_threads = 1;
  iree_hal_driver_t* driver = NULL;
  iree_status_t status = iree_string_view_equal(name, IREE_SV("local-task"))
                             ? shim_task_driver_create(threads, workers, out_threads, &driver)
                             : shim_registry_driver_create(name, &driver);
  iree_async_proactor_pool_t* proactors = NULL;
  if (iree_status_is_ok(status)) {
    status = iree_async_proactor_pool_create(iree_numa_node_count(), /*node_ids=*/NULL,
                                             iree_async_proactor_pool_options_default(), allocator, &proactors);
  }
  if (iree_status_is_ok(status)) {
    iree_hal_device_create_params_t params = iree_hal_device_create_params_default();
    params.proactor_pool = proactors;
    status = index < 0 ? iree_hal_driver_create_default_device(driver, &params, allocator, out_device)
                       : iree_hal_driver_create_device_by_ordinal(driver, (iree_host_size_t)index, 0, NULL, &params,
                                                                  allocator, out_device);
  }
  iree_async_proactor_pool_release(proactors);
  iree_hal_driver_release(driver);
  return status;
}

// Creates the VM module through which programs use a device.
static iree_status_t shim_hal_module_create(iree_vm_instance_t* instance, iree_hal_device_t* device,
                                              iree_vm_module_t** out_module) {
  iree_allocator_t allocator = shim_allocator();
  iree_async_frontier_tracker_t* tracker = NULL;
  iree_hal_device_group_t* group = NULL;
  iree_status_t status = iree_async_frontier_tracker_create(iree_async_frontier_tracker_options_default(), allocator,
                                                            &tracker);
  if (iree_status_is_ok(status)) {
    status = iree_hal_device_group_create_from_device(device, tracker, allocator, &group);
  }
  if (iree_status_is_ok(status)) {
    status = iree_hal_module_create(instance, iree_hal_module_device_policy_default(), group,
                                    IREE_HAL_MODULE_FLAG_NONE, iree_hal_module_debug_sink_null(), allocator,
                                    out_module);
  }
  iree_hal_device_group_release(group);
  iree_async_frontier_tracker_release(tracker);
  return status;
}

// Returns the VM instance of the process, which is never freed.
//
// IREE keeps the types that an instance registers in global variables. A second instance would clear them for a moment,
// while programs on other threads read them.
static iree_status_t shim_instance_retain(iree_vm_instance_t** out_instance) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static iree_vm_instance_t* instance = NULL;
  iree_status_t status = iree_ok_status();
  pthread_mutex_lock(&mutex);
  if (!instance) {
    iree_vm_instance_t* created = NULL;
    status = iree_vm_instance_create(IREE_VM_TYPE_CAPACITY_DEFAULT, shim_allocator(), &created);
    if (iree_status_is_ok(status)) status = iree_hal_module_register_all_types(created);
    if (iree_status_is_ok(status)) {
      instance = created;
    } else {
      iree_vm_instance_release(created);
    }
  }
  if (iree_status_is_ok(status)) {
    iree_vm_instance_retain(instance);
    *out_instance = instance;
  }
  pthread_mutex_unlock(&mutex);
  return status;
}

shim_error_t* shim_device_create(shim_string_t driver, int64_t index, size_t threads, int reports,
                                     shim_device_t** out_device) {
  *out_device = NULL;
  shim_device_t* device = NULL;
  iree_status_t status = iree_allocator_malloc(shim_allocator(), sizeof(*device), (void**)&device);
  if (iree_status_is_ok(status)) status = shim_instance_retain(&device->instance);
  if (iree_status_is_ok(status)) {
    // Without an index it is the first one.
    const bool is_cuda = iree_string_view_equal(shim_string_view(driver), IREE_SV("cuda"));
    device->cuda = !is_cuda ? -1 : index < 0 ? 0 : (int)index;
  }
  const bool has_workers = iree_string_view_equal(shim_string_view(driver), IREE_SV("local-task"));
  if (iree_status_is_ok(status) && reports && has_workers) status = shim_workers_create(&device->workers);
  if (iree_status_is_ok(status)) {
    status = shim_hal_device_create(shim_string_view(driver), index, threads, device->workers, &device->threads,
                                      &device->device);
  }
  if (iree_status_is_ok(status)) {
    status = shim_hal_module_create(device->instance, device->device, &device->hal_module);
  }
  if (iree_status_is_ok(status) && reports) status = shim_waits_wrap(device);
  if (iree_status_is_ok(status)) {
    *out_device = device;
  } else {
    shim_device_free(device);
  }
  return shim_error_from_status(status);
}

uint64_t shim_device_allocated(const shim_device_t* device) {
  iree_hal_allocator_statistics_t statistics = {0};
  iree_hal_allocator_query_statistics(iree_hal_device_allocator(device->device), &statistics);
  return (uint64_t)statistics.device_bytes_allocated + (uint64_t)statistics.host_bytes_allocated;
}

size_t shim_device_threads(const shim_device_t* device) { return device->threads; }

shim_error_t* shim_device_check(const shim_device_t* device) {
  iree_status_t status = iree_ok_status();
#ifdef MLXCEL_CUDA
  const shim_cuda_driver_t* driver = device->cuda < 0 ? NULL : shim_cuda_driver();
  unsigned int flags = 0;
  int is_active = 1;
  if (driver) status = shim_cuda_status(driver, driver->context_state((CUdevice)device->cuda, &flags, &is_active));
  if (iree_status_is_ok(status) && !is_active) status = shim_cuda_status(driver, CUDA_ERROR_CONTEXT_IS_DESTROYED);
#endif
  return shim_error_from_status(status);
}

uint64_t shim_device_free_memory(const shim_device_t* device) {
  size_t left = 0;
#ifdef MLXCEL_CUDA
  size_t all = 0;
  const shim_cuda_driver_t* driver = device->cuda < 0 ? NULL : shim_cuda_driver();
  if (!driver || driver->free_memory(&left, &all) != CUDA_SUCCESS) left = 0;
#endif
  return (uint64_t)left;
}

void shim_device_free(shim_device_t* device) {
  if (!device) return;
  iree_vm_module_release(device->hal_module);
  iree_hal_device_release(device->device);
  iree_vm_instance_release(device->instance);
  shim_workers_free(device->workers);
  iree_allocator_free(shim_allocator(), device);
}
