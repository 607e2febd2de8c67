/*
 * folder.h: the state folder is its user's alone. Whoever else could write into it, or has put
 * files there before, would have quarkd write over other files, show the ids of clients, or believe
 * what it never wrote. So nothing is opened that is a link, has another name, or belongs to
 * somebody else, and it stays as it is. Errors: QK_BAD_ARGUMENT with what is wrong and what to do,
 * QK_IO_ERROR.
 */
#ifndef QK_FRONT_FOLDER_H
#define QK_FRONT_FOLDER_H

#include <stdbool.h>

#include "daemon/base/err.h"

/* A folder of this user, into which nobody else may write. what: names it in errors. */
qk_status_t qk_folder_check(const char *what, const char *path, qk_err_t *err);
/* Opens a file for reading and writing, or makes it, with mode 0600. */
qk_status_t qk_folder_open(const char *path, int *fd, qk_err_t *err);
/* A file that is there is ours, and only we can read it from now on; QK_OK where there is none. */
qk_status_t qk_folder_guard(const char *path, qk_err_t *err);

#endif
