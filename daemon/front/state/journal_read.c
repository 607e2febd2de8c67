#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "daemon/base/file.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/plural.h"
#include "daemon/base/utf8.h"
#include "daemon/front/state/journal_impl.h"
#include "daemon/front/state/rows.h"

static const double TIME_MAX = 1e12; /* seconds: some 30000 years */
enum { LOSSES_MAX = 100, NOTE_MAX = 1024, WHY_MAX = 600 };

static const char *const DELETE[] = {
    [NOTE] = "DELETE FROM note WHERE rowid=?",
    [SESSION] = "DELETE FROM session WHERE rowid=?",
    [SETUP] = "DELETE FROM setup WHERE id=?",
    [JOB] = "DELETE FROM job WHERE id=?",
    [RHS] = "DELETE FROM rhs WHERE job=? AND (?2 IS NULL OR number=?2)",
    [ORPHANS] = "DELETE FROM rhs WHERE job NOT IN (SELECT id FROM job)",
};

/* ---- columns ------------------------------------------------------------------------------- */

/* A row as it is read; the first column that does not fit says why. */
typedef struct row {
  sqlite3_stmt *s;
  qk_err_t *why;
} row_t;

static bool is_of_type(const row_t *r, int i, int type) {
  static const char *const name[] = {[SQLITE_INTEGER] = "an integer",
                                     [SQLITE_FLOAT] = "a number",
                                     [SQLITE_TEXT] = "text",
                                     [SQLITE_BLOB] = "bytes",
                                     [SQLITE_NULL] = "missing"};
  const int found = sqlite3_column_type(r->s, i);
  if (found == type || (type == SQLITE_FLOAT && found == SQLITE_INTEGER)) return true;
  qk_fail(r->why, QK_BAD_FORMAT, "%s is %s, not %s", sqlite3_column_name(r->s, i), name[found],
          name[type]);
  return false;
}

static int64_t integer(const row_t *r, int i, int64_t least, int64_t most) {
  if (!is_of_type(r, i, SQLITE_INTEGER)) return least;
  const int64_t n = sqlite3_column_int64(r->s, i);
  if (n >= least && n <= most) return n;
  qk_fail(r->why, QK_BAD_FORMAT, "%s = %lld is outside %lld .. %lld", sqlite3_column_name(r->s, i),
          (long long)n, (long long)least, (long long)most);
  return least;
}

static bool flag(const row_t *r, int i) {
  return integer(r, i, 0, 1);
}

/* Of the wall clock, in seconds. */
static double time_of(const row_t *r, int i, double least) {
  if (!is_of_type(r, i, SQLITE_FLOAT)) return 0;
  const double t = sqlite3_column_double(r->s, i);
  if (t >= least && t <= TIME_MAX) return t;
  qk_fail(r->why, QK_BAD_FORMAT, "%s = %g is outside %g .. %g", sqlite3_column_name(r->s, i), t,
          least, TIME_MAX);
  return 0;
}

/* SQLite keeps what is not a number as NULL. */
static double number(const row_t *r, int i) {
  if (sqlite3_column_type(r->s, i) == SQLITE_NULL) return NAN;
  return is_of_type(r, i, SQLITE_FLOAT) ? sqlite3_column_double(r->s, i) : NAN;
}

/* Good until the statement goes on. */
static const char *text(const row_t *r, int i, size_t most) {
  if (!is_of_type(r, i, SQLITE_TEXT)) return "";
  const char *t = (const char *)sqlite3_column_text(r->s, i);
  const size_t bytes = (size_t)sqlite3_column_bytes(r->s, i);
  if (t && bytes <= most && strlen(t) == bytes) return t;
  qk_fail(r->why, QK_BAD_FORMAT, "%s has %zu bytes, with a zero or over the limit of %zu",
          sqlite3_column_name(r->s, i), bytes, most);
  return "";
}

static const uint8_t *blob(const row_t *r, int i, size_t least, size_t most, size_t *bytes) {
  if (!is_of_type(r, i, SQLITE_BLOB)) return NULL;
  const void *data = sqlite3_column_blob(r->s, i);
  *bytes = (size_t)sqlite3_column_bytes(r->s, i);
  if (data && *bytes >= least && *bytes <= most) return data;
  qk_fail(r->why, QK_BAD_FORMAT, "%s has %zu bytes: outside %zu .. %zu",
          sqlite3_column_name(r->s, i), *bytes, least, most);
  return NULL;
}

static void client_of(const row_t *r, int i, uint8_t client_id[QK_CLIENT_ID]) {
  size_t bytes;
  const uint8_t *id = blob(r, i, QK_CLIENT_ID, QK_CLIENT_ID, &bytes);
  if (id) memcpy(client_id, id, QK_CLIENT_ID);
}

/* ---- rows that do not fit ------------------------------------------------------------------ */

/* number: NULL, or of a right-hand side. */
static void add_misfit(qk_journal_t *j, table_t table, int64_t row, sqlite3_value *number,
                       const char *why) {
  const size_t bytes = strlen(why) + 1;
  misfit_t *m = qk_malloc(sizeof *m + bytes);
  if (!m) {
    qk_error("journal", "no memory: a row stays that does not fit: %s", why);
    return;
  }
  *m = (misfit_t){.table = table, .row = row, .number = number ? sqlite3_value_dup(number) : NULL};
  memcpy(m->why, why, bytes);
  *j->last_misfit = m;
  j->last_misfit = &m->next;
}

static void misfit(qk_journal_t *j, table_t table, int64_t row, const char *name,
                   const qk_err_t *why) {
  char line[WHY_MAX];
  snprintf(line, sizeof line, "%s: %s", name, why->text[0] ? why->text : "it cannot be read");
  qk_utf8_clean(line);
  add_misfit(j, table, row, NULL, line);
}

void qk_journal_forget_misfits(qk_journal_t *j) {
  for (misfit_t *m; (m = j->misfit) != NULL;) {
    j->misfit = m->next;
    sqlite3_value_free(m->number);
    qk_free(m);
  }
  j->last_misfit = &j->misfit;
}

static bool execute(qk_journal_t *j, const char *sql) {
  return sqlite3_exec(j->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* number NULL: all of a job. */
static bool delete (qk_journal_t *j, table_t table, int64_t row, sqlite3_value *number) {
  sqlite3_stmt *s;
  if (sqlite3_prepare_v2(j->db, DELETE[table], -1, &s, NULL) != SQLITE_OK) return false;
  sqlite3_bind_int64(s, 1, row);
  if (number) sqlite3_bind_value(s, 2, number);
  const bool done = sqlite3_step(s) == SQLITE_DONE;
  sqlite3_finalize(s);
  return done;
}

static bool delete_all(qk_journal_t *j) {
  if (!execute(j, "PRAGMA synchronous=FULL") || !execute(j, "BEGIN IMMEDIATE")) return false;
  bool done = true;
  for (const misfit_t *m = j->misfit; m && done; m = m->next) {
    done = delete (j, m->table, m->row, m->number);
    if (done && m->table == JOB) done = delete (j, RHS, m->row, NULL);
  }
  return execute(j, done ? "COMMIT" : "ROLLBACK") && done;
}

/* The journal as it was, once. */
static qk_status_t copy(qk_journal_t *j, qk_err_t *err) {
  char path[QK_ASIDE_PATH + 32];
  sqlite3_stmt *s = NULL;
  if (j->copied) return QK_OK;
  qk_status_t status = qk_aside_make(j->aside, err);
  if (status != QK_OK) return status;
  snprintf(path, sizeof path, "%s/journal%s.db", j->aside->folder,
           j->recovered ? "-recovered" : "");
  if (sqlite3_prepare_v2(j->db, "VACUUM INTO ?", -1, &s, NULL) == SQLITE_OK)
    sqlite3_bind_text(s, 1, path, -1, SQLITE_STATIC);
  if (!s || sqlite3_step(s) != SQLITE_DONE)
    status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, sqlite3_errmsg(j->db));
  sqlite3_finalize(s);
  if (status == QK_OK) status = qk_file_sync(path, err);
  j->copied = status == QK_OK;
  return status;
}

void qk_journal_find_orphans(qk_journal_t *j) {
  static const char SELECT[] = "SELECT count(*) FROM (SELECT DISTINCT job FROM rhs) WHERE job NOT"
                               " IN (SELECT id FROM job)";
  sqlite3_stmt *s = NULL;
  char line[96];
  if (sqlite3_prepare_v2(j->db, SELECT, -1, &s, NULL) == SQLITE_OK &&
      sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int64(s, 0) > 0) {
    const long long n = sqlite3_column_int64(s, 0);
    snprintf(line, sizeof line, "right-hand sides of %lld %s not there", n,
             qk_plural(n, "request that is", "requests that are"));
    add_misfit(j, ORPHANS, 0, NULL, line);
  }
  sqlite3_finalize(s);
}

bool qk_journal_is_recovered(const qk_journal_t *j) {
  return j->recovered;
}

bool qk_journal_is_new(const qk_journal_t *j) {
  return j->is_new;
}

bool qk_journal_doubtful(const qk_journal_t *j) {
  return j && j->doubtful;
}

void qk_journal_set_aside(qk_journal_t *j) {
  qk_err_t err = {0};
  if (!j || !j->misfit) return;
  j->doubtful = true;
  if (copy(j, &err) != QK_OK || (!delete_all(j) && qk_journal_fail(j, "rows", &err) != QK_OK)) {
    qk_error("journal",
             "rows that do not fit stay in %s, as they cannot be set aside: %s; the "
             "first: %s",
             j->path, err.text, j->misfit->why);
  } else {
    for (const misfit_t *m = j->misfit; m; m = m->next) qk_aside_note(j->aside, "%s", m->why);
    qk_aside_sync(j->aside);
  }
  qk_journal_forget_misfits(j);
}

/* ---- tables -------------------------------------------------------------------------------- */

static int next_row(sqlite3_stmt *s) {
  return qk_fault(QK_FAULT_READ) ? SQLITE_IOERR_READ : sqlite3_step(s);
}

/* It says nothing of the row: whoever reads stops, and takes nothing for lost. */
static bool ends_it(qk_status_t code) {
  return code == QK_NO_MEMORY || code == QK_IO_ERROR;
}

static qk_status_t end_of(qk_journal_t *j, int k, int rc, const qk_err_t *why, qk_err_t *err) {
  sqlite3_reset(j->stmt[k]);
  if (ends_it(why->code)) return qk_fail(err, why->code, "%s", why->text);
  return rc == SQLITE_DONE ? QK_OK : qk_journal_fail(j, "reading it", err);
}

enum { NAME_BYTES = 64 };

/* Who gets the rows of a table. */
typedef struct reader {
  union {
    qk_note_fn *note;
    qk_setup_row_fn *setup;
    qk_session_row_fn *session;
    qk_job_row_fn *job;
  } fn;
  void *arg;
  double wall; /* of the journal */
} reader_t;

/* Reads a row, gives it a name for messages, and hands it to the reader if it is whole. False: it
 * is damaged, or the reader does not take it; *r->why says so. */
typedef bool take_fn(const row_t *r, const reader_t *reader, char name[NAME_BYTES]);

/* All rows of the statement k, which has the key of a row in its column `key`. */
static qk_status_t each_row(qk_journal_t *j, int k, int table, int key, take_fn *take,
                            const reader_t *reader, qk_err_t *err) {
  sqlite3_stmt *s = j->stmt[k];
  qk_err_t why = {0};
  int rc = SQLITE_DONE;
  while (!ends_it(why.code) && (rc = next_row(s)) == SQLITE_ROW) {
    char name[NAME_BYTES];
    why = (qk_err_t){0};
    if (!take(&(row_t){.s = s, .why = &why}, reader, name))
      misfit(j, table, sqlite3_column_int64(s, key), name, &why);
  }
  return end_of(j, k, rc, &why, err);
}

static bool take_note(const row_t *r, const reader_t *reader, char name[NAME_BYTES]) {
  const char *key = text(r, 0, NOTE_MAX), *value = text(r, 1, NOTE_MAX);
  snprintf(name, NAME_BYTES, "note %.50s", key);
  return r->why->code == QK_OK && reader->fn.note(reader->arg, key, value, r->why);
}

qk_status_t qk_journal_each_note(qk_journal_t *j, const char *prefix, qk_note_fn *fn, void *arg,
                                 qk_err_t *err) {
  if (!j) return QK_OK;
  sqlite3_bind_text(j->stmt[ALL_NOTES], 1, prefix, -1, SQLITE_TRANSIENT);
  return each_row(j, ALL_NOTES, NOTE, 2, take_note, &(reader_t){.fn.note = fn, .arg = arg}, err);
}

static bool take_setup(const row_t *r, const reader_t *reader, char name[NAME_BYTES]) {
  qk_setup_row_t row = {.id = integer(r, 0, 1, QK_JOURNAL_ID_MAX),
                        .lattice = text(r, 2, QK_LATTICE_MAX),
                        .dropped = flag(r, 3)};
  row.load = blob(r, 1, 1, QK_CONTROL_MAX, &row.load_bytes);
  snprintf(name, NAME_BYTES, "setup %lld", (long long)sqlite3_column_int64(r->s, 0));
  return r->why->code == QK_OK && reader->fn.setup(reader->arg, &row, r->why);
}

qk_status_t qk_journal_each_setup(qk_journal_t *j, qk_setup_row_fn *fn, void *arg, qk_err_t *err) {
  const reader_t reader = {.fn.setup = fn, .arg = arg};
  return each_row(j, ALL_SETUPS, SETUP, 0, take_setup, &reader, err);
}

static bool take_session(const row_t *r, const reader_t *reader, char name[NAME_BYTES]) {
  qk_session_row_t row = {.newest = (uint64_t)integer(r, 2, INT64_MIN, INT64_MAX)};
  client_of(r, 0, row.client_id);
  snprintf(row.user, sizeof row.user, "%s", text(r, 1, QK_USER_MAX));
  snprintf(name, NAME_BYTES, "session of client %02x%02x%02x%02x", row.client_id[0],
           row.client_id[1], row.client_id[2], row.client_id[3]);
  return r->why->code == QK_OK && reader->fn.session(reader->arg, &row, r->why);
}

qk_status_t qk_journal_each_session(qk_journal_t *j, qk_session_row_fn *fn, void *arg,
                                    qk_err_t *err) {
  const reader_t reader = {.fn.session = fn, .arg = arg};
  return each_row(j, ALL_SESSIONS, SESSION, 3, take_session, &reader, err);
}

static void read_parts(const row_t *r, qk_job_row_t *row) {
  size_t bytes = 0;
  if (sqlite3_column_type(r->s, 10) == SQLITE_NULL) return;
  row->token = blob(r, 10, QK_CLIENT_ID, QK_CLIENT_ID, &bytes);
  row->arrived = blob(r, 11, sizeof(uint32_t), QK_PARTS_MAX * sizeof(uint32_t), &bytes);
  row->nparts = (uint32_t)(bytes / sizeof(uint32_t));
}

static bool take_job(const row_t *r, const reader_t *reader, char name[NAME_BYTES]) {
  const double deadline = time_of(r, 5, 0);
  const int64_t kind = integer(r, 2, 0, QK_KIND_EIGEN);
  qk_job_row_t row = {.id = integer(r, 0, 1, QK_JOURNAL_ID_MAX),
                      .contraction = kind == QK_KIND_CONTRACTION,
                      .problem = kind == QK_KIND_EIGEN,
                      .field = kind == QK_KIND_FIELD,
                      .joined = kind == QK_KIND_JOIN,
                      .accepted_at = time_of(r, 4, -TIME_MAX) - reader->wall,
                      .deadline = deadline - reader->wall,
                      .has_deadline = deadline > 0,
                      .upload_next = (uint64_t)integer(r, 6, 0, INT64_MAX),
                      .forgotten = flag(r, 7),
                      .setup = integer(r, 8, 0, QK_JOURNAL_ID_MAX),
                      .lattice = text(r, 9, QK_LATTICE_MAX)};
  client_of(r, 1, row.client_id);
  read_parts(r, &row);
  row.message = blob(r, 3, 1, QK_CONTROL_MAX, &row.message_bytes);
  snprintf(name, NAME_BYTES, "request in row %lld", (long long)sqlite3_column_int64(r->s, 0));
  return r->why->code == QK_OK && reader->fn.job(reader->arg, &row, r->why);
}

qk_status_t qk_journal_each_job(qk_journal_t *j, qk_job_row_fn *fn, void *arg, qk_err_t *err) {
  const reader_t reader = {.fn.job = fn, .arg = arg, .wall = j->wall};
  return each_row(j, ALL_JOBS, JOB, 0, take_job, &reader, err);
}

static qk_outcome_t outcome_of(const row_t *r) {
  qk_outcome_t o = {.status = (qk_status_t)integer(r, 8, 0, INT32_MAX),
                    .true_residual = number(r, 10),
                    .seconds = number(r, 11),
                    .norm_b = number(r, 12),
                    .norm_x = number(r, 13),
                    .iterations = (uint64_t)integer(r, 14, 0, QK_JOURNAL_COUNT_MAX),
                    .applications = (uint64_t)integer(r, 15, 0, QK_JOURNAL_COUNT_MAX),
                    .written = flag(r, 16),
                    .hq_residual = number(r, 18)};
  snprintf(o.text, sizeof o.text, "%s", text(r, 9, sizeof o.text - 1));
  qk_utf8_clean(o.text);
  if (strcmp(qk_status_name(o.status), "UNKNOWN") == 0)
    qk_fail(r->why, QK_BAD_FORMAT, "status = %d is none", (int)o.status);
  return o;
}

/* Held by the row. */
static qk_wall_sums_t *read_wall(const row_t *r) {
  size_t bytes = 0;
  if (sqlite3_column_type(r->s, 19) == SQLITE_NULL) return NULL;
  const uint8_t *packed = blob(r, 19, 1, QK_WALL_SUMS_BYTES, &bytes);
  qk_wall_sums_t *sums = packed ? qk_wall_sums_read(packed, bytes) : NULL;
  if (packed && !sums) qk_fail(r->why, QK_BAD_FORMAT, "wall: %zu bytes are no such sums", bytes);
  return sums;
}

static void read_rhs(const row_t *r, qk_rhs_row_t *row) {
  const int64_t files = integer(r, 4, 0, 3);
  row->rhs = (qk_rhs_t){.index = (uint32_t)integer(r, 0, 0, QK_REQUEST_RHS_MAX - 1),
                        .state = (qk_rhs_state_t)integer(r, 1, QK_RHS_UPLOADING, QK_RHS_ACKED),
                        .spooled = files & 1,
                        .spilled = files & 2,
                        .checksum = (uint64_t)integer(r, 5, INT64_MIN, INT64_MAX),
                        .losses = (int)integer(r, 6, 0, LOSSES_MAX),
                        .attempt = (uint32_t)integer(r, 7, 0, UINT32_MAX),
                        .outcome = outcome_of(r)};
  row->rhs.digested = sqlite3_column_type(r->s, 17) != SQLITE_NULL;
  if (row->rhs.digested) row->rhs.digest = (uint64_t)integer(r, 17, INT64_MIN, INT64_MAX);
  row->rhs.wall = read_wall(r);
  row->source = text(r, 2, QK_SHM_NAME_MAX - 1);
  row->solution = text(r, 3, QK_SHM_NAME_MAX - 1);
}

/* What is known of it all the same. */
static void read_damaged(const row_t *r, qk_rhs_row_t *row) {
  qk_err_t unused = {0};
  const row_t again = {.s = r->s, .why = &unused};
  const bool acked = integer(&again, 1, QK_RHS_UPLOADING, QK_RHS_ACKED) == QK_RHS_ACKED;
  *row = (qk_rhs_row_t){.damaged = true, .source = "", .solution = ""};
  row->rhs.index = (uint32_t)integer(&again, 0, 0, QK_REQUEST_RHS_MAX - 1);
  row->rhs.attempt = (uint32_t)integer(&again, 7, 0, UINT32_MAX - 1);
  row->rhs.state = acked ? QK_RHS_ACKED : QK_RHS_UPLOADING;
}

/* Whether its number says which right-hand side it is. */
static bool has_number(sqlite3_stmt *s, uint32_t nrhs) {
  const int64_t n = sqlite3_column_int64(s, 0);
  return sqlite3_column_type(s, 0) == SQLITE_INTEGER && n >= 0 && n < nrhs;
}

qk_status_t qk_journal_each_rhs(qk_journal_t *j, int64_t job, uint32_t nrhs, qk_rhs_row_fn *fn,
                                void *arg, qk_err_t *err) {
  sqlite3_stmt *s = j->stmt[ALL_RHS];
  int rc;
  sqlite3_bind_int64(s, 1, job);
  while ((rc = next_row(s)) == SQLITE_ROW) {
    qk_rhs_row_t row = {.damaged = false};
    qk_err_t why = {0};
    char name[64];
    const row_t r = {.s = s, .why = &why};
    const bool known = has_number(s, nrhs);
    read_rhs(&r, &row);
    if (!known) qk_fail(&why, QK_BAD_FORMAT, "number is none of 0 .. %u", nrhs - 1);
    const bool taken = why.code == QK_OK && fn(arg, &row, &why);
    qk_wall_sums_drop(&row.rhs.wall);
    if (taken) continue;
    if (ends_it(why.code)) {
      sqlite3_reset(s);
      return qk_fail(err, why.code, "%s", why.text);
    }
    snprintf(name, sizeof name,
             "rhs %lld of the request in row %lld: ", (long long)sqlite3_column_int64(s, 0),
             (long long)job);
    qk_err_prefix(&why, "%s", name);
    add_misfit(j, RHS, job, sqlite3_column_value(s, 0), why.text);
    if (!known) continue;
    read_damaged(&r, &row);
    fn(arg, &row, &why);
  }
  sqlite3_reset(s);
  if (rc == SQLITE_DONE) return QK_OK;
  qk_journal_fail(j, "reading it", err);
  if (rc == SQLITE_CORRUPT) err->code = QK_BAD_FORMAT; /* it stays so: what could be read goes on */
  return err->code;
}
