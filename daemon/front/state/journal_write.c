#include "daemon/front/state/journal_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "daemon/base/log.h"

/* ---- rows ---------------------------------------------------------------------------------- */

void qk_journal_lattice(const qk_shape_t *shape, uint64_t digest, char text[QK_LATTICE_MAX]) {
  const uint32_t *dims = shape->dims;
  const int n = snprintf(text, QK_LATTICE_MAX, "%u %u %u %u %016llx", dims[0], dims[1], dims[2],
                         dims[3], (unsigned long long)digest);
  if (!qk_shape_is_usual(shape))
    snprintf(text + n, (size_t)(QK_LATTICE_MAX - n), " %u %u", shape->site_reals, shape->columns);
}

/* How far they are; NULL: the request has none. */
static void bind_parts(sqlite3_stmt *s, int i, const qk_job_record_t *record) {
  if (record->nparts > 0)
    sqlite3_bind_blob64(s, i, record->arrived, record->nparts * sizeof(uint32_t), SQLITE_STATIC);
}

static bool write_new(qk_journal_t *j, const qk_job_record_t *record) {
  const qk_new_request_t *request = &record->new_request;
  char lattice[QK_LATTICE_MAX];
  sqlite3_stmt *s = j->stmt[PUT_SESSION];
  sqlite3_bind_blob(s, 1, request->client_id, QK_CLIENT_ID, SQLITE_STATIC);
  qk_journal_bind_text(s, 2, request->user);
  sqlite3_bind_int64(s, 3, (int64_t)request->request);
  if (!qk_journal_run(j, PUT_SESSION)) return false;
  s = j->stmt[ADD_JOB];
  sqlite3_bind_int64(s, 1, record->id);
  sqlite3_bind_blob(s, 2, request->client_id, QK_CLIENT_ID, SQLITE_STATIC);
  sqlite3_bind_int(s, 3,
                   request->joined    ? QK_KIND_JOIN
                   : request->field   ? QK_KIND_FIELD
                   : request->problem ? QK_KIND_EIGEN
                                      : request->contraction);
  sqlite3_bind_blob64(s, 4, request->message, request->message_bytes, SQLITE_STATIC);
  sqlite3_bind_double(s, 5, request->accepted_at + j->wall);
  sqlite3_bind_double(s, 6, request->deadline > 0 ? request->deadline + j->wall : 0);
  sqlite3_bind_int64(s, 7, (int64_t)record->upload_next);
  sqlite3_bind_int(s, 8, record->forgotten);
  sqlite3_bind_int64(s, 9, request->setup_id);
  qk_journal_lattice(&request->shape, request->config, lattice);
  qk_journal_bind_text(s, 10, lattice);
  if (request->has_token) sqlite3_bind_blob(s, 11, request->token, QK_CLIENT_ID, SQLITE_STATIC);
  bind_parts(s, 12, record);
  return qk_journal_run(j, ADD_JOB);
}

static bool write_changed(qk_journal_t *j, const qk_job_record_t *record) {
  sqlite3_stmt *s = j->stmt[PUT_JOB];
  sqlite3_bind_int64(s, 1, (int64_t)record->upload_next);
  sqlite3_bind_int(s, 2, record->forgotten);
  bind_parts(s, 3, record);
  sqlite3_bind_int64(s, 4, record->id);
  return qk_journal_run(j, PUT_JOB);
}

static bool write_rhs(qk_journal_t *j, int64_t job, const qk_rhs_record_t *rhs) {
  sqlite3_stmt *s = j->stmt[PUT_RHS];
  const qk_outcome_t *o = &rhs->outcome;
  sqlite3_bind_int64(s, 1, job);
  sqlite3_bind_int64(s, 2, rhs->index);
  sqlite3_bind_int(s, 3, rhs->state);
  qk_journal_bind_text(s, 4, rhs->source);
  qk_journal_bind_text(s, 5, rhs->solution);
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
  sqlite3_bind_double(s, 20, o->hq_residual);
  if (rhs->wall) sqlite3_bind_blob(s, 21, rhs->wall->packed, (int)rhs->wall->bytes, SQLITE_STATIC);
  return qk_journal_run(j, PUT_RHS);
}

static bool write_job(qk_journal_t *j, const qk_job_record_t *record) {
  if (record->is_new && !write_new(j, record)) return false;
  if (!record->is_new && record->changed && !write_changed(j, record)) return false;
  for (uint32_t i = 0; i < record->nrhs; i++)
    if (!write_rhs(j, record->id, &record->rhs[i])) return false;
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

bool qk_journal_write_line(qk_journal_t *j, const line_t *line) {
  sqlite3_stmt *s = j->stmt[line->statement];
  switch (line->statement) {
  case PUT_NOTE:
    qk_journal_bind_text(s, 2, line->value);
    qk_journal_bind_text(s, 1, line->key);
    break;
  case DROP_NOTE:
    qk_journal_bind_text(s, 1, line->key);
    break;
  case NOTE_SETUP:
    qk_journal_bind_text(s, 1, line->value);
    sqlite3_bind_int64(s, 2, line->id);
    break;
  default:
    sqlite3_bind_int64(s, 1, line->id);
  }
  return qk_journal_run(j, line->statement);
}

/* Others are not counted: notes, and what is only to be brought to the disk. */
static bool has_rows(const qk_snapshot_t *snapshot) {
  return snapshot->jobs || snapshot->gone;
}

/* The count is written in any case: without a change there would be nothing to sync. */
static bool write_all(qk_journal_t *j, const qk_snapshot_t *snapshot) {
  char commits[24];
  qk_err_t err = {0};
  for (const line_t *line = j->writing.first; line; line = line->next)
    if (!qk_journal_write_line(j, line)) return false;
  for (const qk_gone_t *g = snapshot->gone; g; g = g->next)
    if (!remove_gone(j, g)) return false;
  for (const qk_job_record_t *record = snapshot->jobs; record; record = record->next)
    if (!write_job(j, record)) return false;
  snprintf(commits, sizeof commits, "%llu", (unsigned long long)j->commits + has_rows(snapshot));
  return qk_journal_write_note(j, "commits", commits, &err) == QK_OK;
}

/* ---- transactions -------------------------------------------------------------------------- */

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

static qk_status_t explain(const qk_journal_t *j, int e, qk_err_t *err) {
  return qk_fail(err, QK_IO_ERROR, "%.260s: %s: %s", j->path,
                 e != 0 ? strerror(e) : sqlite3_errmsg(j->db), advice_for(e));
}

static bool write_transaction(qk_journal_t *j) {
  qk_err_t err = {0};
  sqlite3_exec(j->db, j->full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", NULL, NULL,
               NULL);
  return qk_journal_execute(j, "BEGIN IMMEDIATE", &err) == QK_OK &&
         (!j->tries || qk_journal_write_note(j, "tried", "", &err) == QK_OK) &&
         write_all(j, &j->snapshot) && qk_journal_execute(j, "COMMIT", &err) == QK_OK;
}

qk_status_t qk_journal_write(qk_journal_t *j, qk_err_t *err) {
  if (has_rows(&j->snapshot) && qk_fault(QK_FAULT_WRITE)) return explain(j, ENOSPC, err);
  j->full = j->snapshot.sync;
  if (write_transaction(j)) {
    j->commits += has_rows(&j->snapshot);
    qk_mark_put(&j->mark, j->commits, j->full);
    return QK_OK;
  }
  explain(j, cause_of(j), err);
  if (!sqlite3_get_autocommit(j->db)) sqlite3_exec(j->db, "ROLLBACK", NULL, NULL, NULL);
  return err->code;
}
