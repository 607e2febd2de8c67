/*
 * bricks.h: requests whose fields go in parts (PROTOCOL.md, section 18). The owner's job has the
 * whole fields, of all parts; who has joined has a job of its own for its part, without fields: it
 * has the stream of the upload, what of the solution it has been sent, and what it has
 * acknowledged.
 *
 *   right-hand side of the whole   UPLOADING until all parts are there and its checksum is known
 *   of a joined part               UPLOADING, QUEUED once the part is there, ENDED with the whole
 *
 * Either may end first (joined.h).
 */
#ifndef QK_FRONT_BRICKS_H
#define QK_FRONT_BRICKS_H

#include "daemon/front/job/job.h"

/* Of the job of an owner. */
struct qk_bricks {
  uint32_t grid[4], count;
  int own; /* the owner's part; -1: none */
  uint8_t token[QK_CLIENT_ID];
  uint32_t joined; /* jobs */
  struct qk_brick_slot {
    uint32_t arrived; /* right-hand sides whose part is here: the first ones */
    qk_job_t *job;    /* who has joined; NULL: nobody, or the owner's own */
    qk_gate_t *gate;
  } part[];
};

/* Whether extents, grid and part go together; parity: fields have the sites of one alone.
 * QK_BAD_ARGUMENT, QK_TOO_LARGE, QK_BAD_GEOMETRY. n: numbers in grid; 0: no grid. Pure. */
qk_status_t qk_bricks_check(size_t n, const uint32_t *grid, const uint32_t *part,
                            const uint32_t dims[4], bool parity, qk_err_t *err);
/* What it will take; 0 without a grid. */
int64_t qk_bricks_overhead(size_t n, const uint32_t *grid);
/* The job, made of a message that has passed the check, has a grid. False: no memory. Fills in
 * part, brick and part_bytes, too. */
bool qk_bricks_create(qk_job_t *job, const uint32_t *grid, const uint32_t *part);
/* NULL-safe; nobody has joined. */
void qk_bricks_destroy(qk_bricks_t *bricks);
/* Nothing is to come: the field is here. */
void qk_bricks_drop(qk_job_t *job);
/* Where that part is in the fields of the job. */
void qk_bricks_find(const qk_job_t *whole, uint32_t part, qk_brick_t *brick);

/* The solution leaves memory: nothing more of it is sent to who has joined. */
void qk_bricks_stop_sending(qk_rhs_t *whole);
/* What of the solution is on its way to the client of this part is not wanted any more. */
void qk_bricks_stop(qk_rhs_t *rhs);

/* The part of the job is here up to the end of this right-hand side. */
void qk_bricks_arrived(qk_rhs_t *rhs);
/* Parts of it that are not here. */
uint32_t qk_bricks_missing(const qk_rhs_t *whole);
/* The right-hand side that has the fields: of the whole. NULL: there is none any more. */
static inline qk_rhs_t *qk_rhs_whole(const qk_rhs_t *rhs) {
  if (!rhs->job->joined) return (qk_rhs_t *)rhs;
  return rhs->job->whole ? &rhs->job->whole->rhs[rhs->index] : NULL;
}
/* The gate of what its client sends; NULL: it sends whole fields. */
static inline qk_gate_t *qk_job_gate(const qk_job_t *job) {
  const qk_job_t *whole = job->joined ? job->whole : job;
  return whole && whole->bricks && job->part >= 0 ? whole->bricks->part[job->part].gate : NULL;
}
/* Whether its client sends its sources, or its part of them. */
static inline bool qk_job_has_stream(const qk_job_t *job) {
  return qk_job_is_upload(job) && !(job->bricks && job->part < 0);
}
/* Whether nothing of it is left for its client, or for who has joined. */
static inline bool qk_job_is_over(const qk_job_t *job) {
  return job->acked == job->nrhs && job->kept == 0 && !(job->bricks && job->bricks->joined > 0);
}

#endif
