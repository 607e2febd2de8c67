/*
 * eigen_path.h: where the eigenvectors of a setup are kept: files of the state folder, which
 * engines write and read.
 */
#ifndef QK_FRONT_EIGEN_PATH_H
#define QK_FRONT_EIGEN_PATH_H

#include "daemon/front/settings/settings.h"

/* The file of vectors of that name, of a setup by its name for files; name NULL: of those that its
 * solves begin with (--deflate). "" where there is no state folder, or no room for the path. */
void qk_eigen_path(const qk_settings_t *settings, const char *setup, const char *name,
                   char path[QK_PATH_MAX + 1]);
/* Makes the folder of such files, if there is one to be. QK_IO_ERROR. */
qk_status_t qk_eigen_folder_make(const qk_settings_t *settings, qk_err_t *err);

#endif
