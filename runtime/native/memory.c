#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "internal.h"

#if defined(__linux__) && defined(MADV_HUGEPAGE)

// The size of a huge page of x86-64, and of ARM with pages of 4 KiB. With another size, the advice does nothing.
#define MLXCEL_HUGE_PAGE ((uintptr_t)2 << 20)

// Asks for huge pages in an allocation that has some. The kernel clears a page on its first use, and entering it for
// each 4 KiB takes longer than what packing does with them.
static void shim_advise_huge_pages(void* start, iree_host_size_t length) {
  const uintptr_t begin = ((uintptr_t)start + MLXCEL_HUGE_PAGE - 1) & ~(MLXCEL_HUGE_PAGE - 1);
  const uintptr_t end = ((uintptr_t)start + length) & ~(MLXCEL_HUGE_PAGE - 1);
  // Without them, all works as well.
  if (begin < end) (void)madvise((void*)begin, end - begin, MADV_HUGEPAGE);
}

static iree_status_t shim_allocator_ctl(void* self, iree_allocator_command_t command, const void* params,
                                          void** inout_ptr) {
  (void)self;
  const iree_allocator_t system = iree_allocator_system();
  IREE_RETURN_IF_ERROR(system.ctl(system.self, command, params, inout_ptr));
  if (command == IREE_ALLOCATOR_COMMAND_MALLOC || command == IREE_ALLOCATOR_COMMAND_CALLOC) {
    shim_advise_huge_pages(*inout_ptr, ((const iree_allocator_alloc_params_t*)params)->byte_length);
  }
  return iree_ok_status();
}

iree_allocator_t shim_allocator(void) { return (iree_allocator_t){NULL, shim_allocator_ctl}; }

#else

iree_allocator_t shim_allocator(void) { return iree_allocator_system(); }

#endif
