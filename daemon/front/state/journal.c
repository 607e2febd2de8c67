#include "daemon/front/state/journal_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

static const double RETRY = 0.5;    /* seconds between commits while they fail */
static const double LOOK_EVERY = 1; /* seconds between looks at the folder */
static const double SYNC_EVERY = 1; /* seconds between syncs that nobody waits for */
static const double REMIND = 60; /* seconds between lines of the log while it cannot be written */
static const double LONG = 0.1;  /* seconds: longer than disks usually take */

/* ---- state ----------------------------------------------------------------------------------- */

qk_marks_t *qk_journal_marks(qk_journal_t *j) {
  return j ? &j->marks : NULL;
}

void qk_journal_seal(qk_journal_t *j) {
  qk_marks_seal(qk_journal_marks(j));
}

bool qk_journal_sealed(const qk_journal_t *j) {
  return j && j->marks.sealed;
}

bool qk_journal_clean(const qk_journal_t *j) {
  return !j || qk_marks_clean(&j->marks);
}

const char *qk_journal_trouble(const qk_journal_t *j) {
  return j && j->trouble[0] ? j->trouble : NULL;
}

bool qk_journal_waits(const qk_journal_t *j, double now) {
  return j && j->busy && !j->over && now - j->begun > LONG;
}

bool qk_journal_cleans(const qk_journal_t *j) {
  return j && (j->marks.gone || j->left || j->cleans);
}

const qk_journal_times_t *qk_journal_times(const qk_journal_t *j) {
  return &j->times;
}

static void be_in_trouble(qk_journal_t *j, double now, const char *text) {
  snprintf(j->trouble, sizeof j->trouble, "the journal cannot be written: %.470s", text);
  j->retry_at = now + RETRY;
  if (now < j->remind_at) return;
  qk_error("journal", "it cannot be written, no new work is accepted: %s", text);
  j->remind_at = now + REMIND;
}

static void be_well(qk_journal_t *j) {
  if (!j->trouble[0]) return;
  qk_info("journal", "it can be written again");
  j->trouble[0] = '\0';
  j->remind_at = 0;
}

/* ---- commits --------------------------------------------------------------------------------- */

/* Whether what should be on disk before long should be now. */
static bool sync_is_due(const qk_journal_t *j, double now) {
  return j->marks.sync && (j->marks.sync_now || now - j->synced_at >= SYNC_EVERY);
}

static bool commit_is_due(const qk_journal_t *j, double now) {
  if (j->trouble[0]) return now >= j->retry_at; /* also where nothing is marked */
  return !qk_marks_clean(&j->marks) || j->lines.first || sync_is_due(j, now);
}

static void begin_commit(qk_journal_t *j, double now) {
  if (qk_snapshot_take(&j->marks, j->trouble[0] || sync_is_due(j, now), &j->snapshot) != QK_OK) {
    be_in_trouble(j, now, "no memory for the rows; it is tried again");
    return;
  }
  j->tries = j->trouble[0];
  qk_lines_move(&j->lines, &j->writing);
  qk_journal_begin(j, WRITE, now);
}

static void end_commit(qk_journal_t *j, double now) {
  if (j->err.code != QK_OK) {
    qk_snapshot_put_back(&j->marks, &j->snapshot);
    qk_lines_move(&j->writing, &j->lines);
    be_in_trouble(j, now, j->err.text);
    return;
  }
  if (j->snapshot.sync) j->synced_at = now;
  qk_snapshot_settle(&j->marks, &j->snapshot, &j->left);
  qk_lines_free(&j->writing);
  qk_journal_clean_up(j);
  be_well(j);
}

/* What the writer has done. */
static void end_errand(qk_journal_t *j, double now) {
  j->busy = j->over = false;
  if (j->errand == WRITE)
    end_commit(j, now);
  else if (j->err.code != QK_OK)
    be_in_trouble(j, now, j->err.text);
}

void qk_journal_step(qk_journal_t *j, double now) {
  const double begun = qk_clock_now();
  if (!j) return;
  for (;;) {
    if (j->over) end_errand(j, now);
    if (j->busy || j->marks.sealed || !commit_is_due(j, now)) break;
    begin_commit(j, now);
  }
  if (!j->busy) qk_marks_catch_up(&j->marks);
  j->times.loop += qk_clock_now() - begun;
}

qk_status_t qk_journal_commit(qk_journal_t *j, double now, qk_err_t *err) {
  if (!j) return QK_OK;
  qk_journal_own(j);
  j->synced_at = -INFINITY;
  qk_journal_step(j, now);
  return j->trouble[0] && !j->marks.sealed ? qk_fail(err, QK_IO_ERROR, "%s", j->trouble) : QK_OK;
}

/* ---- looks and rests ------------------------------------------------------------------------- */

void qk_journal_tick(qk_journal_t *j, double now) {
  if (!j || j->marks.sealed || j->trouble[0] || j->busy) return;
  if (now >= j->look_at) {
    j->look_at = now + LOOK_EVERY;
    qk_journal_begin(j, LOOK, now);
    qk_journal_step(j, now);
    return;
  }
  j->quiet = qk_journal_is_quiet(j, now) && qk_marks_clean(&j->marks);
  if (!j->quiet && qk_journal_behind(j) == 0) return;
  qk_journal_begin(j, REST, now);
  qk_journal_step(j, now);
}

/* ---- setups -------------------------------------------------------------------------------- */

qk_status_t qk_journal_add_setup(qk_journal_t *j, const uint8_t *load, size_t bytes, int64_t *id,
                                 qk_err_t *err) {
  if (!j) return QK_OK;
  qk_journal_own(j);
  sqlite3_exec(j->db, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
  sqlite3_bind_int64(j->stmt[ADD_SETUP], 1, j->last_setup + 1);
  sqlite3_bind_blob64(j->stmt[ADD_SETUP], 2, load, bytes, SQLITE_STATIC);
  if (!qk_journal_run(j, ADD_SETUP)) return qk_journal_fail(j, "setup", err);
  *id = ++j->last_setup;
  return QK_OK;
}

qk_status_t qk_journal_end_setup(qk_journal_t *j, int64_t id, qk_err_t *err) {
  if (!j) return QK_OK;
  qk_journal_own(j);
  sqlite3_bind_int64(j->stmt[END_SETUP], 1, id);
  return qk_journal_run(j, END_SETUP) ? QK_OK : qk_journal_fail(j, "setup", err);
}

qk_status_t qk_journal_put_note(qk_journal_t *j, const char *key, const char *value,
                                qk_err_t *err) {
  if (!j) return QK_OK;
  qk_journal_own(j);
  return qk_journal_write_note(j, key, value, err);
}

/* At once; those that cannot be written go with the next commit. */
static void write_lines(qk_journal_t *j) {
  qk_err_t err = {0};
  qk_journal_own(j);
  /* who reads them is the next process, not a machine that was down: the loop waits for no sync */
  sqlite3_exec(j->db, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
  while (j->lines.first && qk_journal_write_line(j, j->lines.first)) qk_lines_drop_first(&j->lines);
  if (j->lines.first && qk_journal_fail(j, "a note", &err) != QK_OK)
    qk_error("journal", "%s: it goes with the next commit", err.text);
}

/* With the next commit; at once while there are no turns that commit. */
static void add_line(qk_journal_t *j, int statement, int64_t id, const char *key,
                     const char *value) {
  if (!j) return;
  qk_lines_add(&j->lines, statement, id, key, value);
  if (!j->writer) write_lines(j);
}

void qk_journal_note_setup(qk_journal_t *j, int64_t id, const char *lattice) {
  add_line(j, NOTE_SETUP, id, "", lattice);
}

void qk_journal_leave_setup(qk_journal_t *j, int64_t id) {
  add_line(j, END_SETUP, id, "", "");
}

void qk_journal_drop_setup(qk_journal_t *j, int64_t id) {
  add_line(j, DROP_SETUP, id, "", "");
}

void qk_journal_note_soon(qk_journal_t *j, const char *key, const char *value) {
  add_line(j, value ? PUT_NOTE : DROP_NOTE, 0, key, value ? value : "");
}

void qk_journal_note_now(qk_journal_t *j, const char *key, const char *value) {
  const bool is_busy = j && j->busy && !j->over; /* with a disk that may stall at any time */
  qk_journal_note_soon(j, key, value);
  if (j && j->writer && !is_busy) write_lines(j);
}
