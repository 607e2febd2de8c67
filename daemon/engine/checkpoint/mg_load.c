/* mg_load.c: reads a hierarchy from a checkpoint: in parallel, each rank its part, directly to
 * the device. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/checkpoint/mg_header.h"
#include "daemon/engine/eigen/deflation.h"

enum { PIECE = 32 << 20, CHUNK = 512 << 10 };

typedef struct loading {
  qk_comm_t *comm;
  const char *path;
  qk_progress_fn *progress;
  void *arg;
  int fd;
  qk_mg_header_t header;
  uint8_t *host[2]; /* pinned, PIECE bytes each */
  void *device;     /* PIECE bytes */
  qk_err_t err;     /* the first cause */
} loading_t;

/* ---- the header ------------------------------------------------------------------------------ */

static qk_status_t read_header(loading_t *in, uint8_t *bytes) {
  struct stat st;
  in->fd = open(in->path, O_RDONLY | O_CLOEXEC);
  if (in->fd < 0)
    return qk_fail(&in->err, errno == ENOENT ? QK_NOT_FOUND : QK_IO_ERROR, "%s",
                   errno == ENOENT ? "there is no checkpoint" : strerror(errno));
  if (fstat(in->fd, &st) != 0) return qk_fail(&in->err, QK_IO_ERROR, "%s", strerror(errno));
  if (!S_ISREG(st.st_mode)) return qk_fail(&in->err, QK_BAD_FORMAT, "not a regular file");
  if (st.st_size < QK_MG_HEADER_BYTES)
    return qk_fail(&in->err, QK_TRUNCATED, "%lld bytes: the header has %d", (long long)st.st_size,
                   QK_MG_HEADER_BYTES);
  ssize_t n = qk_fault(QK_FAULT_READ) ? -1 : pread(in->fd, bytes, QK_MG_HEADER_BYTES, 0);
  if (n != QK_MG_HEADER_BYTES) return qk_fail(&in->err, QK_IO_ERROR, "the header cannot be read");
  qk_status_t status = qk_mg_header_decode(bytes, &in->header, &in->err);
  if (status != QK_OK) return status;
  if (st.st_size < in->header.file_bytes)
    return qk_fail(&in->err, QK_TRUNCATED, "%lld bytes of %lld", (long long)st.st_size,
                   (long long)in->header.file_bytes);
  if (st.st_size > in->header.file_bytes)
    return qk_fail(&in->err, QK_BAD_FORMAT, "%lld bytes, but the header says %lld",
                   (long long)st.st_size, (long long)in->header.file_bytes);
  return QK_OK;
}

/* All ranks go by the header that rank 0 has read. */
static qk_status_t share_header(loading_t *in) {
  uint8_t bytes[QK_MG_HEADER_BYTES] = {0};
  const bool first = qk_comm_rank(in->comm) == 0;
  qk_status_t status = first ? read_header(in, bytes) : QK_OK;
  status = qk_comm_agree(in->comm, status, &in->err);
  if (status != QK_OK) return status;
  status = qk_comm_bcast(in->comm, bytes, sizeof bytes, 0);
  if (status != QK_OK) return status;
  if (!first) {
    status = qk_mg_header_decode(bytes, &in->header, &in->err);
    in->fd = open(in->path, O_RDONLY | O_CLOEXEC);
    if (status == QK_OK && in->fd < 0)
      status = qk_fail(&in->err, QK_IO_ERROR, "%s", strerror(errno));
  }
  return qk_comm_agree(in->comm, status, &in->err);
}

/* ---- sections -------------------------------------------------------------------------------- */

/* errno, 0, or -1 where the file ends. */
static int get_at(int fd, uint8_t *to, int64_t bytes, int64_t offset) {
  while (bytes > 0) {
    ssize_t n = -1;
    if (qk_fault(QK_FAULT_READ))
      errno = EIO;
    else
      n = pread(fd, to, (size_t)bytes, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return -1;
    to += n;
    offset += n;
    bytes -= n;
  }
  return 0;
}

/* Local sites n .. n+take-1 of section i to `to`, by all threads; adds to *sum. */
static int read_piece(const loading_t *in, const qk_lattice_t *lat, int i, int64_t n, int64_t take,
                      uint8_t *to, uint64_t *sum) {
  const qk_mg_section_t *section = &in->header.section[i];
  const bool full = qk_mg_section_full(section);
  const int64_t site_bytes = qk_mg_section_site_bytes(section), run = qk_mg_run(lat, full);
  const int64_t chunk = CHUNK / site_bytes > 0 ? CHUNK / site_bytes : 1;
  const int64_t chunks = (take + chunk - 1) / chunk;
  uint64_t total = 0;
  int code = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : total)
  for (int64_t k = 0; k < chunks; k++) {
    const int64_t end = n + ((k + 1) * chunk < take ? (k + 1) * chunk : take);
    for (int64_t at = n + k * chunk, now; at < end; at += now) {
      const int64_t first = qk_mg_global_site(lat, full, at), left = run - at % run;
      uint8_t *place = to + (at - n) * site_bytes;
      now = left < end - at ? left : end - at;
      int failed = get_at(in->fd, place, now * site_bytes, section->offset + first * site_bytes);
      if (failed != 0) {
#pragma omp atomic write
        code = failed;
        break;
      }
      total += qk_mg_section_sum(place, first, now, site_bytes, i);
    }
  }
  *sum += total;
  return code;
}

/* Of `take` sites in a piece the columns from `first` on stay, as many as f has. */
static void pick_columns(const qk_mg_section_t *section, int first, const qk_field_t *f,
                         int64_t take, uint8_t *piece) {
  const int64_t site_bytes = qk_mg_section_site_bytes(section);
  const int64_t column_bytes = site_bytes / section->columns, kept = f->v.nrhs * column_bytes;
  if (kept == site_bytes) return;
  for (int64_t k = 0; k < take; k++)
    memmove(piece + k * kept, piece + k * site_bytes + first * column_bytes, (size_t)kept);
}

/* Columns of section i from `first` on to f; *sum: of all its columns. */
static qk_status_t read_part(loading_t *in, int i, int first, qk_field_t *f, uint64_t *sum) {
  const qk_device_t *dev = f->dev;
  const qk_mg_section_t *section = &in->header.section[i];
  const int64_t site_bytes = qk_mg_section_site_bytes(section), piece = PIECE / site_bytes;
  for (int64_t n = 0, k = 0; n < f->v.nsites && qk_dev_ok(dev); n += piece, k++) {
    if (in->progress) in->progress(in->arg, "checkpoint", i, in->header.nsection);
    const int64_t left = f->v.nsites - n, take = left < piece ? left : piece;
    const qk_lattice_t *lat = &dev->geom->lat;
    int code = read_piece(in, lat, i, n, take, in->host[k % 2], sum);
    if (code != 0)
      return qk_fail(&in->err, code > 0 ? QK_IO_ERROR : QK_TRUNCATED, "section %d: %s", i,
                     code > 0 ? strerror(code) : "the file ends early");
    const qk_sites_args_t set = {*lat, f->v, section->prec, in->device, n, take};
    pick_columns(section, first, f, take, in->host[k % 2]);
    qk_dev_sync(dev); /* the other piece has left */
    const size_t bytes = (size_t)(take * site_bytes / section->columns * f->v.nrhs);
    qk_dev_copy(dev, in->device, in->host[k % 2], bytes, QK_COPY_TO_DEVICE);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->sites_set(dev->ctx, &set));
  }
  qk_dev_sync(dev);
  return qk_dev_status(dev);
}

/* sum: of this rank, which has read its part, or where the level is whole everything. */
static qk_status_t check_sum(loading_t *in, int i, const qk_geom_t *geom, uint64_t sum) {
  const uint64_t stated = in->header.section[i].checksum;
  qk_status_t status = geom->whole ? QK_OK : qk_comm_sum_u64(in->comm, &sum, 1);
  if (status == QK_OK && sum != stated)
    status = qk_fail(&in->err, QK_BAD_CHECKSUM,
                     "checksum of section %d is %016llx, the header says %016llx", i,
                     (unsigned long long)sum, (unsigned long long)stated);
  return geom->whole ? qk_comm_agree(in->comm, status, &in->err) : status;
}

/* A field that holds n columns of section i from `first` on, the section's checksum verified over
 * all ranks; NULL on failure. */
static qk_status_t read_columns(loading_t *in, int i, int first, int n, const qk_device_t *dev,
                                qk_field_t **field) {
  const qk_mg_section_t *section = &in->header.section[i];
  const bool full = qk_mg_section_full(section);
  qk_field_t *f = NULL;
  uint64_t sum = 0;
  qk_status_t status = qk_field_create(dev, QK_SINGLE, n, full ? QK_FULL : QK_EVEN, &f);
  if (status == QK_OK) status = read_part(in, i, first, f, &sum);
  status = qk_comm_agree(in->comm, status, &in->err);
  if (status == QK_OK) status = check_sum(in, i, dev->geom, sum);
  if (status == QK_OK) {
    *field = f;
    return QK_OK;
  }
  qk_field_destroy(f);
  return qk_fail(&in->err, status, "section %d: %s", i, qk_status_text(status));
}

static qk_status_t read_section(loading_t *in, int i, const qk_device_t *dev, qk_field_t **field) {
  return read_columns(in, i, 0, in->header.section[i].columns, dev, field);
}

/* The callback of qk_mg_create_from. */
static qk_field_t *vectors_of(void *arg, int level, int first, int n, const qk_device_t *dev) {
  loading_t *in = arg;
  qk_field_t *f = NULL;
  return read_columns(in, level, first, n, dev, &f) == QK_OK ? f : NULL;
}

/* The null vectors in terms of the prolongators, from which a refinement starts: those of the
 * file replace those of the orthonormal vectors, from which these prolongators were made. */
static qk_status_t read_null(loading_t *in, qk_mg_t *mg) {
  qk_status_t status = QK_OK;
  for (int l = 0; l + 1 < mg->nlevel && status == QK_OK; l++) {
    qk_field_t *f = NULL;
    status = read_section(in, mg->nlevel - 1 + l, &mg->level[l + 1].dev, &f);
    if (status != QK_OK) break;
    qk_field_destroy(mg->level[l].null);
    mg->level[l].null = f;
  }
  return status;
}

static qk_status_t read_deflation(loading_t *in, qk_mg_t *mg) {
  const qk_mg_header_t *h = &in->header;
  const qk_mg_level_t *last = &mg->level[mg->nlevel - 1];
  qk_field_t *block[QK_MG_SECTIONS_MAX] = {NULL};
  qk_status_t status = QK_OK;
  if (h->deflate == 0) return QK_OK;
  for (int i = 2 * (h->nlevel - 1), b = 0; i < h->nsection && status == QK_OK; i++, b++)
    status = read_section(in, i, &last->dev, &block[b]);
  if (status == QK_OK) {
    status = qk_deflation_create_from(last->op, last->work, h->deflate, h->value, h->residual,
                                      block, &mg->deflation, &in->err);
    status = qk_comm_agree(in->comm, status, &in->err);
    return status ? status
                  : qk_comm_agree(in->comm, qk_deflation_keep_images(mg->deflation), &in->err);
  }
  for (int b = 0; b < QK_MG_SECTIONS_MAX; b++) qk_field_destroy(block[b]);
  return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static qk_status_t reserve(loading_t *in, const qk_device_t *dev) {
  void *memory = NULL;
  qk_status_t status = dev->ops->alloc(dev->ctx, PIECE, &memory);
  in->device = memory;
  for (int k = 0; k < 2 && status == QK_OK; k++) {
    memory = NULL;
    status = dev->ops->alloc_host(dev->ctx, PIECE, &memory);
    in->host[k] = memory;
  }
  return qk_comm_agree(in->comm, status, &in->err);
}

static void release(loading_t *in, const qk_device_t *dev) {
  for (int k = 1; k >= 0; k--)
    if (in->host[k]) dev->ops->free_host(dev->ctx, in->host[k]);
  if (in->device) dev->ops->free(dev->ctx, in->device);
  if (in->fd >= 0) close(in->fd);
}

static qk_status_t build(loading_t *in, qk_operator_t *op, qk_work_t *work,
                         const qk_mg_params_t *params, qk_mg_t **mg) {
  qk_mg_params_t p = *params;
  p.deflate = -1; /* of the file instead */
  qk_err_t made = {0};
  qk_status_t status = qk_mg_create_from(op, work, &p, vectors_of, in, mg, &made);
  if (status != QK_OK) /* the file's own error, where it has one, is the cause */
    return in->err.code ? in->err.code : qk_fail(&in->err, status, "%s", made.text);
  status = read_null(in, *mg);
  (*mg)->params.deflate = params->deflate;
  if (status == QK_OK)
    status = op->twist == 0 ? read_deflation(in, *mg)
                            : qk_mg_deflate(*mg, in->progress, in->arg, &in->err);
  if (status == QK_OK) {
    const qk_mg_header_t *h = &in->header;
    (*mg)->fresh_residual = h->fresh_residual;
    (*mg)->fresh_convergence = h->fresh_convergence;
    memcpy((*mg)->origin, h->origin, sizeof h->origin);
    return QK_OK;
  }
  qk_mg_destroy(*mg);
  *mg = NULL;
  return status;
}

/* The callback of qk_mg_evolve. */
static qk_field_t *null_of(void *arg, int level, int most, const qk_device_t *dev) {
  loading_t *in = arg;
  const int i = in->header.nlevel - 1 + level, all = in->header.section[i].columns;
  qk_field_t *f = NULL;
  return read_columns(in, i, 0, all < most ? all : most, dev, &f) == QK_OK ? f : NULL;
}

static void tell_origin(const loading_t *in, const char *name, qk_mg_t *mg) {
  const qk_mg_identity_t *from = &in->header.identity;
  char how[80] = "vectors kept";
  if (mg->evolved == QK_MG_RELAXED)
    snprintf(how, sizeof how, "vectors relaxed with %d iterations",
             qk_mg_resumed_iterations(mg->params.level[0].setup_iterations));
  snprintf(mg->origin, sizeof mg->origin,
           "evolved from %.64s (%.640s, links digest %016" PRIx64 "): %s", name,
           from->operator_text, from->gauge_digest, how);
}

static qk_status_t evolve(loading_t *in, qk_operator_t *op, qk_work_t *work, const char *name,
                          const qk_mg_params_t *params, qk_mg_t **mg) {
  const qk_mg_start_t start = {.vectors = vectors_of,
                               .null = null_of,
                               .arg = in,
                               .residual = in->header.fresh_residual,
                               .convergence = in->header.fresh_convergence};
  qk_err_t made = {0};
  const qk_status_t status =
      qk_mg_evolve(op, work, params, &start, in->progress, in->arg, mg, &made);
  if (status != QK_OK)
    return in->err.code ? in->err.code : qk_fail(&in->err, status, "%s", made.text);
  tell_origin(in, name, *mg);
  return QK_OK;
}

/* What is made of the file: the setup of `identity`, or one that evolves from `name`. */
typedef struct purpose {
  const qk_mg_identity_t *identity; /* NULL: it evolves */
  const char *name;
} purpose_t;

static qk_status_t match(loading_t *in, const qk_geom_t *geom, const purpose_t *purpose,
                         const qk_mg_params_t *params) {
  if (purpose->identity)
    return qk_mg_header_match(&in->header, geom->global, purpose->identity, params, &in->err);
  return qk_mg_header_fits(&in->header, geom->global, geom->ncomp, params, &in->err);
}

static qk_status_t read_all(loading_t *in, qk_operator_t *op, qk_work_t *work,
                            const purpose_t *purpose, const qk_mg_params_t *params, qk_mg_t **mg) {
  const qk_device_t *dev = op->dev;
  qk_status_t status = share_header(in);
  if (status != QK_OK) return status;
  status = match(in, dev->geom, purpose, params);
  if (status != QK_OK) return status;
  status = reserve(in, dev);
  if (status != QK_OK) return status;
  return purpose->identity ? build(in, op, work, params, mg)
                           : evolve(in, op, work, purpose->name, params, mg);
}

static qk_status_t load(qk_operator_t *op, qk_work_t *work, const char *path,
                        const purpose_t *purpose, const qk_mg_params_t *params,
                        qk_progress_fn *progress, void *arg, qk_mg_t **mg, qk_err_t *err) {
  const qk_device_t *dev = op->dev;
  loading_t in = {
      .comm = dev->geom->comm, .path = path, .fd = -1, .progress = progress, .arg = arg};
  qk_mg_params_t complete = *params;
  qk_mg_t *m = NULL;
  qk_status_t status = qk_mg_params_complete(dev->geom, dev->ops->tuning, &complete, err);
  if (status != QK_OK) return status;
  status = read_all(&in, op, work, purpose, &complete, &m);
  release(&in, dev);
  if (status == QK_OK) {
    *mg = m;
    return QK_OK;
  }
  if (in.err.text[0]) qk_err_prefix(&in.err, "%s", path);
  return qk_fail(err, status, "%s", in.err.text[0] ? in.err.text : qk_status_text(status));
}

qk_status_t qk_mg_load(qk_operator_t *op, qk_work_t *work, const char *path,
                       const qk_mg_identity_t *identity, const qk_mg_params_t *params,
                       qk_progress_fn *progress, void *arg, qk_mg_t **mg, qk_err_t *err) {
  const purpose_t purpose = {.identity = identity};
  return load(op, work, path, &purpose, params, progress, arg, mg, err);
}

qk_status_t qk_mg_load_evolved(qk_operator_t *op, qk_work_t *work, const char *path,
                               const char *name, const qk_mg_params_t *params,
                               qk_progress_fn *progress, void *arg, qk_mg_t **mg, qk_err_t *err) {
  const purpose_t purpose = {.name = name};
  return load(op, work, path, &purpose, params, progress, arg, mg, err);
}
