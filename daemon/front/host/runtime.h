/*
 * runtime.h: where things are on this machine: endpoints, the engine program, the private
 * directory, the files that tell others where we are.
 */
#ifndef QK_FRONT_RUNTIME_H
#define QK_FRONT_RUNTIME_H

#include <stddef.h>

#include <stdbool.h>

#include "daemon/base/err.h"
#include "proto/limits.h"

enum { QK_ENDPOINT_MAX = 256 };

/* What to bind: listen as it is (port 0 becomes *), and listen_data, or where that is NULL the
 * port after it, a free port, or the ipc path with "-data". QK_BAD_ARGUMENT. Pure. */
qk_status_t qk_runtime_endpoints(const char *listen, const char *listen_data,
                                 char control[QK_ENDPOINT_MAX], char data[QK_ENDPOINT_MAX],
                                 qk_err_t *err);

/* The endpoint of data thread i: i ports behind that of `data`, or the path with "-i" at its end.
 * False: it is too long. */
bool qk_runtime_next_endpoint(const char *data, int i, char endpoint[QK_ENDPOINT_MAX]);
/* The same endpoint with a port that the system chooses. False: it has no port. */
bool qk_runtime_any_port(char endpoint[QK_ENDPOINT_MAX]);
/* True if only processes of this machine can reach a bound endpoint: ipc, or tcp on the
 * loopback. Pure. */
bool qk_runtime_local(const char *endpoint);
/* A host of 0.0.0.0 or [::] becomes the name of this machine, for clients elsewhere, in place. */
void qk_runtime_this_host(char endpoint[QK_ENDPOINT_MAX]);
/* A host of 0.0.0.0 or [::] becomes "*" in place. Pure. */
void qk_runtime_any_host(char endpoint[QK_ENDPOINT_MAX]);

/* given, or the first quark-engine that can be executed: beside this program, in the build
 * tree, in libexec. QK_NOT_FOUND names the places. */
qk_status_t qk_runtime_engine_path(const char *given, char *path, size_t size, qk_err_t *err);

/* Makes quarkd-XXXXXX, mode 0700, under XDG_RUNTIME_DIR or /tmp. QK_IO_ERROR. On error dir[0]
 * is '\0'. */
qk_status_t qk_runtime_dir(char *dir, size_t size, qk_err_t *err);

/* Makes the folder where it is not there (mode 0700) and takes its lock, which the process holds as
 * long as *fd is open. key: the setting that names it, for errors. path: absolute, without links.
 * Errors: QK_BUSY (names the process that holds it), QK_IO_ERROR, QK_BAD_ARGUMENT (too long, or
 * others can write into it or have prepared its lock: folder.h). */
qk_status_t qk_runtime_lock(const char *key, const char *dir, char path[QK_PATH_MAX + 1], int *fd,
                            qk_err_t *err);

/* A path of a setting, made absolute. QK_BAD_ARGUMENT: too long. */
qk_status_t qk_runtime_path(const char *key, const char *given, char path[QK_PATH_MAX + 1],
                            qk_err_t *err);

/* Path of the multigrid checkpoint. A given path is made absolute; "off" gives "". "auto" gives
 * a file in `state` if that is not NULL, else $STATE_DIRECTORY/multigrid, else quarkd/multigrid
 * in $XDG_STATE_HOME or ~/.local/state, whose folders are created; "" if that is impossible.
 * QK_BAD_ARGUMENT: too long. */
qk_status_t qk_runtime_checkpoint(const char *given, const char *state, char path[QK_PATH_MAX + 1],
                                  qk_err_t *err);

/* Writes the endpoint to the file, and behind it who listens there: process, host, Slurm job, since
 * when. *fd stays open with a lock of the file, by which others see that the process lives. Errors:
 * as qk_runtime_write_line. */
qk_status_t qk_runtime_announce(const char *path, const char *endpoint, int *fd, qk_err_t *err);
/* Removes the file, unless another process has written it anew, and the lock. */
void qk_runtime_withdraw(const char *path, int fd);

/* The file appears with its whole content at once. QK_IO_ERROR. */
qk_status_t qk_runtime_write_line(const char *path, const char *line, qk_err_t *err);

#endif
