/*
 * salvage.h: a journal that SQLite finds damaged. What can be read of it goes into a new one, row
 * by row from both ends of each table and of each request, so that one page that is lost costs what
 * was on it; the old one is set aside as it is.
 */
#ifndef QK_FRONT_SALVAGE_H
#define QK_FRONT_SALVAGE_H

#include <stdbool.h>

#include "daemon/front/storage/aside.h"

/* Puts a new file at path; schema makes its tables, finish is executed when they are full; cause:
 * what is wrong with the old one. It is there whole or not at all, whenever the process ends: see
 * qk_salvage_resume. Errors: QK_IO_ERROR, QK_NO_MEMORY: all is as it was. */
qk_status_t qk_salvage(const char *path, const char *schema, const char *finish, const char *cause,
                       qk_aside_t *aside, qk_err_t *err);
/* Where a front ended while it set the old file aside, the new one takes its place now. found: so
 * it was. Errors as above. */
qk_status_t qk_salvage_resume(const char *path, qk_aside_t *aside, bool *found, qk_err_t *err);

#endif
