/*
 * infile.h: files that others have made, read at given places. Fault point "read".
 *
 * Errors: QK_IO_ERROR with the cause; QK_TRUNCATED with the place where the file ends. They do not
 * name the file.
 */
#ifndef QK_BASE_FORMATS_INFILE_H
#define QK_BASE_FORMATS_INFILE_H

#include <stdint.h>

#include "daemon/base/err.h"

typedef struct qk_infile {
  int fd;
  int64_t size;
} qk_infile_t;

/* QK_IO_ERROR: also where it is no regular file, but a FIFO, which would make us wait. */
qk_status_t qk_infile_open(const char *path, qk_infile_t *file, qk_err_t *err);
void qk_infile_close(qk_infile_t *file);
/* Exactly `bytes` from `offset`. Threads may read one file at the same time. */
qk_status_t qk_infile_read(const qk_infile_t *file, void *buf, int64_t bytes, int64_t offset,
                           qk_err_t *err);

#endif
