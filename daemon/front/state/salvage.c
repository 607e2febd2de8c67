#include "daemon/front/state/salvage.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/file.h"
#include "daemon/base/log.h"
#include "daemon/base/plural.h"

enum { ROWS_MAX = 1 << 28 }; /* of one table: damaged pages may name each other */

static const char FILLING[] = ".new", READY[] = ".ready";

/* From the front until a page cannot be read, then from the end to that page. ?1: the key behind
 * which, INT64_MIN at first; column 0 is the key, the others go into the new table. */
typedef struct table {
  const char *one, *more; /* NULL: nothing that anybody has asked for */
  const char *forward, *backward, *insert;
} table_t;

static const table_t TABLES[] = {
    {NULL, NULL, "SELECT rowid, key, value FROM note WHERE rowid>?1 ORDER BY rowid",
     "SELECT rowid, key, value FROM note WHERE rowid>?1 ORDER BY rowid DESC",
     "INSERT OR IGNORE INTO note VALUES(?,?)"},
    {"setup", "setups", "SELECT id, id, load, lattice, dropped FROM setup WHERE id>?1 ORDER BY id",
     "SELECT id, id, load, lattice, dropped FROM setup WHERE id>?1 ORDER BY id DESC",
     "INSERT OR IGNORE INTO setup VALUES(?,?,?,?)"},
    {"client", "clients",
     "SELECT rowid, client, user, newest FROM session WHERE rowid>?1 ORDER BY rowid",
     "SELECT rowid, client, user, newest FROM session WHERE rowid>?1 ORDER BY rowid DESC",
     "INSERT OR IGNORE INTO session VALUES(?,?,?)"},
    {"request", "requests", "SELECT id, * FROM job WHERE id>?1 ORDER BY id",
     "SELECT id, * FROM job WHERE id>?1 ORDER BY id DESC",
     "INSERT OR IGNORE INTO job VALUES(?,?,?,?,?,?,?,?,coalesce(?,0),coalesce(?,''),?,?)"},
};

/* Of the request ?2. */
static const table_t RHS = {
    "right-hand side", "right-hand sides",
    "SELECT number, * FROM rhs WHERE job=?2 AND number>?1 ORDER BY number",
    "SELECT number, * FROM rhs WHERE job=?2 AND number>?1 ORDER BY number DESC",
    "INSERT OR IGNORE INTO rhs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"};

typedef struct salvage {
  sqlite3 *from, *to;
  bool full; /* the new file cannot be written */
} salvage_t;

static bool put(sqlite3_stmt *in, sqlite3_stmt *out) {
  for (int i = 1; i < sqlite3_column_count(in); i++)
    sqlite3_bind_value(out, i, sqlite3_column_value(in, i));
  const bool done = sqlite3_step(out) == SQLITE_DONE;
  sqlite3_reset(out);
  return done;
}

/* Rows behind *key in this order, until the end (true) or what cannot be read; *key: of the last
 * one. */
static bool copy_some(salvage_t *s, const char *select, sqlite3_stmt *out, int64_t job,
                      int64_t *key, int64_t *rows) {
  sqlite3_stmt *in = NULL;
  int rc = SQLITE_ERROR;
  if (sqlite3_prepare_v2(s->from, select, -1, &in, NULL) == SQLITE_OK) {
    sqlite3_bind_int64(in, 1, *key);
    if (sqlite3_bind_parameter_count(in) > 1) sqlite3_bind_int64(in, 2, job);
    while (*rows < ROWS_MAX && !s->full && (rc = sqlite3_step(in)) == SQLITE_ROW) {
      *key = sqlite3_column_int64(in, 0);
      s->full = !put(in, out);
      ++*rows;
    }
  }
  sqlite3_finalize(in);
  return rc == SQLITE_DONE;
}

static int64_t copy(salvage_t *s, const table_t *table, int64_t job) {
  sqlite3_stmt *out = NULL;
  int64_t key = INT64_MIN, rows = 0;
  if (sqlite3_prepare_v2(s->to, table->insert, -1, &out, NULL) != SQLITE_OK) {
    s->full = true;
    return 0;
  }
  if (!copy_some(s, table->forward, out, job, &key, &rows))
    copy_some(s, table->backward, out, job, &key, &rows);
  sqlite3_finalize(out);
  return rows;
}

/* Of all requests that are in the new file. */
static int64_t copy_rhs(salvage_t *s) {
  sqlite3_stmt *jobs = NULL;
  int64_t rows = 0;
  if (sqlite3_prepare_v2(s->to, "SELECT id FROM job", -1, &jobs, NULL) != SQLITE_OK) return 0;
  while (!s->full && sqlite3_step(jobs) == SQLITE_ROW)
    rows += copy(s, &RHS, sqlite3_column_int64(jobs, 0));
  sqlite3_finalize(jobs);
  return rows;
}

/* Nothing of the old file is changed. */
static void open_old(salvage_t *s, const char *path) {
  if (sqlite3_open_v2(path, &s->from, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) return;
  sqlite3_db_config(s->from, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
  sqlite3_exec(s->from, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL);
}

/* Of all tables. found: what that was, "": nothing. */
static void copy_all(salvage_t *s, char *found, size_t size) {
  size_t n = 0;
  found[0] = '\0';
  for (size_t t = 0; t <= sizeof TABLES / sizeof TABLES[0]; t++) {
    const table_t *table = t < sizeof TABLES / sizeof TABLES[0] ? &TABLES[t] : &RHS;
    const long long rows = table == &RHS ? copy_rhs(s) : copy(s, table, 0);
    if (rows > 0 && table->one)
      n += (size_t)snprintf(found + n, size - n, "%s%lld %s", n > 0 ? ", " : "", rows,
                            qk_plural(rows, table->one, table->more));
  }
}

static qk_status_t fill(salvage_t *s, const char *path, const char *new, const char *schema,
                        const char *finish, char *found, size_t size, qk_err_t *err) {
  unlink(new);
  if (sqlite3_open_v2(new, &s->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK ||
      sqlite3_exec(s->to, schema, NULL, NULL, NULL) != SQLITE_OK ||
      sqlite3_exec(s->to, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
    return qk_fail(err, QK_IO_ERROR, "%s: %s", new, sqlite3_errmsg(s->to));
  open_old(s, path);
  copy_all(s, found, size);
  if (s->full || sqlite3_exec(s->to, finish, NULL, NULL, NULL) != SQLITE_OK ||
      sqlite3_exec(s->to, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
    return qk_fail(err, QK_IO_ERROR, "%s: %s", new, sqlite3_errmsg(s->to));
  return QK_OK;
}

/* To another device, too. False with errno. */
static bool carry(const char *from, const char *to) {
  qk_err_t err = {0};
  if (rename(from, to) == 0) return true;
  if (errno != EXDEV || access(from, F_OK) != 0) return false;
  unlink(to); /* of a front that was killed meanwhile */
  if (qk_file_copy(from, to, &err) == QK_OK && qk_file_sync(to, &err) == QK_OK)
    return unlink(from) == 0;
  errno = EIO;
  return false;
}

/* With what SQLite keeps beside it, but for what has been moved already. */
static qk_status_t move(const char *path, const qk_aside_t *aside, qk_err_t *err) {
  static const char *const with[] = {"-wal", "-shm", "-journal", ""};
  char from[QK_ASIDE_PATH + 16], to[QK_ASIDE_PATH + 32];
  for (size_t i = 0; i < sizeof with / sizeof with[0]; i++) {
    snprintf(from, sizeof from, "%s%s", path, with[i]);
    snprintf(to, sizeof to, "%s/journal.db%s", aside->folder, with[i]);
    if (!carry(from, to) && errno != ENOENT)
      return qk_fail(err, QK_IO_ERROR, "%s: cannot be moved to %s: %s", from, to, strerror(errno));
  }
  qk_file_sync_folder(to);
  return QK_OK;
}

/* From the ready file on the old one is of no use, whatever is left of it. */
static qk_status_t finish(const char *path, const qk_aside_t *aside, qk_err_t *err) {
  char ready[QK_ASIDE_PATH];
  snprintf(ready, sizeof ready, "%s%s", path, READY);
  const qk_status_t status = move(path, aside, err);
  if (status != QK_OK) return status;
  if (rename(ready, path) != 0)
    return qk_fail(err, QK_IO_ERROR, "%s: cannot be moved to %s: %s", ready, path, strerror(errno));
  qk_file_sync_folder(path);
  return QK_OK;
}

/* A part of the old file without the rest (its write-ahead log) would be another journal: so the
 * new one is made known before anything of the old one goes. */
static qk_status_t replace(const char *path, const char *new, const qk_aside_t *aside,
                           qk_err_t *err) {
  char ready[QK_ASIDE_PATH];
  snprintf(ready, sizeof ready, "%s%s", path, READY);
  if (rename(new, ready) != 0)
    return qk_fail(err, QK_IO_ERROR, "%s: cannot be moved to %s: %s", new, ready, strerror(errno));
  qk_file_sync_folder(path);
  return finish(path, aside, err);
}

qk_status_t qk_salvage(const char *path, const char *schema, const char *finish, const char *cause,
                       qk_aside_t *aside, qk_err_t *err) {
  char new[QK_ASIDE_PATH], found[200] = "";
  salvage_t s = {.full = false};
  snprintf(new, sizeof new, "%s%s", path, FILLING);
  qk_status_t status = fill(&s, path, new, schema, finish, found, sizeof found, err);
  sqlite3_close(s.from);
  sqlite3_close(s.to);
  if (status == QK_OK) status = qk_aside_make(aside, err);
  if (status == QK_OK) {
    qk_aside_note(aside, "journal.db, as it is damaged (%s): %s%s", cause,
                  found[0] ? "quarkd continues with what it could read: "
                           : "no request could be read from it; clients submit theirs again",
                  found);
    qk_aside_sync(aside);
    status = replace(path, new, aside, err);
  }
  if (status != QK_OK)
    qk_err_prefix(err, "%s is damaged (%s) and cannot be set aside", path, cause);
  return status;
}

qk_status_t qk_salvage_resume(const char *path, qk_aside_t *aside, bool *found, qk_err_t *err) {
  char ready[QK_ASIDE_PATH];
  snprintf(ready, sizeof ready, "%s%s", path, READY);
  *found = access(ready, F_OK) == 0;
  if (!*found) return QK_OK;
  qk_status_t status = aside->folder[0] ? QK_OK : qk_aside_make(aside, err);
  if (status == QK_OK) status = finish(path, aside, err);
  if (status != QK_OK) {
    qk_err_prefix(err, "%s is damaged and cannot be set aside", path);
    return status;
  }
  qk_warn("journal",
          "the quarkd before this one was killed while it recovered %s, which was damaged: that is "
          "finished now, and the damaged file is in %s",
          path, aside->folder);
  return QK_OK;
}
