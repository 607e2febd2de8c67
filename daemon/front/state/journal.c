#include "daemon/base/clock.h"
#include "daemon/front/state/journal_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/fault.h"
#include "daemon/base/log.h"
#include "daemon/front/job/job.h"

static const double RETRY = 0.5; /* seconds between commits while they fail */
static const double LOOK = 1;    /* seconds between looks at the folder */
static const double REMIND = 60; /* seconds between lines of the log while it cannot be written */

/* ---- writing ------------------------------------------------------------------------------- */

void qk_journal_lattice(const qk_shape_t *shape, uint64_t digest, char text[QK_LATTICE_MAX]) {
  const uint32_t *dims = shape->dims;
  const int n = snprintf(text, QK_LATTICE_MAX, "%u %u %u %u %016llx", dims[0], dims[1], dims[2],
                         dims[3], (unsigned long long)digest);
  if (!qk_shape_is_usual(shape))
    snprintf(text + n, (size_t)(QK_LATTICE_MAX - n), " %u %u", shape->site_reals, shape->columns);
}

static bool write_new(qk_journal_t *j, const qk_job_t *job) {
  const qk_entry_t *e = &job->entry;
  char lattice[QK_LATTICE_MAX];
  sqlite3_stmt *s = j->stmt[PUT_SESSION];
  sqlite3_bind_blob(s, 1, job->client_id, QK_CLIENT_ID, SQLITE_STATIC);
  qk_journal_bind_text(s, 2, qk_sched_user_name(job->user));
  sqlite3_bind_int64(s, 3, (int64_t)job->request);
  if (!qk_journal_run(j, PUT_SESSION)) return false;
  s = j->stmt[ADD_JOB];
  sqlite3_bind_int64(s, 1, e->id);
  sqlite3_bind_blob(s, 2, job->client_id, QK_CLIENT_ID, SQLITE_STATIC);
  sqlite3_bind_int(s, 3, job->contraction != NULL);
  sqlite3_bind_blob64(s, 4, job->message, job->message_bytes, SQLITE_STATIC);
  sqlite3_bind_double(s, 5, job->accepted_at + j->wall);
  sqlite3_bind_double(s, 6, job->deadline > 0 ? job->deadline + j->wall : 0);
  sqlite3_bind_int64(s, 7, (int64_t)job->upload_next);
  sqlite3_bind_int(s, 8, job->forgotten);
  sqlite3_bind_int64(s, 9, job->setup_id);
  qk_journal_lattice(&job->shape, job->config, lattice);
  qk_journal_bind_text(s, 10, lattice);
  return qk_journal_run(j, ADD_JOB);
}

static bool write_job(qk_journal_t *j, const qk_job_t *job) {
  sqlite3_stmt *s = j->stmt[PUT_JOB];
  sqlite3_bind_int64(s, 1, (int64_t)job->upload_next);
  sqlite3_bind_int(s, 2, job->forgotten);
  sqlite3_bind_int64(s, 3, job->entry.id);
  return qk_journal_run(j, PUT_JOB);
}

static bool write_rhs(qk_journal_t *j, const qk_rhs_t *rhs) {
  sqlite3_stmt *s = j->stmt[PUT_RHS];
  const qk_outcome_t *o = &rhs->outcome;
  qk_shm_t *solution = rhs->state >= QK_RHS_ENDED ? rhs->solution : NULL;
  if (rhs->source) rhs->source->stays = true;
  if (solution) solution->stays = true;
  sqlite3_bind_int64(s, 1, rhs->job->entry.id);
  sqlite3_bind_int64(s, 2, rhs->index);
  sqlite3_bind_int(s, 3, rhs->state);
  qk_journal_bind_text(s, 4, rhs->source ? rhs->source->name : "");
  qk_journal_bind_text(s, 5, solution ? solution->name : "");
  sqlite3_bind_int(s, 6, rhs->spooled | rhs->spilled << 1);
  sqlite3_bind_int64(s, 7, (int64_t)rhs->checksum);
  sqlite3_bind_int(s, 8, rhs->losses);
  sqlite3_bind_int64(s, 9, rhs->attempt);
  sqlite3_bind_int(s, 10, o->status);
  qk_journal_bind_text(s, 11, o->text);
  sqlite3_bind_double(s, 12, o->true_residual);
  sqlite3_bind_double(s, 13, o->seconds);
  sqlite3_bind_double(s, 14, o->norm_b);
  sqlite3_bind_double(s, 15, o->norm_x);
  sqlite3_bind_int64(s, 16, (int64_t)o->iterations);
  sqlite3_bind_int64(s, 17, (int64_t)o->applications);
  sqlite3_bind_int(s, 18, o->written);
  if (rhs->digested) sqlite3_bind_int64(s, 19, (int64_t)rhs->digest);
  return qk_journal_run(j, PUT_RHS);
}

static bool write_marked(qk_journal_t *j, const qk_job_t *job) {
  if (!job->entry.written && !write_new(j, job)) return false;
  if (job->entry.written && job->entry.changed && !write_job(j, job)) return false;
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].marked && !write_rhs(j, &job->rhs[i])) return false;
  return true;
}

static bool remove_gone(qk_journal_t *j, const qk_gone_t *g) {
  if (g->what == QK_GONE_FILE) return true;
  if (g->what == QK_GONE_SESSION) {
    sqlite3_bind_blob(j->stmt[DROP_SESSION], 1, g->client_id, QK_CLIENT_ID, SQLITE_STATIC);
    return qk_journal_run(j, DROP_SESSION);
  }
  sqlite3_bind_int64(j->stmt[DROP_JOB], 1, g->job);
  sqlite3_bind_int64(j->stmt[DROP_RHS], 1, g->job);
  return qk_journal_run(j, DROP_JOB) && qk_journal_run(j, DROP_RHS);
}

static bool write_all(qk_journal_t *j) {
  char commits[24];
  qk_err_t err = {0};
  for (const qk_gone_t *g = j->marks.gone; g; g = g->next)
    if (!remove_gone(j, g)) return false;
  for (qk_link_t *l = j->marks.changed.next; l != &j->marks.changed; l = l->next)
    if (!write_marked(j, QK_HOLDER(l, qk_job_t, entry.marked))) return false;
  snprintf(commits, sizeof commits, "%llu", (unsigned long long)j->commits + 1);
  return qk_journal_put_note(j, "commits", commits, &err) == QK_OK;
}

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

static const char *advice_for(int e) {
  if (e == ENOSPC || e == EDQUOT) return "make room on its file system; then new work is accepted";
  if (e == EROFS) return "its file system has become read-only: look at its disk and mount it anew";
  return "look at its disk and the kernel's log; new work is accepted once it can be written";
}

/* errno of the last call on the file that failed; 0: none has. */
static int last_errno(sqlite3_file *file) {
  int e = 0;
  if (file && file->pMethods) file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &e);
  return e;
}

/* What the database has just failed with; sqlite3_system_errno does not know it of a commit. */
static int cause_of(const qk_journal_t *j) {
  sqlite3_file *wal = NULL, *main = NULL;
  if (sqlite3_errcode(j->db) == SQLITE_FULL) return ENOSPC;
  if ((sqlite3_errcode(j->db) & 0xff) != SQLITE_IOERR) return 0;
  sqlite3_file_control(j->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal);
  sqlite3_file_control(j->db, "main", SQLITE_FCNTL_FILE_POINTER, &main);
  return last_errno(wal) != 0 ? last_errno(wal) : last_errno(main);
}

static void explain(const qk_journal_t *j, bool broken, char text[QK_TEXT_MAX]) {
  const int e = broken ? ENOSPC : cause_of(j);
  snprintf(text, QK_TEXT_MAX, "%.260s: %s: %s", j->path,
           e != 0 ? strerror(e) : sqlite3_errmsg(j->db), advice_for(e));
}

static bool write_transaction(qk_journal_t *j, qk_err_t *err) {
  j->full = j->trouble[0] || qk_marks_need_sync(&j->marks);
  sqlite3_exec(j->db, j->full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", NULL, NULL,
               NULL);
  return qk_journal_execute(j, "BEGIN IMMEDIATE", err) == QK_OK &&
         (!j->trouble[0] || qk_journal_put_note(j, "tried", "", err) == QK_OK) && write_all(j) &&
         qk_journal_execute(j, "COMMIT", err) == QK_OK;
}

qk_status_t qk_journal_commit(qk_journal_t *j, double now, qk_err_t *err) {
  char text[QK_TEXT_MAX];
  if (!j || j->marks.sealed || (qk_journal_clean(j) && !j->trouble[0])) return QK_OK;
  if (j->trouble[0] && now < j->retry_at) return qk_fail(err, QK_IO_ERROR, "%s", j->trouble);
  if (qk_places_check(&j->places, text)) {
    const bool broken = qk_fault(QK_FAULT_WRITE);
    if (!broken) qk_journal_follow(j, now);
    const double begun = qk_clock_now();
    const bool written = !broken && write_transaction(j, err);
    j->wrote_at = qk_clock_now();
    j->took = j->wrote_at - begun;
    if (written) {
      be_well(j);
      qk_marks_settle(&j->marks, j->spool);
      qk_mark_put(&j->mark, ++j->commits, j->full);
      return QK_OK;
    }
    explain(j, broken, text);
    if (!sqlite3_get_autocommit(j->db)) sqlite3_exec(j->db, "ROLLBACK", NULL, NULL, NULL);
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
