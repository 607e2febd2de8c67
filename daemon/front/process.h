/*
 * process.h: one child process in a process group of its own, with its stderr passed on to ours line by line.
 */
#ifndef QK_FRONT_PROCESS_H
#define QK_FRONT_PROCESS_H

#include "daemon/front/loop.h"

typedef struct qk_process qk_process_t;

/* how: "exit code 3", "signal 9 (Killed)". */
typedef void qk_exit_fn(void *arg, const char *how);

/* argv[0] is looked up in PATH where it has no slash. json: the log is of JSON objects, so other lines are wrapped in one.
 * exited is called once, from the loop.
 * Errors: QK_IO_ERROR with the cause; nothing runs then. */
qk_status_t qk_process_spawn(qk_loop_t *loop, char *const argv[], bool json, qk_exit_fn *exited,
                             void *arg, qk_process_t **process, qk_err_t *err);
bool qk_process_running(const qk_process_t *process);
/* To the whole group; nothing happens when it has exited. */
void qk_process_signal(qk_process_t *process, int sig);
/* No more callbacks; a process that still runs is killed. The memory goes when the loop has
 * closed the handles. NULL-safe. */
void qk_process_release(qk_process_t *process);

#endif
