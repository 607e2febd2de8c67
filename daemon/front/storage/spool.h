/*
 * spool.h: uploaded right-hand sides on disk, one file for each, so that they survive the machine.
 * Threads of the spool write and sync them, so that nothing but the spool waits for its disk. They
 * get a few fields at a time, with descriptors of their own; which come next is the caller's
 * business when one of them is ready (service/upload.h). All other functions are called from the
 * loop's thread.
 */
#ifndef QK_FRONT_SPOOL_H
#define QK_FRONT_SPOOL_H

#include "daemon/base/file.h"
#include "daemon/front/host/loop.h"
#include "daemon/front/storage/aside.h"
#include "daemon/front/storage/shm.h"

enum {
  QK_SPOOL_NAME = 48,       /* bytes of a name with its end */
  QK_SPOOL_THREADS = 2,     /* while one syncs, the other copies */
  QK_SPOOL_BATCH = 16,      /* files that a thread takes at a time, and syncs the folder for once */
  QK_SPOOL_BYTES = 64 << 20 /* of a batch, but for its last file */
};

typedef struct qk_spool qk_spool_t;
typedef struct qk_spool_task qk_spool_task_t;

/* status: QK_OK once the field is on the disk, else QK_IO_ERROR with the cause. */
typedef void qk_spooled_fn(void *arg, qk_status_t status, const char *text);

/* Makes DIR/spool. QK_IO_ERROR, QK_NO_MEMORY, QK_BAD_ARGUMENT (too long, or not ours alone:
 * folder.h). */
qk_status_t qk_spool_open(qk_loop_t *loop, const char *dir, qk_spool_t **spool, qk_err_t *err);
/* Ends the threads; what they have begun is over then. Before the loop ends. NULL-safe. */
void qk_spool_stop(qk_spool_t *spool);
/* After qk_spool_stop. NULL-safe. */
void qk_spool_close(qk_spool_t *spool);

/* Whether a thread has nothing to do. */
bool qk_spool_ready(const qk_spool_t *spool);
/* Adds a copy of the field, under (job, index), to what is written next; `done` is called once,
 * later, but not before qk_spool_send. The field may be destroyed meanwhile. QK_NO_MEMORY,
 * QK_IO_ERROR: it is not written. */
qk_status_t qk_spool_add(qk_spool_t *spool, int64_t job, uint32_t index, const qk_shm_t *field,
                         qk_spooled_fn *done, void *arg, qk_spool_task_t **task, qk_err_t *err);
/* Whether no more should be added. */
bool qk_spool_full(const qk_spool_t *spool);
/* A thread takes what was added. */
void qk_spool_send(qk_spool_t *spool);
/* Where the loop does not run: waits until some of that is over, at most so many seconds. */
bool qk_spool_wait(qk_spool_t *spool, double seconds);
/* done will not be called, and the file goes. NULL-safe. */
void qk_spool_abandon(qk_spool_task_t *task);

/* The whole field back. QK_IO_ERROR, QK_TRUNCATED, QK_BAD_CHECKSUM: it is not what was written.
 * QK_NO_MEMORY: nobody knows. */
qk_status_t qk_spool_read(const qk_spool_t *spool, int64_t job, uint32_t index, uint64_t checksum,
                          void *data, size_t bytes, qk_err_t *err);
/* NULL-safe; no effect where there is none. */
void qk_spool_remove(const qk_spool_t *spool, int64_t job, uint32_t index);
/* Removes the files of jobs for which `known` says false, or (aside not NULL) sets them aside;
 * returns how many. */
int qk_spool_sweep(const qk_spool_t *spool, qk_aside_t *aside,
                   bool (*known)(void *arg, int64_t job), void *arg);
/* ---- files of others, in the same folder; any thread ----
 *
 * All names are looked up in the folder that was opened, wherever it is now. */

/* The name of the file of (job, index). */
void qk_spool_name(int64_t job, uint32_t index, char name[QK_SPOOL_NAME]);
/* Its path, for messages. */
void qk_spool_path(const qk_spool_t *spool, const char *name, char path[QK_FILE_PATH]);
/* A new file, in place of one that may be there; or one that is there, for reading. -1 with
 * errno. */
int qk_spool_make(const qk_spool_t *spool, const char *name);
int qk_spool_find(const qk_spool_t *spool, const char *name);
/* Bytes of the file; -1: there is none. */
int64_t qk_spool_size(const qk_spool_t *spool, const char *name);
/* The folder is brought to the disk. QK_IO_ERROR: another one is in its place, where the next front
 * would look. */
qk_status_t qk_spool_sync(const qk_spool_t *spool, qk_err_t *err);
void qk_spool_unlink(const qk_spool_t *spool, const char *name);

/* ---- room ----
 *
 * A file system over a network may not answer for long, so a thread asks it, and the loop goes by
 * the last answer. What has been written since then counts as not yet in it. So while nobody
 * answers, no more is promised than was there, and files that go give nothing back. */

/* Asks once a second. Every tick; NULL-safe. */
void qk_spool_tick(qk_spool_t *spool, double now);
/* Files of others, of so many bytes together, are being written; or (less than 0) no more. */
void qk_spool_going(qk_spool_t *spool, int64_t bytes);
/* Bytes that can be written, by the last answer; may be less than 0. 0: nobody can tell. */
int64_t qk_spool_room(const qk_spool_t *spool);
/* Why nobody can; NULL: somebody can. NULL-safe. */
const char *qk_spool_trouble(const qk_spool_t *spool);
/* Asks now. Blocks; any thread. QK_BUSY with the cause: nobody can tell. */
qk_status_t qk_spool_ask(const qk_spool_t *spool, int64_t *bytes, qk_err_t *err);

#endif
