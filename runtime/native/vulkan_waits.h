// Included before every file of IREE's Vulkan driver, whose threads wait for one of two semaphores as long as there is a device.
//
// Mesa's lavapipe waits for one of several by asking for them again and again, which takes a processor for each queue, and those
// are what it computes with. Threads of such a driver sleep between two questions.

#ifndef MLXCEL_VULKAN_WAITS_H_
#define MLXCEL_VULKAN_WAITS_H_

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "iree/hal/drivers/vulkan/util/libvulkan.h"

// How a driver waits.
typedef enum shim_driver_waits_t {
  MLXCEL_WAITS_UNKNOWN,
  MLXCEL_WAITS_ASLEEP,
  MLXCEL_WAITS_BUSILY,
} shim_driver_waits_t;

// Returns the time that this thread has computed.
static inline int64_t shim_thread_ns(void) {
  struct timespec time = {0};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

// Does what vkWaitSemaphores does.
static inline VkResult shim_wait_semaphores(const iree_hal_vulkan_device_syms_t* syms, VkDevice device,
                                            const VkSemaphoreWaitInfo* info, uint64_t timeout) {
  const int64_t trial_ns = 1000000, pause_ns = 50000;
  static _Thread_local shim_driver_waits_t waits = MLXCEL_WAITS_UNKNOWN;
  const bool is_of_queue = (info->flags & VK_SEMAPHORE_WAIT_ANY_BIT) && timeout == UINT64_MAX;
  if (is_of_queue && waits == MLXCEL_WAITS_UNKNOWN) {
    const int64_t start = shim_thread_ns();
    const VkResult result = iree_vkWaitSemaphores_raw(syms, device, info, (uint64_t)trial_ns);
    if (result != VK_TIMEOUT) return result;
    // Where other threads have the processor, it is less than the whole time.
    waits = shim_thread_ns() - start > trial_ns / 10 ? MLXCEL_WAITS_BUSILY : MLXCEL_WAITS_ASLEEP;
  }
  if (!is_of_queue || waits == MLXCEL_WAITS_ASLEEP) return iree_vkWaitSemaphores_raw(syms, device, info, timeout);
  while (true) {
    const VkResult result = iree_vkWaitSemaphores_raw(syms, device, info, 0);
    if (result != VK_TIMEOUT) return result;
    const struct timespec pause = {.tv_nsec = pause_ns};
    nanosleep(&pause, NULL);
  }
}

#define iree_vkWaitSemaphores_raw shim_wait_semaphores

#endif  // MLXCEL_VULKAN_WAITS_H_
