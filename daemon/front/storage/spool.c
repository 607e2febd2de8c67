#include "daemon/front/storage/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/host/folder.h"
#include "proto/frame.h"

struct qk_spool {
  qk_loop_t *loop;
  char dir[QK_FILE_PATH - QK_SPOOL_NAME];
  int fd; /* the folder */
};

struct qk_spool_task {
  uv_work_t work;
  const qk_spool_t *spool;
  char name[QK_SPOOL_NAME];
  void *data;
  size_t bytes;
  qk_spooled_fn *done; /* NULL: abandoned */
  void *arg;
  qk_status_t status;
  qk_err_t err;
};

/* ---- the folder ---------------------------------------------------------------------------- */

void qk_spool_name(int64_t job, uint32_t index, char name[QK_SPOOL_NAME]) {
  snprintf(name, QK_SPOOL_NAME, "%lld-%u", (long long)job, index);
}

void qk_spool_path(const qk_spool_t *spool, const char *name, char path[QK_FILE_PATH]) {
  snprintf(path, QK_FILE_PATH, "%s/%s", spool->dir, name);
}

int qk_spool_make(const qk_spool_t *spool, const char *name) {
  unlinkat(spool->fd, name, 0); /* whatever else has the name is not written over */
  return openat(spool->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

int qk_spool_find(const qk_spool_t *spool, const char *name) {
  return openat(spool->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

int64_t qk_spool_size(const qk_spool_t *spool, const char *name) {
  struct stat st;
  const bool there = fstatat(spool->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
  return there ? (int64_t)st.st_size : -1;
}

void qk_spool_unlink(const qk_spool_t *spool, const char *name) {
  unlinkat(spool->fd, name, 0);
}

qk_status_t qk_spool_sync(const qk_spool_t *spool, qk_err_t *err) {
  struct stat opened, now;
  fsync(spool->fd);
  if (fstat(spool->fd, &opened) != 0 || stat(spool->dir, &now) != 0)
    return qk_fail(err, QK_IO_ERROR, "%s: %s", spool->dir, strerror(errno));
  if (opened.st_dev == now.st_dev && opened.st_ino == now.st_ino) return QK_OK;
  return qk_fail(err, QK_IO_ERROR,
                 "%.400s: not the folder that quarkd has opened: put it back as it was",
                 spool->dir);
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
  const qk_status_t status = qk_folder_check(s->dir, s->dir, err);
  if (status != QK_OK) {
    qk_free(s);
    return status;
  }
  chmod(s->dir, 0700);
  s->fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (s->fd < 0) {
    qk_fail(err, QK_IO_ERROR, "%s: %s", s->dir, strerror(errno));
    qk_free(s);
    return QK_IO_ERROR;
  }
  *spool = s;
  return QK_OK;
}

void qk_spool_close(qk_spool_t *spool) {
  if (spool) close(spool->fd);
  qk_free(spool);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* On a thread of libuv. A file that stops short is known by its size. */
static void write_field(uv_work_t *work) {
  qk_spool_task_t *t = work->data;
  char path[QK_FILE_PATH];
  qk_spool_path(t->spool, t->name, path);
  const int fd = qk_spool_make(t->spool, t->name);
  if (fd < 0) {
    t->status = qk_fail(&t->err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
    return;
  }
  t->status = qk_file_put(fd, t->data, (int64_t)t->bytes, &t->err);
  if (t->status == QK_OK && fsync(fd) != 0)
    t->status = qk_fail(&t->err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  close(fd);
  if (t->status == QK_OK) t->status = qk_spool_sync(t->spool, &t->err);
  if (t->status != QK_OK) qk_spool_unlink(t->spool, t->name);
}

static void after_write(uv_work_t *work, int cancelled) {
  qk_spool_task_t *t = work->data;
  (void)cancelled;
  munmap(t->data, t->bytes);
  if (t->done)
    t->done(t->arg, t->status, t->err.text);
  else
    qk_spool_unlink(t->spool, t->name);
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
  qk_spool_name(job, index, t->name);
  t->spool = spool;
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
  char name[QK_SPOOL_NAME], path[QK_FILE_PATH];
  qk_spool_name(job, index, name);
  qk_spool_path(spool, name, path);
  const int fd = qk_spool_find(spool, name);
  if (fd < 0) {
    const bool shortage = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return qk_fail(err, shortage ? QK_NO_MEMORY : QK_IO_ERROR, "%s: %s", path, strerror(errno));
  }
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
  char name[QK_SPOOL_NAME];
  if (!spool) return;
  qk_spool_name(job, index, name);
  qk_spool_unlink(spool, name);
}

/* A file that stays where it cannot be set aside is as good. */
static bool set_aside(int dir, const char *name, qk_aside_t *aside, const char *spool) {
  char to[QK_ASIDE_PATH + NAME_MAX + 8];
  qk_err_t err = {0};
  if (qk_aside_make(aside, &err) == QK_OK) {
    snprintf(to, sizeof to, "%s/spool", aside->folder);
    if (mkdir(to, 0700) != 0 && errno != EEXIST) return false;
    snprintf(to, sizeof to, "%s/spool/%s", aside->folder, name);
    if (renameat(dir, name, AT_FDCWD, to) == 0) {
      qk_aside_note(aside, "spool/%s: no request in the journal uses it", name);
      return true;
    }
    qk_fail(&err, QK_IO_ERROR, "%s: %s", to, strerror(errno));
  }
  qk_warn("spool", "%s/%s stays there, as it cannot be set aside: %s", spool, name, err.text);
  return false;
}

int qk_spool_sweep(const qk_spool_t *spool, qk_aside_t *aside,
                   bool (*known)(void *arg, int64_t job), void *arg) {
  DIR *dir = opendir(spool->dir);
  if (!dir) return 0;
  int removed = 0;
  for (struct dirent *entry; (entry = readdir(dir));) {
    long long job;
    if (sscanf(entry->d_name, "%lld-", &job) != 1 || known(arg, job)) continue;
    removed += aside ? set_aside(dirfd(dir), entry->d_name, aside, spool->dir)
                     : unlinkat(dirfd(dir), entry->d_name, 0) == 0;
  }
  closedir(dir);
  return removed;
}

qk_status_t qk_spool_room(const qk_spool_t *spool, int64_t *bytes, qk_err_t *err) {
  struct statvfs v;
  if (statvfs(spool->dir, &v) != 0)
    return qk_fail(err, QK_BUSY,
                   "%.300s: %s: the free space for uploads is not known: look at the state "
                   "folder and its disk",
                   spool->dir, strerror(errno));
  *bytes = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
  return QK_OK;
}
