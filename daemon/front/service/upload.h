/*
 * upload.h: sources that clients send: queued when they are complete, and written into the spool in
 * the background, for which the disk must have room.
 */
#ifndef QK_FRONT_UPLOAD_H
#define QK_FRONT_UPLOAD_H

#include "daemon/front/service/service.h"

/* A part of the job's upload has come: what is complete is queued and spooled, what has failed is
 * told, and the credit raised; told in any case where `tell`. ready, failed: NULL or of
 * qk_job_upload, qk_job_put. */
void qk_upload_arrived(qk_service_t *service, qk_session_t *session, qk_job_t *job, qk_rhs_t *ready,
                       qk_rhs_t *failed, bool tell);
/* An upload is complete: it goes into the spool, in the background. */
void qk_upload_spool(qk_service_t *service, qk_rhs_t *rhs);
/* Tries again what could not be written there, after a while. Every tick. */
void qk_upload_tick(qk_service_t *service, double now);
/* Counts what the upload of a job will still take of the disk: when it is new, and when that has
 * changed. */
void qk_upload_promise(qk_job_t *job);
/* Whether journal and disk can take the request; submit NULL: a contraction. QK_BUSY with the
 * cause. */
qk_status_t qk_upload_check(const qk_service_t *service, const Quark__Submit *submit,
                            int64_t field_bytes, qk_err_t *err);

#endif
