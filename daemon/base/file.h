/*
 * file.h: writes files as a whole or not at all: under a temporary name, synced to disk, then
 * renamed. Fault point "write".
 *
 * Errors: QK_IO_ERROR with the cause; an existing file is then unchanged. Not collective.
 */
#ifndef QK_BASE_FILE_H
#define QK_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_FILE_PATH = 4096 }; /* bytes of a path with its end */

/* All bytes, whatever interrupts. */
qk_status_t qk_file_put(int fd, const void *data, int64_t bytes, qk_err_t *err);

/* A new file with the bytes of another, brought to the disk; mode 0600. QK_IO_ERROR: also where it
 * is there. */
qk_status_t qk_file_copy(const char *from, const char *to, qk_err_t *err);

/* Brings what a file holds to the disk. */
qk_status_t qk_file_sync(const char *path, qk_err_t *err);

/* Brings the folder of `path` to the disk, so that a rename in it lasts. */
void qk_file_sync_folder(const char *path);

/* Whether a file may be written at `path`, before it takes hours to make. QK_BAD_ARGUMENT: the path
 * is empty or too long, a folder or a device stands there, or its folder takes no files. */
qk_status_t qk_file_may_replace(const char *path, qk_err_t *err);

/* Whether both paths, which need not exist, name one file. */
bool qk_file_is_same(const char *a, const char *b);

/* Writes a file at `path` with exactly these bytes. QK_BAD_ARGUMENT: the path is too long. */
qk_status_t qk_file_replace(const char *path, const void *data, int64_t bytes, qk_err_t *err);

#ifdef __cplusplus
}
#endif
#endif
