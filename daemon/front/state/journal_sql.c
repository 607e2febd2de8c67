#include "daemon/front/state/journal_impl.h"

#include <stdio.h>

static const double LONG_AGO = 1e-9; /* seconds of the loop's clock */

qk_status_t qk_journal_fail(const qk_journal_t *j, const char *what, qk_err_t *err) {
  return qk_fail(err, QK_IO_ERROR, "%s: %s: %s", j->path, what, sqlite3_errmsg(j->db));
}

qk_status_t qk_journal_execute(qk_journal_t *j, const char *sql, qk_err_t *err) {
  return sqlite3_exec(j->db, sql, NULL, NULL, NULL) == SQLITE_OK
             ? QK_OK
             : qk_journal_fail(j, "SQLite", err);
}

bool qk_journal_run(qk_journal_t *j, int k) {
  const int rc = sqlite3_step(j->stmt[k]);
  sqlite3_reset(j->stmt[k]);
  sqlite3_clear_bindings(j->stmt[k]);
  return rc == SQLITE_DONE;
}

void qk_journal_bind_text(sqlite3_stmt *s, int i, const char *text) {
  sqlite3_bind_text(s, i, text, -1, SQLITE_TRANSIENT);
}

qk_status_t qk_journal_write_note(qk_journal_t *j, const char *key, const char *value,
                                  qk_err_t *err) {
  const int k = value ? PUT_NOTE : DROP_NOTE;
  qk_journal_bind_text(j->stmt[k], 1, key);
  if (value) qk_journal_bind_text(j->stmt[k], 2, value);
  if (j->wrote_at == 0) j->wrote_at = LONG_AGO;
  return qk_journal_run(j, k) ? QK_OK : qk_journal_fail(j, key, err);
}

bool qk_journal_note(qk_journal_t *j, const char *key, char *value, size_t size) {
  sqlite3_stmt *s = j->stmt[GET_NOTE];
  sqlite3_bind_text(s, 1, key, -1, SQLITE_TRANSIENT);
  const char *text = sqlite3_step(s) == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
  if (text) snprintf(value, size, "%s", text);
  sqlite3_reset(s);
  return text;
}
