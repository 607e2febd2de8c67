#include "daemon/engine/checkpoint/eigen_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/checkpoint/mg_header.h"

/* ---- bytes of a file ------------------------------------------------------------------------- */

static qk_status_t at(int fd, void *data, int64_t bytes, int64_t offset, bool write,
                      qk_err_t *err) {
  uint8_t *p = data;
  while (bytes > 0) {
    ssize_t n = -1;
    if (qk_fault(write ? QK_FAULT_WRITE : QK_FAULT_READ))
      errno = write ? ENOSPC : EIO;
    else
      n = write ? pwrite(fd, p, (size_t)bytes, offset) : pread(fd, p, (size_t)bytes, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return qk_fail(err, QK_IO_ERROR, "%s at %lld: %s", write ? "write" : "read",
                     (long long)offset, strerror(errno));
    if (n == 0) return qk_fail(err, QK_TRUNCATED, "the file ends at %lld", (long long)offset);
    p += n;
    offset += n;
    bytes -= n;
  }
  return QK_OK;
}

/* How a rank's part of a block lies in the file. */
typedef struct spread {
  const qk_lattice_t *lat;
  const qk_eigen_header_t *h;
  bool coefficients;
  int64_t local, global,
      run;    /* sites, or aggregates, of this rank, of all, that follow one another */
  int planes; /* times vectors */
} spread_t;

static spread_t spread_of(const qk_geom_t *geom, const qk_eigen_header_t *h, int block) {
  const int *b = h->problem.cut.block;
  spread_t s = {.lat = &geom->lat,
                .h = h,
                .coefficients = qk_eigen_is_coefficients(h, block),
                .local = h->full ? geom->local_volume : geom->local_volume / 2,
                .global = h->full ? geom->volume : geom->volume / 2,
                .run = qk_mg_run(&geom->lat, h->full),
                .planes = h->planes * h->vectors};
  if (!s.coefficients) return s;
  s.planes = h->planes;
  s.run = geom->lat.l[0] / b[0];
  s.local = s.global = 1;
  for (int mu = 0; mu < 4; mu++) {
    s.local *= geom->lat.l[mu] / b[mu];
    s.global *= geom->global[mu] / b[mu];
  }
  return s;
}

/* Place among those of all ranks. */
static int64_t place_of(const spread_t *s, int64_t n) {
  const int *b = s->h->problem.cut.block;
  int64_t place = 0, stride = 1;
  if (!s->coefficients) return qk_mg_global_site(s->lat, s->h->full, n);
  for (int mu = 0; mu < 4; mu++) {
    const int64_t here = s->lat->l[mu] / b[mu];
    place += stride * (s->lat->offset[mu] / b[mu] + n % here);
    stride *= s->h->dims[mu] / b[mu];
    n /= here;
  }
  return place;
}

/* This rank's part of a block and its checksum, run by run of sites that follow one another. */
static qk_status_t move_part(int fd, const qk_geom_t *geom, const qk_eigen_header_t *h, int block,
                             float *part, bool write, uint64_t *sum, qk_err_t *err) {
  const spread_t s = spread_of(geom, h, block);
  const int floats = qk_eigen_site_floats(h, block), site = floats * (int)sizeof *part;
  *sum = 0;
  for (int k = 0; k < s.planes; k++)
    for (int64_t n = 0; n < s.local; n += s.run) {
      const int64_t first = place_of(&s, n);
      float *here = part + (k * s.local + n) * floats;
      const int64_t place = qk_eigen_block_at(h, block) + (k * s.global + first) * site;
      const qk_status_t status = at(fd, here, s.run * site, place, write, err);
      if (status != QK_OK) return status;
      *sum += qk_mg_section_sum(here, first, s.run, site, k);
    }
  return QK_OK;
}

static bool is_first(const qk_geom_t *geom) {
  return qk_comm_rank(geom->comm) == 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct qk_eigen_writer {
  const qk_geom_t *geom;
  qk_eigen_header_t h;
  char path[QK_FILE_PATH], temp[QK_FILE_PATH];
  int fd;
  bool created;
  uint64_t sum[QK_EIGEN_FILE_BLOCKS]; /* of this rank */
};

void qk_eigen_writer_abandon(qk_eigen_writer_t *w) {
  if (w == NULL) return;
  if (w->created) unlink(w->temp); /* while the lock keeps others from it */
  if (w->fd >= 0) close(w->fd);
  qk_free(w);
}

/* A regular file of this user without another name. */
static bool is_ours(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink <= 1;
}

static qk_status_t open_temp(qk_eigen_writer_t *w, bool first, qk_err_t *err) {
  const int create = first ? O_CREAT : 0;
  w->fd = open(w->temp, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | create, 0600);
  if (w->fd < 0) return qk_fail(err, QK_IO_ERROR, "cannot create it: %s", strerror(errno));
  if (!is_ours(w->fd))
    return qk_fail(err, QK_DENIED, "its name is taken by a file that is not quark-engine's");
  if (!first) return QK_OK;
  if (flock(w->fd, LOCK_EX | LOCK_NB) != 0)
    return qk_fail(err, QK_BUSY, "another process writes there");
  w->created = true;
  if (ftruncate(w->fd, 0) == 0 && ftruncate(w->fd, qk_eigen_block_at(&w->h, w->h.nblock)) == 0)
    return QK_OK;
  return qk_fail(err, QK_IO_ERROR, "%lld bytes: %s",
                 (long long)qk_eigen_block_at(&w->h, w->h.nblock), strerror(errno));
}

static qk_status_t begin(qk_eigen_writer_t *w, const char *path, qk_err_t *err) {
  const bool first = is_first(w->geom);
  const int n = snprintf(w->temp, sizeof w->temp, "%s.tmp", path);
  if (n < 0 || (size_t)n >= sizeof w->temp)
    return qk_fail(err, QK_BAD_ARGUMENT, "path of %d bytes: the limit is %d", n, QK_FILE_PATH - 1);
  memcpy(w->path, path, strlen(path) + 1);
  qk_status_t status = first ? open_temp(w, true, err) : QK_OK;
  status = qk_comm_agree(w->geom->comm, status, err);
  if (status == QK_OK && !first) status = open_temp(w, false, err);
  return status;
}

qk_status_t qk_eigen_writer_open(const qk_geom_t *geom, const char *path,
                                 const qk_eigen_header_t *h, qk_eigen_writer_t **writer,
                                 qk_err_t *err) {
  qk_err_t why = {0};
  qk_eigen_writer_t *w = qk_calloc(1, sizeof *w);
  qk_status_t status = w ? QK_OK : QK_NO_MEMORY;
  if (w) {
    w->geom = geom;
    w->h = *h;
    w->fd = -1;
  }
  status = qk_comm_agree(geom->comm, status, &why);
  if (status != QK_OK) goto fail;
  status = qk_comm_agree(geom->comm, begin(w, path, &why), &why);
  if (status != QK_OK) goto fail;
  *writer = w;
  return QK_OK;

fail:
  qk_eigen_writer_abandon(w);
  qk_err_prefix(&why, "%s.tmp", path);
  return qk_fail(err, status, "%s", why.text[0] ? why.text : qk_status_text(status));
}

qk_status_t qk_eigen_writer_block(qk_eigen_writer_t *w, int block, const float *part,
                                  qk_err_t *err) {
  float *read = (float *)(uintptr_t)part;
  qk_err_t why = {0};
  qk_status_t status = move_part(w->fd, w->geom, &w->h, block, read, true, &w->sum[block], &why);
  status = qk_comm_agree(w->geom->comm, status, &why);
  if (status == QK_OK) return QK_OK;
  qk_err_prefix(&why, "%s", w->temp);
  return qk_fail(err, status, "%s", why.text);
}

static qk_status_t sync_file(const qk_eigen_writer_t *w, qk_err_t *err) {
  return fsync(w->fd) == 0 ? QK_OK : qk_fail(err, QK_IO_ERROR, "fsync: %s", strerror(errno));
}

/* Table and header, when all blocks are on the disk. */
static qk_status_t put_front(qk_eigen_writer_t *w, const double *number, uint8_t *table,
                             qk_err_t *err) {
  uint8_t header[QK_EIGEN_HEADER_BYTES];
  qk_eigen_table_encode(&w->h, number, w->sum, table);
  qk_eigen_header_encode(&w->h, header);
  qk_status_t status =
      at(w->fd, table, qk_eigen_table_bytes(&w->h), QK_EIGEN_HEADER_BYTES, true, err);
  if (status != QK_OK) return status;
  status = at(w->fd, header, sizeof header, 0, true, err);
  return status == QK_OK ? sync_file(w, err) : status;
}

static qk_status_t complete(qk_eigen_writer_t *w, const double *number, qk_err_t *err) {
  if (!is_first(w->geom)) return QK_OK;
  uint8_t *table = qk_malloc((size_t)qk_eigen_table_bytes(&w->h));
  const qk_status_t status = table ? put_front(w, number, table, err) : QK_NO_MEMORY;
  qk_free(table);
  if (status != QK_OK) return status;
  if (rename(w->temp, w->path) != 0)
    return qk_fail(err, QK_IO_ERROR, "it cannot be renamed: %s", strerror(errno));
  w->created = false;
  qk_file_sync_folder(w->path);
  return QK_OK;
}

static qk_status_t end_writing(qk_eigen_writer_t *w, const double *number, qk_err_t *err) {
  qk_comm_t *comm = w->geom->comm;
  qk_status_t status = qk_comm_agree(comm, sync_file(w, err), err);
  if (status != QK_OK) return status;
  status = qk_comm_sum_u64(comm, w->sum, w->h.nblock);
  return status == QK_OK ? qk_comm_agree(comm, complete(w, number, err), err) : status;
}

qk_status_t qk_eigen_writer_close(qk_eigen_writer_t *w, const double *number, qk_err_t *err) {
  qk_err_t why = {0};
  const qk_status_t status = end_writing(w, number, &why);
  if (status != QK_OK) {
    qk_err_prefix(&why, "%s", w->temp);
    qk_fail(err, status, "%s", why.text);
  }
  qk_eigen_writer_abandon(w);
  return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct qk_eigen_reader {
  const qk_geom_t *geom;
  qk_eigen_header_t h;
  int fd;
  double *number;
  uint64_t sum[QK_EIGEN_FILE_BLOCKS];
};

void qk_eigen_reader_close(qk_eigen_reader_t *r) {
  if (r == NULL) return;
  if (r->fd >= 0) close(r->fd);
  qk_free(r->number);
  qk_free(r);
}

static qk_status_t open_path(qk_eigen_reader_t *r, const char *path, qk_err_t *err) {
  r->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (r->fd >= 0) return QK_OK;
  return qk_fail(err, errno == ENOENT ? QK_NOT_FOUND : QK_IO_ERROR, "%s", strerror(errno));
}

static qk_status_t read_table(qk_eigen_reader_t *r, qk_err_t *err) {
  const int64_t bytes = qk_eigen_table_bytes(&r->h);
  uint8_t *table = qk_malloc((size_t)bytes);
  if (table == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory for a table");
  const qk_status_t got = at(r->fd, table, bytes, QK_EIGEN_HEADER_BYTES, false, err);
  const qk_status_t status =
      got == QK_OK ? qk_eigen_table_decode(&r->h, table, r->number, r->sum, err) : got;
  qk_free(table);
  return status;
}

static qk_status_t read_header(qk_eigen_reader_t *r, const char *path,
                               const qk_eigen_header_t *wanted, qk_err_t *err) {
  uint8_t header[QK_EIGEN_HEADER_BYTES];
  struct stat st;
  qk_status_t status = open_path(r, path, err);
  if (status != QK_OK) return status;
  if (fstat(r->fd, &st) != 0 || !S_ISREG(st.st_mode))
    return qk_fail(err, QK_BAD_FORMAT, "not a regular file");
  if (st.st_size < QK_EIGEN_HEADER_BYTES)
    return qk_fail(err, QK_TRUNCATED, "%lld bytes: the header has %d", (long long)st.st_size,
                   QK_EIGEN_HEADER_BYTES);
  status = at(r->fd, header, sizeof header, 0, false, err);
  if (status != QK_OK) return status;
  status = qk_eigen_header_decode(header, &r->h, err);
  if (status == QK_OK && wanted != NULL) status = qk_eigen_header_match(&r->h, wanted, err);
  if (status != QK_OK) return status;
  if (st.st_size != r->h.file_bytes)
    return qk_fail(err, st.st_size < r->h.file_bytes ? QK_TRUNCATED : QK_BAD_FORMAT,
                   "%lld bytes, the header says %lld", (long long)st.st_size,
                   (long long)r->h.file_bytes);
  return QK_OK;
}

static qk_status_t read_numbers(qk_eigen_reader_t *r, bool first, qk_err_t *err) {
  r->number = qk_malloc((size_t)r->h.numbers * sizeof *r->number + 1);
  if (!r->number) return qk_fail(err, QK_NO_MEMORY, "no memory for %d numbers", r->h.numbers);
  return first ? read_table(r, err) : QK_OK;
}

/* Rank 0 reads for all. */
static qk_status_t share_front(qk_eigen_reader_t *r, const char *path,
                               const qk_eigen_header_t *wanted, qk_err_t *err) {
  qk_comm_t *comm = r->geom->comm;
  const bool first = is_first(r->geom);
  qk_status_t status = qk_comm_agree(comm, first ? read_header(r, path, wanted, err) : QK_OK, err);
  if (status != QK_OK) return status;
  status = qk_comm_bcast(comm, &r->h, sizeof r->h, 0);
  if (status != QK_OK) return status;
  status = qk_comm_agree(comm, read_numbers(r, first, err), err);
  const struct {
    void *data;
    size_t bytes;
  } part[] = {{r->number, (size_t)r->h.numbers * sizeof *r->number}, {r->sum, sizeof r->sum}};
  for (int i = 0; i < 2 && status == QK_OK; i++)
    status = qk_comm_bcast(comm, part[i].data, part[i].bytes, 0);
  if (status != QK_OK) return status;
  return qk_comm_agree(comm, first ? QK_OK : open_path(r, path, err), err);
}

qk_status_t qk_eigen_reader_open(const qk_geom_t *geom, const char *path,
                                 const qk_eigen_header_t *wanted, qk_eigen_reader_t **reader,
                                 qk_eigen_header_t *h, const double **number, qk_err_t *err) {
  qk_err_t why = {0};
  qk_eigen_reader_t *r = qk_calloc(1, sizeof *r);
  qk_status_t status = r ? QK_OK : QK_NO_MEMORY;
  if (r) {
    r->geom = geom;
    r->fd = -1;
  }
  status = qk_comm_agree(geom->comm, status, &why);
  if (status != QK_OK) goto fail;
  status = share_front(r, path, wanted, &why);
  if (status != QK_OK) goto fail;
  *reader = r;
  *h = r->h;
  *number = r->number;
  return QK_OK;

fail:
  qk_eigen_reader_close(r);
  qk_err_prefix(&why, "%s", path);
  return qk_fail(err, status, "%s", why.text[0] ? why.text : qk_status_text(status));
}

static qk_status_t check_sum(const qk_eigen_reader_t *r, int block, uint64_t sum, qk_err_t *err) {
  const qk_status_t status = qk_comm_sum_u64(r->geom->comm, &sum, 1);
  if (status != QK_OK || sum == r->sum[block]) return status;
  return qk_fail(err, QK_BAD_CHECKSUM, "checksum of block %d is %016llx, not %016llx", block,
                 (unsigned long long)sum, (unsigned long long)r->sum[block]);
}

qk_status_t qk_eigen_reader_block(qk_eigen_reader_t *r, int block, float *part, qk_err_t *err) {
  uint64_t sum = 0;
  qk_status_t status = move_part(r->fd, r->geom, &r->h, block, part, false, &sum, err);
  status = qk_comm_agree(r->geom->comm, status, err);
  return status == QK_OK ? check_sum(r, block, sum, err) : status;
}
