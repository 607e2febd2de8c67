/*
 * roots.h: the folders in which clients may name files (--file-roots). A path is checked as text
 * when it arrives. When it is opened, the kernel refuses to leave the folder, whatever links there
 * are (openat2, RESOLVE_BENEATH).
 *
 * Errors: QK_DENIED (outside, or leads outside, or the system refuses), QK_NOT_FOUND,
 * QK_BAD_ARGUMENT, QK_IO_ERROR.
 */
#ifndef QK_FRONT_ROOTS_H
#define QK_FRONT_ROOTS_H

#include "daemon/base/err.h"
#include "proto/limits.h"

typedef struct qk_roots {
  char *text; /* NULL: there are none */
  int count;
  const char *at[QK_FILE_ROOTS_MAX]; /* in text; absolute, without a slash at the end */
} qk_roots_t;

/* text: "DIR[:DIR...]" of existing folders; NULL: none. QK_UNSUPPORTED: this kernel has no
 * openat2. */
qk_status_t qk_roots_init(qk_roots_t *roots, const char *text, qk_err_t *err);
void qk_roots_fini(qk_roots_t *roots);

/* What can be said of a path without a look at the disk; what: the field's name. */
qk_status_t qk_roots_check(const qk_roots_t *roots, const char *what, const char *path,
                           qk_err_t *err);
/* Opens the file for reading, or the folder that it is in (name is then the rest of path). The
 * path has passed the check. Blocks: call it from other threads than the loop's. */
qk_status_t qk_roots_open(const qk_roots_t *roots, const char *path, int *fd, qk_err_t *err);
qk_status_t qk_roots_open_folder(const qk_roots_t *roots, const char *path, int *fd,
                                 const char **name, qk_err_t *err);
/* The status for an errno of a file. */
qk_status_t qk_roots_fail(int error, const char *path, qk_err_t *err);

#endif
