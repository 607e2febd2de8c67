#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/file.h"
#include "daemon/engine/tune/book.h"

/* Locked, a regular file. */
static qk_status_t open_locked(const char *path, int flags, int lock, int *fd, qk_err_t *err) {
  struct stat st;
  const int f = open(path, flags | O_NONBLOCK | O_CLOEXEC, 0666);
  if (f < 0)
    return qk_fail(err, errno == ENOENT && !(flags & O_CREAT) ? QK_NOT_FOUND : QK_IO_ERROR,
                   "%s: %s", path, strerror(errno));
  int failed = fstat(f, &st) != 0 ? errno : S_ISREG(st.st_mode) ? 0 : -1;
  while (failed == 0 && flock(f, lock) != 0)
    if (errno != EINTR) failed = errno;
  if (failed == 0) {
    *fd = f;
    return QK_OK;
  }
  close(f);
  return qk_fail(err, QK_IO_ERROR, "%s: %s", path,
                 failed < 0 ? "not a regular file" : strerror(failed));
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Up to the end of a line: how many bytes it has, with its end. Without one: minus what there is.
 * What exceeds `size` is not kept. */
static int64_t next_line(FILE *in, char *line, size_t size) {
  int64_t n = 0;
  for (int c; (c = getc_unlocked(in)) != EOF; n++) {
    if (c == '\n') return n + 1;
    if ((size_t)n < size) line[n] = (char)c;
  }
  return -n;
}

static qk_status_t take_line(qk_tune_file_t *file, const char *line, size_t n, qk_tune_book_t *book,
                             qk_tune_told_fn *told, void *arg, qk_err_t *err) {
  qk_tune_case_t of;
  qk_tune_record_t record;
  qk_err_t why = {0};
  if (n == 0) return QK_OK;
  if (qk_tune_record_read(line, n, &of, &record, &why) != QK_OK) {
    file->bad++;
    told(arg, file->path, file->line, why.text);
    return QK_OK;
  }
  file->good++;
  record.of = qk_tune_book_case(book, &of);
  if (record.of >= 0 && qk_tune_book_add(book, &record)) return QK_OK;
  return qk_fail(err, QK_NO_MEMORY, "%s: line %d: no memory", file->path, file->line);
}

qk_status_t qk_tune_file_read(qk_tune_file_t *file, qk_tune_book_t *book, qk_tune_told_fn *told,
                              void *arg, qk_err_t *err) {
  int fd = -1;
  qk_status_t status = open_locked(file->path, O_RDONLY, LOCK_SH, &fd, err);
  if (status != QK_OK) return status;
  char *line = malloc(QK_TUNE_LINE + 1);
  FILE *in = fdopen(fd, "r");
  if (!line || !in)
    status = qk_fail(err, QK_NO_MEMORY, "%s: no memory", file->path);
  else if (fseeko(in, (off_t)file->at, SEEK_SET) != 0)
    status = qk_fail(err, QK_IO_ERROR, "%s: %s", file->path, strerror(errno));
  while (status == QK_OK) {
    const int64_t n = next_line(in, line, QK_TUNE_LINE + 1);
    file->left = n < 0;
    if (n <= 0) break;
    file->at += n;
    file->line++;
    const size_t length = n - 1 > QK_TUNE_LINE ? QK_TUNE_LINE + 1 : (size_t)(n - 1);
    status = take_line(file, line, length, book, told, arg, err);
  }
  if (status == QK_OK && ferror(in))
    status = qk_fail(err, QK_IO_ERROR, "%s: %s", file->path, strerror(errno));
  if (in)
    fclose(in);
  else
    close(fd);
  free(line);
  return status;
}

/* ---- appending ------------------------------------------------------------------------------- */

/* Whether what is there ends within a line. */
static bool is_open_ended(int fd) {
  char last = '\n';
  const off_t end = lseek(fd, 0, SEEK_END);
  return end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n';
}

qk_status_t qk_tune_file_append(const char *path, const char *line, qk_err_t *err) {
  int fd = -1;
  qk_status_t status = open_locked(path, O_RDWR | O_APPEND | O_CREAT, LOCK_EX, &fd, err);
  if (status != QK_OK) return status;
  if (line) {
    const size_t n = strlen(line);
    char *text = malloc(n + 3);
    if (text) {
      const int bytes = sprintf(text, "%s%s\n", is_open_ended(fd) ? "\n" : "", line);
      status = qk_file_put(fd, text, bytes, err);
    } else {
      status = qk_fail(err, QK_NO_MEMORY, "no memory");
    }
    free(text);
    if (status == QK_OK && fsync(fd) != 0)
      status = qk_fail(err, QK_IO_ERROR, "fsync: %s", strerror(errno));
    if (status != QK_OK) qk_err_prefix(err, "%s", path);
  }
  close(fd);
  return status;
}
