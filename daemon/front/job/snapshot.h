/*
 * snapshot.h: what one commit of the journal writes, by value: rows as they are to be, rows to be
 * deleted, and what is removed once no row names it. It is taken out of the marks (marks.h); what
 * changes while it is being written is marked for the next one. Who writes it, on another thread,
 * needs neither jobs nor marks. Its memory is bounded: what does not fit stays marked for the next
 * one.
 *
 * One snapshot at a time: it ends with qk_snapshot_settle or qk_snapshot_put_back. Jobs may be
 * destroyed until then. Shared memory goes at once then; files are removed behind it, on another
 * thread again, whose disk may stall.
 */
#ifndef QK_FRONT_SNAPSHOT_H
#define QK_FRONT_SNAPSHOT_H

#include "daemon/base/err.h"
#include "daemon/front/job/job.h"

/* The row of a right-hand side. source, solution: names of shared memory, "": none. */
typedef struct qk_rhs_record {
  uint32_t index;
  qk_rhs_state_t state;
  char source[QK_SHM_NAME_MAX], solution[QK_SHM_NAME_MAX];
  bool spooled, spilled, digested;
  uint64_t checksum, digest;
  int losses;
  uint32_t attempt;
  qk_outcome_t outcome;
  qk_wall_sums_t *wall; /* held; NULL: none */
} qk_rhs_record_t;

/* What only the row of a new request has. Times: seconds of the loop's clock. */
typedef struct qk_new_request {
  uint8_t client_id[QK_CLIENT_ID];
  char user[QK_USER_MAX + 1];
  uint64_t request;
  bool contraction, problem, field, joined;
  bool has_token; /* others may join it */
  uint8_t token[QK_CLIENT_ID];
  const uint8_t *message; /* the job's, and the record's once that has been destroyed */
  size_t message_bytes;
  double accepted_at, deadline; /* deadline: 0: none */
  int64_t setup_id;
  qk_shape_t shape;
  uint64_t config;
} qk_new_request_t;

/* The row of a request, and those of its right-hand sides that have changed. */
typedef struct qk_job_record {
  struct qk_job_record *next;
  qk_job_t *job; /* NULL: it has been destroyed since */
  int64_t id;
  uint64_t number; /* of the change by which it was marked */
  bool is_new, changed;
  bool keeps_spool;             /* files of the spool stay after ACK: a field */
  qk_new_request_t new_request; /* of a new one */
  uint64_t upload_next;
  bool forgotten;
  uint32_t nparts;
  uint32_t *arrived; /* [nparts], in the memory of the record */
  uint32_t nrhs;
  qk_rhs_record_t rhs[];
} qk_job_record_t;

struct qk_snapshot {
  qk_job_record_t *jobs; /* in the order in which they were marked */
  size_t bytes;          /* of them */
  qk_gone_t *gone;
  uint64_t gone_since;
  qk_shm_t *released;
  uint64_t number; /* it has all changes up to this one */
  bool is_new;     /* it has a new request: the commit must be on disk before that is told */
  bool sync;       /* the commit is brought to the disk */
};

enum { QK_SNAPSHOT_BYTES = 4 << 20 }; /* but for its last job, which has half a MiB at most */

/* Takes what is marked; sync: it will be brought to the disk, as it is in any case where it has a
 * new request. QK_NO_MEMORY: everything is marked as before. */
qk_status_t qk_snapshot_take(qk_marks_t *marks, bool sync, qk_snapshot_t *snapshot);
/* It is written: tells the jobs, frees it, destroys the shared memory that no row names any more,
 * and adds to *left the files of which that is true. */
void qk_snapshot_settle(qk_marks_t *marks, qk_snapshot_t *snapshot, qk_gone_t **left);
/* It could not be written: all of it is marked again, before what has come since. Frees it. */
void qk_snapshot_put_back(qk_marks_t *marks, qk_snapshot_t *snapshot);

/* The job is about to be destroyed: its record goes on without it. */
void qk_snapshot_part(qk_job_t *job);

#endif
