/*
 * marks.h: what has changed since the journal was written last (state/journal.h): jobs and
 * right-hand sides whose rows differ from memory, rows that are to go, and the files and shared
 * memory that go once no row names them any more. Bookkeeping: what becomes of it is the journal's.
 *
 * Where there is no journal the marks are NULL, which all below take and forget. One thread.
 */
#ifndef QK_FRONT_MARKS_H
#define QK_FRONT_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/front/storage/shm.h"
#include "daemon/front/storage/spool.h"
#include "proto/limits.h"

struct qk_job;
struct qk_rhs;

/* Something that is to go with the next commit, or right behind it. */
typedef struct qk_gone {
  struct qk_gone *next;
  enum { QK_GONE_JOB, QK_GONE_SESSION, QK_GONE_FILE } what;
  uint8_t client_id[QK_CLIENT_ID]; /* SESSION */
  int64_t job;
  uint32_t nrhs;  /* JOB: sources in the spool that may be there */
  uint32_t index; /* FILE: of the spool */
} qk_gone_t;

typedef struct qk_marks {
  qk_link_t changed; /* jobs, by entry.marked */
  qk_gone_t *gone;
  qk_shm_t *released; /* shared memory that waits for the next commit */
  int64_t released_bytes;
  int64_t last_id; /* that a job was given */
  bool sealed;     /* nothing is recorded any more */
  bool sync;       /* the next commit is to be on the disk when it returns */
} qk_marks_t;

/* What a job has of it. */
typedef struct qk_entry {
  qk_marks_t *marks;
  int64_t id;
  qk_link_t marked;
  bool written;     /* there is a row */
  bool changed;     /* the row of the job itself */
  uint32_t spooled; /* right-hand sides that have been written into the spool */
} qk_entry_t;

void qk_marks_init(qk_marks_t *marks);

/* A new job. */
void qk_marks_enter(qk_marks_t *marks, struct qk_job *job);
void qk_marks_job(struct qk_job *job);
void qk_marks_rhs(struct qk_rhs *rhs);
/* The job is about to be destroyed. */
void qk_marks_drop_job(struct qk_job *job);
/* The request was not accepted after all, and nothing of it is recorded. A commit that failed may
 * have left rows of it behind: the next one removes them. */
void qk_marks_withdraw(struct qk_job *job);
/* A row that no job was made of. */
void qk_marks_drop_row(qk_marks_t *marks, int64_t id);
void qk_marks_drop_session(qk_marks_t *marks, const uint8_t client_id[QK_CLIENT_ID]);

/* An object in shared memory; where the job's rows may name it, it is destroyed once those are
 * written which do without. NULL-safe. */
void qk_marks_release(const struct qk_job *job, qk_shm_t *field);
/* The same of a file of the spool. */
void qk_marks_release_file(const struct qk_job *job, qk_spool_t *spool, uint32_t index);
/* Bytes of objects that wait for that. */
int64_t qk_marks_released_bytes(const qk_marks_t *marks);

/* The next commit is to be on the disk when it returns, whatever is in it. */
void qk_marks_sync(qk_marks_t *marks);
/* Whether the end of the machine must not undo the next commit. */
bool qk_marks_need_sync(const qk_marks_t *marks);

/* Whether nothing is marked. */
bool qk_marks_clean(const qk_marks_t *marks);
/* A request that no commit has written yet; NULL: there is none. */
struct qk_job *qk_marks_first_new(const qk_marks_t *marks);
/* Whether something of the job is not recorded yet. */
bool qk_marks_lack_job(const struct qk_job *job);
/* Whether the end of the right-hand side is not. */
bool qk_marks_lack_rhs(const struct qk_rhs *rhs);

/* All is written. Files that no row needs go, of the spool too, and so do the marks. */
void qk_marks_settle(qk_marks_t *marks, qk_spool_t *spool);
/* From now on nothing is recorded: memory is taken down while what is promised stays. */
void qk_marks_seal(qk_marks_t *marks);
/* Forgets all but the jobs, which may still be marked. */
void qk_marks_fini(qk_marks_t *marks);

#endif
