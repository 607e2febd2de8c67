/*
 * spool.h: uploaded right-hand sides on disk, one file for each, so that they outlive the machine. Written and synced by libuv's
 * threads from a mapping of their own; everything else is called from the loop's thread.
 */
#ifndef QK_FRONT_SPOOL_H
#define QK_FRONT_SPOOL_H

#include "daemon/base/file.h"
#include "daemon/front/loop.h"
#include "daemon/front/shm.h"

typedef struct qk_spool qk_spool_t;
typedef struct qk_spool_task qk_spool_task_t;

/* status: QK_OK once the field is on the disk, else QK_IO_ERROR with the cause. */
typedef void qk_spooled_fn(void *arg, qk_status_t status, const char *text);

/* Makes DIR/spool. QK_IO_ERROR, QK_NO_MEMORY, QK_BAD_ARGUMENT (too long). */
qk_status_t qk_spool_open(qk_loop_t *loop, const char *dir, qk_spool_t **spool, qk_err_t *err);
/* Waits for nothing: the loop must have run its tasks to the end. NULL-safe. */
void qk_spool_close(qk_spool_t *spool);

/* Writes a copy of the field under (job, index); done is called once, later. The field may be destroyed meanwhile.
 * QK_NO_MEMORY, QK_IO_ERROR: nothing was begun. */
qk_status_t qk_spool_write(qk_spool_t *spool, int64_t job, uint32_t index, const qk_shm_t *field,
                           qk_spooled_fn *done, void *arg, qk_spool_task_t **task, qk_err_t *err);
/* done will not be called, and the file goes. NULL-safe. */
void qk_spool_abandon(qk_spool_task_t *task);

/* The whole field back. QK_IO_ERROR, QK_TRUNCATED, QK_BAD_CHECKSUM: it is not what was written. */
qk_status_t qk_spool_read(const qk_spool_t *spool, int64_t job, uint32_t index, uint64_t checksum,
                          void *data, size_t bytes, qk_err_t *err);
/* NULL-safe; no effect where there is none. */
void qk_spool_remove(const qk_spool_t *spool, int64_t job, uint32_t index);
/* Removes the files of jobs for which `known` says false; returns how many. */
int qk_spool_sweep(const qk_spool_t *spool, bool (*known)(void *arg, int64_t job), void *arg);
/* Where the file of (job, index) is, or would be. */
void qk_spool_path(const qk_spool_t *spool, int64_t job, uint32_t index, char path[QK_FILE_PATH]);
/* Bytes that could be written now. */
int64_t qk_spool_free_bytes(const qk_spool_t *spool);

#endif
