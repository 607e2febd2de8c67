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
#include "daemon/front/host/worker.h"
#include "daemon/front/storage/holes.h"
#include "proto/frame.h"

static const double ASK_AGAIN = 1; /* seconds until the file system is asked for its room again */

struct qk_spool_task {
  char name[QK_SPOOL_NAME];
  int from; /* the field */
  size_t bytes;
  qk_spooled_fn *done; /* the loop's; NULL: abandoned */
  void *arg;
  qk_status_t status;
  qk_err_t err;
};

/* Files that one thread writes one after the other. */
typedef struct batch {
  qk_work_t work;
  qk_spool_t *spool;
  int count;
  size_t bytes;
  qk_spool_task_t *task[QK_SPOOL_BATCH];
} batch_t;

/* What the file system has said of its room. */
typedef struct room {
  int64_t bytes;
  int64_t before; /* what of `taken` was on the disk when it was asked */
  qk_err_t err;   /* with a code: it could not tell */
} room_t;

/* The file system is asked. */
typedef struct asking {
  qk_work_t work;
  const qk_spool_t *spool;
  room_t room;
} asking_t;

struct qk_spool {
  qk_loop_t *loop;
  char dir[QK_FILE_PATH - QK_SPOOL_NAME];
  int fd;               /* the folder */
  qk_worker_t *writers; /* NULL: nothing was written yet, or they have ended */
  batch_t *next;        /* what was added; NULL: nothing */
  qk_worker_t *asker;   /* NULL: nothing was asked yet, or it has ended */
  asking_t asking;
  double ask_at;
  room_t room;   /* the last answer */
  int64_t taken; /* bytes that files have taken so far */
  int64_t going; /* of them of files that may not be on the disk yet */
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
  if (fsync(spool->fd) != 0 && errno != EINVAL && errno != ENOTSUP) /* it has none */
    return qk_fail(err, QK_IO_ERROR, "%s: %s", spool->dir, strerror(errno));
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
  qk_spool_ask(s, &s->room.bytes, &s->room.err);
  *spool = s;
  return QK_OK;
}

void qk_spool_close(qk_spool_t *spool) {
  if (spool) close(spool->fd);
  qk_free(spool);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* What is a hole in memory is one in the file, and gets its length at the end. */
static qk_status_t write_data(const qk_spool_task_t *t, int to, const uint8_t *data,
                              qk_err_t *err) {
  qk_status_t s = QK_OK;
  for (uint64_t at = 0, begin, end; at < t->bytes && s == QK_OK; at = end) {
    if (!qk_holes_data(t->from, at, t->bytes, &begin, &end)) begin = end = t->bytes;
    if (lseek(to, (off_t)begin, SEEK_SET) < 0)
      s = qk_fail(err, QK_IO_ERROR, "seek to byte %llu: %s", (unsigned long long)begin,
                  strerror(errno));
    if (s == QK_OK) s = qk_file_put(to, data + begin, (int64_t)(end - begin), err);
  }
  if (s == QK_OK && ftruncate(to, (off_t)t->bytes) != 0)
    s = qk_fail(err, QK_IO_ERROR, "length of %zu bytes: %s", t->bytes, strerror(errno));
  return s;
}

/* On a thread. A file that stops short is known by its size. */
static void write_field(const qk_spool_t *spool, qk_spool_task_t *t) {
  char path[QK_FILE_PATH];
  qk_spool_path(spool, t->name, path);
  void *data = mmap(NULL, t->bytes, PROT_READ, MAP_SHARED, t->from, 0);
  const int to = data == MAP_FAILED ? -1 : qk_spool_make(spool, t->name);
  if (to < 0) {
    t->status = qk_fail(&t->err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  } else {
    t->status = write_data(t, to, data, &t->err);
    if (t->status == QK_OK && fsync(to) != 0)
      t->status = qk_fail(&t->err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
    close(to);
    if (t->status != QK_OK) qk_spool_unlink(spool, t->name);
  }
  if (data != MAP_FAILED) munmap(data, t->bytes);
  close(t->from);
}

/* On a thread. */
static void write_batch(qk_work_t *work) {
  const batch_t *b = QK_HOLDER(work, batch_t, work);
  qk_err_t err = {0};
  for (int i = 0; i < b->count; i++) write_field(b->spool, b->task[i]);
  if (qk_spool_sync(b->spool, &err) == QK_OK) return;
  for (int i = 0; i < b->count; i++) {
    if (b->task[i]->status != QK_OK) continue;
    b->task[i]->status = qk_fail(&b->task[i]->err, err.code, "%s", err.text);
    qk_spool_unlink(b->spool, b->task[i]->name);
  }
}

/* On a thread: nobody wants them any more. */
static void unlink_batch(qk_work_t *work) {
  const batch_t *b = QK_HOLDER(work, batch_t, work);
  for (int i = 0; i < b->count; i++) qk_spool_unlink(b->spool, b->task[i]->name);
}

static void free_batch(qk_work_t *work) {
  batch_t *b = QK_HOLDER(work, batch_t, work);
  for (int i = 0; i < b->count; i++) qk_free(b->task[i]);
  qk_free(b);
}

/* What was abandoned meanwhile goes, again on a thread. */
static void after_writing(qk_work_t *work) {
  batch_t *b = QK_HOLDER(work, batch_t, work);
  int abandoned = 0;
  for (int i = 0; i < b->count; i++) {
    qk_spool_task_t *t = b->task[i];
    if (t->status == QK_OK) b->spool->taken += (int64_t)t->bytes;
    if (t->done) {
      t->done(t->arg, t->status, t->err.text);
      qk_free(t);
    } else {
      b->task[abandoned++] = t;
    }
  }
  b->count = abandoned;
  b->work.run = unlink_batch;
  b->work.done = free_batch;
  if (b->count > 0 && b->spool->writers) {
    qk_worker_give(b->spool->writers, &b->work);
    return;
  }
  unlink_batch(&b->work);
  free_batch(&b->work);
}

bool qk_spool_ready(const qk_spool_t *spool) {
  return qk_worker_busy(spool->writers) < QK_SPOOL_THREADS;
}

/* The batch with room for one more; NULL: QK_NO_MEMORY. */
static batch_t *open_batch(qk_spool_t *spool) {
  if (spool->next) return spool->next;
  batch_t *b = qk_calloc(1, sizeof *b);
  if (!b) return NULL;
  b->spool = spool;
  b->work.run = write_batch;
  b->work.done = after_writing;
  return spool->next = b;
}

qk_status_t qk_spool_add(qk_spool_t *spool, int64_t job, uint32_t index, const qk_shm_t *field,
                         qk_spooled_fn *done, void *arg, qk_spool_task_t **task, qk_err_t *err) {
  batch_t *b = open_batch(spool);
  qk_spool_task_t *t = b ? qk_calloc(1, sizeof *t) : NULL;
  if (!t) return qk_fail(err, QK_NO_MEMORY, "no memory to spool a right-hand side");
  t->from = qk_shm_open(field, O_RDONLY);
  if (t->from < 0) {
    qk_fail(err, QK_IO_ERROR, "%s: %s", field->name, strerror(errno));
    qk_free(t);
    return QK_IO_ERROR;
  }
  qk_spool_name(job, index, t->name);
  t->bytes = field->bytes;
  t->done = done;
  t->arg = arg;
  b->task[b->count++] = t;
  b->bytes += t->bytes;
  *task = t;
  return QK_OK;
}

bool qk_spool_full(const qk_spool_t *spool) {
  const batch_t *b = spool->next;
  return b && (b->count == QK_SPOOL_BATCH || b->bytes >= QK_SPOOL_BYTES);
}

void qk_spool_send(qk_spool_t *spool) {
  batch_t *b = spool->next;
  qk_err_t err = {0};
  if (!b) return;
  spool->next = NULL;
  if (spool->writers ||
      qk_worker_open(spool->loop, "spool", QK_SPOOL_THREADS, &spool->writers, &err) == QK_OK) {
    qk_worker_give(spool->writers, &b->work);
    return;
  }
  for (int i = 0; i < b->count; i++) {
    close(b->task[i]->from);
    b->task[i]->status = qk_fail(&b->task[i]->err, QK_IO_ERROR, "%s", err.text);
  }
  after_writing(&b->work);
}

bool qk_spool_wait(qk_spool_t *spool, double seconds) {
  return spool->writers && qk_worker_wait(spool->writers, seconds);
}

void qk_spool_stop(qk_spool_t *spool) {
  if (!spool) return;
  qk_worker_t *writers = spool->writers, *asker = spool->asker;
  spool->writers = spool->asker = NULL;
  qk_worker_close(writers);
  qk_worker_close(asker);
}

void qk_spool_abandon(qk_spool_task_t *task) {
  if (task) task->done = NULL;
}

/* ---- its room ------------------------------------------------------------------------------ */

qk_status_t qk_spool_ask(const qk_spool_t *spool, int64_t *bytes, qk_err_t *err) {
  struct statvfs v;
  if (statvfs(spool->dir, &v) != 0)
    return qk_fail(err, QK_BUSY,
                   "%.300s: %s: the free space for uploads is not known: look at the state "
                   "folder and its disk",
                   spool->dir, strerror(errno));
  *bytes = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
  return QK_OK;
}

/* On a thread. */
static void ask(qk_work_t *work) {
  asking_t *a = QK_HOLDER(work, asking_t, work);
  qk_spool_ask(a->spool, &a->room.bytes, &a->room.err);
}

static void take_answer(qk_work_t *work) {
  qk_spool_t *spool = QK_HOLDER(work, qk_spool_t, asking.work);
  spool->room = spool->asking.room;
}

void qk_spool_tick(qk_spool_t *spool, double now) {
  qk_err_t err = {0};
  if (!spool || now < spool->ask_at || qk_worker_busy(spool->asker) > 0) return;
  spool->ask_at = now + ASK_AGAIN;
  if (!spool->asker && qk_worker_open(spool->loop, "room", 1, &spool->asker, &err) != QK_OK) {
    spool->room.err = err;
    return;
  }
  spool->asking = (asking_t){.work = {.run = ask, .done = take_answer},
                             .spool = spool,
                             .room.before = spool->taken - spool->going};
  qk_worker_give(spool->asker, &spool->asking.work);
}

void qk_spool_going(qk_spool_t *spool, int64_t bytes) {
  spool->going += bytes;
  if (bytes > 0) spool->taken += bytes;
}

const char *qk_spool_trouble(const qk_spool_t *spool) {
  return spool && spool->room.err.code != QK_OK ? spool->room.err.text : NULL;
}

int64_t qk_spool_room(const qk_spool_t *spool) {
  if (qk_spool_trouble(spool)) return 0;
  return spool->room.bytes - (spool->taken - spool->room.before);
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
  const qk_status_t status = qk_field_check(data, bytes, checksum);
  if (status == QK_BAD_CHECKSUM)
    qk_fail(err, status, "%s: its checksum is not %016llx", path, (unsigned long long)checksum);
  else if (status != QK_OK)
    qk_fail(err, status, "%s: no memory to check it", path);
  return status;
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
