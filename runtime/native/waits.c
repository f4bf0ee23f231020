// The times for which programs wait. A program waits inside its call of a function of the device's VM module, so a device
// that is recorded has a module that passes all calls on and looks at the clock around this one.

#include "internal.h"

typedef struct shim_waits_t {
  // The module that programs see. It comes first, so that it is freed with the rest.
  iree_vm_module_t module;
  // The module that does the work.
  iree_vm_module_t* inner;
  // Outlives the module.
  shim_device_t* device;
  // The function that waits; its module is NULL until a program asks for it.
  iree_vm_function_t await;
} shim_waits_t;

static void shim_waits_destroy(void* self) {
  shim_waits_t* waits = (shim_waits_t*)self;
  iree_vm_module_release(waits->inner);
  iree_allocator_free(shim_allocator(), waits);
}

static iree_string_view_t shim_waits_name(void* self) {
  return iree_vm_module_name(((shim_waits_t*)self)->inner);
}

static iree_vm_module_signature_t shim_waits_signature(void* self) {
  return iree_vm_module_signature(((shim_waits_t*)self)->inner);
}

static iree_status_t shim_waits_dependencies(void* self, iree_vm_module_dependency_callback_t callback,
                                               void* user) {
  return iree_vm_module_enumerate_dependencies(((shim_waits_t*)self)->inner, callback, user);
}

static iree_status_t shim_waits_lookup(void* self, iree_vm_function_linkage_t linkage, iree_string_view_t name,
                                         const iree_vm_function_signature_t* expected, iree_vm_function_t* out) {
  shim_waits_t* waits = (shim_waits_t*)self;
  IREE_RETURN_IF_ERROR(waits->inner->lookup_function(waits->inner->self, linkage, name, expected, out));
  out->module = &waits->module;
  if (iree_string_view_equal(name, IREE_SV("fence.await"))) waits->await = *out;
  return iree_ok_status();
}

static iree_status_t shim_waits_get_function(void* self, iree_vm_function_linkage_t linkage,
                                               iree_host_size_t ordinal, iree_vm_function_t* out_function,
                                               iree_string_view_t* out_name,
                                               iree_vm_function_signature_t* out_signature) {
  shim_waits_t* waits = (shim_waits_t*)self;
  IREE_RETURN_IF_ERROR(waits->inner->get_function(waits->inner->self, linkage, ordinal, out_function, out_name,
                                                  out_signature));
  if (out_function) out_function->module = &waits->module;
  return iree_ok_status();
}

static iree_status_t shim_waits_alloc_state(void* self, iree_allocator_t allocator,
                                              iree_vm_module_state_t** out_state) {
  iree_vm_module_t* inner = ((shim_waits_t*)self)->inner;
  return inner->alloc_state(inner->self, allocator, out_state);
}

static void shim_waits_free_state(void* self, iree_vm_module_state_t* state) {
  iree_vm_module_t* inner = ((shim_waits_t*)self)->inner;
  inner->free_state(inner->self, state);
}

static iree_status_t shim_waits_fork_state(void* self, iree_vm_module_state_t* parent, iree_allocator_t allocator,
                                             iree_vm_module_state_t** out_child) {
  iree_vm_module_t* inner = ((shim_waits_t*)self)->inner;
  return inner->fork_state(inner->self, parent, allocator, out_child);
}

static iree_status_t shim_waits_resolve_import(void* self, iree_vm_module_state_t* state, iree_host_size_t ordinal,
                                                 const iree_vm_function_t* function,
                                                 const iree_vm_function_signature_t* signature) {
  iree_vm_module_t* inner = ((shim_waits_t*)self)->inner;
  return inner->resolve_import(inner->self, state, ordinal, function, signature);
}

static iree_status_t shim_waits_notify(void* self, iree_vm_module_state_t* state, iree_vm_signal_t signal) {
  iree_vm_module_t* inner = ((shim_waits_t*)self)->inner;
  return inner->notify(inner->self, state, signal);
}

static iree_status_t shim_waits_begin_call(void* self, iree_vm_stack_t* stack, iree_vm_function_call_t call) {
  shim_waits_t* waits = (shim_waits_t*)self;
  iree_vm_module_t* inner = waits->inner;
  if (!waits->await.module || call.function.ordinal != waits->await.ordinal) {
    return inner->begin_call(inner->self, stack, call);
  }
  const int64_t start = shim_recorded_now(waits->device);
  iree_status_t status = inner->begin_call(inner->self, stack, call);
  shim_record(waits->device, MLXCEL_EVENT_WAIT, start, 0);
  return status;
}

static iree_status_t shim_waits_resume_call(void* self, iree_vm_stack_t* stack, iree_byte_span_t results) {
  iree_vm_module_t* inner = ((shim_waits_t*)self)->inner;
  return inner->resume_call(inner->self, stack, results);
}

iree_status_t shim_waits_wrap(shim_device_t* device) {
  shim_waits_t* waits = NULL;
  IREE_RETURN_IF_ERROR(iree_allocator_malloc(shim_allocator(), sizeof(*waits), (void**)&waits));
  iree_status_t status = iree_vm_module_initialize(&waits->module, waits);
  if (!iree_status_is_ok(status)) {
    iree_allocator_free(shim_allocator(), waits);
    return status;
  }
  waits->inner = device->hal_module;
  waits->device = device;
  // The functions that stay NULL are those that a module need not have.
  waits->module.destroy = shim_waits_destroy;
  waits->module.name = shim_waits_name;
  waits->module.signature = shim_waits_signature;
  waits->module.enumerate_dependencies = shim_waits_dependencies;
  waits->module.lookup_function = shim_waits_lookup;
  waits->module.get_function = shim_waits_get_function;
  waits->module.alloc_state = shim_waits_alloc_state;
  waits->module.free_state = shim_waits_free_state;
  waits->module.fork_state = shim_waits_fork_state;
  waits->module.resolve_import = shim_waits_resolve_import;
  waits->module.notify = shim_waits_notify;
  waits->module.begin_call = shim_waits_begin_call;
  waits->module.resume_call = shim_waits_resume_call;
  device->hal_module = &waits->module;
  return iree_ok_status();
}
