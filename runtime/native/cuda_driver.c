#include "internal.h"

#ifdef MLXCEL_CUDA

#include <dlfcn.h>
#include <pthread.h>

#include "cuda_driver.h"

static shim_cuda_driver_t driver;
static bool has_driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static void driver_load(void) {
  void* library = dlopen("libcuda.so", RTLD_LAZY | RTLD_NOLOAD);
  CUresult (*find)(const char*, void**, int, cuuint64_t) =
      library ? (CUresult(*)(const char*, void**, int, cuuint64_t))dlsym(library, "cuGetProcAddress") : NULL;
  if (!find) return;
  // CUDA 11.4 is the first where instantiating takes flags, and 12.3 the first where edges have types and functions names.
  const int version = 11040, later = 12030;
  const struct {
    const char* name;
    void** function;
  } functions[] = {
      {"cuDriverGetVersion", (void**)&driver.driver_version},
      {"cuDeviceGetAttribute", (void**)&driver.device_attribute},
      {"cuDeviceTotalMem", (void**)&driver.device_memory},
      {"cuMemGetInfo", (void**)&driver.free_memory},
      {"cuDevicePrimaryCtxGetState", (void**)&driver.context_state},
      {"cuCtxGetCurrent", (void**)&driver.get_current},
      {"cuCtxSetCurrent", (void**)&driver.set_current},
      {"cuGraphCreate", (void**)&driver.graph_create},
      {"cuGraphDestroy", (void**)&driver.graph_destroy},
      {"cuGraphAddKernelNode", (void**)&driver.add_kernel},
      {"cuFuncGetModule", (void**)&driver.get_module},
      {"cuModuleGetGlobal", (void**)&driver.get_global},
      {"cuGraphInstantiateWithFlags", (void**)&driver.instantiate},
      {"cuGraphExecDestroy", (void**)&driver.exec_destroy},
      {"cuGraphLaunch", (void**)&driver.launch},
      {"cuGetErrorName", (void**)&driver.error_name},
      {"cuEventCreate", (void**)&driver.event_create},
      {"cuEventDestroy", (void**)&driver.event_destroy},
      {"cuEventRecord", (void**)&driver.event_record},
      {"cuEventSynchronize", (void**)&driver.event_synchronize},
      {"cuEventElapsedTime", (void**)&driver.event_elapsed},
  };
  for (size_t i = 0; i < IREE_ARRAYSIZE(functions); ++i) {
    const bool found = find(functions[i].name, functions[i].function, version, 0) == CUDA_SUCCESS;
    if (!found || !*functions[i].function) return;
  }
  if (find("cuGraphAddNode", (void**)&driver.add_node, later, 0) != CUDA_SUCCESS) driver.add_node = NULL;
  if (find("cuFuncGetName", (void**)&driver.function_name, later, 0) != CUDA_SUCCESS) driver.function_name = NULL;
  has_driver = true;
}

const shim_cuda_driver_t* shim_cuda_driver(void) {
  pthread_once(&driver_once, driver_load);
  return has_driver ? &driver : NULL;
}

iree_status_t shim_cuda_status(const shim_cuda_driver_t* from, CUresult result) {
  if (result == CUDA_SUCCESS) return iree_ok_status();
  const char* name = NULL;
  from->error_name(result, &name);
  return iree_make_status(IREE_STATUS_INTERNAL, "CUDA driver error '%s' (%d)", name ? name : "unknown", (int)result);
}

#endif  // MLXCEL_CUDA
