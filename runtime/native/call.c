#include "iree/modules/hal/types.h"
#include "internal.h"
#include "kernel_times.h"
#include "replay.h"

// How often an invocation is noted in vain before a call counts as one that cannot be replayed.
#define MLXCEL_NOTE_FAILURES 4

// What is kept of a call that launches the same kernels at every invocation.
typedef struct replayed_t {
  bool allowed;
  bool prepared;
  // How often an invocation was noted in vain: what other threads do meanwhile spoils the notes.
  size_t failures;
  // NULL before the kernels are known, and if they cannot be.
  shim_replay_t* kernels;
  // The results, which kernels write in place.
  iree_vm_list_t* outputs;
} replayed_t;

// How the function of a call runs.
typedef enum running_kind_e {
  MLXCEL_RUNNING_NOT,
  // By the VM.
  MLXCEL_RUNNING_FUNCTION,
  // By launching its kernels again.
  MLXCEL_RUNNING_KERNELS,
} running_kind_t;

// An invocation that was begun and not ended.
typedef struct running_t {
  running_kind_t kind;
  // When it was begun, for a recording.
  int64_t start;
  // Whether launches are noted, and whether kernels are timed.
  bool notes;
  bool times;
  // Whether the VM waits for the device.
  bool waits;
  iree_vm_invoke_state_t state;
} running_t;

struct shim_call_t {
  // Outlives the call.
  shim_device_t* owner;
  iree_hal_device_t* device;
  iree_vm_context_t* context;
  iree_vm_function_t function;
  iree_vm_list_t* inputs;
  iree_vm_list_t* outputs;
  replayed_t replayed;
  running_t running;
  size_t input_count;
  // Owned by `inputs`; NULL for an i32 that is passed by value, and for a tensor that the caller passes.
  iree_hal_buffer_t* buffers[];
};

// Adds an input and allocates its buffer.
//
// Inputs are a few numbers, so their buffers lie in host memory that the device reads over the bus. That costs less
// than a copy on every call.
static iree_status_t shim_call_add_input(shim_call_t* call, const shim_argument_t* argument) {
  if (argument->kind == MLXCEL_ARGUMENT_NUMBER) {
    iree_vm_value_t zero = iree_vm_value_make_i32(0);
    IREE_RETURN_IF_ERROR(iree_vm_list_push_value(call->inputs, &zero));
    call->buffers[call->input_count++] = NULL;
    return iree_ok_status();
  }
  if (argument->kind == MLXCEL_ARGUMENT_TENSOR) {
    iree_vm_ref_t none = iree_vm_ref_null();
    IREE_RETURN_IF_ERROR(iree_vm_list_push_ref_retain(call->inputs, &none));
    call->buffers[call->input_count++] = NULL;
    return iree_ok_status();
  }
  const shim_type_t* type = &argument->type;
  iree_hal_element_type_t element_type = shim_element_type(type->dtype);
  iree_hal_dim_t dims[MLXCEL_MAX_RANK];
  iree_device_size_t size = 0;
  IREE_RETURN_IF_ERROR(shim_type_size(type, dims, &size));

  iree_hal_buffer_t* buffer = NULL;
  IREE_RETURN_IF_ERROR(shim_allocate_buffer(call->owner, shim_host_memory(), size, &buffer));
  iree_hal_buffer_view_t* view = NULL;
  iree_status_t status =
      iree_hal_buffer_view_create(buffer, type->rank, dims, element_type, IREE_HAL_ENCODING_TYPE_DENSE_ROW_MAJOR,
                                  shim_allocator(), &view);
  if (iree_status_is_ok(status)) {
    iree_vm_ref_t ref = iree_hal_buffer_view_retain_ref(view);
    status = iree_vm_list_push_ref_move(call->inputs, &ref);
    iree_vm_ref_release(&ref);
  }
  if (iree_status_is_ok(status)) call->buffers[call->input_count++] = buffer;
  iree_hal_buffer_view_release(view);
  iree_hal_buffer_release(buffer);
  return status;
}

// Finds the function of a call.
static iree_status_t shim_call_find_function(shim_call_t* call, iree_string_view_t name) {
  IREE_RETURN_IF_ERROR(iree_vm_context_resolve_function(call->context, name, &call->function));
  // A function compiled for asynchronous invocation takes two more arguments, fences, and returns before it has run.
  if (iree_string_view_equal(iree_vm_function_lookup_attr_by_name(&call->function, IREE_SV("iree.abi.model")),
                             IREE_SV("coarse-fences"))) {
    return iree_make_status(IREE_STATUS_INVALID_ARGUMENT,
                            "'%.*s' was compiled for asynchronous invocation, expected synchronous", (int)name.size,
                            name.data);
  }
  return iree_ok_status();
}

shim_error_t* shim_call_create(shim_module_t* module, shim_string_t name, const shim_argument_t* arguments,
                                   size_t argument_count, int in_place, shim_call_t** out_call) {
  *out_call = NULL;
  iree_allocator_t allocator = shim_allocator();
  shim_call_t* call = NULL;
  iree_host_size_t size = 0;
  iree_status_t status = IREE_STRUCT_LAYOUT(sizeof(*call), &size,
                                            IREE_STRUCT_FIELD_FAM(argument_count, iree_hal_buffer_t*));
  if (iree_status_is_ok(status)) status = iree_allocator_malloc(allocator, size, (void**)&call);
  if (iree_status_is_ok(status)) {
    call->owner = module->owner;
    call->device = module->device;
    iree_hal_device_retain(call->device);
    call->context = module->context;
    iree_vm_context_retain(call->context);
    call->replayed.allowed = in_place != 0;
    status = shim_call_find_function(call, shim_string_view(name));
  }
  if (iree_status_is_ok(status)) {
    status = iree_vm_list_create(iree_vm_make_undefined_type_def(), argument_count, allocator, &call->inputs);
  }
  if (iree_status_is_ok(status)) {
    status = iree_vm_list_create(iree_vm_make_undefined_type_def(), 4, allocator, &call->outputs);
  }
  for (size_t i = 0; iree_status_is_ok(status) && i < argument_count; ++i) {
    status = shim_call_add_input(call, &arguments[i]);
  }
  if (iree_status_is_ok(status)) {
    *out_call = call;
  } else {
    shim_call_free(call);
  }
  return shim_error_from_status(status);
}

size_t shim_call_input_size(const shim_call_t* call, size_t input) {
  return call->buffers[input] ? (size_t)iree_hal_buffer_byte_length(call->buffers[input]) : 0;
}

// Forgets the kernels of a call, if they are known: the next invocation notes them anew.
static void shim_call_forget(shim_call_t* call) {
  shim_replay_free(call->replayed.kernels);
  call->replayed.kernels = NULL;
  iree_vm_list_release(call->replayed.outputs);
  call->replayed.outputs = NULL;
}

// Takes an input over. What was another tensor at the last invocation makes the kernels unknown.
static iree_status_t shim_call_set_input(shim_call_t* call, size_t i, const shim_input_t* input,
                                           iree_device_size_t* written) {
  if (input->tensor) {
    iree_hal_buffer_view_t* view = shim_tensor_view(input->tensor);
    iree_vm_ref_t before = iree_vm_ref_null();
    iree_vm_list_get_ref_assign(call->inputs, i, &before);
    if (before.ptr != (void*)view) shim_call_forget(call);
    iree_vm_ref_t ref = iree_hal_buffer_view_retain_ref(view);
    iree_status_t status = iree_vm_list_set_ref_move(call->inputs, i, &ref);
    iree_vm_ref_release(&ref);
    return status;
  }
  if (!call->buffers[i]) {
    call->replayed.allowed = false;
    iree_vm_value_t value = iree_vm_value_make_i32(*(const int32_t*)input->data);
    return iree_vm_list_set_value(call->inputs, i, &value);
  }
  const iree_device_size_t size = iree_hal_buffer_byte_length(call->buffers[i]);
  *written += size;
  return iree_hal_device_transfer_h2d(call->device, input->data, call->buffers[i], 0, size,
                                      IREE_HAL_TRANSFER_BUFFER_FLAG_DEFAULT, iree_infinite_timeout());
}

// Copies references to the values of a list.
static iree_status_t shim_list_copy(iree_vm_list_t* from, iree_vm_list_t* to) {
  IREE_RETURN_IF_ERROR(iree_vm_list_resize(to, 0));
  for (iree_host_size_t i = 0; i < iree_vm_list_size(from); ++i) {
    // Not retained: whatever it had before would be released.
    iree_vm_ref_t ref = iree_vm_ref_null();
    IREE_RETURN_IF_ERROR(iree_vm_list_get_ref_assign(from, i, &ref));
    IREE_RETURN_IF_ERROR(iree_vm_list_push_ref_retain(to, &ref));
  }
  return iree_ok_status();
}

// Begins to run the function, and to note its kernels if later invocations can replay them.
static iree_status_t shim_call_start(shim_call_t* call) {
  replayed_t* replayed = &call->replayed;
  running_t* running = &call->running;
  if (shim_call_is_replayed(call)) {
    IREE_RETURN_IF_ERROR(shim_replay_start(replayed->kernels));
    running->kind = MLXCEL_RUNNING_KERNELS;
    return iree_ok_status();
  }
  // The first invocation prepares what later ones find.
  const bool can_note = replayed->allowed && replayed->prepared && replayed->failures < MLXCEL_NOTE_FAILURES;
  running->kind = MLXCEL_RUNNING_FUNCTION;
  running->notes = can_note && !call->owner->recording && shim_replay_begin();
  running->times = shim_kernel_times_begin(call->owner->recording);
  memset(&running->state, 0, offsetof(iree_vm_invoke_state_t, stack_storage));
  iree_status_t status = iree_vm_begin_invoke(&running->state, call->context, call->function,
                                              IREE_VM_INVOCATION_FLAG_NONE, /*policy=*/NULL, call->inputs,
                                              shim_allocator());
  running->waits = iree_status_is_deferred(status);
  return running->waits ? iree_ok_status() : status;
}

// Lets the VM run until the function has returned: it waits for the device as often as the function asks for it.
static iree_status_t shim_call_resume(running_t* running) {
  while (running->waits) {
    iree_vm_stack_frame_t* frame = iree_vm_stack_current_frame(running->state.stack);
    if (frame && frame->type == IREE_VM_STACK_FRAME_WAIT) {
      iree_vm_wait_frame_t* wait = (iree_vm_wait_frame_t*)iree_vm_stack_frame_storage(frame);
      IREE_RETURN_IF_ERROR(iree_vm_wait_invoke(&running->state, wait, IREE_TIME_INFINITE_FUTURE));
    }
    iree_status_t status = iree_vm_resume_invoke(&running->state);
    running->waits = iree_status_is_deferred(status);
    if (!running->waits) return status;
  }
  return iree_ok_status();
}

// Ends what `shim_call_start` has begun, with its status.
static iree_status_t shim_call_finish(shim_call_t* call, iree_status_t status) {
  replayed_t* replayed = &call->replayed;
  running_t* running = &call->running;
  if (running->kind == MLXCEL_RUNNING_KERNELS) {
    IREE_RETURN_IF_ERROR(shim_replay_wait(replayed->kernels));
    return shim_list_copy(replayed->outputs, call->outputs);
  }
  if (iree_status_is_ok(status)) status = shim_call_resume(running);
  iree_status_t result = iree_ok_status();
  if (iree_status_is_ok(status)) status = iree_vm_end_invoke(&running->state, call->outputs, &result);
  if (iree_status_is_ok(status)) {
    status = result;
  } else {
    iree_vm_abort_invoke(&running->state);
  }
  if (running->times) shim_kernel_times_end(call->owner->recording);
  replayed->prepared = true;
  if (!running->notes) return status;
  replayed->kernels = shim_replay_end();
  if (!replayed->kernels) ++replayed->failures;
  if (replayed->kernels && iree_status_is_ok(status)) {
    status = iree_vm_list_create(iree_vm_make_undefined_type_def(), 4, shim_allocator(), &replayed->outputs);
    if (iree_status_is_ok(status)) status = shim_list_copy(call->outputs, replayed->outputs);
  }
  if (!iree_status_is_ok(status)) shim_call_forget(call);
  return status;
}

// Ends an invocation, with the status of its beginning.
static iree_status_t shim_call_complete(shim_call_t* call, iree_status_t status) {
  running_t* running = &call->running;
  if (running->kind != MLXCEL_RUNNING_NOT) status = shim_call_finish(call, status);
  running->kind = MLXCEL_RUNNING_NOT;
  // Tensors that were passed are not kept: the caller may replace them by results. Those of kernels that are replayed stay.
  // Numbers are passed anew, too.
  for (size_t i = 0; i < call->input_count && !call->replayed.kernels; ++i) {
    if (call->buffers[i]) continue;
    iree_vm_ref_t none = iree_vm_ref_null();
    status = iree_status_join(status, iree_vm_list_set_ref_retain(call->inputs, i, &none));
  }
  shim_record(call->owner, MLXCEL_EVENT_CALL, running->start, 0);
  return status;
}

shim_error_t* shim_call_begin(shim_call_t* call, const shim_input_t* inputs) {
  running_t* running = &call->running;
  if (running->kind != MLXCEL_RUNNING_NOT) {
    return shim_error_from_status(iree_make_status(IREE_STATUS_FAILED_PRECONDITION,
                                                   "the last invocation has not ended"));
  }
  running->start = shim_recorded_now(call->owner);
  iree_device_size_t written = 0;
  // Dropped first, so that this invocation can use their memory.
  iree_status_t status = iree_vm_list_resize(call->outputs, 0);
  for (size_t i = 0; i < call->input_count && iree_status_is_ok(status); ++i) {
    status = shim_call_set_input(call, i, &inputs[i], &written);
  }
  if (written) shim_record(call->owner, MLXCEL_EVENT_INPUTS, running->start, written);
  if (iree_status_is_ok(status)) status = shim_call_start(call);
  if (!iree_status_is_ok(status)) status = shim_call_complete(call, status);
  return shim_error_from_status(status);
}

shim_error_t* shim_call_end(shim_call_t* call) {
  if (call->running.kind == MLXCEL_RUNNING_NOT) {
    return shim_error_from_status(iree_make_status(IREE_STATUS_FAILED_PRECONDITION, "no invocation was begun"));
  }
  return shim_error_from_status(shim_call_complete(call, iree_ok_status()));
}

size_t shim_call_output_count(const shim_call_t* call) { return iree_vm_list_size(call->outputs); }

shim_error_t* shim_call_take_output(shim_call_t* call, shim_tensor_t** out_tensor) {
  *out_tensor = NULL;
  iree_vm_ref_t ref = iree_vm_ref_null();
  iree_status_t status = iree_vm_list_pop_front_ref_move(call->outputs, &ref);
  iree_hal_buffer_view_t* view = NULL;
  if (iree_status_is_ok(status)) status = iree_hal_buffer_view_check_deref(ref, &view);
  if (iree_status_is_ok(status)) {
    iree_hal_buffer_view_retain(view);
    *out_tensor = (shim_tensor_t*)view;
  }
  iree_vm_ref_release(&ref);
  return shim_error_from_status(status);
}

int shim_call_is_replayed(const shim_call_t* call) { return call->replayed.kernels && !call->owner->recording; }

void shim_call_free(shim_call_t* call) {
  if (!call) return;
  // Kernels that run use what is freed here.
  if (call->running.kind != MLXCEL_RUNNING_NOT) iree_status_ignore(shim_call_complete(call, iree_ok_status()));
  shim_call_forget(call);
  iree_vm_list_release(call->outputs);
  iree_vm_list_release(call->inputs);
  iree_vm_context_release(call->context);
  iree_hal_device_release(call->device);
  iree_allocator_free(shim_allocator(), call);
}
