/*
 * fault.h: named places where a test can make things fail. QK_FAULTS="alloc:17,device-call:3" in
 * the environment makes the 17th allocation and the 3rd device call fail (counted from 1, once
 * each); "device-call:3+" makes the 3rd and every later one fail. Without the variable a fault
 * point costs one load. The names are in the table in fault.c. Thread-safe.
 */
#ifndef QK_BASE_FAULT_H
#define QK_BASE_FAULT_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qk_fault_point {
  QK_FAULT_ALLOC,
  QK_FAULT_DEVICE_ALLOC,
  QK_FAULT_DEVICE_CALL,
  QK_FAULT_READ,
  QK_FAULT_WRITE,
  QK_FAULT_SEND,
  QK_FAULT_COUNT
} qk_fault_point_t;

/* Counts one passage; true when this one is to fail. */
bool qk_fault(qk_fault_point_t point);

/* Replaces what the environment says (NULL: nothing fails) and sets all counters to zero.
 * Returns 0, or -1 where the text is malformed. For tests. */
int qk_fault_set(const char *text);

#ifdef __cplusplus
}
#endif
#endif
