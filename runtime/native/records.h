// Lists of events that are recorded. Threads add to them, each to its own or under a lock.

#ifndef MLXCEL_RECORDS_H_
#define MLXCEL_RECORDS_H_

#include "iree/base/threading/mutex.h"
#include "internal.h"

// The most events of a kind that are kept from one collection to the next.
#define MLXCEL_RECORDING_CAPACITY ((size_t)1 << 18)

// An event whose function's name is not looked up yet.
typedef struct shim_record_t {
  shim_event_t event;
  uint64_t executable;
  uint32_t ordinal;
} shim_record_t;

// Records that one thread at a time adds.
struct shim_records_t {
  iree_slim_mutex_t mutex;
  shim_record_t* items;
  size_t count;
  size_t capacity;
  // Records for which there was no room.
  uint64_t lost;
};

// Adds a record, or counts it as lost.
void shim_records_add(shim_records_t* records, const shim_record_t* record);

// Adds a record while its mutex is held.
void shim_records_add_locked(shim_records_t* records, const shim_record_t* record);

// Frees the records.
void shim_records_deinitialize(shim_records_t* records);

#endif  // MLXCEL_RECORDS_H_
