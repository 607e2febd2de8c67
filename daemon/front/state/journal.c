#include "daemon/front/state/journal_impl.h"

#include <stdio.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"

static const double RETRY = 0.5; /* seconds between commits while they fail */
static const double LOOK = 1;    /* seconds between looks at the folder */
static const double REMIND = 60; /* seconds between lines of the log while it cannot be written */

/* ---- writing ------------------------------------------------------------------------------- */

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

/* All that is marked. */
static qk_status_t write_marked(qk_journal_t *j, qk_err_t *err) {
  qk_snapshot_t snapshot;
  if (qk_snapshot_take(&j->marks, &snapshot) != QK_OK)
    return qk_fail(err, QK_NO_MEMORY, "no memory for the rows; it is tried again");
  const double begun = qk_clock_now();
  j->full = j->trouble[0] || snapshot.sync;
  const qk_status_t status = qk_journal_write(j, &snapshot, err);
  j->wrote_at = qk_clock_now();
  j->took = j->wrote_at - begun;
  if (status != QK_OK) {
    qk_snapshot_put_back(&j->marks, &snapshot);
    return status;
  }
  qk_snapshot_clean_up(&snapshot, j->spool);
  qk_snapshot_settle(&j->marks, &snapshot);
  return QK_OK;
}

qk_status_t qk_journal_commit(qk_journal_t *j, double now, qk_err_t *err) {
  char text[QK_TEXT_MAX];
  qk_err_t cause = {0};
  if (!j || j->marks.sealed || (qk_journal_clean(j) && !j->trouble[0])) return QK_OK;
  if (j->trouble[0] && now < j->retry_at) return qk_fail(err, QK_IO_ERROR, "%s", j->trouble);
  if (qk_places_check(&j->places, text)) {
    qk_journal_follow(j, now);
    if (write_marked(j, &cause) == QK_OK) {
      be_well(j);
      return QK_OK;
    }
    snprintf(text, sizeof text, "%s", cause.text);
  }
  be_in_trouble(j, now, text);
  return qk_fail(err, QK_IO_ERROR, "%s", j->trouble);
}

void qk_journal_watch(qk_journal_t *j, double now) {
  char text[QK_TEXT_MAX];
  if (!j || j->marks.sealed || j->trouble[0] || now < j->look_at) return;
  j->look_at = now + LOOK;
  if (!qk_places_check(&j->places, text)) be_in_trouble(j, now, text);
}

/* ---- setups -------------------------------------------------------------------------------- */

qk_status_t qk_journal_add_setup(qk_journal_t *j, const uint8_t *load, size_t bytes, int64_t *id,
                                 qk_err_t *err) {
  if (!j) return QK_OK;
  sqlite3_exec(j->db, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
  sqlite3_bind_int64(j->stmt[ADD_SETUP], 1, j->last_setup + 1);
  sqlite3_bind_blob64(j->stmt[ADD_SETUP], 2, load, bytes, SQLITE_STATIC);
  if (!qk_journal_run(j, ADD_SETUP)) return qk_journal_fail(j, "setup", err);
  *id = ++j->last_setup;
  return QK_OK;
}

qk_status_t qk_journal_note_setup(qk_journal_t *j, int64_t id, const char *lattice, qk_err_t *err) {
  if (!j) return QK_OK;
  qk_journal_bind_text(j->stmt[NOTE_SETUP], 1, lattice);
  sqlite3_bind_int64(j->stmt[NOTE_SETUP], 2, id);
  return qk_journal_run(j, NOTE_SETUP) ? QK_OK : qk_journal_fail(j, "setup", err);
}

static qk_status_t change_setup(qk_journal_t *j, int k, int64_t id, qk_err_t *err) {
  if (!j) return QK_OK;
  sqlite3_bind_int64(j->stmt[k], 1, id);
  return qk_journal_run(j, k) ? QK_OK : qk_journal_fail(j, "setup", err);
}

qk_status_t qk_journal_end_setup(qk_journal_t *j, int64_t id, qk_err_t *err) {
  return change_setup(j, END_SETUP, id, err);
}

qk_status_t qk_journal_drop_setup(qk_journal_t *j, int64_t id, qk_err_t *err) {
  return change_setup(j, DROP_SETUP, id, err);
}
