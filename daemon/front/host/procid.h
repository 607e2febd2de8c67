/*
 * procid.h: which process is meant. A pid alone may be another's by now: a process is known by its pid, the time of its start,
 * and the boot of the machine in which it runs. Any thread.
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

/* A pidfd of the process, closed on exec; the caller closes it. QK_NOT_FOUND: it has ended, or is of another machine. QK_UNSUPPORTED:
 * the kernel has none (before Linux 5.3). */
qk_status_t qk_procid_open(const qk_procid_t *id, int *pidfd, qk_err_t *err);
/* Whether the process of a pidfd has not ended. */
bool qk_procid_lives(int pidfd);

/* Ends the process and its group: SIGTERM, after some seconds SIGKILL. Waits for that, for at most 10 s. True: it is gone. */
bool qk_procid_end(const qk_procid_t *id);

#endif
