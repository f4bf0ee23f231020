// The IREE runtime as src/ffi.rs sees it: devices, modules, calls and tensors.
//
// Every function that can fail returns NULL, or an error that the caller frees with `mlxcel_error_free`; on an error
// nothing is left behind and out-parameters are NULL. Nothing here is thread-safe.

#ifndef MLXCEL_SHIM_H_
#define MLXCEL_SHIM_H_

#include <stddef.h>
#include <stdint.h>

// A device and the VM instance that programs for it live in.
typedef struct mlxcel_device_t mlxcel_device_t;
// A program loaded on a device, with its state.
typedef struct mlxcel_module_t mlxcel_module_t;
// A function of a module, with its inputs on the device and the results of its last invocation.
typedef struct mlxcel_call_t mlxcel_call_t;
// A tensor on a device.
typedef struct mlxcel_tensor_t mlxcel_tensor_t;
// A record of what a device does.
typedef struct mlxcel_profile_t mlxcel_profile_t;

// UTF-8, not terminated.
typedef struct mlxcel_string_t {
  const char* data;
  size_t length;
} mlxcel_string_t;

typedef struct mlxcel_error_t {
  // The name of IREE's status code: NOT_FOUND.
  mlxcel_string_t status;
  mlxcel_string_t message;
} mlxcel_error_t;

// Bytes that outlive the module they are given to.
typedef struct mlxcel_parameter_t {
  mlxcel_string_t name;
  const uint8_t* data;
  size_t length;
} mlxcel_parameter_t;

typedef enum mlxcel_dtype_t {
  MLXCEL_DTYPE_OTHER = 0,
  MLXCEL_DTYPE_BOOL = 1,
  MLXCEL_DTYPE_I8 = 2,
  MLXCEL_DTYPE_I16 = 3,
  MLXCEL_DTYPE_I32 = 4,
  MLXCEL_DTYPE_I64 = 5,
  MLXCEL_DTYPE_F16 = 6,
  MLXCEL_DTYPE_BF16 = 7,
  MLXCEL_DTYPE_F32 = 8,
  MLXCEL_DTYPE_F64 = 9,
} mlxcel_dtype_t;

typedef struct mlxcel_type_t {
  // A mlxcel_dtype_t.
  uint32_t dtype;
  size_t rank;
  const size_t* dims;
} mlxcel_type_t;

// What calls of a function took.
typedef struct mlxcel_profile_count_t {
  int64_t calls;
  // From the start of a call to its end.
  int64_t span_ns;
} mlxcel_profile_count_t;

void mlxcel_error_free(mlxcel_error_t* error);

// Asks the system for AMX's registers, which this process then has until it ends; 0 where it gets none.
int mlxcel_request_amx(void);

// Calls `found` with the name of every device that `driver` sees.
mlxcel_error_t* mlxcel_driver_list(mlxcel_string_t driver, void (*found)(void* user, mlxcel_string_t name),
                                   void* user);

// A device of `driver`: the `index`th, or the one the driver prefers when it is negative. `threads` is for local-task:
// that many workers, each on a physical core of its own while there are enough; 0 is one for every physical core.
mlxcel_error_t* mlxcel_device_create(mlxcel_string_t driver, int64_t index, size_t threads,
                                     mlxcel_device_t** out_device);
// Workers of a local-task device, 1 for others.
size_t mlxcel_device_threads(const mlxcel_device_t* device);
void mlxcel_device_free(mlxcel_device_t* device);

// Loads a program and runs its initialisers. `vmfb` and the parameters' data must outlive the module and every tensor
// that came out of it.
mlxcel_error_t* mlxcel_module_load(mlxcel_device_t* device, const uint8_t* vmfb, size_t vmfb_length,
                                   mlxcel_string_t scope, const mlxcel_parameter_t* parameters,
                                   size_t parameter_count, mlxcel_module_t** out_module);
void mlxcel_module_free(mlxcel_module_t* module);

// Finds the function `name` ("module.function") and allocates its inputs. The module must outlive the call.
mlxcel_error_t* mlxcel_call_create(mlxcel_module_t* module, mlxcel_string_t name, const mlxcel_type_t* inputs,
                                   size_t input_count, mlxcel_call_t** out_call);
// Bytes of an input.
size_t mlxcel_call_input_size(const mlxcel_call_t* call, size_t input);
// Copies every input to the device, runs the function and waits for it. Drops what was not taken of the results
// before.
mlxcel_error_t* mlxcel_call_invoke(mlxcel_call_t* call, const void* const* inputs);
// Results of the last invocation that were not taken yet.
size_t mlxcel_call_output_count(const mlxcel_call_t* call);
// Takes the first of them. It lives on when the call is invoked again or freed.
mlxcel_error_t* mlxcel_call_take_output(mlxcel_call_t* call, mlxcel_tensor_t** out_tensor);
void mlxcel_call_free(mlxcel_call_t* call);

// A mlxcel_dtype_t.
uint32_t mlxcel_tensor_dtype(const mlxcel_tensor_t* tensor);
size_t mlxcel_tensor_rank(const mlxcel_tensor_t* tensor);
size_t mlxcel_tensor_dim(const mlxcel_tensor_t* tensor, size_t axis);
size_t mlxcel_tensor_size(const mlxcel_tensor_t* tensor);
// Copies `length` bytes from the start of the tensor to the host.
mlxcel_error_t* mlxcel_tensor_read(mlxcel_device_t* device, mlxcel_tensor_t* tensor, void* target, size_t length);
void mlxcel_tensor_free(mlxcel_tensor_t* tensor);

// Starts a record of what the device does. One at a time; not every driver keeps one.
mlxcel_error_t* mlxcel_profile_begin(mlxcel_device_t* device, mlxcel_profile_t** out_profile);
// Takes in what has happened so far: devices keep only so much.
mlxcel_error_t* mlxcel_profile_flush(mlxcel_profile_t* profile);
// Ends it, calls `found` for every function that ran, and frees it, whatever happens.
mlxcel_error_t* mlxcel_profile_end(mlxcel_profile_t* profile,
                                   void (*found)(void* user, mlxcel_string_t name, mlxcel_profile_count_t count),
                                   void* user);

#endif  // MLXCEL_SHIM_H_
