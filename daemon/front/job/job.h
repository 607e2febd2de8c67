/*
 * job.h: one accepted request and its right-hand sides (RHS). A contraction is a request of one
 * "right-hand side", whose solution is the correlators. Pure bookkeeping: no sockets, no clock, no
 * policy; fields are in shared memory (shm.h).
 *
 *   UPLOADING --last byte--> QUEUED --slot--> RUNNING --FILL_DONE--> ENDED --ACK--> ACKED
 *        \______________________\___cancel, deadline, failure________/
 *
 * RUNNING goes back to QUEUED where the engine is lost. What has changed is marked (marks.h).
 *
 * Memory  What a job may need is charged to a budget before it exists: its structs, nrhs fields
 *         for uploads, nrhs fields for solutions. Each part goes back as soon as it is not
 *         needed: a source when its RHS has ended and it is in the spool or not needed there, a
 *         solution at ACK or when there is none. The objects wait for the journal to say so
 *         (qk_marks_release).
 * Field   of FIELD_OPEN: a request of one "right-hand side" whose upload, once it is checked
 *         (fields.h), is what the request keeps, in the place of its solution. Setups that are made
 *         of it hold the job.
 * Kept    solutions (SINK_KEEP) outlive ACK and are charged to their user's quota as well. Later
 *         RHS that use one hold its job (kept.h); it is freed when it is forgotten, nothing of it
 *         runs and nobody holds it.
 * Errors  name the field, value and limit; nothing has changed then.
 */
#ifndef QK_FRONT_JOB_H
#define QK_FRONT_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/err.h"
#include "daemon/base/list.h"
#include "daemon/front/job/marks.h"
#include "daemon/front/job/sched.h"
#include "daemon/front/storage/brick.h"
#include "daemon/front/storage/transfer.h"
#include "daemon/front/storage/wall_sums.h"
#include "proto/action/actions.h"
#include "proto/frame.h"
#include "proto/quark.pb-c.h"
#include "proto/shape.h"

typedef enum qk_rhs_state {
  QK_RHS_UPLOADING,
  QK_RHS_QUEUED,
  QK_RHS_RUNNING,
  QK_RHS_ENDED,
  QK_RHS_ACKED
} qk_rhs_state_t;

/* How an RHS ended. */
typedef struct qk_outcome {
  qk_status_t status;
  char text[160];
  double true_residual; /* of a field: largest element of |U^+ U - 1| */
  double seconds, norm_b, norm_x;
  double hq_residual; /* 0 where tol_hq was not asked for */
  uint64_t iterations, applications;
  bool written; /* the solution segment holds a solution */
} qk_outcome_t;

struct qk_setup;
typedef struct qk_job qk_job_t;
typedef struct qk_filing qk_filing_t;           /* filing.h */
typedef struct qk_spill qk_spill_t;             /* spill.h */
typedef struct qk_spill_task qk_spill_task_t;   /* likewise */
typedef struct qk_digest_task qk_digest_task_t; /* digest.h */
typedef struct qk_field_check qk_field_check_t; /* fields.h */
typedef struct qk_bricks qk_bricks_t;           /* bricks.h */
typedef struct qk_brick_sum qk_brick_sum_t;     /* upload.h */
typedef struct qk_rhs qk_rhs_t;

/* What all jobs of a daemon have together: sums, so that nobody has to walk over them. */
typedef struct qk_jobs {
  int64_t unsaved;          /* right-hand sides whose source is not in the spool yet */
  int64_t held;             /* of sessions: ended and not acknowledged */
  int64_t kept, kept_bytes; /* solutions */
  qk_tree_t due;            /* due.h */
} qk_jobs_t;

/* Called where others have something to do with a job. */
typedef struct qk_job_hooks {
  void (*begin)(qk_job_t *job);         /* it has a setup now */
  void (*end)(qk_job_t *job);           /* it is about to be destroyed */
  void (*drop_solution)(qk_rhs_t *rhs); /* it is about to be freed */
  void (*ended)(qk_rhs_t *rhs);         /* its end has been counted */
} qk_job_hooks_t;

struct qk_rhs {
  qk_sched_item_t queue; /* in the scheduler while QUEUED */
  qk_link_t send;        /* in the list of downloads while there is something to send */
  qk_job_t *job;
  uint32_t index;
  qk_rhs_state_t state;
  qk_shm_t *source, *solution;
  /* Kept solutions that this one is made of, held until it ends: of a sequential source [0]; the
   * first columns of a contraction. */
  qk_rhs_t *uses[2];
  bool charged_source, charged_solution;
  qk_status_t
      verdict;   /* not QK_OK: ends with this instead of what the engine says of a cancelled slot */
  int losses;    /* engines that were lost while it was in a slot */
  int replica;   /* of its setup: the one that has it, or had it last */
  int shortages; /* times that there was no shared memory for its solution */
  bool needs_room; /* for want of bytes, not of a descriptor for example */
  double
      wait_until; /* seconds: it is in no queue before then, or before there is memory; 0: it is */
  bool marked;    /* for the journal */
  bool recorded;  /* the journal knows how it ended */
  bool spooled;   /* an upload: it is in the spool */
  bool unspooled; /* it could not be written there: tried again */
  bool kept;      /* of a job that keeps: it has ended with a solution, which is in memory */
  bool unsaved;   /* it is to be written there, and is not there yet: its source stays as long */
  double unsaved_since; /* seconds */
  qk_link_t save;       /* in a list of its service while it is unsaved, or waits for `noted` */
  uint64_t noted;       /* the change that records `spooled`; solved once it is synced */
  qk_spool_task_t *spooling; /* NULL: it is not being written there */
  bool spilled;              /* its solution is on the disk; solution NULL: only there */
  qk_spill_task_t *moving;   /* NULL: the solution is on its way neither to the disk nor back */
  int unread;                /* times that it could not be read back */
  double read_at;            /* seconds: not before then is it tried again */
  uint64_t checksum;         /* of an upload that is complete */
  uint32_t attempt;          /* times that a solution was made again after its RESULT: 0 at first */
  bool owed;                 /* its RESULT is to be told once the journal has it */
  uint64_t iterations;       /* while running */
  uint32_t others;           /* who have joined and have not acknowledged it */
  bool picked;               /* its client has cancelled it, with many others */
  bool asked;                /* one of them waits for its solution, which is on the disk */
  qk_brick_sum_t *summing;   /* NULL: its checksum is not being made */
  /* The checksum of its solution is known; of a field: the digest of its links. */
  bool digested;
  uint64_t digest;
  qk_digest_task_t *digesting; /* NULL: it is not being made */
  double residual;
  qk_outcome_t outcome;        /* of an ended one */
  qk_wall_sums_t *wall;        /* likewise, until it is acknowledged; NULL: it has none */
  double started_at, ended_at; /* seconds of the loop's clock */
  /* Bytes of the solution that are on their way or sent, and that may be; those on their way. */
  uint64_t sent, granted, span_from, span_until;
  qk_transfer_t *leaving; /* to the client; NULL: none has been sent */
  bool unsendable;        /* a part of it could not be read from memory; logged once */
};

struct qk_job {
  qk_link_t link;         /* among the jobs of its session, or among the orphans */
  void *session;          /* NULL for an orphan */
  struct qk_setup *setup; /* the setup that it is for; held */
  int64_t setup_id;       /* of that: in the journal */
  const char *setup_name; /* likewise; NULL without a setup */
  qk_shape_t shape;       /* of what that had loaded when the job was accepted */
  uint64_t config;        /* the digest of that gauge configuration */
  bool forgotten;         /* freed as soon as it is an orphan, nothing runs and nobody holds it */
  qk_link_t leaving; /* in a list while all that is open ends with `verdict`, from leave_next on */
  uint32_t leave_next;
  bool picks; /* of that those that are picked alone */
  qk_status_t verdict;
  const char *why; /* static */
  qk_entry_t entry;
  uint8_t client_id[QK_CLIENT_ID];
  qk_budget_t *budget;
  qk_shm_space_t *space; /* of its fields */
  qk_jobs_t *jobs;       /* NULL: it is by itself */
  double due_at;         /* seconds; INFINITY: not in the tree of what is due */
  qk_node_t due;
  const qk_job_hooks_t *hooks; /* NULL: there are none */
  qk_spill_t *spill;           /* where its solutions may go; NULL: nowhere */
  int64_t overhead;            /* bytes charged besides fields */
  qk_sched_user_t *user;       /* whose it is; held */
  int holds;                   /* RHS that use solutions of this job and have not ended */
  double detach; /* seconds that it outlives its client, once it has ended; 0: does not */
  double keep,
      used_at;   /* SINK_KEEP: seconds after the last use; the time of that, or of an upload */
  char name[40]; /* for the log: client id and request number */
  uint64_t request;
  uint8_t *message; /* packed, as it came */
  size_t message_bytes;
  uint64_t digest; /* of the message: tells a repetition from another request of the same number */
  uint32_t nrhs;
  uint64_t field_bytes;
  /* Of the streams of its client, up and down: field_bytes, or those of its part. */
  uint64_t part_bytes;
  qk_bricks_t *bricks; /* fields go in parts, others may join; NULL: whole */
  bool joined;         /* a part of a request of another */
  qk_job_t *whole;     /* which has the fields; NULL: it has not joined, or has left */
  int part;            /* that its client has; -1: none */
  qk_brick_t brick;    /* where it is in the fields */
  Quark__Dtype dtype;
  Quark__Basis basis;
  double tol, tol_abs, tol_hq; /* 0: not asked for, or nothing is solved */
  bool single_rhs;             /* may be solved by the single-RHS solver */
  uint64_t max_iter;
  int flavour; /* 1 or -1 */
  bool five_d; /* solutions, and uploaded sources, have a fifth dimension, which shape has not */
  Quark__Work work;
  bool dagger;
  Quark__Parity parity; /* of its fields */
  Quark__Schur schur;
  double factor;
  Quark__SourceKind source;
  Quark__Sink sink;
  uint32_t nsource;                    /* nrhs, or of several masses those of one (masses.h) */
  uint32_t nmass;                      /* 0: it is for that of its setup */
  double mass[QK_MASSES_MAX];          /* [nmass] */
  uint64_t number;                     /* of several masses: for its engines; 0: none yet */
  Quark__Column *column;               /* [nrhs] of generated sources */
  Quark__Smearing *smear;              /* of the source; NULL: none */
  Quark__Contraction *contraction;     /* NULL: solves */
  Quark__EigenProblem *problem;        /* of eigenvectors, its result; NULL: it is none */
  bool recalls;                        /* only the values of a set that is there already */
  char vectors[QK_EIGEN_NAME_MAX + 1]; /* eigenvectors that are its sources; "": others are */
  char project[QK_EIGEN_NAME_MAX + 1]; /* its results are products with them; "": solutions are */
  uint32_t project_count;
  Quark__FieldOpen *field;    /* NULL: it is no field */
  qk_link_t field_link;       /* among the fields of the service */
  qk_field_check_t *checking; /* NULL: it is not being checked */
  qk_filing_t *filing;        /* NULL: neither source nor solutions are files */
  double accepted_at;         /* seconds of the loop's clock */
  double deadline;            /* likewise; 0: none */
  int priority;               /* 0 .. QK_PRIORITY_MAX */
  /* Positions in the stream of the upload: up to where it is in memory, has come, and may come. */
  uint64_t upload_next, upload_due, upload_until;
  int64_t promised;   /* bytes of its upload that the spool does not hold yet (restore.h) */
  qk_link_t arriving; /* transfers of its upload; the last one is of the RHS that is due */
  int chunks;         /* of it that are on their way into memory */
  int thread;         /* data thread that has them */
  uint32_t running, ended, acked; /* ended counts the acknowledged too */
  uint32_t kept;                  /* solutions */
  bool granted;                   /* there were grants */
  double progress_at;             /* not before this time again */
  bool progress_due;
  uint8_t owed; /* what is to be told of it once the journal has it: reply.c */
  qk_rhs_t rhs[];
};

/* Whether a SUBMIT or CONTRACT is legal on this lattice: everything of PROTOCOL.md, sections 5 and
 * 6, that does not depend on the state of the server. Pure. */
qk_status_t qk_job_check(const Quark__Submit *submit, const qk_shape_t *shape, qk_err_t *err);
/* Whether the action of its setup has what a SUBMIT asks for. Pure. */
qk_status_t qk_job_check_action(const Quark__Submit *submit, const qk_action_row_t *action,
                                qk_err_t *err);
qk_status_t qk_job_check_contract(const Quark__Contract *contract, const qk_shape_t *shape,
                                  qk_err_t *err);
/* kappa: of the setup's operator; 0: it has none, and no normalisation by it. */
qk_status_t qk_job_check_kappa(const Quark__Submit *submit, double kappa, qk_err_t *err);
/* boundary: factors of the setup's operator, which shifts of sources lack. */
qk_status_t qk_job_check_shift(const Quark__Submit *submit, const double boundary[8],
                               qk_err_t *err);
qk_status_t qk_job_check_eigen(const Quark__Eigen *eigen, const qk_shape_t *shape, qk_err_t *err);
qk_status_t qk_job_check_field(const Quark__FieldOpen *open, qk_err_t *err);
/* Of its fields: that of the setup, or with five_d the slices of a fifth dimension. slices: of the
 * action; 1 or 0: there is none. */
qk_shape_t qk_job_shape(const Quark__Submit *submit, const qk_shape_t *setup, int slices);
/* Of one field on the wire, of that shape, or of what SINK_PROJECT gives for a right-hand side. */
uint64_t qk_job_field_bytes(const Quark__Submit *submit, const qk_shape_t *shape);
/* What the job would charge: structs, sources, solutions. shape: volume < 2^31. */
int64_t qk_job_cost(const Quark__Submit *submit, const qk_shape_t *shape);
int64_t qk_job_cost_contract(const Quark__Contract *contract, const qk_shape_t *shape);
int64_t qk_job_cost_eigen(const Quark__Eigen *eigen, const qk_shape_t *shape);
int64_t qk_job_cost_field(const Quark__FieldOpen *open);
/* Of a field that has passed the check: real numbers at a site of the lattice; its lattice. */
uint64_t qk_job_field_site_reals(const Quark__FieldOpen *open);
qk_shape_t qk_job_field_shape(const Quark__FieldOpen *open);

/* What a job is made on. */
typedef struct qk_terms {
  struct qk_setup *setup; /* held by the job; NULL: none */
  int64_t setup_id;       /* of that, and its name, which lives as long */
  const char *setup_name;
  const qk_shape_t *shape; /* of its setup */
  int slices;              /* of a fifth dimension of the action; 1 or 0: there is none */
  uint64_t config;         /* digest of the gauge configuration */
  double kappa;            /* for the normalisation */
  double now;              /* seconds */
  qk_budget_t *budget;
  qk_shm_space_t *space;
  qk_jobs_t *jobs;             /* NULL: none */
  const qk_job_hooks_t *hooks; /* likewise */
  qk_spill_t *spill;           /* likewise */
  const uint8_t *client_id;    /* NULL: zeros */
  bool again;                  /* it was accepted before: there may be less room than it takes */
  qk_sched_user_t
      *user;   /* held by the job; SINK_KEEP: its quota is charged. NULL: nobody's, keeps nothing */
  double keep; /* SINK_KEEP: seconds, where keep_ms is 0 */
} qk_terms_t;

/* The message must have passed the check. All RHS of a generated source and a contraction are
 * QUEUED at once (the caller queues them), those of an upload UPLOADING.
 * Errors: QK_BUSY (over budget or quota now), QK_TOO_LARGE (over the whole), QK_NO_MEMORY. */
qk_status_t qk_job_create(const Quark__Submit *submit, const qk_terms_t *terms, qk_job_t **job,
                          qk_err_t *err);
qk_status_t qk_job_create_contract(const Quark__Contract *contract, const qk_terms_t *terms,
                                   qk_job_t **job, qk_err_t *err);
qk_status_t qk_job_create_eigen(const Quark__Eigen *eigen, const qk_terms_t *terms, qk_job_t **job,
                                qk_err_t *err);
/* terms->shape: qk_job_field_shape. Charged once, as what the request keeps. */
qk_status_t qk_job_create_field(const Quark__FieldOpen *open, const qk_terms_t *terms,
                                qk_job_t **job, qk_err_t *err);
/* A part of the whole, not bound to it yet (joined.h): without memory for fields. terms: those of
 * who joins. QK_BUSY, QK_TOO_LARGE, QK_NO_MEMORY. */
qk_status_t qk_job_create_part(const Quark__Join *join, const qk_job_t *whole,
                               const qk_terms_t *terms, qk_job_t **job, qk_err_t *err);
/* No RHS may be RUNNING or queued, nobody may hold it. NULL-safe. */
void qk_job_destroy(qk_job_t *job);
/* Destroys an orphan that was forgotten, of which nothing runs and which nobody holds. */
void qk_job_settle(qk_job_t *job);
/* Whether it solves: it is no contraction and no field, and applies no operator. */
static inline bool qk_job_solves(const qk_job_t *job) {
  return !job->contraction && !job->problem && !job->field && job->work == QUARK__WORK__WORK_SOLVE;
}
/* Whether an engine makes its one result beside right-hand sides: correlators, or eigenvectors. */
static inline bool qk_job_is_beside(const qk_job_t *job) {
  return job->contraction || job->problem;
}
/* Whether its client sends its sources. */
static inline bool qk_job_is_upload(const qk_job_t *job) {
  return !qk_job_is_beside(job) && job->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD;
}
/* Whether what its client sends is mapped, as fields are that setups are made of: it has no holes
 * (storage/holes.h). */
static inline bool qk_job_is_dense(const qk_job_t *job) {
  const qk_job_t *whole = job->joined ? job->whole : job;
  return whole && whole->field;
}
/* xxh3 of the message. */
uint64_t qk_job_digest(const ProtobufCMessage *message);

/* A chunk of the upload that has come and goes into memory now. */
typedef struct qk_chunk {
  qk_transfer_t *transfer; /* NULL: there is nothing to do */
  uint32_t skip;           /* bytes of it that have come before */
  uint64_t offset;         /* in its field, of what is left */
  uint64_t end;            /* in the stream */
  const void *stream;      /* whose order counts: tells chunks of one request from others */
} qk_chunk_t;

/* Checks the next chunk, and says where it goes. What has come already is left out. If there is no
 * shared memory the RHS ends with QK_NO_MEMORY, *failed is it (else NULL) and the call succeeds.
 * Every chunk with a transfer is followed by qk_job_uploaded, in the same order.
 * Errors (the peer is to be dropped): QK_BAD_PROTOCOL. */
qk_status_t qk_job_upload(qk_job_t *job, const qk_frame_t *frame, double now, qk_chunk_t *chunk,
                          qk_rhs_t **failed, qk_err_t *err);
/* The chunk is in memory, or what the thread says in *wrote: QK_NO_MEMORY, QK_IO_ERROR. checksum:
 * NULL, or that of the field that ends with it. Returns the job, NULL if nobody wants the field any
 * more. *ready: the RHS that is complete with it and now QUEUED, or NULL; *failed as above.
 * Errors (the peer is to be dropped): QK_BAD_CHECKSUM in *err. */
qk_job_t *qk_job_uploaded(const qk_chunk_t *chunk, const uint64_t *checksum, const qk_err_t *wrote,
                          double now, qk_rhs_t **ready, qk_rhs_t **failed, qk_err_t *err);
/* The right-hand side that an upload of whole fields goes on with. */
uint32_t qk_job_next_put(const qk_job_t *job);
/* A whole field that comes at once; next: the one that is due behind those that are on their way.
 * *wanted: false where it is here already or its RHS has ended. QK_BAD_PROTOCOL: it is behind the
 * one that is due. */
qk_status_t qk_job_check_put(const qk_job_t *job, uint32_t rhs, uint32_t next, bool *wanted,
                             qk_err_t *err);
/* field NULL: it is the part of its client, and where it belongs.
 * Takes the field, which has passed the check and may have been overtaken since then; checksum: of
 * its bytes. *ready as in qk_job_upload. */
void qk_job_put(qk_job_t *job, uint32_t rhs, qk_shm_t *field, uint64_t checksum, qk_rhs_t **ready);
/* The segment of the whole that the part of this right-hand side, which may be sparse, goes into.
 * NULL: it is not wanted any more (QK_CANCELLED), or there is none (QK_NO_MEMORY). */
qk_shm_t *qk_job_put_into(const qk_rhs_t *rhs, bool sparse, qk_err_t *err);
/* There is no memory for the field: its RHS ends, the upload goes on behind it. *failed as in
 * qk_job_upload. */
void qk_job_put_failed(qk_job_t *job, uint32_t rhs, const char *why, double now, qk_rhs_t **failed);
/* The time slices of its source beside which there are holes alone. False: there is no source, or
 * it has data in all. */
bool qk_rhs_slab(const qk_rhs_t *rhs, uint32_t *first, uint32_t *count);
/* The source, which has been read from a file: UPLOADING to QUEUED. Takes the field. */
void qk_rhs_fill(qk_rhs_t *rhs, qk_shm_t *field, double now);
/* An upload that an earlier front has begun goes on at position `next`; the bytes of that field up
 * to there are in its source. */
void qk_job_resume_upload(qk_job_t *job, uint64_t next);
/* Moves the upload credit up; true where it is worth telling. */
bool qk_job_raise_credit(qk_job_t *job);

/* Its source is to be written into the spool: it stays until it is there, or the solution needs it
 * no more. */
void qk_rhs_unsave(qk_rhs_t *rhs, double now);
/* Its source is there. */
void qk_rhs_saved(qk_rhs_t *rhs);
/* Ends an RHS that is UPLOADING, QUEUED or RUNNING (and out of the scheduler): the source is freed
 * unless it is unsaved and the solution may have to be made again; without `written` the
 * solution's memory too; kept solutions that it used are let go. */
void qk_rhs_end(qk_rhs_t *rhs, const qk_outcome_t *outcome, double now);
/* RUNNING to QUEUED, as if it had never been in a slot. */
void qk_rhs_again(qk_rhs_t *rhs);
/* The solution, which is on the disk, leaves memory, and the source with it. */
void qk_rhs_unload(qk_rhs_t *rhs);
/* Frees the solution of an ended RHS; the RESULT stays. */
void qk_rhs_drop_solution(qk_rhs_t *rhs);
/* rhs is made of this kept solution from now on, uses[i], until it ends. */
void qk_rhs_use(qk_rhs_t *rhs, int i, qk_rhs_t *kept);
/* A field that has been checked: its upload is what the request keeps. Before qk_rhs_end. */
void qk_rhs_keep_field(qk_rhs_t *rhs);
/* Somebody holds the job, or no longer; now: seconds. The job may have gone then. */
void qk_job_hold(qk_job_t *job);
void qk_job_let_go(qk_job_t *job, double now);
/* ENDED to ACKED; a solution that is not kept is freed. */
void qk_rhs_ack(qk_rhs_t *rhs);

/* Whether a part of the solution is on its way to the client. */
static inline bool qk_rhs_is_leaving(const qk_rhs_t *rhs) {
  return rhs->leaving && rhs->leaving->under_way > 0;
}
/* One who has joined does not need its solution any more. */
void qk_rhs_let_go_part(qk_rhs_t *whole);
/* All of the source is here; checksum: of it. UPLOADING to QUEUED. */
void qk_rhs_complete(qk_rhs_t *rhs, uint64_t checksum);
/* Bytes of solution that can be fetched, by the client of its job. */
uint64_t qk_rhs_bytes(const qk_rhs_t *rhs);
/* Download credit. from: NULL or the point to go on at. */
qk_status_t qk_rhs_grant(qk_rhs_t *rhs, uint64_t until, const uint64_t *from, qk_err_t *err);
/* Whether a chunk can be sent now. */
bool qk_rhs_sendable(const qk_rhs_t *rhs);
/* The bytes [span_from, span_until), `most` at most, go to a data thread; the RHS must be sendable
 * and nothing of it be on its way. by_blocks: its checksum (frame.h). QK_NO_MEMORY: not now. */
qk_status_t qk_rhs_send(qk_rhs_t *rhs, uint64_t most, bool by_blocks);
/* They came as far as `reached`. The RHS, or NULL: nobody wants it any more. */
qk_rhs_t *qk_rhs_sent(qk_transfer_t *transfer, uint64_t reached);

#endif
