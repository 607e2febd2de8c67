#include "daemon/front/storage/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/file.h"
#include "daemon/base/mem.h"

enum { COPY_BYTES = 256 * 1024, TEMP_BYTES = QK_FILE_LAST_MAX + 40 };

struct qk_file_io {
  qk_loop_t *loop;
  qk_roots_t roots;
  qk_link_t waiting; /* tasks in the order of their coming */
  int running;
};

struct qk_file_task {
  uv_work_t work;
  qk_link_t link;
  qk_file_io_t *files;
  qk_file_order_t order; /* path: ours; field: not to be used */
  char path[QK_FILE_NAME_MAX + 1], shm[QK_SHM_NAME_MAX];
  char shown[256]; /* the path, as errors and the log may have it */
  uint64_t bytes;  /* of the field */
  qk_filed_fn *done, *discarded;
  void *arg;
  bool discard; /* when it has ended */
  qk_status_t status;
  qk_err_t err;
};

/* ---- on a thread of libuv ------------------------------------------------------------------ */

static void fail(qk_file_task_t *t, int error) {
  t->status = qk_roots_fail(error, t->path, &t->err);
}

static bool check_size(qk_file_task_t *t, int fd) {
  struct stat st = {.st_size = 0};
  if (fstat(fd, &st) != 0) {
    fail(t, errno);
  } else if ((uint64_t)st.st_size < t->order.size) {
    t->status = qk_fail(&t->err, QK_TRUNCATED, "%s has %lld bytes, not %llu", t->shown,
                        (long long)st.st_size, (unsigned long long)t->order.size);
  } else if ((uint64_t)st.st_size > t->order.size) {
    t->status = qk_fail(&t->err, QK_BAD_ARGUMENT, "%s has %lld bytes, not %llu", t->shown,
                        (long long)st.st_size, (unsigned long long)t->order.size);
  }
  return t->status == QK_OK;
}

static void copy_in(qk_file_task_t *t, int from, int to, uint8_t *buffer) {
  for (uint64_t at = 0; at < t->bytes && t->status == QK_OK;) {
    const uint64_t want = t->bytes - at < COPY_BYTES ? t->bytes - at : COPY_BYTES;
    const uint64_t position = t->order.offset + at;
    const bool broken = qk_fault(QK_FAULT_READ);
    const ssize_t n = broken ? -1 : pread(from, buffer, want, (off_t)position);
    if (n < 0 && !broken && errno == EINTR) continue;
    if (n < 0)
      fail(t, broken ? EIO : errno);
    else if (n == 0)
      t->status = qk_fail(&t->err, QK_TRUNCATED, "%s ends at byte %llu", t->shown,
                          (unsigned long long)position);
    else
      t->status = qk_shm_write(to, buffer, (size_t)n, at, &t->err);
    if (n > 0) at += (uint64_t)n;
  }
}

static void read_field(qk_file_task_t *t) {
  int from;
  t->status = qk_roots_open(&t->files->roots, t->path, &from, &t->err);
  if (t->status != QK_OK) return;
  const int to = shm_open(t->shm, O_RDWR | O_CLOEXEC, 0);
  uint8_t *buffer = qk_malloc(COPY_BYTES);
  if (!buffer || to < 0)
    t->status = qk_fail(&t->err, QK_NO_MEMORY, "no memory to read %s", t->shown);
  else if (check_size(t, from))
    copy_in(t, from, to, buffer);
  qk_free(buffer);
  if (to >= 0) close(to);
  close(from);
}

/* The folder of the output, its name there, and the other one; false: told. */
static bool find_output(qk_file_task_t *t, int *folder, const char **name, char temp[TEMP_BYTES]) {
  t->status = qk_roots_open_folder(&t->files->roots, t->path, folder, name, &t->err);
  if (t->status != QK_OK) return false;
  snprintf(temp, TEMP_BYTES, ".%s.quarkd-%016llx", *name, (unsigned long long)t->order.tag);
  return true;
}

/* A regular file of this user with so many names. */
static bool is_ours(const struct stat *st, nlink_t names) {
  return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == names;
}

/* Whether both names are of one file that has no third: published by the front before, and
 * complete. */
static bool is_published(int folder, const char *name, const char *temp) {
  struct stat x, y;
  return fstatat(folder, name, &x, AT_SYMLINK_NOFOLLOW) == 0 &&
         fstatat(folder, temp, &y, AT_SYMLINK_NOFOLLOW) == 0 && x.st_dev == y.st_dev &&
         x.st_ino == y.st_ino && is_ours(&x, 2);
}

static void refuse_temp(qk_file_task_t *t) {
  t->status = qk_fail(&t->err, QK_DENIED,
                      "%s: its temporary name is taken by a file that is not quarkd's", t->shown);
}

/* With no other name: a link that others made would lead to another file of this user. -1: told. */
static int open_temp(qk_file_task_t *t, int folder, const char *temp, int flags) {
  struct stat st;
  const int fd = openat(folder, temp, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0666);
  if (fd < 0) {
    if (errno == ELOOP || errno == EEXIST || errno == ENXIO)
      refuse_temp(t);
    else
      fail(t, errno);
    return -1;
  }
  if (fstat(fd, &st) == 0 && is_ours(&st, 1)) return fd;
  close(fd);
  refuse_temp(t);
  return -1;
}

/* What the front before may have left of its output goes: the next one writes all of it again.
 * Nothing of others does. */
static bool clear_temp(qk_file_task_t *t, int folder, const char *temp) {
  struct stat st;
  if (fstatat(folder, temp, &st, AT_SYMLINK_NOFOLLOW) != 0) return true;
  if (is_ours(&st, 1) && unlinkat(folder, temp, 0) == 0) return true;
  refuse_temp(t);
  return false;
}

/* A name of a file of ours; what else others have put there stays. */
static void discard(int folder, const char *temp) {
  struct stat st;
  if (fstatat(folder, temp, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
      st.st_uid == geteuid())
    unlinkat(folder, temp, 0);
}

static void refuse_to_replace(qk_file_task_t *t) {
  t->status = qk_fail(&t->err, QK_BAD_ARGUMENT, "%s exists: it is not replaced", t->shown);
}

/* Room is reserved where the file system can do that. */
static void prepare(qk_file_task_t *t, int folder, const char *name, const char *temp) {
  struct stat st;
  if (is_published(folder, name, temp)) return;
  if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
    refuse_to_replace(t);
    return;
  }
  if (!clear_temp(t, folder, temp)) return;
  const int fd = open_temp(t, folder, temp, O_CREAT | O_EXCL);
  if (fd < 0) return;
  int e = ftruncate(fd, (off_t)t->order.size) == 0 ? 0 : errno;
  if (e == 0 && fallocate(fd, 0, 0, (off_t)t->order.size) != 0) e = errno;
  if (e == EOPNOTSUPP || e == ENOSYS || e == EINVAL) e = 0;
  if (e != 0) fail(t, e);
  if (e != 0) discard(folder, temp);
  close(fd);
}

static void write_field(qk_file_task_t *t, int folder, const char *name, const char *temp) {
  if (is_published(folder, name, temp)) return; /* with what it holds */
  const int from = shm_open(t->shm, O_RDONLY | O_CLOEXEC, 0),
            to = from >= 0 ? open_temp(t, folder, temp, 0) : -1;
  void *data = to >= 0 ? mmap(NULL, t->bytes, PROT_READ, MAP_SHARED, from, 0) : MAP_FAILED;
  if (data == MAP_FAILED) {
    if (t->status == QK_OK)
      t->status = qk_fail(&t->err, QK_NO_MEMORY, "%s: %s", t->shm, strerror(errno));
  } else if (lseek(to, (off_t)t->order.offset, SEEK_SET) < 0) {
    fail(t, errno);
  } else if (qk_file_put(to, data, (int64_t)t->bytes, &t->err) != QK_OK) {
    qk_err_prefix(&t->err, "%s", t->shown);
    t->status = QK_IO_ERROR;
  }
  if (data != MAP_FAILED) munmap(data, t->bytes);
  if (to >= 0 && close(to) != 0 && t->status == QK_OK) fail(t, errno);
  if (from >= 0) close(from);
}

static void publish(qk_file_task_t *t, int folder, const char *name, const char *temp) {
  if (is_published(folder, name, temp)) return;
  const int fd = open_temp(t, folder, temp, 0);
  if (fd < 0) return;
  int e = qk_fault(QK_FAULT_WRITE) ? EIO : 0;
  if (e == 0 && fsync(fd) != 0) e = errno;
  if (e == 0 && linkat(folder, temp, folder, name, 0) != 0) e = errno;
  if (e == 0)
    fsync(folder);
  else if (e == EEXIST)
    refuse_to_replace(t);
  else
    fail(t, e);
  close(fd);
}

static void run(uv_work_t *work) {
  qk_file_task_t *t = work->data;
  const char *name;
  char temp[TEMP_BYTES];
  int folder;
  if (t->order.step == QK_FILE_READ) {
    read_field(t);
    return;
  }
  if (!find_output(t, &folder, &name, temp)) return;
  if (t->order.step == QK_FILE_PREPARE)
    prepare(t, folder, name, temp);
  else if (t->order.step == QK_FILE_WRITE)
    write_field(t, folder, name, temp);
  else if (t->order.step == QK_FILE_PUBLISH)
    publish(t, folder, name, temp);
  else
    discard(folder, temp);
  close(folder);
}

/* ---- the loop's thread --------------------------------------------------------------------- */

static void start_next(qk_file_io_t *files);

static void after(uv_work_t *work, int cancelled) {
  qk_file_task_t *t = work->data;
  qk_file_io_t *files = t->files;
  (void)cancelled;
  files->running--;
  if (t->done) t->done(t->arg, t->status, t->err.text);
  t->order.step = QK_FILE_DISCARD;
  if (t->discard) qk_file_io_start(files, &t->order, t->discarded, t->arg, NULL, NULL);
  qk_free(t);
  start_next(files);
}

static void start_next(qk_file_io_t *files) {
  while (files->running < QK_FILE_TASKS && !qk_link_alone(&files->waiting)) {
    qk_file_task_t *t = QK_HOLDER(files->waiting.next, qk_file_task_t, link);
    qk_link_remove(&t->link);
    files->running++;
    uv_queue_work(&files->loop->uv, &t->work, run, after);
  }
}

qk_status_t qk_file_io_start(qk_file_io_t *files, const qk_file_order_t *order, qk_filed_fn *done,
                             void *arg, qk_file_task_t **task, qk_err_t *err) {
  qk_file_task_t *t = qk_calloc(1, sizeof *t);
  if (!t) return qk_fail(err, QK_NO_MEMORY, "no memory to read or write a file");
  t->files = files;
  t->order = *order;
  t->order.path = t->path;
  snprintf(t->path, sizeof t->path, "%s", order->path);
  qk_err_quote(t->path, t->shown, sizeof t->shown);
  if (order->field) {
    snprintf(t->shm, sizeof t->shm, "%s", order->field->name);
    t->bytes = order->field->bytes;
    t->order.field = NULL;
  }
  t->done = done;
  t->arg = arg;
  t->work.data = t;
  qk_link_init(&t->link);
  qk_list_append(&files->waiting, &t->link);
  if (task) *task = t;
  start_next(files);
  return QK_OK;
}

void qk_file_io_abandon(qk_file_task_t *task, bool discard, qk_filed_fn *discarded, void *arg) {
  task->done = NULL;
  task->discard = discard;
  task->discarded = discarded;
  task->arg = arg;
}

const qk_roots_t *qk_file_io_roots(const qk_file_io_t *files) {
  return &files->roots;
}

qk_status_t qk_file_io_open(qk_loop_t *loop, const char *roots, qk_file_io_t **files,
                            qk_err_t *err) {
  qk_file_io_t *f = qk_calloc(1, sizeof *f);
  if (!f) return qk_fail(err, QK_NO_MEMORY, "no memory for files of clients");
  const qk_status_t status = qk_roots_init(&f->roots, roots, err);
  if (status != QK_OK) {
    qk_free(f);
    return status;
  }
  f->loop = loop;
  qk_link_init(&f->waiting);
  *files = f;
  return QK_OK;
}

void qk_file_io_close(qk_file_io_t *files) {
  if (!files) return;
  qk_roots_fini(&files->roots);
  qk_free(files);
}
