/* mg_save.c: writes a checkpoint of multigrid: copied from the device at once, written in the
 * background. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/checkpoint/mg_header.h"
#include "daemon/engine/eigen/deflation.h"

enum { PIECE = 64 << 20, WRITE = 8 << 20, CHUNK = 1 << 20 };

struct qk_mg_save {
  qk_comm_t *comm;
  qk_mg_header_t header;
  struct {
    qk_lattice_t lat;
    int64_t sites; /* of this rank */
    uint8_t *data;
  } part[QK_MG_SECTIONS_MAX];
  char path[QK_FILE_PATH], temp[QK_FILE_PATH];
  int fd; /* < 0: not open */
  bool created, running;
  pthread_t thread;
  atomic_bool finished;
  /* of the thread until it is joined */
  qk_status_t status;
  qk_err_t err;
  uint64_t sum[QK_MG_SECTIONS_MAX];
};

/* ---- the thread ------------------------------------------------------------------------------ */

static qk_status_t put_at(qk_mg_save_t *s, const void *data, int64_t bytes, int64_t offset) {
  const uint8_t *p = data;
  while (bytes > 0) {
    ssize_t n = -1;
    if (qk_fault(QK_FAULT_WRITE))
      errno = ENOSPC;
    else
      n = pwrite(s->fd, p, (size_t)(bytes < WRITE ? bytes : WRITE), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return qk_fail(&s->err, QK_IO_ERROR, "%s: write at %lld: %s", s->temp, (long long)offset,
                     strerror(errno));
    p += n;
    offset += n;
    bytes -= n;
  }
  return QK_OK;
}

static qk_status_t put_section(qk_mg_save_t *s, int i) {
  const qk_mg_section_t *section = &s->header.section[i];
  const qk_lattice_t *lat = &s->part[i].lat;
  const bool full = qk_mg_section_full(section);
  const int64_t site_bytes = qk_mg_section_site_bytes(section), run = qk_mg_run(lat, full);
  qk_status_t status = QK_OK;
  for (int64_t n = 0; n < s->part[i].sites && status == QK_OK; n += run) {
    const int64_t first = qk_mg_global_site(lat, full, n);
    const uint8_t *data = s->part[i].data + n * site_bytes;
    s->sum[i] += qk_mg_section_sum(data, first, run, site_bytes, i);
    status = put_at(s, data, run * site_bytes, section->offset + first * site_bytes);
  }
  return status;
}

static void *write_parts(void *arg) {
  qk_mg_save_t *s = arg;
  for (int i = 0; i < s->header.nsection && s->status == QK_OK; i++) s->status = put_section(s, i);
  if (s->status == QK_OK && fsync(s->fd) != 0)
    s->status = qk_fail(&s->err, QK_IO_ERROR, "%s: fsync: %s", s->temp, strerror(errno));
  atomic_store(&s->finished, true);
  return NULL;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Room for PIECE bytes on the device, and pinned twice. */
typedef struct staging {
  void *device;
  uint8_t *host[2];
} staging_t;

static qk_status_t staging_init(staging_t *st, const qk_device_t *dev) {
  void *memory = NULL;
  *st = (staging_t){0};
  qk_status_t status = dev->ops->alloc(dev->ctx, PIECE, &memory);
  st->device = memory;
  for (int k = 0; k < 2 && status == QK_OK; k++) {
    memory = NULL;
    status = dev->ops->alloc_host(dev->ctx, PIECE, &memory);
    st->host[k] = memory;
  }
  return status;
}

static void staging_fini(staging_t *st, const qk_device_t *dev) {
  for (int k = 1; k >= 0; k--)
    if (st->host[k]) dev->ops->free_host(dev->ctx, st->host[k]);
  if (st->device) dev->ops->free(dev->ctx, st->device);
}

/* By all threads: fresh memory costs more than the copy. */
static void copy_bytes(uint8_t *to, const uint8_t *from, int64_t bytes) {
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < bytes; at += CHUNK)
    memcpy(to + at, from + at, (size_t)(bytes - at < CHUNK ? bytes - at : CHUNK));
}

/* Columns of a section. */
typedef struct columns {
  int64_t site_bytes; /* of all of them */
  int64_t at, bytes;  /* these, within a site */
} columns_t;

/* Of n sites to a part that has room for all columns. */
static void store_columns(const columns_t *c, uint8_t *to, const uint8_t *from, int64_t n) {
  if (c->bytes == c->site_bytes) {
    copy_bytes(to, from, n * c->bytes);
    return;
  }
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < n; k++)
    memcpy(to + k * c->site_bytes + c->at, from + k * c->bytes, (size_t)c->bytes);
}

/* Copies the field in plain order to part i, of which it has the columns from `first` on; a piece
 * leaves the device while the one before it is stored. */
static qk_status_t copy_field(qk_mg_save_t *s, int i, int first, const qk_field_t *f,
                              const staging_t *st) {
  const qk_device_t *dev = f->dev;
  const qk_mg_section_t *section = &s->header.section[i];
  const int64_t all = qk_mg_section_site_bytes(section), one = all / section->columns;
  const columns_t columns = {all, first * one, f->v.nrhs * one};
  const int64_t site_bytes = columns.bytes, piece = PIECE / site_bytes;
  const int64_t sites = s->part[i].sites, pieces = (sites + piece - 1) / piece;
  for (int64_t k = 0; k <= pieces && qk_dev_ok(dev); k++) {
    const int64_t n = k * piece, take = sites - n < piece ? sites - n : piece;
    const qk_sites_args_t get = {s->part[i].lat, f->v, section->prec, st->device, n, take};
    if (k < pieces) {
      qk_dev_note(dev, dev->ops->sites_get(dev->ctx, &get));
      qk_dev_copy(dev, st->host[k % 2], st->device, (size_t)(take * site_bytes), QK_COPY_TO_HOST);
    }
    if (k > 0)
      store_columns(&columns, s->part[i].data + (n - piece) * all, st->host[(k + 1) % 2],
                    sites - n + piece < piece ? sites - n + piece : piece);
    qk_dev_sync(dev);
  }
  return qk_dev_status(dev);
}

static qk_status_t copy_some(qk_mg_save_t *s, const qk_mg_t *mg, int l, int first, int n,
                             const staging_t *st) {
  qk_field_t *v;
  qk_status_t status = qk_field_create(&mg->level[l].dev, QK_SINGLE, n, QK_FULL, &v);
  if (status != QK_OK) return status;
  qk_prolongator_vectors(mg->level[l].down, first, v);
  status = copy_field(s, l, first, v, st);
  qk_field_destroy(v);
  return status;
}

static qk_status_t copy_vectors(qk_mg_save_t *s, const qk_mg_t *mg, int l, const staging_t *st) {
  const int nvec = s->header.level[l].nvec, most = qk_mg_together(mg, l);
  qk_status_t status = QK_OK;
  for (int first = 0; first < nvec && status == QK_OK; first += most)
    status = copy_some(s, mg, l, first, nvec - first < most ? nvec - first : most, st);
  return status;
}

/* Host memory for what this rank has of each section. */
static qk_status_t reserve_parts(qk_mg_save_t *s, const qk_mg_t *mg) {
  for (int i = 0; i < s->header.nsection; i++) {
    const qk_mg_section_t *section = &s->header.section[i];
    const qk_geom_t *geom = &mg->level[section->level].geom;
    s->part[i].lat = geom->lat;
    s->part[i].sites = qk_mg_section_full(section) ? geom->local_volume : geom->local_volume / 2;
    /* of what all ranks have one writes */
    if (geom->whole && qk_comm_rank(s->comm) != 0) s->part[i].sites = 0;
    if (s->part[i].sites == 0) continue;
    s->part[i].data = qk_malloc((size_t)(s->part[i].sites * qk_mg_section_site_bytes(section)));
    if (s->part[i].data == NULL) return QK_NO_MEMORY;
  }
  return QK_OK;
}

static qk_status_t copy_parts(qk_mg_save_t *s, const qk_mg_t *mg, const staging_t *st) {
  const int nvector = mg->nlevel - 1;
  qk_field_t *const *block = NULL;
  qk_status_t status = reserve_parts(s, mg);
  if (status != QK_OK) return status;
  for (int l = 0; l < nvector; l++) {
    status = copy_vectors(s, mg, l, st);
    if (status != QK_OK) return status;
    status = copy_field(s, nvector + l, 0, mg->level[l].null, st);
    if (status != QK_OK) return status;
  }
  if (mg->deflation) qk_deflation_blocks(mg->deflation, &block);
  for (int i = 2 * nvector; i < s->header.nsection && status == QK_OK; i++)
    status = copy_field(s, i, 0, block[i - 2 * nvector], st);
  return status;
}

static qk_status_t copy_all(qk_mg_save_t *s, const qk_mg_t *mg) {
  const qk_device_t *dev = &mg->level[0].dev;
  staging_t st;
  qk_status_t status = staging_init(&st, dev);
  if (status == QK_OK) status = copy_parts(s, mg, &st);
  staging_fini(&st, dev);
  return status;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Waits for the thread. */
static void destroy(qk_mg_save_t *s) {
  if (s == NULL) return;
  if (s->running) pthread_join(s->thread, NULL);
  if (s->created) unlink(s->temp); /* while the lock keeps others from it */
  if (s->fd >= 0) close(s->fd);
  for (int i = 0; i < QK_MG_SECTIONS_MAX; i++) qk_free(s->part[i].data);
  qk_free(s);
}

static qk_status_t name_file(qk_mg_save_t *s, const char *path, qk_err_t *err) {
  int n = snprintf(s->temp, sizeof s->temp, "%s.tmp", path);
  if (n < 0 || (size_t)n >= sizeof s->temp)
    return qk_fail(err, QK_BAD_ARGUMENT, "path of %d bytes: the limit is %d", n, QK_FILE_PATH - 1);
  memcpy(s->path, path, strlen(path) + 1);
  return QK_OK;
}

/* True if the name still belongs to the open file: another process may have replaced it
 * meanwhile. */
static bool still_named(const qk_mg_save_t *s) {
  struct stat mine, named;
  return fstat(s->fd, &mine) == 0 && lstat(s->temp, &named) == 0 && mine.st_ino == named.st_ino &&
         mine.st_dev == named.st_dev;
}

/* A regular file of this user without another name: what others have put there is not written
 * to. */
static bool is_ours(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink <= 1;
}

/* Rank 0 creates the file, or takes over an unfinished one of a dead process; a lock keeps
 * others away while it is open. Then the other ranks open it. */
static qk_status_t open_file(qk_mg_save_t *s, bool first, qk_err_t *err) {
  s->fd =
      open(s->temp, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (first ? O_CREAT : 0), 0666);
  if (s->fd < 0) return qk_fail(err, QK_IO_ERROR, "cannot create %s: %s", s->temp, strerror(errno));
  if (!is_ours(s->fd))
    return qk_fail(err, QK_DENIED, "%s: this name is taken by a file that is not quark-engine's",
                   s->temp);
  if (!first) return QK_OK;
  bool locked = flock(s->fd, LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno != EWOULDBLOCK)
    return qk_fail(err, QK_IO_ERROR, "%s: lock: %s", s->temp, strerror(errno));
  if (!locked || !still_named(s))
    return qk_fail(err, QK_BUSY, "%s: another process writes there", s->temp);
  s->created = true;
  if (ftruncate(s->fd, 0) != 0 || ftruncate(s->fd, s->header.file_bytes) != 0)
    return qk_fail(err, QK_IO_ERROR, "%s: %lld bytes: %s", s->temp, (long long)s->header.file_bytes,
                   strerror(errno));
  return QK_OK;
}

static qk_status_t start(qk_mg_save_t *s, qk_err_t *err) {
  const bool first = qk_comm_rank(s->comm) == 0;
  qk_status_t status = first ? open_file(s, true, err) : QK_OK;
  status = qk_comm_agree(s->comm, status, err);
  if (status != QK_OK) return status;
  if (!first) status = open_file(s, false, err);
  status = qk_comm_agree(s->comm, status, err);
  if (status != QK_OK) return status;
  int code = pthread_create(&s->thread, NULL, write_parts, s);
  if (code != 0) status = qk_fail(err, QK_NO_MEMORY, "no thread for a file: %s", strerror(code));
  s->running = code == 0;
  return qk_comm_agree(s->comm, status, err);
}

/* This rank's part, without talking to the others. */
static qk_status_t prepare(qk_mg_save_t *s, const qk_mg_t *mg, const char *path,
                           const qk_mg_identity_t *identity, qk_err_t *err) {
  s->comm = mg->level[0].geom.comm;
  s->fd = -1;
  qk_mg_header_fill(&s->header, mg, identity);
  qk_status_t status = name_file(s, path, err);
  return status == QK_OK ? copy_all(s, mg) : status;
}

qk_status_t qk_mg_save_begin(const qk_mg_t *mg, const char *path, const qk_mg_identity_t *identity,
                             qk_mg_save_t **save, qk_err_t *err) {
  qk_err_t why = {0};
  qk_mg_save_t *s = qk_calloc(1, sizeof *s);
  qk_status_t status = s != NULL ? prepare(s, mg, path, identity, &why) : QK_NO_MEMORY;
  status = qk_comm_agree(mg->level[0].geom.comm, status, &why);
  if (status == QK_OK) status = start(s, &why);
  if (status == QK_OK) {
    *save = s;
    return QK_OK;
  }
  destroy(s);
  return qk_fail(err, status, "%s", why.text[0] ? why.text : qk_status_text(status));
}

/* All parts are on the disk: the header follows, then the name. */
static qk_status_t complete(qk_mg_save_t *s) {
  uint8_t bytes[QK_MG_HEADER_BYTES];
  if (qk_comm_sum_u64(s->comm, s->sum, s->header.nsection) != QK_OK) return QK_COMM_ERROR;
  if (qk_comm_rank(s->comm) != 0) return QK_OK;
  for (int i = 0; i < s->header.nsection; i++) s->header.section[i].checksum = s->sum[i];
  qk_mg_header_encode(&s->header, bytes);
  qk_status_t status = put_at(s, bytes, sizeof bytes, 0);
  if (status != QK_OK) return status;
  if (fsync(s->fd) != 0)
    return qk_fail(&s->err, QK_IO_ERROR, "%s: fsync: %s", s->temp, strerror(errno));
  if (rename(s->temp, s->path) != 0)
    return qk_fail(&s->err, QK_IO_ERROR, "cannot rename %s to %s: %s", s->temp, s->path,
                   strerror(errno));
  s->created = false;
  qk_file_sync_folder(s->path);
  return QK_OK;
}

/* The threads of all ranks have ended. */
static qk_status_t finish(qk_mg_save_t *s) {
  qk_status_t status = qk_comm_agree(s->comm, s->status, &s->err);
  return status == QK_OK ? qk_comm_agree(s->comm, complete(s), &s->err) : status;
}

qk_status_t qk_mg_save_poll(qk_mg_save_t **save, bool wait, bool *ended, qk_err_t *err) {
  qk_mg_save_t *s = *save;
  if (wait && s->running) {
    pthread_join(s->thread, NULL);
    s->running = false;
  }
  double left = atomic_load(&s->finished) ? 0 : 1;
  *ended = false;
  qk_status_t status = qk_comm_max(s->comm, &left, 1);
  if (status == QK_OK && left > 0) return QK_OK;
  *ended = true;
  *save = NULL;
  if (s->running) pthread_join(s->thread, NULL);
  s->running = false;
  if (status == QK_OK) status = finish(s);
  if (status != QK_OK)
    qk_fail(err, status, "%s", s->err.text[0] ? s->err.text : qk_status_text(status));
  destroy(s);
  return status;
}

void qk_mg_save_abandon(qk_mg_save_t **save) {
  destroy(*save);
  *save = NULL;
}
