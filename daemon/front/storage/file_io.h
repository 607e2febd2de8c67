/*
 * file_io.h: reads and writes fields in files of clients, on libuv's threads, QK_FILE_TASKS at a
 * time. So a file system that hangs delays nothing else. All calls are made from the loop's thread,
 * and none of them touches the disk.
 *
 * Output  is written under a temporary name in the same folder, which a later front can find (its
 *         `tag`), synced to disk and then linked to its final name: no existing file is ever
 *         replaced. The temporary name stays until it is discarded. So if a front publishes again
 *         after a crash, it can tell its own file from another's.
 * Errors  those of roots.h; QK_TRUNCATED, QK_BAD_ARGUMENT (a source of another size; an output that
 *         exists), QK_IO_ERROR (also if the disk is full), QK_NO_MEMORY.
 */
#ifndef QK_FRONT_FILE_IO_H
#define QK_FRONT_FILE_IO_H

#include "daemon/front/host/loop.h"
#include "daemon/front/storage/roots.h"
#include "daemon/front/storage/shm.h"

typedef enum qk_file_step {
  QK_FILE_READ,    /* bytes at offset of path into field; the file has `size` bytes */
  QK_FILE_PREPARE, /* an output of `size` bytes is begun */
  QK_FILE_WRITE,   /* bytes at offset of the output from field */
  QK_FILE_PUBLISH, /* the output gets its name */
  QK_FILE_DISCARD  /* the other name goes */
} qk_file_step_t;

typedef struct qk_file_order {
  qk_file_step_t step;
  const char *path; /* has passed qk_roots_check; copied */
  uint64_t tag;     /* of an output */
  uint64_t offset, size;
  const qk_shm_t *
      /* READ, WRITE; bare for READ. It may be destroyed before the end if the task is abandoned */
      field;
} qk_file_order_t;

typedef struct qk_file_io qk_file_io_t;
typedef struct qk_file_task qk_file_task_t;
typedef void qk_filed_fn(void *arg, qk_status_t status, const char *text);

/* roots: as qk_roots_init. */
qk_status_t qk_file_io_open(qk_loop_t *loop, const char *roots, qk_file_io_t **files,
                            qk_err_t *err);
/* Waits for nothing: the loop must have run its tasks to the end. NULL-safe. */
void qk_file_io_close(qk_file_io_t *files);
const qk_roots_t *qk_file_io_roots(const qk_file_io_t *files);

/* Calls `done` once, later (NULL: no call). task may be NULL. QK_NO_MEMORY: nothing was started. */
qk_status_t qk_file_io_start(qk_file_io_t *files, const qk_file_order_t *order, qk_filed_fn *done,
                             void *arg, qk_file_task_t **task, qk_err_t *err);
/* done will not be called. discard: once it has ended, its output is discarded, and `discarded`
 * (NULL: nothing) is called. */
void qk_file_io_abandon(qk_file_task_t *task, bool discard, qk_filed_fn *discarded, void *arg);

#endif
