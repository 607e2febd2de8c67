#include "daemon/front/storage/aside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/file.h"
#include "daemon/base/log.h"
#include "daemon/base/plural.h"
#include "daemon/base/utf8.h"

enum { TOLD = 20, LINE = 640 }; /* things that the log has; bytes of a line */

/* N of the name aside-N; 0: it is another. */
static int number_of(const char *name) {
  int n, end = 0;
  return sscanf(name, "aside-%d%n", &n, &end) == 1 && end > 0 && !name[end] && n > 0 ? n : 0;
}

void qk_aside_open(qk_aside_t *a, const char *dir) {
  *a = (qk_aside_t){.folder = ""};
  snprintf(a->dir, sizeof a->dir, "%s", dir);
  int latest = 0;
  DIR *d = opendir(dir);
  for (struct dirent *e; d && (e = readdir(d));) {
    const int n = number_of(e->d_name);
    a->folders += n > 0;
    if (n > latest) latest = n;
  }
  if (d) closedir(d);
  if (latest > 0) snprintf(a->folder, sizeof a->folder, "%s/aside-%d", dir, latest);
}

void qk_aside_close(qk_aside_t *a) {
  if (a->why) fclose(a->why);
  a->why = NULL;
}

/* The first name that is free behind all that are there. */
static qk_status_t make_folder(qk_aside_t *a, qk_err_t *err) {
  const char *last = a->folder[0] ? strrchr(a->folder, '/') + 1 : "";
  for (int n = number_of(last) + 1;; n++) {
    if (snprintf(a->folder, sizeof a->folder, "%s/aside-%d", a->dir, n) >= (int)sizeof a->folder)
      return qk_fail(err, QK_BAD_ARGUMENT, "state: a path of %zu bytes is too long",
                     strlen(a->dir));
    if (mkdir(a->folder, 0700) == 0) return QK_OK;
    if (errno != EEXIST) return qk_fail(err, QK_IO_ERROR, "%s: %s", a->folder, strerror(errno));
  }
}

qk_status_t qk_aside_make(qk_aside_t *a, qk_err_t *err) {
  char path[QK_ASIDE_PATH + 16], before[QK_ASIDE_PATH];
  if (a->why) return QK_OK;
  memcpy(before, a->folder, sizeof before);
  qk_status_t status = make_folder(a, err);
  if (status == QK_OK) {
    snprintf(path, sizeof path, "%s/why.txt", a->folder);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    a->why = fd < 0 ? NULL : fdopen(fd, "w");
    if (!a->why) {
      status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
      if (fd >= 0) close(fd);
      rmdir(a->folder);
    }
  }
  if (status == QK_OK) {
    a->folders++;
    qk_file_sync_folder(a->folder);
  } else {
    memcpy(a->folder, before, sizeof before);
  }
  return status;
}

static void note(qk_aside_t *a, const char *prefix, int n, const char *fmt, va_list args) {
  char line[LINE];
  vsnprintf(line, sizeof line, fmt, args);
  if (a->why) fprintf(a->why, "%s\n", line);
  if (n <= TOLD) qk_warn("journal", "%s%s", prefix, line);
}

void qk_aside_note(qk_aside_t *a, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  note(a, "set aside: ", ++a->things, fmt, args);
  va_end(args);
}

void qk_aside_miss(qk_aside_t *a, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  note(a, "", ++a->losses, fmt, args);
  va_end(args);
}

void qk_aside_sync(qk_aside_t *a) {
  if (a->why && fflush(a->why) == 0) fsync(fileno(a->why));
}

void qk_aside_tell(qk_aside_t *a) {
  if (!a->why || a->things + a->losses == 0) return;
  qk_aside_sync(a);
  if (a->things == 0)
    qk_error("journal",
             "%s/why.txt says what is missing: remove the folder when it is no longer needed",
             a->folder);
  else
    qk_error(
        "journal",
        "quarkd has moved %d %s of the state folder to %s, where why.txt says why; nothing was "
        "deleted: remove the folder when it is no longer needed",
        a->things, qk_plural(a->things, "thing", "things"), a->folder);
}

const char *qk_aside_text(qk_aside_t *a) {
  if (a->folders == 0) return NULL;
  if (a->folders == 1)
    snprintf(a->text, sizeof a->text, "%s, see why.txt there", a->folder);
  else
    snprintf(a->text, sizeof a->text, "%s, see why.txt there, and %d %s before it", a->folder,
             a->folders - 1, qk_plural(a->folders - 1, "folder", "folders"));
  qk_utf8_clean(a->text);
  return a->text;
}
