/*
 * folder.h: checks that the state folder belongs to its user alone. If others could write into it,
 * or had put files there, quarkd might overwrite other files, show client ids, or trust data that
 * it never wrote. So it opens no file that is a link, has a second name, or belongs to another
 * user, and leaves such a file unchanged. Errors: QK_BAD_ARGUMENT with the cause and what to do,
 * QK_IO_ERROR.
 */
#ifndef QK_FRONT_FOLDER_H
#define QK_FRONT_FOLDER_H

#include <stdbool.h>

#include "daemon/base/err.h"

/* Checks that the folder belongs to this user and that nobody else may write into it. what:
 * names it in errors. */
qk_status_t qk_folder_check(const char *what, const char *path, qk_err_t *err);
/* Opens a file for reading and writing; creates it with mode 0600 if it does not exist. */
qk_status_t qk_folder_open(const char *path, int *fd, qk_err_t *err);
/* Checks that an existing file is ours, and sets its mode to 0600; QK_OK if there is none. */
qk_status_t qk_folder_guard(const char *path, qk_err_t *err);

#endif
