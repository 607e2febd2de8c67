#include "daemon/base/fault.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"

static const char *const names[QK_FAULT_COUNT] = {
    [QK_FAULT_ALLOC] = "alloc",
    [QK_FAULT_DEVICE_ALLOC] = "device-alloc",
    [QK_FAULT_DEVICE_CALL] = "device-call",
    [QK_FAULT_READ] = "read",
    [QK_FAULT_WRITE] = "write",
    [QK_FAULT_SEND] = "send",
};

/* The passages numbered first .. last fail, counted from 1; first == 0: none. */
typedef struct qk_fault_plan {
  long first, last;
} qk_fault_plan_t;

enum { UNREAD, OFF, ARMED };
static _Atomic int state = UNREAD;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static qk_fault_plan_t plans[QK_FAULT_COUNT];
static long passed[QK_FAULT_COUNT];

static int point_by_name(const char *name, size_t n) {
  for (int i = 0; i < QK_FAULT_COUNT; i++) {
    if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0) return i;
  }
  return -1;
}

/* "name:n[+],name:n[+]..." */
static int parse(const char *text, qk_fault_plan_t out[QK_FAULT_COUNT]) {
  while (*text != '\0') {
    size_t n = strcspn(text, ":");
    int point = point_by_name(text, n);
    if (point < 0 || text[n] != ':') return -1;
    text += n + 1;
    if (*text < '1' || *text > '9') return -1;
    char *end;
    out[point].first = strtol(text, &end, 10);
    out[point].last = out[point].first;
    if (*end == '+') {
      out[point].last = LONG_MAX;
      end++;
    }
    if (*end == ',') {
      end++;
      if (*end == '\0') return -1;
    } else if (*end != '\0') {
      return -1;
    }
    text = end;
  }
  return 0;
}

static int set_locked(const char *text) {
  qk_fault_plan_t next[QK_FAULT_COUNT] = {{0}};
  if (text != NULL && parse(text, next) != 0) return -1;
  memcpy(plans, next, sizeof plans);
  memset(passed, 0, sizeof passed);
  atomic_store(&state, text != NULL && *text != '\0' ? ARMED : OFF);
  return 0;
}

int qk_fault_set(const char *text) {
  pthread_mutex_lock(&lock);
  int rc = set_locked(text);
  pthread_mutex_unlock(&lock);
  return rc;
}

bool qk_fault(qk_fault_point_t point) {
  if (atomic_load_explicit(&state, memory_order_relaxed) == OFF) return false;
  pthread_mutex_lock(&lock);
  if (atomic_load(&state) == UNREAD) {
    const char *text = getenv("QK_FAULTS");
    if (set_locked(text) != 0) {
      qk_error("fault", "QK_FAULTS = \"%s\": not a list of name:n; no faults are set", text);
      set_locked(NULL);
    }
  }
  const qk_fault_plan_t *plan = &plans[point];
  long n = ++passed[point];
  bool fail = plan->first > 0 && n >= plan->first && n <= plan->last;
  pthread_mutex_unlock(&lock);
  return fail;
}
