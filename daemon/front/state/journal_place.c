#include "daemon/front/state/journal_place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/file.h"
#include "daemon/front/host/folder.h"
#include "proto/limits.h"

static const char AT[] = "journal.at", OF[] = "journal.of";

enum { PATH = QK_PATH_MAX + 32, LINE = PATH + 32 };

/* One of the two files. */
typedef struct mate {
  bool there;
  uint64_t number;
  char path[PATH]; /* of the other folder */
} mate_t;

static bool exists(const char *dir, const char *name) {
  char path[PATH];
  struct stat st;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  return lstat(path, &st) == 0;
}

static qk_status_t read_mate(const char *dir, const char *name, mate_t *mate, qk_err_t *err) {
  char path[PATH], line[LINE] = "";
  int fd, end = 0;
  *mate = (mate_t){.there = exists(dir, name)};
  if (!mate->there) return QK_OK;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  const qk_status_t status = qk_folder_open(path, &fd, err);
  if (status != QK_OK) return status;
  const ssize_t n = pread(fd, line, sizeof line - 1, 0);
  const int e = errno;
  close(fd);
  if (n < 0) return qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(e));
  line[strcspn(line, "\n")] = '\0';
  if (sscanf(line, "%16" SCNx64 " %n", &mate->number, &end) != 1 || line[end] != '/')
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s does not name a folder: put it back as it was, or remove it if the journal "
                   "is lost",
                   path);
  snprintf(mate->path, sizeof mate->path, "%s", line + end);
  return QK_OK;
}

static qk_status_t write_mate(const char *dir, const char *name, uint64_t number, const char *other,
                              qk_err_t *err) {
  char path[PATH], line[LINE];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  const int n = snprintf(line, sizeof line, "%016" PRIx64 " %s\n", number, other);
  return qk_file_replace(path, line, n, err);
}

/* Without --journal. */
static qk_status_t check_none(const char *state, const mate_t *at, qk_err_t *err) {
  mate_t of;
  if (at->there)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "state = %.150s: its journal is in %.150s (%s): start quarkd with --journal; or "
                   "move journal.* from there into the state folder and remove %s and %s",
                   state, at->path, AT, AT, OF);
  const qk_status_t status = read_mate(state, OF, &of, err);
  if (status != QK_OK || !of.there) return status;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "state = %.150s holds the journal of the state folder %.150s (%s): choose another "
                 "folder, or start quarkd with that one and --journal",
                 state, of.path, OF);
}

/* The state folder knows of no journal elsewhere: this one is new to it. */
static qk_status_t begin(const char *state, const char *journal, const mate_t *of, qk_err_t *err) {
  uint64_t number = of->number;
  if (exists(state, "journal.db"))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "journal = %.150s: the journal is in the state folder %.150s: while no quarkd "
                   "runs, move journal.db, journal.db-wal and journal.mark from there; or leave "
                   "out --journal",
                   journal, state);
  if (exists(journal, "spool") || exists(journal, AT))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "journal = %.300s is a state folder itself: choose another folder", journal);
  if (of->there && strcmp(of->path, state) != 0)
    return qk_fail(
        err, QK_BAD_ARGUMENT,
        "journal = %.150s belongs to the state folder %.150s (%s): choose another folder", journal,
        of->path, OF);
  if (!of->there && getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
    return qk_fail(err, QK_INTERNAL, "getrandom: %s", strerror(errno));
  const qk_status_t status = write_mate(journal, OF, number, state, err);
  return status == QK_OK ? write_mate(state, AT, number, journal, err) : status;
}

/* Both may have been moved. */
static qk_status_t go_on(const char *state, const char *journal, const mate_t *at, const mate_t *of,
                         qk_err_t *err) {
  if (!of->there || of->number != at->number)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "journal = %.150s is not the journal of %.150s, which was in %.100s: mount or "
                   "name that one; only if it is lost, remove %s from the state folder",
                   journal, state, at->path, AT);
  if (exists(state, "journal.db"))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "state = %.150s has a journal.db, and %s names that of %.150s: remove the one "
                   "that is not wanted",
                   state, AT, at->path);
  qk_status_t status = QK_OK;
  if (strcmp(of->path, state) != 0) status = write_mate(journal, OF, at->number, state, err);
  if (status == QK_OK && strcmp(at->path, journal) != 0)
    status = write_mate(state, AT, at->number, journal, err);
  return status;
}

qk_status_t qk_journal_place(const char *state, const char *journal, qk_err_t *err) {
  mate_t at, of;
  qk_status_t status = read_mate(state, AT, &at, err);
  if (status != QK_OK) return status;
  if (!journal || strcmp(journal, state) == 0) return check_none(state, &at, err);
  status = read_mate(journal, OF, &of, err);
  if (status != QK_OK) return status;
  return at.there ? go_on(state, journal, &at, &of, err) : begin(state, journal, &of, err);
}
