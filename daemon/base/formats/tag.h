/*
 * tag.h: values in the texts of SciDAC and ILDG files.
 *
 * The texts are meant to be XML, but files with unbalanced quotes, leading newlines and trailing
 * NULs are about. So, like QIO, we look for <tag>value</tag> and parse no more; a tag that appears
 * twice is an error, and the value itself must be well formed. Nothing is ever expanded.
 *
 * Errors: QK_BAD_FORMAT (the tag and what is wrong), QK_BAD_GEOMETRY, QK_UNSUPPORTED. Pure.
 */
#ifndef QK_BASE_FORMATS_TAG_H
#define QK_BASE_FORMATS_TAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/err.h"

enum { QK_TAG_VALUE = 64 }; /* bytes of a usual value with its end */

/* The printable ASCII between <tag ...> and </, without blanks around it, into value[size]. */
qk_status_t qk_tag_value(const char *text, const char *tag, char *value, size_t size, bool *found,
                         qk_err_t *err);
/* The same of a tag that must be there; and the number, of at most 18 digits, that it holds. */
qk_status_t qk_tag_need(const char *text, const char *tag, char value[QK_TAG_VALUE], qk_err_t *err);
qk_status_t qk_tag_int(const char *text, const char *tag, int64_t *v, qk_err_t *err);

/* The extents x, y, z, t of a scidac-private-file-xml, whose field must be in one file. */
qk_status_t qk_tag_dims(const char *text, int64_t dims[4], qk_err_t *err);

#endif
