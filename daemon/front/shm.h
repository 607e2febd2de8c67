/*
 * shm.h: POSIX shared-memory objects that carry fields between front and engine. Made and removed
 * by the front, named to the engine. Names are /quarkd-<pid>-<number>, mode 0600; their pages are
 * reserved when they are made, so that a full /dev/shm is an error here and not a SIGBUS later.
 */
#ifndef QK_FRONT_SHM_H
#define QK_FRONT_SHM_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "proto/limits.h"

typedef struct qk_shm {
  char name[QK_SHM_NAME_MAX];
  uint8_t *data;
  size_t bytes;
} qk_shm_t;

/* Zero-filled, mapped for reading and writing. number: unique in this process.
 * Errors: QK_NO_MEMORY (also where /dev/shm is full), QK_IO_ERROR. */
qk_status_t qk_shm_create(uint64_t number, size_t bytes, qk_shm_t **shm, qk_err_t *err);
/* Unmaps and unlinks. NULL-safe. */
void qk_shm_destroy(qk_shm_t *shm);

/* Bytes that could be made now. */
int64_t qk_shm_free_bytes(void);

/* Removes what front processes of this user that are no more have left behind; returns how
 * many. */
int qk_shm_sweep(void);

#endif
