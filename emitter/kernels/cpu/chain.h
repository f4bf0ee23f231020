// Chains: several kernels in one dispatch. Entry points in MLIR call these functions.
#ifndef KERNELS_CPU_CHAIN_H
#define KERNELS_CPU_CHAIN_H

#include "../common.h"

// Words of a link's counters: a line for the groups that are taken, and one for those
// that are done.
#define CHAIN_LINK_WORDS 32
#define CHAIN_DONE_WORD 16

index chain_take(uint32_t *counters, index link, index groups);
index chain_finish_and_take(uint32_t *counters, index link, index groups);
index chain_wait(uint32_t *counters, index link, index groups, const void *next,
                 index bytes);

#endif // KERNELS_CPU_CHAIN_H
