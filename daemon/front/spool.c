#include "daemon/front/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "proto/frame.h"

struct qk_spool {
  qk_loop_t *loop;
  char dir[QK_FILE_PATH - 48]; /* with room for the name of a file */
};

struct qk_spool_task {
  uv_work_t work;
  char path[QK_FILE_PATH];
  void *data;
  size_t bytes;
  qk_spooled_fn *done; /* NULL: abandoned */
  void *arg;
  qk_status_t status;
  qk_err_t err;
};

void qk_spool_path(const qk_spool_t *spool, int64_t job, uint32_t index, char path[QK_FILE_PATH]) {
  snprintf(path, QK_FILE_PATH, "%s/%lld-%u", spool->dir, (long long)job, index);
}

qk_status_t qk_spool_open(qk_loop_t *loop, const char *dir, qk_spool_t **spool, qk_err_t *err) {
  qk_spool_t *s = qk_calloc(1, sizeof *s);
  if (!s) return qk_fail(err, QK_NO_MEMORY, "no memory for a spool");
  s->loop = loop;
  if (snprintf(s->dir, sizeof s->dir, "%s/spool", dir) >= (int)sizeof s->dir) {
    qk_free(s);
    return qk_fail(err, QK_BAD_ARGUMENT, "state: a path of %zu bytes is too long", strlen(dir));
  }
  if (mkdir(s->dir, 0700) != 0 && errno != EEXIST) {
    qk_fail(err, QK_IO_ERROR, "%s: %s", s->dir, strerror(errno));
    qk_free(s);
    return QK_IO_ERROR;
  }
  *spool = s;
  return QK_OK;
}

void qk_spool_close(qk_spool_t *spool) {
  qk_free(spool);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* On a thread of libuv. A file that stops short is known by its size. */
static void write_field(uv_work_t *work) {
  qk_spool_task_t *t = work->data;
  const int fd = open(t->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) {
    t->status = qk_fail(&t->err, QK_IO_ERROR, "%s: %s", t->path, strerror(errno));
    return;
  }
  t->status = qk_file_put(fd, t->data, (int64_t)t->bytes, &t->err);
  if (t->status == QK_OK && fsync(fd) != 0)
    t->status = qk_fail(&t->err, QK_IO_ERROR, "%s: %s", t->path, strerror(errno));
  close(fd);
  if (t->status == QK_OK)
    qk_file_sync_folder(t->path);
  else
    unlink(t->path);
}

static void after_write(uv_work_t *work, int cancelled) {
  qk_spool_task_t *t = work->data;
  (void)cancelled;
  munmap(t->data, t->bytes);
  if (t->done)
    t->done(t->arg, t->status, t->err.text);
  else
    unlink(t->path);
  qk_free(t);
}

qk_status_t qk_spool_write(qk_spool_t *spool, int64_t job, uint32_t index, const qk_shm_t *field,
                           qk_spooled_fn *done, void *arg, qk_spool_task_t **task, qk_err_t *err) {
  qk_spool_task_t *t = qk_calloc(1, sizeof *t);
  if (!t) return qk_fail(err, QK_NO_MEMORY, "no memory to spool a right-hand side");
  const int fd = shm_open(field->name, O_RDONLY | O_CLOEXEC, 0);
  t->data = fd >= 0 ? mmap(NULL, field->bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  const int e = errno;
  if (fd >= 0) close(fd);
  if (t->data == MAP_FAILED) {
    qk_free(t);
    return qk_fail(err, QK_IO_ERROR, "%s: %s", field->name, strerror(e));
  }
  qk_spool_path(spool, job, index, t->path);
  t->bytes = field->bytes;
  t->done = done;
  t->arg = arg;
  t->work.data = t;
  uv_queue_work(&spool->loop->uv, &t->work, write_field, after_write);
  *task = t;
  return QK_OK;
}

void qk_spool_abandon(qk_spool_task_t *task) {
  if (task) task->done = NULL;
}

/* ---- the rest ------------------------------------------------------------------------------ */

/* Up to `bytes` bytes; how many, or -1. */
static ssize_t read_all(int fd, void *data, size_t bytes) {
  size_t got = 0;
  while (got < bytes) {
    const ssize_t n = read(fd, (char *)data + got, bytes - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += (size_t)n;
  }
  return (ssize_t)got;
}

qk_status_t qk_spool_read(const qk_spool_t *spool, int64_t job, uint32_t index, uint64_t checksum,
                          void *data, size_t bytes, qk_err_t *err) {
  char path[QK_FILE_PATH];
  qk_spool_path(spool, job, index, path);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  const ssize_t got = qk_fault(QK_FAULT_READ) ? -1 : read_all(fd, data, bytes);
  const int e = errno;
  close(fd);
  if (got < 0) return qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(e));
  if ((size_t)got < bytes)
    return qk_fail(err, QK_TRUNCATED, "%s has %zd bytes of %zu", path, got, bytes);
  if (qk_checksum(data, bytes) != checksum)
    return qk_fail(err, QK_BAD_CHECKSUM, "%s: its checksum is not %016llx", path,
                   (unsigned long long)checksum);
  return QK_OK;
}

void qk_spool_remove(const qk_spool_t *spool, int64_t job, uint32_t index) {
  char path[QK_FILE_PATH];
  if (!spool) return;
  qk_spool_path(spool, job, index, path);
  unlink(path);
}

int qk_spool_sweep(const qk_spool_t *spool, bool (*known)(void *arg, int64_t job), void *arg) {
  DIR *dir = opendir(spool->dir);
  if (!dir) return 0;
  int removed = 0;
  for (struct dirent *entry; (entry = readdir(dir));) {
    long long job;
    if (sscanf(entry->d_name, "%lld-", &job) == 1 && !known(arg, job))
      removed += unlinkat(dirfd(dir), entry->d_name, 0) == 0;
  }
  closedir(dir);
  return removed;
}

int64_t qk_spool_free_bytes(const qk_spool_t *spool) {
  struct statvfs v;
  if (statvfs(spool->dir, &v) != 0) return 0;
  return (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}
