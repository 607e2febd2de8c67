/*
 * marks.h: changes since the last commit of the journal (state/journal.h): jobs and right-hand
 * sides whose rows differ from memory, rows to be deleted, and files and shared memory to be
 * removed once no row names them. Bookkeeping only: the journal takes and writes them
 * (snapshot.h).
 *
 * Without a journal the marks are NULL, which all functions accept and ignore. One thread.
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
struct qk_job_record;
struct qk_rhs;
typedef struct qk_snapshot qk_snapshot_t; /* snapshot.h */

/* A thing to be removed with, or right after, the next commit. */
typedef struct qk_gone {
  struct qk_gone *next;
  enum { QK_GONE_JOB, QK_GONE_SESSION, QK_GONE_FILE } what;
  uint8_t client_id[QK_CLIENT_ID]; /* SESSION */
  int64_t job;
  uint32_t nrhs;  /* JOB: sources in the spool that may be there */
  uint32_t index; /* FILE: of the spool */
} qk_gone_t;

typedef struct qk_marks {
  qk_link_t changed; /* jobs, by entry.marked, in the order of their numbers */
  qk_gone_t *gone;
  uint64_t gone_since;    /* number of the change that was the first of these */
  qk_shm_t *released;     /* shared memory that is destroyed after the next commit */
  int64_t released_bytes; /* of all that has not been destroyed yet */
  qk_snapshot_t *taken;   /* what is being written; NULL: nothing */
  int64_t last_id;        /* last id that was given to a job */
  uint64_t number;        /* of the last change; the first one is 1 */
  uint64_t written;       /* all changes up to this number are recorded */
  bool sealed;            /* nothing is recorded any more */
  uint64_t synced;        /* all up to this one are on the disk */
  bool sync;     /* something is recorded, or will be, that should be on disk before long */
  bool sync_now; /* at once: somebody waits for it */
} qk_marks_t;

/* The marks of a job. */
typedef struct qk_entry {
  qk_marks_t *marks;
  int64_t id;
  qk_link_t marked;
  uint64_t number;             /* of the change by which it was marked */
  struct qk_job_record *taken; /* what is being written of it; NULL: nothing */
  bool written;                /* it has a row */
  bool changed;                /* the row of the job itself */
  uint32_t spooled;            /* right-hand sides that have been written into the spool */
} qk_entry_t;

void qk_marks_init(qk_marks_t *marks);

/* A new job. */
void qk_marks_enter(qk_marks_t *marks, struct qk_job *job);
void qk_marks_job(struct qk_job *job);
void qk_marks_rhs(struct qk_rhs *rhs);
/* The job is about to be destroyed. */
void qk_marks_drop_job(struct qk_job *job);
/* Takes back a request that was not accepted and is not recorded. A failed commit may have left
 * rows of it: the next one removes them. */
void qk_marks_withdraw(struct qk_job *job);
/* Deletes a row from which no job was made. */
void qk_marks_drop_row(qk_marks_t *marks, int64_t id);
void qk_marks_drop_session(qk_marks_t *marks, const uint8_t client_id[QK_CLIENT_ID]);

/* Releases an object in shared memory. If rows of the job may name it, it is destroyed after the
 * commit that removes the name. NULL-safe. */
void qk_marks_release(const struct qk_job *job, qk_shm_t *field);
/* The same for a file of the spool. */
void qk_marks_release_file(const struct qk_job *job, qk_spool_t *spool, uint32_t index);
/* Bytes of objects that wait for that commit. */
int64_t qk_marks_released_bytes(const qk_marks_t *marks);
/* Destroys the released objects of the list. */
static inline void qk_marks_destroy(qk_marks_t *marks, qk_shm_t **released) {
  for (qk_shm_t *field; (field = *released) != NULL;) {
    *released = field->after;
    marks->released_bytes -= (int64_t)field->bytes;
    qk_shm_destroy(field);
  }
}

/* What is marked now must be on disk before long, though nobody waits for it; now: at once. */
void qk_marks_sync(qk_marks_t *marks, bool now);

/* Of the last change: what is told of it waits until so many are recorded. */
uint64_t qk_marks_number(const qk_marks_t *marks);
/* All changes up to this one are recorded. */
uint64_t qk_marks_written(const qk_marks_t *marks);
/* Whether this one is, also where there is no journal. */
bool qk_marks_has_written(const qk_marks_t *marks, uint64_t number);

/* Whether it is on the disk, too. */
bool qk_marks_has_synced(const qk_marks_t *marks, uint64_t number);

/* True if nothing is marked or being written. */
bool qk_marks_clean(const qk_marks_t *marks);
/* Where that is so all changes are recorded: those of requests that have gone since needed no
 * row. */
void qk_marks_catch_up(qk_marks_t *marks);
/* A request that no commit has written yet; NULL: there is none. */
struct qk_job *qk_marks_first_new(const qk_marks_t *marks);
/* True if something of the job is not recorded yet. */
bool qk_marks_lack_job(const struct qk_job *job);
/* True if the end of the right-hand side is not recorded yet. */
bool qk_marks_lack_rhs(const struct qk_rhs *rhs);

/* From now on nothing is recorded: memory is freed, but accepted work stays in the journal. */
void qk_marks_seal(qk_marks_t *marks);
/* Forgets all but the jobs, which may still be marked. */
void qk_marks_fini(qk_marks_t *marks);

/* ---- lists of what goes ---- */

/* Removes the files of the list. Any thread. */
void qk_gone_remove(const qk_gone_t *gone, const qk_spool_t *spool);
void qk_gone_free(qk_gone_t **gone);

#endif
