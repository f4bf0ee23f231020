#include "iree/io/file_handle.h"
#include "iree/io/parameter_index.h"
#include "iree/io/parameter_index_provider.h"
#include "iree/modules/io/parameters/module.h"
#include "iree/vm/bytecode/module.h"
#include "internal.h"

// Adds a parameter to the index, with a file handle of its own.
//
// With one handle per file, the provider would pass on the file's whole length from the parameter's offset, which ends
// past the mapping.
static iree_status_t shim_parameter_index_add(iree_io_parameter_index_t* index, const shim_parameter_t* parameter) {
  iree_io_file_handle_t* handle = NULL;
  IREE_RETURN_IF_ERROR(iree_io_file_handle_wrap_host_allocation(
      IREE_IO_FILE_ACCESS_READ, iree_make_byte_span((void*)parameter->data, parameter->length),
      iree_io_file_handle_release_callback_null(), shim_allocator(), &handle));
  iree_io_parameter_index_entry_t entry = {
      .key = shim_string_view(parameter->name),
      .length = parameter->length,
      .type = IREE_IO_PARAMETER_INDEX_ENTRY_STORAGE_TYPE_FILE,
      .storage = {.file = {.handle = handle, .offset = 0}},
  };
  iree_status_t status = iree_io_parameter_index_add(index, &entry);
  iree_io_file_handle_release(handle);
  return status;
}

// Creates the VM module from which programs read parameters.
static iree_status_t shim_parameters_module_create(iree_vm_instance_t* instance, iree_string_view_t scope,
                                                     const shim_parameter_t* parameters, size_t count,
                                                     iree_vm_module_t** out_module) {
  iree_allocator_t allocator = shim_allocator();
  iree_io_parameter_index_t* index = NULL;
  iree_status_t status = iree_io_parameter_index_create(allocator, &index);
  if (iree_status_is_ok(status)) status = iree_io_parameter_index_reserve(index, count);
  for (size_t i = 0; iree_status_is_ok(status) && i < count; ++i) {
    status = shim_parameter_index_add(index, &parameters[i]);
  }
  iree_io_parameter_provider_t* provider = NULL;
  if (iree_status_is_ok(status)) {
    status = iree_io_parameter_index_provider_create(
        scope, index, 1, allocator, &provider);
  }
  if (iree_status_is_ok(status)) {
    status = iree_io_parameters_module_create(instance, 1, &provider, allocator, out_module);
  }
  iree_io_parameter_provider_release(provider);
  iree_io_parameter_index_release(index);
  return status;
}

shim_error_t* shim_module_load(shim_device_t* device, const uint8_t* vmfb, size_t vmfb_length,
                                   shim_string_t scope, const shim_parameter_t* parameters,
                                   size_t parameter_count, shim_module_t** out_module) {
  *out_module = NULL;
  iree_allocator_t allocator = shim_allocator();
  // In the order in which imports are resolved. The first belongs to the device.
  iree_vm_module_t* modules[3] = {device->hal_module, NULL, NULL};
  shim_module_t* module = NULL;
  iree_status_t status = iree_allocator_malloc(allocator, sizeof(*module), (void**)&module);
  if (iree_status_is_ok(status)) {
    module->owner = device;
    module->device = device->device;
    iree_hal_device_retain(module->device);
    status = shim_parameters_module_create(device->instance, shim_string_view(scope), parameters, parameter_count,
                                             &modules[1]);
  }
  if (iree_status_is_ok(status)) {
    status = iree_vm_bytecode_module_create(device->instance, IREE_VM_BYTECODE_MODULE_FLAG_NONE,
                                            iree_make_const_byte_span(vmfb, vmfb_length), iree_allocator_null(),
                                            allocator, &modules[2]);
  }
  if (iree_status_is_ok(status)) {
    status = iree_vm_context_create_with_modules(device->instance, IREE_VM_CONTEXT_FLAG_NONE,
                                                 IREE_ARRAYSIZE(modules), modules, allocator, &module->context);
  }
  iree_vm_module_release(modules[2]);
  iree_vm_module_release(modules[1]);
  if (iree_status_is_ok(status)) {
    *out_module = module;
  } else {
    shim_module_free(module);
  }
  return shim_error_from_status(status);
}

void shim_module_free(shim_module_t* module) {
  if (!module) return;
  iree_vm_context_release(module->context);
  iree_hal_device_release(module->device);
  iree_allocator_free(shim_allocator(), module);
}
