// The interface of the IREE runtime for src/ffi/: devices, modules, calls, tensors and recordings.
//
// Every function that can fail returns NULL, or an error that the caller frees with `shim_error_free`. After an error
// all that the function allocated is freed, and out-parameters are NULL. Nothing here is thread-safe.

#ifndef MLXCEL_SHIM_H_
#define MLXCEL_SHIM_H_

#include <stddef.h>
#include <stdint.h>

// A device, with the VM instance of its programs.
typedef struct shim_device_t shim_device_t;
// A program loaded on a device, with its state.
typedef struct shim_module_t shim_module_t;
// A function of a module, with its inputs on the device and the results of its last invocation.
typedef struct shim_call_t shim_call_t;
// A tensor on a device.
typedef struct shim_tensor_t shim_tensor_t;

// UTF-8 without a terminator.
typedef struct shim_string_t {
  const char* data;
  size_t length;
} shim_string_t;

typedef struct shim_error_t {
  // The name of IREE's status code, such as NOT_FOUND.
  shim_string_t status;
  shim_string_t message;
} shim_error_t;

// The bytes of a parameter. They must outlive the module that reads them.
typedef struct shim_parameter_t {
  shim_string_t name;
  const uint8_t* data;
  size_t length;
} shim_parameter_t;

typedef enum shim_dtype_t {
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
  MLXCEL_DTYPE_C64 = 10,
  MLXCEL_DTYPE_F8_E5M2 = 11,
  MLXCEL_DTYPE_F8_E4M3FN = 12,
  MLXCEL_DTYPE_F8_E5M2FNUZ = 13,
  MLXCEL_DTYPE_F8_E4M3FNUZ = 14,
  MLXCEL_DTYPE_F8_E8M0FNU = 15,
} shim_dtype_t;

// The memory that a tensor lies in.
typedef enum shim_memory_t {
  // The device's own.
  MLXCEL_MEMORY_DEVICE = 0,
  // The host's, which the device reads and writes over the bus.
  MLXCEL_MEMORY_HOST = 1,
} shim_memory_t;

typedef struct shim_type_t {
  // An shim_dtype_t.
  uint32_t dtype;
  size_t rank;
  const size_t* dims;
} shim_type_t;

// How a function gets an argument.
typedef enum shim_argument_kind_t {
  // Every invocation copies it from the host to the device.
  MLXCEL_ARGUMENT_COPIED = 0,
  // An i32 of the host, which is passed by value.
  MLXCEL_ARGUMENT_NUMBER = 1,
  // A tensor on the device, which the caller passes to each invocation.
  MLXCEL_ARGUMENT_TENSOR = 2,
} shim_argument_kind_t;

typedef struct shim_argument_t {
  // An shim_argument_kind_t.
  uint32_t kind;
  // Of what is copied.
  shim_type_t type;
} shim_argument_t;

// An input of an invocation: numbers on the host, or a tensor on the device, of which the other is NULL.
typedef struct shim_input_t {
  const void* data;
  shim_tensor_t* tensor;
} shim_input_t;

// What an event of a recording tells.
typedef enum shim_event_kind_t {
  // `count` records were lost, because too many came at once.
  MLXCEL_EVENT_LOST = 0,
  // A dispatch, from its first workgroup to its last.
  MLXCEL_EVENT_DISPATCH = 1,
  // `count` workgroups of a dispatch that the worker `lane` of local-task ran.
  MLXCEL_EVENT_WORKGROUPS = 2,
  // Other work of the device's queue.
  MLXCEL_EVENT_EXECUTE = 3,
  MLXCEL_EVENT_COPY = 4,
  MLXCEL_EVENT_FILL = 5,
  MLXCEL_EVENT_UPDATE = 6,
  MLXCEL_EVENT_READ_FILE = 7,
  MLXCEL_EVENT_ALLOCA = 8,
  MLXCEL_EVENT_DEALLOCA = 9,
  MLXCEL_EVENT_BARRIER = 10,
  // What the calling thread did: an invocation, and in it the arguments that were written and how long it waited.
  MLXCEL_EVENT_CALL = 11,
  MLXCEL_EVENT_INPUTS = 12,
  MLXCEL_EVENT_WAIT = 13,
  // Bytes of a tensor were read, or written.
  MLXCEL_EVENT_READ = 14,
  // A buffer was allocated.
  MLXCEL_EVENT_ALLOCATE = 15,
  // At `start_ns`, buffers had `bytes`.
  MLXCEL_EVENT_BUFFER_BYTES = 16,
  // At `start_ns`, `bytes` of the pool `count` were in use.
  MLXCEL_EVENT_POOL_BYTES = 17,
  MLXCEL_EVENT_WRITE = 18,
} shim_event_kind_t;

typedef struct shim_event_t {
  // An shim_event_kind_t.
  uint32_t kind;
  uint32_t lane;
  // On the clock of `shim_now`.
  int64_t start_ns;
  int64_t end_ns;
  uint64_t bytes;
  uint64_t count;
  // The time of all workers in a dispatch; 0 if it is not known.
  int64_t busy_ns;
  uint32_t workgroups[3];
  // The function of a dispatch.
  shim_string_t name;
} shim_event_t;

void shim_error_free(shim_error_t* error);

// Requests AMX's registers for this process. Returns 1 if the system grants them, and 0 otherwise.
int shim_request_amx(void);

// What a driver tells of a device without opening it. Numbers that it does not tell are 0.
typedef struct shim_found_t {
  shim_string_t name;
  // What tells it from the others: of an NVIDIA GPU, the UUID as `nvidia-smi -L` prints it.
  shim_string_t path;
  // Of NVIDIA GPUs: the compute capability, and the newest CUDA version of the driver, 12040 for 12.4.
  int compute_capability[2];
  int cuda;
  uint64_t memory_bytes;
} shim_found_t;

// Calls `found` with every device of `driver`.
shim_error_t* shim_driver_list(shim_string_t driver, void (*found)(void* user, const shim_found_t* device),
                                   void* user);

// Opens the device of `driver` with this index, or the driver's default if the index is negative.
//
// `threads` is the number of local-task's workers; 0 is one for each physical core. Each worker has a physical core of
// its own if there are enough. With `reports`, recordings tell what each worker does and how long programs wait; programs
// that are loaded run a little slower then.
shim_error_t* shim_device_create(shim_string_t driver, int64_t index, size_t threads, int reports,
                                     shim_device_t** out_device);
// Returns the workers of a local-task device; 1 for others.
size_t shim_device_threads(const shim_device_t* device);
// Returns an error if the device's context was taken away. What it had is gone, and with it the memory of the host in which
// inputs lie.
shim_error_t* shim_device_check(const shim_device_t* device);
// Returns the bytes of memory that a device has left which this thread has just created; 0 if its driver does not say.
uint64_t shim_device_free_memory(const shim_device_t* device);
// Returns the bytes of the device's memory that were allocated so far, those that were freed again included.
uint64_t shim_device_allocated(const shim_device_t* device);
// Copies `length` bytes from one place of the device's memory to another, more and more often until that takes `least_ns`.
// Returns how often the last time, and how long that took.
shim_error_t* shim_device_time_copies(shim_device_t* device, size_t length, int64_t least_ns, uint64_t* out_count,
                                      int64_t* out_ns);
void shim_device_free(shim_device_t* device);

// Loads a program and runs its initializers. `vmfb` and the parameters' data must outlive the module and every tensor
// of its results.
shim_error_t* shim_module_load(shim_device_t* device, const uint8_t* vmfb, size_t vmfb_length,
                                   shim_string_t scope, const shim_parameter_t* parameters,
                                   size_t parameter_count, shim_module_t** out_module);
void shim_module_free(shim_module_t* module);

// Finds the function `name` ("module.function") and allocates inputs for what is copied. The module must outlive the call.
//
// If `in_place` is not 0, the function returns tensors that it is given, and what it does depends on the contents of its
// inputs in kernels alone: then kernels that one invocation launches may be launched again in place of the next ones.
shim_error_t* shim_call_create(shim_module_t* module, shim_string_t name, const shim_argument_t* arguments,
                                   size_t argument_count, int in_place, shim_call_t** out_call);
// Returns the size in bytes of an input that is copied.
size_t shim_call_input_size(const shim_call_t* call, size_t input);
// Copies inputs on the host to the device and begins to run the function, up to its first wait for the device. Drops results
// of the last invocation that were not taken. The function may overwrite tensors that are passed. After an error there is
// nothing to end.
shim_error_t* shim_call_begin(shim_call_t* call, const shim_input_t* inputs);
// Waits for what was begun. Its results can be taken then.
shim_error_t* shim_call_end(shim_call_t* call);
// Returns the number of results of the last invocation that were not taken yet.
size_t shim_call_output_count(const shim_call_t* call);
// Takes the first of these results. It stays valid when the call is invoked again or freed.
shim_error_t* shim_call_take_output(shim_call_t* call, shim_tensor_t** out_tensor);
// Returns 1 if the next invocation launches kernels again. Then another call may be begun before it has ended: the device runs
// both in the order in which they were begun.
int shim_call_is_replayed(const shim_call_t* call);
// Waits for what was begun.
void shim_call_free(shim_call_t* call);

// Allocates a tensor in one of a device's memories (an shim_memory_t); its bytes are zeros if `zeros` is not 0, and not
// determined otherwise.
shim_error_t* shim_tensor_create(shim_device_t* device, const shim_type_t* type, uint32_t memory, int zeros,
                                     shim_tensor_t** out_tensor);
// Makes a tensor of the first element of the first dimension, which shares the memory.
shim_error_t* shim_tensor_first(shim_tensor_t* tensor, shim_tensor_t** out_first);
// Returns an shim_dtype_t.
uint32_t shim_tensor_dtype(const shim_tensor_t* tensor);
size_t shim_tensor_rank(const shim_tensor_t* tensor);
size_t shim_tensor_dim(const shim_tensor_t* tensor, size_t axis);
size_t shim_tensor_size(const shim_tensor_t* tensor);
// Copies `length` bytes of the tensor from byte `offset` on to the host.
shim_error_t* shim_tensor_read(shim_device_t* device, shim_tensor_t* tensor, size_t offset, void* target,
                                   size_t length);
// Copies `length` bytes from the host to the start of the tensor.
shim_error_t* shim_tensor_write(shim_device_t* device, shim_tensor_t* tensor, const void* source,
                                    size_t length);
// Makes the tensor live until it is freed once more.
void shim_tensor_retain(shim_tensor_t* tensor);
void shim_tensor_free(shim_tensor_t* tensor);

// Returns the time of the monotonic clock of recordings.
int64_t shim_now(void);

// Starts recording what the device does. It has one recording at a time, and nothing runs meanwhile. Not every driver tells
// of its dispatches: `out_is_profiling` is 1 if it does, and otherwise only what the calling thread does is recorded.
shim_error_t* shim_recording_begin(shim_device_t* device, int* out_is_profiling);
// Calls `found` for every event since the last collection, because their number is limited. Does nothing without a
// recording.
shim_error_t* shim_recording_collect(shim_device_t* device,
                                         void (*found)(void* user, const shim_event_t* event), void* user);
// Stops recording, calls `found` for the last events, and frees the recording even after an error.
shim_error_t* shim_recording_end(shim_device_t* device,
                                     void (*found)(void* user, const shim_event_t* event), void* user);

#endif  // MLXCEL_SHIM_H_
