/*
 * limits.h: what settings limit: when a session begins, and again on SIGHUP.
 */
#ifndef QK_FRONT_LIMITS_H
#define QK_FRONT_LIMITS_H

#include "daemon/front/service/service.h"

/* Memory for uploads and results as settings have it. */
void qk_limits_memory(qk_service_t *service);
/* The limit of eigenvectors, likewise. */
void qk_limits_eigen(qk_service_t *service);
/* Bytes that can be given to uploads and results now without anybody being killed for it, and what
 * sets that: /dev/shm, or a cgroup as it was within the last second. */
int64_t qk_limits_free(qk_service_t *service, const char **by);
/* What a client and its user may have, from now on. */
void qk_limits_session(qk_service_t *service, qk_session_t *session);
/* When the walltime ends, by the settings or the file that they name. QK_IO_ERROR, QK_BAD_FORMAT:
 * as it was. */
qk_status_t qk_limits_walltime(qk_service_t *service, qk_err_t *err);
/* Reads the settings again, tells what has changed, and lets that take effect which can. */
void qk_limits_reread(qk_service_t *service);

#endif
