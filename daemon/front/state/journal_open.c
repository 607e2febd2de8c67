#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/file.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/plural.h"
#include "daemon/base/utf8.h"
#include "daemon/front/host/folder.h"
#include "daemon/front/state/journal_impl.h"
#include "daemon/front/state/salvage.h"

#define VERSION "9"
enum { PAGE = 4096 }; /* bytes, as SQLite makes them */
static const char *const FILES[] = {"lock", "journal.db", "journal.db-wal", NULL};
static const char *const STATE_FILES[] = {"lock", NULL};

static const char MODES[] = "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL;";

static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS note(key TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS session(client BLOB PRIMARY KEY, user TEXT NOT NULL,"
    " newest INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS job(id INTEGER PRIMARY KEY, client BLOB NOT NULL,"
    " contraction INTEGER NOT NULL, message BLOB NOT NULL, accepted REAL NOT NULL,"
    " deadline REAL NOT NULL, upload_next INTEGER NOT NULL, forgotten INTEGER NOT NULL,"
    " setup INTEGER NOT NULL DEFAULT 0, lattice TEXT NOT NULL DEFAULT '',"
    " token BLOB, arrived BLOB);"
    "CREATE TABLE IF NOT EXISTS setup(id INTEGER PRIMARY KEY, load BLOB NOT NULL,"
    " lattice TEXT NOT NULL, dropped INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS rhs(job INTEGER, number INTEGER, state INTEGER, source TEXT,"
    " solution TEXT, spooled INTEGER, checksum INTEGER, losses INTEGER, attempt INTEGER,"
    " status INTEGER, text TEXT, true_residual REAL, seconds REAL, norm_b REAL, norm_x REAL,"
    " iterations INTEGER, applications INTEGER, written INTEGER, digest INTEGER,"
    " hq_residual REAL, wall BLOB, PRIMARY KEY(job, number))"
    " WITHOUT ROWID;";

/* What was read of an earlier version is in tables of this one. */
static const char IS_CURRENT[] =
    "UPDATE note SET value='" VERSION "' WHERE key='version' AND CAST(value AS INTEGER)<" VERSION;

static const char *const SQL[N_SQL] = {
    [PUT_NOTE] = "INSERT OR REPLACE INTO note VALUES(?,?)",
    [GET_NOTE] = "SELECT value FROM note WHERE key=?",
    [DROP_NOTE] = "DELETE FROM note WHERE key=?",
    [ALL_NOTES] =
        "SELECT key, value, rowid FROM note WHERE substr(key, 1, length(?1))=?1 ORDER BY key",
    /* the greater of two numbers without sign, which SQLite does not know */
    [PUT_SESSION] = ("INSERT INTO session VALUES(?,?,?) ON CONFLICT(client) DO UPDATE SET"
                     " newest=CASE WHEN (newest<0)=(excluded.newest<0) THEN"
                     " max(newest, excluded.newest) ELSE min(newest, excluded.newest) END"),
    [DROP_SESSION] = "DELETE FROM session WHERE client=?",
    [ADD_JOB] = "INSERT INTO job VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
    [PUT_JOB] = "UPDATE job SET upload_next=?, forgotten=?, arrived=? WHERE id=?",
    [PUT_RHS] = "INSERT OR REPLACE INTO rhs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [DROP_JOB] = "DELETE FROM job WHERE id=?",
    [DROP_RHS] = "DELETE FROM rhs WHERE job=?",
    [ALL_SESSIONS] = "SELECT client, user, newest, rowid FROM session",
    [ALL_JOBS] = ("SELECT id, client, contraction, message, accepted, deadline, upload_next,"
                  " forgotten, setup, lattice, token, arrived FROM job ORDER BY id"),
    [ALL_RHS] =
        ("SELECT number, state, source, solution, spooled, checksum, losses, attempt, status,"
         " text, true_residual, seconds, norm_b, norm_x, iterations, applications, written, digest,"
         " hq_residual, wall FROM rhs WHERE job=? ORDER BY number"),
    [ADD_SETUP] = "INSERT INTO setup VALUES(?,?,'',0)",
    [NOTE_SETUP] = "UPDATE setup SET lattice=? WHERE id=?",
    [END_SETUP] = "UPDATE setup SET dropped=1 WHERE id=?",
    [DROP_SETUP] = "DELETE FROM setup WHERE id=?",
    [ALL_SETUPS] = "SELECT id, load, lattice, dropped FROM setup ORDER BY id",
};

/* ---- opening and closing ------------------------------------------------------------------- */

/* The first number or text of the first row; "" where there is none. */
static void ask(sqlite3 *db, const char *select, char *answer, size_t size) {
  sqlite3_stmt *s = NULL;
  answer[0] = '\0';
  if (sqlite3_prepare_v2(db, select, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    snprintf(answer, size, "%s",
             sqlite3_column_text(s, 0) ? (const char *)sqlite3_column_text(s, 0) : "");
  sqlite3_finalize(s);
}

static void read_version(sqlite3 *db, char version[16]) {
  ask(db, "SELECT value FROM note WHERE key='version'", version, 16);
}

static bool is_of_version(sqlite3 *db, const char *version) {
  char found[16];
  read_version(db, found);
  return strcmp(found, version) == 0;
}

/* Version 1 knew no setups but the one of the command line, version 2 not what requests were
 * accepted on, version 3 no checksums of solutions, version 4 no checksums of blocks,
 * version 5 no fields, version 6 no heavy-quark residuals, version 7 no parts, version 8 no sums of
 * domain wall fermions. */
static qk_status_t upgrade(qk_journal_t *j, qk_err_t *err) {
  qk_status_t status = QK_OK;
  if (is_of_version(j->db, "1"))
    status = qk_journal_execute(j,
                                "BEGIN IMMEDIATE;"
                                "ALTER TABLE job ADD COLUMN setup INTEGER NOT NULL DEFAULT 0;"
                                "UPDATE note SET value='2' WHERE key='version'; COMMIT",
                                err);
  if (status == QK_OK && is_of_version(j->db, "2"))
    status = qk_journal_execute(j,
                                "BEGIN IMMEDIATE;"
                                "ALTER TABLE job ADD COLUMN lattice TEXT NOT NULL DEFAULT '';"
                                "UPDATE note SET value='3' WHERE key='version'; COMMIT",
                                err);
  if (status == QK_OK && is_of_version(j->db, "3"))
    status = qk_journal_execute(j,
                                "BEGIN IMMEDIATE;"
                                "ALTER TABLE rhs ADD COLUMN digest INTEGER;"
                                "UPDATE note SET value='4' WHERE key='version'; COMMIT",
                                err);
  if (status == QK_OK && is_of_version(j->db, "4"))
    status = qk_journal_execute(j, "UPDATE note SET value='5' WHERE key='version'", err);
  if (status == QK_OK && is_of_version(j->db, "5"))
    status = qk_journal_execute(j, "UPDATE note SET value='6' WHERE key='version'", err);
  if (status == QK_OK && is_of_version(j->db, "6"))
    status = qk_journal_execute(j,
                                "BEGIN IMMEDIATE;"
                                "ALTER TABLE rhs ADD COLUMN hq_residual REAL;"
                                "UPDATE note SET value='7' WHERE key='version'; COMMIT",
                                err);
  if (status == QK_OK && is_of_version(j->db, "7"))
    status = qk_journal_execute(j,
                                "BEGIN IMMEDIATE;"
                                "ALTER TABLE job ADD COLUMN token BLOB;"
                                "ALTER TABLE job ADD COLUMN arrived BLOB;"
                                "UPDATE note SET value='8' WHERE key='version'; COMMIT",
                                err);
  if (status == QK_OK && is_of_version(j->db, "8"))
    status = qk_journal_execute(j,
                                "BEGIN IMMEDIATE;"
                                "ALTER TABLE rhs ADD COLUMN wall BLOB;"
                                "UPDATE note SET value='9' WHERE key='version'; COMMIT",
                                err);
  return status;
}

/* select: the greatest id there is, far below the limit. */
static int64_t last_id(sqlite3 *db, const char *select) {
  sqlite3_stmt *s = NULL;
  int64_t id = 0;
  if (sqlite3_prepare_v2(db, select, -1, &s, NULL) == SQLITE_OK &&
      sqlite3_bind_int64(s, 1, QK_JOURNAL_ID_MAX / 2) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    id = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  return id;
}

/* Before anything is made in it: one of a later version is left as it is. */
static qk_status_t check_version(const qk_journal_t *j, qk_err_t *err) {
  char version[16];
  read_version(j->db, version);
  if (version[strspn(version, "0123456789")] ||
      strtol(version, NULL, 10) <= strtol(VERSION, NULL, 10))
    return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED,
                 "%s is a journal of version %s, and this program reads %s: start the quarkd that "
                 "wrote it, or take another folder",
                 j->path, version, VERSION);
}

/* On one line; quick_check heads its list with the name of the database. */
static const char *tidy(char *answer) {
  const char *behind = strchr(answer, '\n');
  const bool headed = behind && strncmp(answer, "***", 3) == 0 && behind[1];
  for (char *c = strchr(answer, '\n'); c; c = strchr(c, '\n')) *c = ' ';
  qk_utf8_clean(answer);
  return headed ? behind + 1 : answer;
}

/* QK_BAD_FORMAT with the cause alone where the file is damaged. */
static qk_status_t check_file(const qk_journal_t *j, qk_err_t *err) {
  char answer[160];
  ask(j->db, "PRAGMA quick_check(1)", answer, sizeof answer);
  const int rc = sqlite3_errcode(j->db) & 0xff;
  if (strcmp(answer, "ok") == 0) return QK_OK;
  if (!answer[0] && rc != SQLITE_CORRUPT && rc != SQLITE_NOTADB)
    return qk_journal_fail(j, "opening it", err);
  return qk_fail(err, QK_BAD_FORMAT, "%s", answer[0] ? tidy(answer) : sqlite3_errmsg(j->db));
}

static qk_status_t prepare(qk_journal_t *j, qk_err_t *err) {
  for (int k = 0; k < N_SQL; k++)
    if (sqlite3_prepare_v3(j->db, SQL[k], -1, SQLITE_PREPARE_PERSISTENT, &j->stmt[k], NULL) !=
        SQLITE_OK)
      return qk_fail(err, QK_BAD_FORMAT, "its tables: %s", sqlite3_errmsg(j->db));
  return QK_OK;
}

/* SQLite makes what it keeps beside the file with the mode of the file. */
static qk_status_t guard_files(const qk_journal_t *j, qk_err_t *err) {
  static const char *const with[] = {"-wal", "-shm", "-journal"};
  char path[sizeof j->path + 16];
  int fd;
  qk_status_t status = qk_folder_open(j->path, &fd, err);
  if (status == QK_OK) close(fd);
  for (size_t i = 0; i < sizeof with / sizeof with[0] && status == QK_OK; i++) {
    snprintf(path, sizeof path, "%s%s", j->path, with[i]);
    status = qk_folder_guard(path, err);
  }
  return status;
}

static void close_file(qk_journal_t *j) {
  for (int k = 0; k < N_SQL; k++) {
    sqlite3_finalize(j->stmt[k]);
    j->stmt[k] = NULL;
  }
  sqlite3_close(j->db);
  j->db = NULL;
}

/* QK_BAD_FORMAT: it is damaged. */
static qk_status_t open_file(qk_journal_t *j, qk_err_t *err) {
  qk_status_t status = guard_files(j, err);
  if (status != QK_OK) return status;
  if (sqlite3_open_v2(j->path, &j->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
      SQLITE_OK)
    return qk_journal_fail(j, "opening it", err);
  sqlite3_db_config(j->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
  sqlite3_exec(j->db, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL);
  status = check_file(j, err);
  if (status == QK_OK) status = check_version(j, err);
  if (status == QK_OK) status = qk_journal_execute(j, MODES, err);
  if (status == QK_OK) status = qk_journal_execute(j, SCHEMA, err);
  if (status == QK_OK) status = upgrade(j, err);
  if (status == QK_OK) status = prepare(j, err);
  if (status == QK_OK) sqlite3_db_config(j->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
  return status;
}

/* NULL: it is there and holds something. */
static const char *lack_of(const char *path) {
  struct stat st;
  if (stat(path, &st) != 0) return errno == ENOENT ? "is gone" : NULL;
  return st.st_size == 0 ? "is empty" : NULL;
}

/* SQLite deletes the log of a file that is not there, or empty, unread; not that of a page without
 * meaning, which it takes from the log where it has it. */
static qk_status_t save_log(const qk_journal_t *j, qk_err_t *err) {
  int fd;
  if (!j->lack || j->wal_lack) return QK_OK;
  const qk_status_t status = qk_folder_open(j->path, &fd, err);
  if (status != QK_OK) return status;
  const bool done = ftruncate(fd, PAGE) == 0;
  const int e = errno;
  close(fd);
  return done ? QK_OK : qk_fail(err, QK_IO_ERROR, "%s: %s", j->path, strerror(e));
}

static qk_status_t look(qk_journal_t *j, qk_err_t *err) {
  char wal[sizeof j->path + 8];
  snprintf(wal, sizeof wal, "%s-wal", j->path);
  j->lack = lack_of(j->path);
  j->wal_lack = lack_of(wal);
  return save_log(j, err);
}

/* Where it is damaged what can be read of it is in the file that is opened then. */
static qk_status_t open_sound(qk_journal_t *j, qk_err_t *err) {
  qk_err_t why = {0};
  bool resumed;
  qk_status_t status = qk_salvage_resume(j->path, j->aside, &resumed, err);
  if (status != QK_OK) return status;
  j->recovered = j->doubtful = resumed;
  status = look(j, err);
  if (status != QK_OK) return status;
  status = open_file(j, &why);
  const bool from_log = j->lack && !j->wal_lack;
  if (status == QK_OK && from_log)
    qk_warn("journal", "%s %s: quarkd has made it again from its write-ahead log, %s-wal", j->path,
            j->lack, j->path);
  if (status == QK_BAD_FORMAT) {
    close_file(j);
    if (from_log)
      snprintf(why.text, sizeof why.text, "it %s, but for its write-ahead log", j->lack);
    status = qk_salvage(j->path, SCHEMA, IS_CURRENT, why.text, j->aside, err);
    if (status != QK_OK) return status;
    j->recovered = j->doubtful = true;
    why = (qk_err_t){0};
    status = open_file(j, &why);
  }
  return status == QK_OK ? status : qk_fail(err, status, "%s", why.text);
}

/* A note that is none is set aside with the others. */
static qk_status_t note_version(qk_journal_t *j, qk_err_t *err) {
  if (is_of_version(j->db, VERSION)) return QK_OK;
  char notes[16];
  ask(j->db, "SELECT count(*) FROM note", notes, sizeof notes);
  j->is_new = strcmp(notes, "0") == 0 && !j->recovered;
  j->doubtful = true;
  return qk_journal_put_note(j, "version", VERSION, err);
}

/* What is left of the write-ahead log, which is written over soon. */
static void keep_log(const qk_journal_t *j) {
  char from[sizeof j->path + 8], to[QK_ASIDE_PATH + 32];
  struct stat st;
  qk_err_t err = {0};
  snprintf(from, sizeof from, "%s-wal", j->path);
  snprintf(to, sizeof to, "%s/journal.db-wal.damaged", j->aside->folder);
  if (stat(from, &st) != 0 || st.st_size == 0) return;
  if (qk_file_copy(from, to, &err) == QK_OK)
    qk_aside_note(j->aside, "journal.db-wal: a copy of it is journal.db-wal.damaged");
  else
    qk_warn("journal", "%s", err.text);
}

/* Fewer transactions than there have been: the file is older than the folder, or the end of its log
 * was lost. Of a damaged file whose own count is lost it has been told what could be read. */
static void tell_of_loss(qk_journal_t *j, uint64_t least) {
  qk_err_t err = {0};
  const unsigned long long n = least - j->commits;
  char last[48], cause[96] = "it was damaged";
  j->doubtful = true;
  if (j->recovered && j->commits == 0) return;
  if (qk_aside_make(j->aside, &err) != QK_OK) qk_error("journal", "%s", err.text);
  snprintf(last, sizeof last, n == 1 ? "transaction" : "%llu transactions", n);
  if (!j->recovered)
    snprintf(cause, sizeof cause,
             "its write-ahead log (journal.db-wal) %s, or the file is an older one",
             j->wal_lack ? j->wal_lack : "is damaged");
  if (j->is_new)
    qk_aside_miss(j->aside,
                  "%s %s: its requests and results are lost, and their clients submit them again",
                  j->path, j->lack ? j->lack : "holds nothing");
  else
    qk_aside_miss(j->aside,
                  "%s lacks its last %s, as %s: requests and results since then are lost, and "
                  "their clients submit them again",
                  j->path, last, cause);
  if (!j->is_new && !j->recovered) keep_log(j);
  qk_aside_sync(j->aside);
}

static qk_status_t open_mark(qk_journal_t *j, qk_err_t *err) {
  char path[sizeof j->path + 8], commits[24];
  uint64_t least;
  snprintf(path, sizeof path, "%.*s.mark", (int)(strlen(j->path) - strlen(".db")), j->path);
  const qk_status_t status = qk_mark_open(&j->mark, path, &least, err);
  if (status != QK_OK) return status;
  if (qk_journal_note(j, "commits", commits, sizeof commits))
    j->commits = strtoull(commits, NULL, 10);
  if (j->commits < least) tell_of_loss(j, least);
  qk_mark_put(&j->mark, j->commits, false);
  return QK_OK;
}

qk_status_t qk_journal_open(const char *dir, const char *state, qk_spool_t *spool,
                            qk_aside_t *aside, double now, qk_journal_t **journal, qk_err_t *err) {
  qk_journal_t *j = qk_calloc(1, sizeof *j);
  if (!j) return qk_fail(err, QK_NO_MEMORY, "no memory for a journal");
  snprintf(j->path, sizeof j->path, "%s/journal.db", dir);
  j->mark.fd = -1;
  j->spool = spool;
  j->aside = aside;
  j->last_misfit = &j->misfit;
  qk_marks_init(&j->marks);
  qk_lines_init(&j->lines);
  qk_lines_init(&j->writing);
  qk_status_t status = open_sound(j, err);
  if (status == QK_OK) status = note_version(j, err);
  if (status == QK_OK) status = open_mark(j, err);
  if (status != QK_OK) {
    qk_journal_close(j);
    return status;
  }
  j->marks.last_id = last_id(j->db, "SELECT max(id) FROM job WHERE id BETWEEN 1 AND ?");
  j->last_setup = last_id(j->db, "SELECT max(id) FROM setup WHERE id BETWEEN 1 AND ?");
  qk_places_note(&j->places, dir, FILES);
  if (strcmp(dir, state) != 0) qk_places_note(&j->state, state, STATE_FILES);
  qk_journal_find_clock(j, now);
  *journal = j;
  return QK_OK;
}

void qk_journal_close(qk_journal_t *j) {
  if (!j) return;
  qk_marks_fini(&j->marks);
  qk_lines_free(&j->lines);
  qk_journal_forget_misfits(j);
  close_file(j);
  qk_mark_close(&j->mark);
  qk_free(j);
}
