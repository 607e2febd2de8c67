/*
 * procid.h: identifies a process. A pid alone may be reused, so the identity is the pid, the start
 * time of the process, and the boot of its machine. Any thread.
 */
#ifndef QK_FRONT_PROCID_H
#define QK_FRONT_PROCID_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/err.h"

enum { QK_BOOT_MAX = 36 };

typedef struct qk_procid {
  pid_t pid;
  unsigned long long start; /* clock ticks since the boot */
  char
      boot[QK_BOOT_MAX + 1]; /* boot_id of the kernel: no other machine has it, and no other boot */
} qk_procid_t;

/* QK_NOT_FOUND: there is no such process (or /proc is not). */
qk_status_t qk_procid_of(pid_t pid, qk_procid_t *id, qk_err_t *err);

/* Opens a pidfd of the process, closed on exec; the caller closes it. QK_NOT_FOUND: it has
 * ended, or belongs to another machine. QK_UNSUPPORTED: the kernel has no pidfd (before Linux
 * 5.3). */
qk_status_t qk_procid_open(const qk_procid_t *id, int *pidfd, qk_err_t *err);
/* Whether the process of a pidfd has not ended. */
bool qk_procid_lives(int pidfd);

/* Ends the process and its group with SIGTERM, and with SIGKILL after some seconds. Waits at
 * most 10 s. True if it has ended. */
bool qk_procid_end(const qk_procid_t *id);

#endif
