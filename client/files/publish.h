/* publish.h: how a file that is complete gets its name. */
#ifndef QK_CLIENT_PUBLISH_H
#define QK_CLIENT_PUBLISH_H

#include "daemon/base/err.h"

/* Renames a closed file from part to path. Its bytes have reached the disk before that, and its
 * name when the call returns: then the daemon may forget the solutions. QK_IO_ERROR. */
qk_status_t qk_publish(const char *part, const char *path, qk_err_t *err);

#endif
