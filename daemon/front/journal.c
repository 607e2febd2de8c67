#include "daemon/front/journal.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/base/assert.h"
#include "daemon/base/fault.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/mount.h"

static const char VERSION[] = "3";
static const double RETRY = 0.5; /* seconds between commits while they fail */

static const char SCHEMA[] =
    "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL;"
    "CREATE TABLE IF NOT EXISTS note(key TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS session(client BLOB PRIMARY KEY, user TEXT NOT NULL,"
    " newest INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS job(id INTEGER PRIMARY KEY, client BLOB NOT NULL,"
    " contraction INTEGER NOT NULL, message BLOB NOT NULL, accepted REAL NOT NULL,"
    " deadline REAL NOT NULL, upload_next INTEGER NOT NULL, forgotten INTEGER NOT NULL,"
    " setup INTEGER NOT NULL DEFAULT 0, lattice TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE IF NOT EXISTS setup(id INTEGER PRIMARY KEY, load BLOB NOT NULL,"
    " lattice TEXT NOT NULL, dropped INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS rhs(job INTEGER, number INTEGER, state INTEGER, source TEXT,"
    " solution TEXT, spooled INTEGER, checksum INTEGER, losses INTEGER, attempt INTEGER,"
    " status INTEGER, text TEXT, true_residual REAL, seconds REAL, norm_b REAL, norm_x REAL,"
    " iterations INTEGER, applications INTEGER, written INTEGER, PRIMARY KEY(job, number))"
    " WITHOUT ROWID;";

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

static const char *const SQL[N_SQL] = {
    [PUT_NOTE] = "INSERT OR REPLACE INTO note VALUES(?,?)",
    [GET_NOTE] = "SELECT value FROM note WHERE key=?",
    [DROP_NOTE] = "DELETE FROM note WHERE key=?",
    [ALL_NOTES] = "SELECT key, value FROM note WHERE substr(key, 1, length(?1))=?1 ORDER BY key",
    [PUT_SESSION] = ("INSERT INTO session VALUES(?,?,?) ON CONFLICT(client) DO UPDATE SET"
                     " newest=max(newest, excluded.newest)"),
    [DROP_SESSION] = "DELETE FROM session WHERE client=?",
    [ADD_JOB] = "INSERT INTO job VALUES(?,?,?,?,?,?,?,?,?,?)",
    [PUT_JOB] = "UPDATE job SET upload_next=?, forgotten=? WHERE id=?",
    [PUT_RHS] = "INSERT OR REPLACE INTO rhs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [DROP_JOB] = "DELETE FROM job WHERE id=?",
    [DROP_RHS] = "DELETE FROM rhs WHERE job=?",
    [ALL_SESSIONS] = "SELECT client, user, newest FROM session",
    [ALL_JOBS] = ("SELECT id, client, contraction, message, accepted, deadline, upload_next,"
                  " forgotten, setup, lattice FROM job ORDER BY id"),
    [ALL_RHS] =
        ("SELECT number, state, source, solution, spooled, checksum, losses, attempt, status,"
         " text, true_residual, seconds, norm_b, norm_x, iterations, applications, written"
         " FROM rhs WHERE job=? ORDER BY number"),
    [ADD_SETUP] = "INSERT INTO setup VALUES(?,?,'',0)",
    [NOTE_SETUP] = "UPDATE setup SET lattice=? WHERE id=?",
    [END_SETUP] = "UPDATE setup SET dropped=1 WHERE id=?",
    [DROP_SETUP] = "DELETE FROM setup WHERE id=?",
    [ALL_SETUPS] = "SELECT id, load, lattice, dropped FROM setup ORDER BY id",
};

/* Something that is to go with the next commit. */
typedef struct gone {
  struct gone *next;
  bool session;
  uint8_t client_id[QK_CLIENT_ID];
  int64_t job;
  uint32_t nrhs; /* files of the spool that may be there */
} gone_t;

struct qk_journal {
  sqlite3 *db;
  sqlite3_stmt *stmt[N_SQL];
  qk_spool_t *spool;
  double wall; /* wall clock minus the loop's clock, seconds */
  int64_t last_id, last_setup;
  qk_link_t marked;
  gone_t *gone;
  bool sealed, sync;
  double retry_at;
  char trouble[160]; /* "": none */
};

/* ---- SQLite -------------------------------------------------------------------------------- */

static qk_status_t fail(qk_journal_t *j, const char *what, qk_err_t *err) {
  return qk_fail(err, QK_IO_ERROR, "journal: %s: %s", what, sqlite3_errmsg(j->db));
}

static qk_status_t execute(qk_journal_t *j, const char *sql, qk_err_t *err) {
  return sqlite3_exec(j->db, sql, NULL, NULL, NULL) == SQLITE_OK ? QK_OK : fail(j, "SQLite", err);
}

/* One step of a statement whose parameters are bound. */
static bool run(qk_journal_t *j, int k) {
  const int rc = sqlite3_step(j->stmt[k]);
  sqlite3_reset(j->stmt[k]);
  sqlite3_clear_bindings(j->stmt[k]);
  return rc == SQLITE_DONE;
}

static void bind_text(sqlite3_stmt *s, int i, const char *text) {
  sqlite3_bind_text(s, i, text, -1, SQLITE_TRANSIENT);
}

static const char *text_of(sqlite3_stmt *s, int i) {
  const unsigned char *text = sqlite3_column_text(s, i);
  return text ? (const char *)text : "";
}

static bool client_of(sqlite3_stmt *s, int i, uint8_t client_id[QK_CLIENT_ID]) {
  const void *blob = sqlite3_column_blob(s, i);
  if (!blob || sqlite3_column_bytes(s, i) != QK_CLIENT_ID) return false;
  memcpy(client_id, blob, QK_CLIENT_ID);
  return true;
}

/* ---- opening and closing ------------------------------------------------------------------- */

static bool is_of_version(sqlite3 *db, const char *version) {
  sqlite3_stmt *s = NULL;
  const bool is = sqlite3_prepare_v2(db, "SELECT 1 FROM note WHERE key='version' AND value=?", -1,
                                     &s, NULL) == SQLITE_OK &&
                  sqlite3_bind_text(s, 1, version, -1, SQLITE_STATIC) == SQLITE_OK &&
                  sqlite3_step(s) == SQLITE_ROW;
  sqlite3_finalize(s);
  return is;
}

/* Version 1 knew no setups but the one of the command line, version 2 not what requests were accepted on. */
static qk_status_t upgrade(qk_journal_t *j, qk_err_t *err) {
  qk_status_t status = QK_OK;
  if (is_of_version(j->db, "1"))
    status = execute(j,
                     "BEGIN IMMEDIATE;"
                     "ALTER TABLE job ADD COLUMN setup INTEGER NOT NULL DEFAULT 0;"
                     "UPDATE note SET value='2' WHERE key='version'; COMMIT",
                     err);
  if (status == QK_OK && is_of_version(j->db, "2"))
    status = execute(j,
                     "BEGIN IMMEDIATE;"
                     "ALTER TABLE job ADD COLUMN lattice TEXT NOT NULL DEFAULT '';"
                     "UPDATE note SET value='3' WHERE key='version'; COMMIT",
                     err);
  return status;
}

static qk_status_t check_version(qk_journal_t *j, const char *path, qk_err_t *err) {
  char version[16];
  if (!qk_journal_note(j, "version", version, sizeof version))
    return qk_journal_put_note(j, "version", VERSION, err);
  if (strcmp(version, VERSION) == 0) return QK_OK;
  return qk_fail(err, QK_BAD_FORMAT, "%s is a journal of version %s: this program reads %s", path,
                 version, VERSION);
}

static qk_status_t prepare(qk_journal_t *j, qk_err_t *err) {
  for (int k = 0; k < N_SQL; k++)
    if (sqlite3_prepare_v3(j->db, SQL[k], -1, SQLITE_PREPARE_PERSISTENT, &j->stmt[k], NULL) !=
        SQLITE_OK)
      return fail(j, SQL[k], err);
  return QK_OK;
}

/* select: the greatest id there is. */
static int64_t last_id(sqlite3 *db, const char *select) {
  sqlite3_stmt *s = NULL;
  int64_t id = 0;
  if (sqlite3_prepare_v2(db, select, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    id = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  return id;
}

qk_status_t qk_journal_open(const char *dir, qk_spool_t *spool, double now, qk_journal_t **journal,
                            qk_err_t *err) {
  char path[QK_PATH_MAX + 16];
  struct timespec t;
  qk_status_t status;
  snprintf(path, sizeof path, "%s/journal.db", dir);
  qk_journal_t *j = qk_calloc(1, sizeof *j);
  if (!j) return qk_fail(err, QK_NO_MEMORY, "no memory for a journal");
  clock_gettime(CLOCK_REALTIME, &t);
  j->wall = (double)t.tv_sec + (double)t.tv_nsec * 1e-9 - now;
  j->spool = spool;
  qk_link_init(&j->marked);
  if (sqlite3_open_v2(path, &j->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
    status = fail(j, path, err);
  else if ((status = execute(j, SCHEMA, err)) == QK_OK)
    status = upgrade(j, err);
  if (status == QK_OK) status = prepare(j, err);
  if (status == QK_OK) status = check_version(j, path, err);
  if (status != QK_OK) {
    qk_journal_close(j);
    return status;
  }
  j->last_id = last_id(j->db, "SELECT max(id) FROM job");
  j->last_setup = last_id(j->db, "SELECT max(id) FROM setup");
  *journal = j;
  return QK_OK;
}

static void forget_gone(qk_journal_t *j) {
  while (j->gone) {
    gone_t *next = j->gone->next;
    qk_free(j->gone);
    j->gone = next;
  }
}

void qk_journal_close(qk_journal_t *j) {
  if (!j) return;
  forget_gone(j);
  for (int k = 0; k < N_SQL; k++) sqlite3_finalize(j->stmt[k]);
  sqlite3_close(j->db);
  qk_free(j);
}

void qk_journal_seal(qk_journal_t *j) {
  if (j) j->sealed = true;
}

/* ---- marks --------------------------------------------------------------------------------- */

void qk_journal_enter(qk_journal_t *j, qk_job_t *job) {
  if (!j) return;
  job->entry.journal = j;
  job->entry.id = ++j->last_id;
  qk_journal_mark_job(job);
}

static void mark(qk_job_t *job) {
  qk_journal_t *j = job->entry.journal;
  if (j && !j->sealed && qk_link_alone(&job->entry.marked))
    qk_list_append(&j->marked, &job->entry.marked);
}

void qk_journal_mark_job(qk_job_t *job) {
  job->entry.changed = true;
  mark(job);
}

void qk_journal_mark_rhs(qk_rhs_t *rhs) {
  rhs->marked = true;
  mark(rhs->job);
}

static void add_gone(qk_journal_t *j, const gone_t *what) {
  gone_t *g = qk_malloc(sizeof *g);
  if (!g) { /* it comes back after a restart, and expires */
    qk_warn("journal", "no memory: a row stays");
    return;
  }
  *g = *what;
  g->next = j->gone;
  j->gone = g;
}

void qk_journal_drop_job(qk_job_t *job) {
  qk_entry_t *e = &job->entry;
  qk_link_remove(&e->marked);
  if (!e->journal || e->journal->sealed || !e->written) return;
  const bool spooled = job->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD && !job->contraction;
  add_gone(e->journal, &(gone_t){.job = e->id, .nrhs = spooled ? job->nrhs : 0});
}

void qk_journal_drop_row(qk_journal_t *j, int64_t id) {
  add_gone(j, &(gone_t){.job = id}); /* files of the spool are swept */
}

void qk_journal_drop_session(qk_journal_t *j, const uint8_t client_id[QK_CLIENT_ID]) {
  if (!j || j->sealed) return;
  gone_t g = {.session = true};
  memcpy(g.client_id, client_id, sizeof g.client_id);
  add_gone(j, &g);
}

/* ---- writing ------------------------------------------------------------------------------- */

void qk_journal_lattice(const uint32_t dims[4], uint64_t digest, char text[QK_LATTICE_MAX]) {
  snprintf(text, QK_LATTICE_MAX, "%u %u %u %u %016llx", dims[0], dims[1], dims[2], dims[3],
           (unsigned long long)digest);
}

static bool write_new(qk_journal_t *j, const qk_job_t *job) {
  const qk_entry_t *e = &job->entry;
  char lattice[QK_LATTICE_MAX];
  sqlite3_stmt *s = j->stmt[PUT_SESSION];
  sqlite3_bind_blob(s, 1, job->client_id, QK_CLIENT_ID, SQLITE_STATIC);
  bind_text(s, 2, qk_sched_user_name(job->user));
  sqlite3_bind_int64(s, 3, (int64_t)job->request);
  if (!run(j, PUT_SESSION)) return false;
  s = j->stmt[ADD_JOB];
  sqlite3_bind_int64(s, 1, e->id);
  sqlite3_bind_blob(s, 2, job->client_id, QK_CLIENT_ID, SQLITE_STATIC);
  sqlite3_bind_int(s, 3, job->contraction != NULL);
  sqlite3_bind_blob64(s, 4, job->message, job->message_bytes, SQLITE_STATIC);
  sqlite3_bind_double(s, 5, job->accepted_at + j->wall);
  sqlite3_bind_double(s, 6, job->deadline > 0 ? job->deadline + j->wall : 0);
  sqlite3_bind_int64(s, 7, (int64_t)job->upload_next);
  sqlite3_bind_int(s, 8, job->forgotten);
  sqlite3_bind_int64(s, 9, job->mount->id);
  qk_journal_lattice(job->dims, job->config, lattice);
  bind_text(s, 10, lattice);
  return run(j, ADD_JOB);
}

static bool write_job(qk_journal_t *j, const qk_job_t *job) {
  sqlite3_stmt *s = j->stmt[PUT_JOB];
  sqlite3_bind_int64(s, 1, (int64_t)job->upload_next);
  sqlite3_bind_int(s, 2, job->forgotten);
  sqlite3_bind_int64(s, 3, job->entry.id);
  return run(j, PUT_JOB);
}

static bool write_rhs(qk_journal_t *j, const qk_rhs_t *rhs) {
  sqlite3_stmt *s = j->stmt[PUT_RHS];
  const qk_outcome_t *o = &rhs->outcome;
  sqlite3_bind_int64(s, 1, rhs->job->entry.id);
  sqlite3_bind_int64(s, 2, rhs->index);
  sqlite3_bind_int(s, 3, rhs->state);
  bind_text(s, 4, rhs->source ? rhs->source->name : "");
  bind_text(s, 5, rhs->solution && rhs->state >= QK_RHS_ENDED ? rhs->solution->name : "");
  sqlite3_bind_int(s, 6, rhs->spooled | rhs->spilled << 1);
  sqlite3_bind_int64(s, 7, (int64_t)rhs->checksum);
  sqlite3_bind_int(s, 8, rhs->losses);
  sqlite3_bind_int64(s, 9, rhs->attempt);
  sqlite3_bind_int(s, 10, o->status);
  bind_text(s, 11, o->text);
  sqlite3_bind_double(s, 12, o->true_residual);
  sqlite3_bind_double(s, 13, o->seconds);
  sqlite3_bind_double(s, 14, o->norm_b);
  sqlite3_bind_double(s, 15, o->norm_x);
  sqlite3_bind_int64(s, 16, (int64_t)o->iterations);
  sqlite3_bind_int64(s, 17, (int64_t)o->applications);
  sqlite3_bind_int(s, 18, o->written);
  return run(j, PUT_RHS);
}

static bool write_marked(qk_journal_t *j, const qk_job_t *job) {
  if (!job->entry.written && !write_new(j, job)) return false;
  if (job->entry.written && job->entry.changed && !write_job(j, job)) return false;
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].marked && !write_rhs(j, &job->rhs[i])) return false;
  return true;
}

static bool remove_gone(qk_journal_t *j, const gone_t *g) {
  if (g->session) {
    sqlite3_bind_blob(j->stmt[DROP_SESSION], 1, g->client_id, QK_CLIENT_ID, SQLITE_STATIC);
    return run(j, DROP_SESSION);
  }
  sqlite3_bind_int64(j->stmt[DROP_JOB], 1, g->job);
  sqlite3_bind_int64(j->stmt[DROP_RHS], 1, g->job);
  return run(j, DROP_JOB) && run(j, DROP_RHS);
}

static bool write_all(qk_journal_t *j) {
  for (const gone_t *g = j->gone; g; g = g->next)
    if (!remove_gone(j, g)) return false;
  for (qk_link_t *l = j->marked.next; l != &j->marked; l = l->next)
    if (!write_marked(j, QK_HOLDER(l, qk_job_t, entry.marked))) return false;
  return true;
}

/* What has been written is marked no more; files that no row needs go. */
static void settle(qk_journal_t *j) {
  while (!qk_link_alone(&j->marked)) {
    qk_job_t *job = QK_HOLDER(j->marked.next, qk_job_t, entry.marked);
    qk_link_remove(&job->entry.marked);
    job->entry.written = true;
    job->entry.changed = false;
    for (uint32_t i = 0; i < job->nrhs; i++) {
      qk_rhs_t *rhs = &job->rhs[i];
      rhs->marked = false;
      if (rhs->state < QK_RHS_ACKED || !rhs->spooled) continue;
      qk_spool_remove(j->spool, job->entry.id, i);
      rhs->spooled = false;
    }
  }
  for (const gone_t *g = j->gone; g; g = g->next)
    for (uint32_t i = 0; i < g->nrhs; i++) qk_spool_remove(j->spool, g->job, i);
  forget_gone(j);
  j->sync = false;
}

bool qk_journal_clean(const qk_journal_t *j) {
  return !j || j->sealed || (qk_link_alone(&j->marked) && !j->gone);
}

const char *qk_journal_trouble(const qk_journal_t *j) {
  return j && j->trouble[0] ? j->trouble : NULL;
}

/* Whether the end of the machine must not undo what is to be written. */
static bool needs_sync(const qk_journal_t *j) {
  for (const qk_link_t *l = j->marked.next; l != &j->marked; l = l->next)
    if (!QK_HOLDER(l, const qk_job_t, entry.marked)->entry.written) return true;
  return j->sync;
}

void qk_journal_sync(qk_journal_t *j) {
  if (j) j->sync = true;
}

qk_status_t qk_journal_commit(qk_journal_t *j, double now, qk_err_t *err) {
  if (qk_journal_clean(j)) return QK_OK;
  if (j->trouble[0] && now < j->retry_at) return qk_fail(err, QK_IO_ERROR, "%s", j->trouble);
  sqlite3_exec(j->db, needs_sync(j) ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", NULL,
               NULL, NULL);
  const bool broken = qk_fault(QK_FAULT_WRITE);
  if (!broken && execute(j, "BEGIN IMMEDIATE", err) == QK_OK && write_all(j) &&
      execute(j, "COMMIT", err) == QK_OK) {
    if (j->trouble[0]) qk_info("journal", "it can be written again");
    j->trouble[0] = '\0';
    settle(j);
    return QK_OK;
  }
  if (j->trouble[0] == '\0')
    qk_error("journal", "it cannot be written, no new work is taken: %s",
             broken ? "fault point" : sqlite3_errmsg(j->db));
  snprintf(j->trouble, sizeof j->trouble, "the journal cannot be written: %s",
           broken ? "fault point" : sqlite3_errmsg(j->db));
  if (!sqlite3_get_autocommit(j->db)) sqlite3_exec(j->db, "ROLLBACK", NULL, NULL, NULL);
  j->retry_at = now + RETRY;
  return qk_fail(err, QK_IO_ERROR, "%s", j->trouble);
}

qk_status_t qk_journal_put_note(qk_journal_t *j, const char *key, const char *value,
                                qk_err_t *err) {
  if (!j) return QK_OK;
  const int k = value ? PUT_NOTE : DROP_NOTE;
  bind_text(j->stmt[k], 1, key);
  if (value) bind_text(j->stmt[k], 2, value);
  return run(j, k) ? QK_OK : fail(j, key, err);
}

/* ---- setups -------------------------------------------------------------------------------- */

qk_status_t qk_journal_add_setup(qk_journal_t *j, const uint8_t *load, size_t bytes, int64_t *id,
                                 qk_err_t *err) {
  if (!j) return QK_OK;
  sqlite3_exec(j->db, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
  sqlite3_bind_int64(j->stmt[ADD_SETUP], 1, j->last_setup + 1);
  sqlite3_bind_blob64(j->stmt[ADD_SETUP], 2, load, bytes, SQLITE_STATIC);
  if (!run(j, ADD_SETUP)) return fail(j, "setup", err);
  *id = ++j->last_setup;
  return QK_OK;
}

qk_status_t qk_journal_note_setup(qk_journal_t *j, int64_t id, const char *lattice, qk_err_t *err) {
  if (!j) return QK_OK;
  bind_text(j->stmt[NOTE_SETUP], 1, lattice);
  sqlite3_bind_int64(j->stmt[NOTE_SETUP], 2, id);
  return run(j, NOTE_SETUP) ? QK_OK : fail(j, "setup", err);
}

static qk_status_t change_setup(qk_journal_t *j, int k, int64_t id, qk_err_t *err) {
  if (!j) return QK_OK;
  sqlite3_bind_int64(j->stmt[k], 1, id);
  return run(j, k) ? QK_OK : fail(j, "setup", err);
}

qk_status_t qk_journal_end_setup(qk_journal_t *j, int64_t id, qk_err_t *err) {
  return change_setup(j, END_SETUP, id, err);
}

qk_status_t qk_journal_drop_setup(qk_journal_t *j, int64_t id, qk_err_t *err) {
  return change_setup(j, DROP_SETUP, id, err);
}

/* ---- reading ------------------------------------------------------------------------------- */

bool qk_journal_note(qk_journal_t *j, const char *key, char *value, size_t size) {
  sqlite3_stmt *s = j->stmt[GET_NOTE];
  bind_text(s, 1, key);
  const bool found = sqlite3_step(s) == SQLITE_ROW;
  if (found) snprintf(value, size, "%s", text_of(s, 0));
  sqlite3_reset(s);
  return found;
}

static qk_status_t end_of(qk_journal_t *j, int k, int rc, qk_err_t *err) {
  sqlite3_reset(j->stmt[k]);
  return rc == SQLITE_DONE ? QK_OK : fail(j, "reading", err);
}

qk_status_t qk_journal_each_note(qk_journal_t *j, const char *prefix, qk_note_fn *fn, void *arg,
                                 qk_err_t *err) {
  if (!j) return QK_OK;
  sqlite3_stmt *s = j->stmt[ALL_NOTES];
  int rc;
  bind_text(s, 1, prefix);
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) fn(arg, text_of(s, 0), text_of(s, 1));
  return end_of(j, ALL_NOTES, rc, err);
}

qk_status_t qk_journal_each_setup(qk_journal_t *j, qk_setup_row_fn *fn, void *arg, qk_err_t *err) {
  sqlite3_stmt *s = j->stmt[ALL_SETUPS];
  int rc;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
    const qk_setup_row_t row = {.id = sqlite3_column_int64(s, 0),
                                .load = sqlite3_column_blob(s, 1),
                                .load_bytes = (size_t)sqlite3_column_bytes(s, 1),
                                .lattice = text_of(s, 2),
                                .dropped = sqlite3_column_int(s, 3)};
    fn(arg, &row);
  }
  return end_of(j, ALL_SETUPS, rc, err);
}

qk_status_t qk_journal_each_session(qk_journal_t *j, qk_session_row_fn *fn, void *arg,
                                    qk_err_t *err) {
  sqlite3_stmt *s = j->stmt[ALL_SESSIONS];
  int rc;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
    qk_session_row_t row = {.newest = (uint64_t)sqlite3_column_int64(s, 2)};
    if (!client_of(s, 0, row.client_id)) continue;
    snprintf(row.user, sizeof row.user, "%s", text_of(s, 1));
    fn(arg, &row);
  }
  return end_of(j, ALL_SESSIONS, rc, err);
}

qk_status_t qk_journal_each_job(qk_journal_t *j, qk_job_row_fn *fn, void *arg, qk_err_t *err) {
  sqlite3_stmt *s = j->stmt[ALL_JOBS];
  int rc;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
    const double deadline = sqlite3_column_double(s, 5);
    qk_job_row_t row = {.id = sqlite3_column_int64(s, 0),
                        .contraction = sqlite3_column_int(s, 2),
                        .message = sqlite3_column_blob(s, 3),
                        .message_bytes = (size_t)sqlite3_column_bytes(s, 3),
                        .accepted_at = sqlite3_column_double(s, 4) - j->wall,
                        .deadline = deadline > 0 ? deadline - j->wall : 0,
                        .upload_next = (uint64_t)sqlite3_column_int64(s, 6),
                        .forgotten = sqlite3_column_int(s, 7),
                        .setup = sqlite3_column_int64(s, 8),
                        .lattice = text_of(s, 9)};
    if (client_of(s, 1, row.client_id)) fn(arg, &row);
  }
  return end_of(j, ALL_JOBS, rc, err);
}

qk_status_t qk_journal_each_rhs(qk_journal_t *j, int64_t job, qk_rhs_row_fn *fn, void *arg,
                                qk_err_t *err) {
  sqlite3_stmt *s = j->stmt[ALL_RHS];
  int rc;
  sqlite3_bind_int64(s, 1, job);
  while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
    const int files = sqlite3_column_int(s, 4);
    qk_rhs_t rhs = {.index = (uint32_t)sqlite3_column_int64(s, 0),
                    .state = (qk_rhs_state_t)sqlite3_column_int(s, 1),
                    .spooled = files & 1,
                    .spilled = files & 2,
                    .checksum = (uint64_t)sqlite3_column_int64(s, 5),
                    .losses = sqlite3_column_int(s, 6),
                    .attempt = (uint32_t)sqlite3_column_int64(s, 7)};
    rhs.outcome = (qk_outcome_t){.status = (qk_status_t)sqlite3_column_int(s, 8),
                                 .true_residual = sqlite3_column_double(s, 10),
                                 .seconds = sqlite3_column_double(s, 11),
                                 .norm_b = sqlite3_column_double(s, 12),
                                 .norm_x = sqlite3_column_double(s, 13),
                                 .iterations = (uint64_t)sqlite3_column_int64(s, 14),
                                 .applications = (uint64_t)sqlite3_column_int64(s, 15),
                                 .written = sqlite3_column_int(s, 16)};
    snprintf(rhs.outcome.text, sizeof rhs.outcome.text, "%s", text_of(s, 9));
    fn(arg, &rhs, text_of(s, 2), text_of(s, 3));
  }
  return end_of(j, ALL_RHS, rc, err);
}
