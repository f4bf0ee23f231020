# Corrections of IREE's source. What is corrected is compiled in the place of IREE's own file. Where that has another text, as in
# a later version, configuring fails.

# Replaces pairs of texts in a file of a target, each of which it has exactly once.
function(repair target file)
  get_target_property(folder ${target} SOURCE_DIR)
  file(READ "${folder}/${file}" text)
  set(pairs ${ARGN})
  while(pairs)
    list(POP_FRONT pairs old new)
    string(FIND "${text}" "${${old}}" first)
    string(FIND "${text}" "${${old}}" last REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL last)
      message(FATAL_ERROR "found no single ${old} in ${file}, expected: ${${old}}")
    endif()
    string(REPLACE "${${old}}" "${${new}}" text "${text}")
  endwhile()
  set(repaired "${CMAKE_CURRENT_BINARY_DIR}/repaired/${file}")
  # Only a file that changes is compiled again.
  file(CONFIGURE OUTPUT "${repaired}" CONTENT "${text}" @ONLY)
  set_target_properties(${target} PROPERTIES SOURCES "${repaired}")
endfunction()

# A GPU that is lost must neither crash nor stop the program.

# The queue's error is freed by the first thread that meets it, while others go on to read it.
set(STATUS_IS_TAKEN [[
  iree_slim_mutex_lock(&actions->action_mutex);
  iree_status_t status = actions->status;
]])
set(STATUS_IS_CLONED [[
  iree_slim_mutex_lock(&actions->action_mutex);
  iree_status_t status = iree_status_clone(actions->status);
]])

# Work that was launched is counted as done. If it fails later, it is counted again, and threads wait forever for work below zero.
set(FAILURE_IS_COUNTED_TWICE [[
  iree_hal_deferred_work_queue_t* actions = action->owning_actions;
  iree_slim_mutex_lock(&actions->action_mutex);
  iree_hal_deferred_work_queue_action_fail_locked(action, status);
]])
set(FAILURE_IS_COUNTED_ONCE [[
  iree_hal_deferred_work_queue_t* actions = action->owning_actions;
  iree_slim_mutex_lock(&actions->action_mutex);
  ++actions->pending_work_items_count;
  iree_hal_deferred_work_queue_action_fail_locked(action, status);
]])

repair(iree_hal_utils_deferred_work_queue.objects deferred_work_queue.c
  STATUS_IS_TAKEN STATUS_IS_CLONED
  FAILURE_IS_COUNTED_TWICE FAILURE_IS_COUNTED_ONCE)
