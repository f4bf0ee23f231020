#include <string.h>

#include "internal.h"

// The error if there is no memory for one; never freed.
static shim_error_t shim_no_memory = {
    .status = {"RESOURCE_EXHAUSTED", sizeof("RESOURCE_EXHAUSTED") - 1},
    .message = {"out of memory", sizeof("out of memory") - 1},
};

shim_error_t* shim_error_from_status(iree_status_t status) {
  if (iree_status_is_ok(status)) return NULL;
  iree_allocator_t allocator = shim_allocator();
  char* text = NULL;
  iree_host_size_t length = 0;
  if (!iree_status_to_string(status, &allocator, &text, &length)) {
    iree_status_free(status);
    return &shim_no_memory;
  }
  shim_error_t* error = NULL;
  iree_status_t alloc_status =
      iree_allocator_malloc(allocator, sizeof(*error) + length, (void**)&error);
  if (!iree_status_is_ok(alloc_status)) {
    iree_status_free(alloc_status);
    iree_status_free(status);
    iree_allocator_free(allocator, text);
    return &shim_no_memory;
  }
  char* message = (char*)(error + 1);
  memcpy(message, text, length);
  const char* code = iree_status_code_string(iree_status_code(status));
  error->status = (shim_string_t){code, strlen(code)};
  error->message = (shim_string_t){message, length};
  iree_allocator_free(allocator, text);
  iree_status_free(status);
  return error;
}

void shim_error_free(shim_error_t* error) {
  if (error != &shim_no_memory) iree_allocator_free(shim_allocator(), error);
}
