/*
 * filing.h: requests whose sources or solutions are files (SOURCE_FILE, SINK_FILE): reads and
 * writes the files.
 *
 * Source   Right-hand sides are UPLOADING until they have been read, one after the other. If the
 *          file is bad, all that have not been read end.
 * Sink     Solutions are written as right-hand sides end, and stay in shared memory. When all have
 *          ended the file is published. Clients get no RESULT before: if publishing fails, none of
 *          them has a solution. So a front that takes over either finds everything that it needs to
 *          write the file again, or finds that the RESULTs were sent.
 */
#ifndef QK_FRONT_FILING_H
#define QK_FRONT_FILING_H

#include "daemon/front/service/service.h"

/* What does not depend on the disk; field_bytes: of a right-hand side. */
qk_status_t qk_filing_check(const qk_service_t *service, const Quark__Submit *submit,
                            uint64_t field_bytes, qk_err_t *err);
/* Gives the job what it needs where it has files; submit has passed the check. QK_NO_MEMORY. */
qk_status_t qk_filing_create(qk_service_t *service, qk_job_t *job, const Quark__Submit *submit,
                             qk_err_t *err);
/* The job is in its session, new or from the journal. */
void qk_filing_begin(qk_job_t *job);
/* One of its right-hand sides has ended. */
void qk_filing_ended(qk_job_t *job);
/* Now and then. True: again before long. */
bool qk_filing_tick(qk_job_t *job);

/* True if its client may be sent results: the output is there, or none was asked for. */
bool qk_filing_told(const qk_job_t *job);
/* Whether a file is still read or written for it. */
bool qk_filing_busy(const qk_job_t *job);
/* What was under way is forgotten, and an output that has no name yet goes. NULL-safe; of
 * QK_JOB_HOOKS. */
void qk_filing_destroy(qk_filing_t *filing);

/* Removes what there is of the output of a request that is in the journal and nowhere else. */
void qk_filing_discard(qk_service_t *service, const uint8_t client_id[QK_CLIENT_ID],
                       const Quark__Submit *submit);
/* Behind the requests of the journal: removes what the front before was about to remove. */
qk_status_t qk_filing_resume(qk_service_t *service, qk_err_t *err);

#endif
