/*
 * upload.h: sources that clients send: queued when they are complete, and written into the spool in
 * the background, for which the disk must have room.
 *
 * What is written next is chosen when a thread of the spool is free: detached right-hand sides
 * first, then those that have waited longest; what was acknowledged or has gone meanwhile is not
 * written. Until it is there the source stays, charged, also once its RHS has ended.
 */
#ifndef QK_FRONT_UPLOAD_H
#define QK_FRONT_UPLOAD_H

#include "daemon/front/service/service.h"

/* A part of the job's upload has come: what is complete is queued and spooled, what has failed is
 * told, and the credit raised; told in any case where `tell`. ready, failed: NULL or of
 * qk_job_uploaded, qk_job_put; session: NULL if the client has gone. */
void qk_upload_arrived(qk_service_t *service, qk_session_t *session, qk_job_t *job, qk_rhs_t *ready,
                       qk_rhs_t *failed, bool tell);
/* A part of the right-hand side, of a whole, has arrived, or it has come back: where all are here
 * its checksum is made, by another thread and only for the journal, and it is queued and spooled.
 * whole: may be NULL. */
void qk_upload_check_parts(qk_service_t *service, qk_rhs_t *whole);
/* That checksum is not wanted any more. */
void qk_upload_abandon(qk_rhs_t *rhs);
/* The lists of what is to be written there. */
void qk_upload_init(qk_service_t *service);
/* An upload is complete, or has come back: a field is checked (fields.h), others are queued, with
 * --spool all once they are on the disk, and the journal that says so; no effect on one that is
 * queued already. */
void qk_upload_push(qk_service_t *service, qk_rhs_t *rhs);
/* It is to go into the spool. */
void qk_upload_spool(qk_service_t *service, qk_rhs_t *rhs);
/* Threads that are free get what is to be written next. Every turn. */
void qk_upload_write(qk_service_t *service);
/* Queues those for whose record the disk of the journal was waited for; true if there were any.
 * Every turn, behind the journal. */
bool qk_upload_release(qk_service_t *service);
/* Tries again what could not be written there, after a while, and has the room of its disk looked
 * at. Every tick. */
void qk_upload_tick(qk_service_t *service, double now);
/* For the end of the front: writes all that is to go there, for at most so many seconds. Blocks;
 * the loop has ended. */
void qk_upload_finish(qk_service_t *service, double seconds);
/* At the start: files of requests that are not there go, or are set aside. */
void qk_upload_sweep(qk_service_t *service);
/* Seconds for which the oldest of it has waited; 0: there is nothing. */
double qk_upload_oldest(const qk_service_t *service);
/* Why new uploads are not taken, or nothing new at all: of the journal, of a disk that cannot tell
 * its room, or with --spool all of the spool while something waits for it. NULL: they are. */
const char *qk_upload_trouble(const qk_service_t *service);
/* Counts what the upload of a job will still take of the disk: when it is new, and when that has
 * changed. */
void qk_upload_promise(qk_job_t *job);
/* Whether journal and disk can take a request with an upload of so many bytes; 0: with none.
 * QK_BUSY with the cause. */
qk_status_t qk_upload_check(const qk_service_t *service, int64_t bytes, qk_err_t *err);

#endif
