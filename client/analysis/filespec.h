/*
 * filespec.h: parses files that the daemon opens: file:PATH[,offset=N][,size=N][,nrhs=N].
 *
 * A relative path is completed by the folder of this process. Errors: QK_BAD_ARGUMENT, QK_TOO_LARGE
 * (path).
 */
#ifndef QK_CLIENT_FILESPEC_H
#define QK_CLIENT_FILESPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "proto/limits.h"

typedef struct qk_filespec {
  char path[QK_FILE_NAME_MAX + 1]; /* absolute; "": none */
  uint64_t offset, size;           /* size 0: not given */
  uint32_t nrhs;                   /* 0: not given */
} qk_filespec_t;

/* source: the file holds right-hand sides, so size and nrhs may be given. */
qk_status_t qk_filespec_parse(const char *text, bool source, qk_filespec_t *file, qk_err_t *err);

#endif
