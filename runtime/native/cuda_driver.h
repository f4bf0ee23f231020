// Functions of NVIDIA's driver that the shim calls itself, of the library that IREE has loaded.

#ifndef MLXCEL_CUDA_DRIVER_H_
#define MLXCEL_CUDA_DRIVER_H_

#include <stdbool.h>

#include "cuda.h"
#include "iree/base/api.h"

typedef struct shim_cuda_driver_t {
  CUresult (*driver_version)(int*);
  CUresult (*device_attribute)(int*, CUdevice_attribute, CUdevice);
  CUresult (*device_memory)(size_t*, CUdevice);
  CUresult (*free_memory)(size_t*, size_t*);
  CUresult (*context_state)(CUdevice, unsigned int*, int*);
  CUresult (*get_current)(CUcontext*);
  CUresult (*set_current)(CUcontext);
  CUresult (*graph_create)(CUgraph*, unsigned int);
  CUresult (*graph_destroy)(CUgraph);
  CUresult (*add_kernel)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_KERNEL_NODE_PARAMS*);
  // NULL before CUDA 12.3.
  CUresult (*add_node)(CUgraphNode*, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t, CUgraphNodeParams*);
  CUresult (*get_module)(CUmodule*, CUfunction);
  CUresult (*get_global)(CUdeviceptr*, size_t*, CUmodule, const char*);
  CUresult (*instantiate)(CUgraphExec*, CUgraph, unsigned long long);
  CUresult (*exec_destroy)(CUgraphExec);
  CUresult (*launch)(CUgraphExec, CUstream);
  CUresult (*error_name)(CUresult, const char**);
  CUresult (*event_create)(CUevent*, unsigned int);
  CUresult (*event_destroy)(CUevent);
  CUresult (*event_record)(CUevent, CUstream);
  CUresult (*event_synchronize)(CUevent);
  CUresult (*event_elapsed)(float*, CUevent, CUevent);
  // NULL before CUDA 12.3.
  CUresult (*function_name)(const char**, CUfunction);
} shim_cuda_driver_t;

// Returns the driver, or NULL if none is loaded, or one that lacks some of this.
const shim_cuda_driver_t* shim_cuda_driver(void);

// Returns an error of the driver as IREE's.
iree_status_t shim_cuda_status(const shim_cuda_driver_t* driver, CUresult result);

#endif  // MLXCEL_CUDA_DRIVER_H_
