/*
 * journal_impl.h: the journal from within, for journal_open.c (opening, closing), journal.c (when
 * to write), journal_writer.c (the thread that does it), journal_write.c (writing), journal_read.c
 * (reading, and what is set aside then), journal_tick.c (clocks, quiet times) and journal_sql.c
 * (statements and notes).
 *
 * The writer has one order at a time. While it works, the database and all that is said to be the
 * writer's below belong to it; then they are the loop's again, which waits for that
 * (qk_journal_own) before it touches them.
 */
#ifndef QK_FRONT_JOURNAL_IMPL_H
#define QK_FRONT_JOURNAL_IMPL_H

#include <sqlite3.h>

#include "daemon/base/assert.h"
#include "daemon/front/host/worker.h"
#include "daemon/front/job/snapshot.h"
#include "daemon/front/state/journal.h"
#include "daemon/front/state/mark.h"
#include "daemon/front/state/place.h"

/* Column `contraction` of a job: what its message is. */
enum { QK_KIND_SUBMIT, QK_KIND_CONTRACTION, QK_KIND_FIELD, QK_KIND_JOIN, QK_KIND_EIGEN };

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

/* A row, beside those of requests, that goes with the next commit. */
typedef struct line {
  struct line *next;
  int statement; /* of PUT_NOTE, DROP_NOTE, NOTE_SETUP, END_SETUP, DROP_SETUP */
  int64_t id;    /* of the setup */
  char *value;   /* behind the key */
  char key[];
} line_t;

typedef struct lines {
  line_t *first, **last;
} lines_t;

/* What the writer is told to do. */
typedef enum errand {
  WRITE, /* the snapshot */
  LOOK,  /* whether the folder is there */
  REST   /* the wall clock, and the write-ahead log at a quiet time */
} errand_t;

struct qk_journal {
  char path[QK_PATH_MAX + 16];
  qk_places_t places, state; /* of its folder, and of the state folder where that is another one */
  qk_spool_t *spool;
  qk_aside_t *aside;
  /* the writer's */
  sqlite3 *db;
  sqlite3_stmt *stmt[N_SQL];
  double wall; /* wall clock minus the loop's clock, seconds, as the rows have it */
  qk_mark_t mark;
  uint64_t commits; /* transactions with requests or right-hand sides, ever */
  bool full;        /* the last one was brought to the disk */
  double wrote_at;  /* when that was over; 0: all is in the file itself */
  double took;      /* seconds that it took */
  double rest_remind_at;
  qk_snapshot_t snapshot;
  lines_t writing; /* that go with it */
  bool tries;      /* the one before has failed: the disk is tried in any case */
  bool quiet;      /* REST: the write-ahead log, too */
  qk_err_t err;    /* of the errand; QK_OK: it is done */
  /* the loop's */
  qk_worker_t *writer, *cleaner; /* NULL: the loop does it itself */
  qk_work_t work, cleaning;
  errand_t errand;
  bool busy, over;         /* it has one; it is done and not looked at yet */
  double begun, handed;    /* when it got that: of the loop's clock, of the thread's */
  double synced_at;        /* when the last commit was brought to the disk */
  qk_gone_t *left, *going; /* files that may be removed; that are being removed */
  bool cleans;
  lines_t lines; /* for the next commit */
  qk_journal_times_t times;
  int64_t last_setup;
  qk_marks_t marks;
  misfit_t *misfit, **last_misfit; /* in the order in which they were found */
  const char *lack, *wal_lack;     /* of the files when the front started; NULL: nothing */
  bool is_new, recovered, doubtful,
      copied; /* see qk_journal_doubtful; the journal as it was is set aside */
  double retry_at, look_at, remind_at;
  char trouble[QK_TEXT_MAX]; /* "": none */
};

/* ---- any thread that has the writer's part ---- */

/* Does the errand and leaves how it went in j->err. */
void qk_journal_do(qk_journal_t *j);
/* Writes the snapshot and the lines in one transaction; QK_IO_ERROR: file, cause and what to do,
 * and nothing is written. */
qk_status_t qk_journal_write(qk_journal_t *j, qk_err_t *err);
/* Empties the write-ahead log. */
void qk_journal_rest(qk_journal_t *j, double now);
qk_status_t qk_journal_write_note(qk_journal_t *j, const char *key, const char *value,
                                  qk_err_t *err);
/* Without a transaction of its own. */
bool qk_journal_write_line(qk_journal_t *j, const line_t *line);
/* One step of a statement whose parameters are bound. */
bool qk_journal_run(qk_journal_t *j, int statement);
void qk_journal_bind_text(sqlite3_stmt *s, int i, const char *text);
/* "PATH: what: cause", QK_IO_ERROR. */
qk_status_t qk_journal_fail(const qk_journal_t *j, const char *what, qk_err_t *err);
/* Times in rows follow the wall clock. */
void qk_journal_follow(qk_journal_t *j, double now);
/* Seconds by which they would; 0: by none. */
double qk_journal_behind(const qk_journal_t *j);
/* Whether nothing was written for a while. */
bool qk_journal_is_quiet(const qk_journal_t *j, double now);
/* By which clock the rows were written: before any is read. */
void qk_journal_find_clock(qk_journal_t *j, double now);
/* Statements without parameters. */
qk_status_t qk_journal_execute(qk_journal_t *j, const char *sql, qk_err_t *err);
/* Those that are left, unread. */
void qk_journal_forget_misfits(qk_journal_t *j);

/* ---- the loop ---- */

/* Hands it to the writer, or does it. */
void qk_journal_begin(qk_journal_t *j, errand_t errand, double now);
/* Waits until the writer has nothing to do: the writer's part is the caller's. */
void qk_journal_own(qk_journal_t *j);
/* Files that are left behind are removed, by the cleaner, or here. */
void qk_journal_clean_up(qk_journal_t *j);
void qk_lines_init(lines_t *lines);
/* id, key, value: as the statement has them. */
void qk_lines_add(lines_t *lines, int statement, int64_t id, const char *key, const char *value);
/* To the front of `to`. */
void qk_lines_move(lines_t *from, lines_t *to);
void qk_lines_drop_first(lines_t *lines);
void qk_lines_free(lines_t *lines);

#endif
