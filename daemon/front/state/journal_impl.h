/*
 * journal_impl.h: the journal from within, for journal_open.c (opening, closing), journal.c (when
 * to write), journal_write.c (writing), journal_read.c (reading, and what is set aside then),
 * journal_tick.c (clocks, quiet times) and journal_sql.c (statements and notes).
 */
#ifndef QK_FRONT_JOURNAL_IMPL_H
#define QK_FRONT_JOURNAL_IMPL_H

#include <sqlite3.h>

#include "daemon/front/job/snapshot.h"
#include "daemon/front/state/journal.h"
#include "daemon/front/state/mark.h"
#include "daemon/front/state/place.h"

enum {
  PUT_NOTE,
  GET_NOTE,
  DROP_NOTE,
  ALL_NOTES,
  PUT_SESSION,
  DROP_SESSION,
  ADD_JOB,
  PUT_JOB,
  PUT_RHS,
  DROP_JOB,
  DROP_RHS,
  ALL_SESSIONS,
  ALL_JOBS,
  ALL_RHS,
  ADD_SETUP,
  NOTE_SETUP,
  END_SETUP,
  DROP_SETUP,
  ALL_SETUPS,
  N_SQL
};

typedef enum table { NOTE, SESSION, SETUP, JOB, RHS, ORPHANS } table_t;

/* A row that does not fit: it is set aside when all has been read. */
typedef struct misfit {
  struct misfit *next;
  table_t table;
  int64_t row;           /* rowid; RHS: the job's */
  sqlite3_value *number; /* RHS: of the right-hand side, whatever it is */
  char why[];
} misfit_t;

struct qk_journal {
  char path[QK_PATH_MAX + 16];
  sqlite3 *db;
  qk_places_t places;
  sqlite3_stmt *stmt[N_SQL];
  qk_spool_t *spool;
  qk_aside_t *aside;
  double wall; /* wall clock minus the loop's clock, seconds, as the rows have it */
  qk_mark_t mark;
  uint64_t commits; /* transactions with requests or right-hand sides, ever */
  bool full;        /* the last one was brought to the disk */
  double wrote_at;  /* when that was over; 0: all is in the file itself */
  double took;      /* seconds that it took */
  int64_t last_setup;
  qk_marks_t marks;
  misfit_t *misfit, **last_misfit; /* in the order in which they were found */
  const char *lack, *wal_lack;     /* of the files when the front started; NULL: nothing */
  bool is_new, recovered, doubtful,
      copied; /* see qk_journal_doubtful; the journal as it was is set aside */
  double retry_at, look_at, remind_at;
  char trouble[QK_TEXT_MAX]; /* "": none */
};

/* Writes a snapshot in one transaction; QK_IO_ERROR: file, cause and what to do, and nothing is
 * written. */
qk_status_t qk_journal_write(qk_journal_t *j, const qk_snapshot_t *snapshot, qk_err_t *err);
/* One step of a statement whose parameters are bound. */
bool qk_journal_run(qk_journal_t *j, int statement);
void qk_journal_bind_text(sqlite3_stmt *s, int i, const char *text);
/* "PATH: what: cause", QK_IO_ERROR. */
qk_status_t qk_journal_fail(const qk_journal_t *j, const char *what, qk_err_t *err);
/* Times in rows follow the wall clock. */
void qk_journal_follow(qk_journal_t *j, double now);
/* By which clock the rows were written: before any is read. */
void qk_journal_find_clock(qk_journal_t *j, double now);
/* Statements without parameters. */
qk_status_t qk_journal_execute(qk_journal_t *j, const char *sql, qk_err_t *err);
/* Those that are left, unread. */
void qk_journal_forget_misfits(qk_journal_t *j);

#endif
