/*
 * process.h: one process in a process group of its own, with its stderr passed on to ours line by
 * line: a child, or one that an earlier front has started.
 *
 * What is to outlive the front has stdout and stderr in a FIFO, which the process holds open for
 * both reading and writing: while nobody else reads, it meets neither SIGPIPE nor an end, and what
 * finds no room there is lost, without waiting.
 */
#ifndef QK_FRONT_PROCESS_H
#define QK_FRONT_PROCESS_H

#include "daemon/front/host/loop.h"
#include "daemon/front/host/procid.h"

typedef struct qk_process qk_process_t;

/* how: "exit code 3", "signal 9 (Killed)"; not known if the process is not our child. */
typedef void qk_exit_fn(void *arg, const char *how);

/* argv[0] is looked up in PATH where it has no slash. fifo: path of the FIFO to make, which goes
 * when the process has ended; NULL: a pipe for stderr, and stdout is our stderr. json: the log is
 * of JSON objects, so other lines are wrapped in one. exited is called once, from the loop.
 * Errors: QK_IO_ERROR with the cause; nothing runs then. */
qk_status_t qk_process_spawn(qk_loop_t *loop, char *const argv[], const char *fifo, bool json,
                             qk_exit_fn *exited, void *arg, qk_process_t **process, qk_err_t *err);
/* One that was spawned with that fifo by a front that is no more. Errors: those of qk_procid_open;
 * QK_IO_ERROR. */
qk_status_t qk_process_adopt(qk_loop_t *loop, const qk_procid_t *id, const char *fifo, bool json,
                             qk_exit_fn *exited, void *arg, qk_process_t **process, qk_err_t *err);
pid_t qk_process_pid(const qk_process_t *process);
bool qk_process_running(const qk_process_t *process);
/* The last lines that it, or what has started it, wrote beside the log; stderr_tail.h. "": none. */
void qk_process_recount(const qk_process_t *process, char *text, size_t size);
/* To the whole group; nothing happens when it has exited. */
void qk_process_signal(qk_process_t *process, int sig);
/* No more callbacks; a process that still runs is killed. The memory goes when the loop has
 * closed the handles. NULL-safe. */
void qk_process_release(qk_process_t *process);

#endif
