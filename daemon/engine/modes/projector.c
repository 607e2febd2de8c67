#include "daemon/engine/modes/projector.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/modes/eigens.h"
#include "proto/eigen_check.h"

enum {
  BLOCKS = 8,       /* of a call, if vectors are on the device */
  SITE = 8 * 3 * 2, /* floats of a block at a site */
  MARGIN = 16       /* this part of the device stays free beside the vectors */
};
static const int64_t WORK = 64 << 20; /* bytes of sums at a time, or those of one slice */

/* What a call of the kernel works on. */
typedef struct chunk {
  int b0, nblock, t0, nt;
} chunk_t;

struct qk_projector {
  qk_loaded_t *setup;
  qk_wire_t *wire;
  char name[QK_EIGEN_NAME_MAX + 1]; /* whose vectors are on the device; "": nobody's */
  int planes, ncopy;                /* of them; blocks */
  bool refused;                     /* there was no room for those of that name */
  float *copy[QK_EIGEN_FILE_BLOCKS];
  int slices;   /* of a chunk; 0: there are no buffers */
  float *block; /* one block of a chunk, its planes; NULL on the host */
  double *work, *out, *out_host;
};

static int64_t slice_sites(const qk_projector_t *p) {
  const qk_geom_t *geom = &p->setup->geom;
  return 2 * (int64_t)geom->lat.vcb / geom->lat.l[3];
}

static size_t slice_floats(const qk_projector_t *p) {
  return (size_t)slice_sites(p) * SITE;
}

static size_t plane_floats(const qk_projector_t *p) {
  return slice_floats(p) * (size_t)p->setup->geom.lat.l[3];
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void give(const qk_projector_t *p, void *memory) {
  if (memory != NULL) p->setup->ops->free(p->setup->ctx, memory);
}

static void drop_copy(qk_projector_t *p) {
  for (int b = 0; b < p->ncopy; b++) give(p, p->copy[b]);
  p->ncopy = 0;
  p->name[0] = '\0';
  p->refused = false;
}

static void drop_buffers(qk_projector_t *p) {
  give(p, p->block);
  give(p, p->work);
  give(p, p->out);
  qk_free(p->out_host);
  p->block = NULL;
  p->work = p->out = p->out_host = NULL;
  p->slices = 0;
}

bool qk_projector_rest(qk_projector_t *p) {
  const bool any = p->ncopy > 0 || p->slices > 0;
  drop_copy(p);
  drop_buffers(p);
  return any;
}

bool qk_projector_yield(qk_projector_t *p, int64_t bytes) {
  const qk_loaded_t *s = p->setup;
  qk_device_info_t info;
  if (p->ncopy == 0) return false;
  if (s->ops->info(s->ctx, &info) == QK_OK && info.memory_free >= bytes) return false;
  drop_copy(p);
  return true;
}

static size_t out_bytes(int slices) {
  return (size_t)slices * QK_PROJECT_RHS * 4 * BLOCKS * QK_PROJECT_COLUMNS * 2 * sizeof(double);
}

static void take(const qk_projector_t *p, size_t bytes, void **memory) {
  const qk_device_t *dev = &p->setup->dev;
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->alloc(dev->ctx, bytes, memory));
}

/* What a projection cannot do without: for vectors that pass through the device, too. */
static qk_status_t reserve(qk_projector_t *p) {
  const qk_loaded_t *s = p->setup;
  const size_t work = qk_project_bytes(&s->geom.lat, 1, BLOCKS);
  const int most = s->geom.lat.l[3], fit = (int)(WORK / (int64_t)work);
  if (p->slices > 0) return QK_OK;
  p->slices = fit < 1 ? 1 : fit > most ? most : fit;
  const size_t slices = (size_t)p->slices;
  take(p, work * slices, (void **)&p->work);
  take(p, out_bytes(p->slices), (void **)&p->out);
  if (!s->ops->host_memory)
    take(p, 2 * slice_floats(p) * slices * sizeof(float), (void **)&p->block);
  qk_status_t status = qk_dev_status(&s->dev);
  if (status == QK_OK && !(p->out_host = qk_malloc(out_bytes(p->slices)))) status = QK_NO_MEMORY;
  if (status != QK_OK) drop_buffers(p);
  return status;
}

/* The lowest blocks of the set on the device, where there is room for them. */
static qk_status_t copy_blocks(qk_projector_t *p, const qk_kept_t *kept, int nblock) {
  const qk_loaded_t *s = p->setup;
  const size_t bytes = (size_t)kept->h.planes * plane_floats(p) * sizeof(float);
  qk_device_info_t info;
  qk_status_t status = s->ops->info(s->ctx, &info);
  if (status != QK_OK) return status;
  const int64_t field = (int64_t)qk_field_bytes(&s->geom, QK_DOUBLE, 1, QK_FULL);
  const int64_t keep = info.memory_total / MARGIN + QK_PROJECT_SPARE_FIELDS * field;
  if (s->eigens && qk_eigens_busy(s->eigens)) return QK_DEVICE_MEMORY; /* they take what there is */
  if (info.memory_free - keep < (int64_t)bytes * nblock) return QK_DEVICE_MEMORY;
  for (int b = 0; b < nblock && status == QK_OK; b++) {
    status = s->ops->alloc(s->ctx, bytes, (void **)&p->copy[b]);
    if (status != QK_OK) break;
    p->ncopy = b + 1;
    status = s->ops->copy(s->ctx, p->copy[b], kept->part[b], bytes, QK_COPY_TO_DEVICE, 0);
  }
  return status == QK_OK ? s->ops->queue_sync(s->ctx, 0) : status;
}

/* Vectors come to the device, if they are not there and there is room. */
static qk_status_t settle_copy(qk_projector_t *p, const qk_kept_t *kept, int nblock,
                               qk_err_t *err) {
  const qk_loaded_t *s = p->setup;
  const bool same = strcmp(p->name, kept->name) == 0;
  if (s->ops->host_memory || (same && (p->refused || p->ncopy >= nblock))) return QK_OK;
  drop_copy(p);
  qk_err_t why = {0};
  qk_status_t status = copy_blocks(p, kept, nblock);
  status = qk_comm_agree(s->geom.comm, qk_device_explain(&s->dev, status, &why), &why);
  if (status != QK_OK && status != QK_DEVICE_MEMORY) {
    *err = why;
    return status;
  }
  if (status != QK_OK) {
    drop_copy(p);
    p->refused = true;
    if (qk_comm_rank(s->geom.comm) == 0)
      qk_info("project", "eigenvectors %s pass through the device: it has no room for them",
              kept->name);
  }
  p->planes = kept->h.planes;
  memcpy(p->name, kept->name, sizeof p->name);
  return QK_OK;
}

/* ---- the products ---------------------------------------------------------------------------- */

/* Where plane `plane` of block b begins, slice t0 of it, for the kernel. */
static const float *vectors_at(const qk_projector_t *p, const qk_kept_t *kept, int b, int plane,
                               int t0) {
  const float *part = p->ncopy > 0 ? p->copy[b] : kept->part[b];
  return part + (size_t)plane * plane_floats(p) + (size_t)t0 * slice_floats(p);
}

static bool passes_through(const qk_projector_t *p) {
  return !p->setup->ops->host_memory && p->ncopy == 0;
}

/* The vectors of the chunk, on the device. */
static void place_vectors(const qk_projector_t *p, const qk_kept_t *kept, const chunk_t *c,
                          qk_project_args_t *args) {
  const size_t floats = (size_t)c->nt * slice_floats(p);
  for (int b = 0; b < c->nblock; b++)
    for (int plane = 0; plane < kept->h.planes; plane++) {
      const float **at = plane == 0 ? &args->vectors[b] : &args->low[b];
      *at = vectors_at(p, kept, c->b0 + b, plane, c->t0);
      if (!passes_through(p)) continue;
      float *to = p->block + (size_t)plane * floats;
      qk_dev_copy(&p->setup->dev, to, *at, floats * sizeof(float), QK_COPY_TO_DEVICE);
      *at = to;
    }
}

/* Of n solutions into out_host, [n][nt][4][8 nblock]. */
static qk_status_t multiply(const qk_projector_t *p, const qk_kept_t *kept, const chunk_t *c, int n,
                            const qk_field_t *const x[]) {
  const qk_loaded_t *s = p->setup;
  qk_project_args_t args = {.lat = s->geom.lat,
                            .nrhs = n,
                            .nblock = c->nblock,
                            .t0 = c->t0,
                            .nt = c->nt,
                            .work = p->work,
                            .out = p->out};
  const size_t bytes =
      (size_t)(n * c->nt * 4 * c->nblock) * QK_PROJECT_COLUMNS * 2 * sizeof(double);
  for (int i = 0; i < n; i++) args.x[i].field = x[i]->v;
  place_vectors(p, kept, c, &args);
  if (qk_dev_ok(&s->dev)) qk_dev_note(&s->dev, s->ops->project(s->ctx, &args));
  qk_dev_copy(&s->dev, p->out_host, p->out, bytes, QK_COPY_TO_HOST);
  qk_dev_sync(&s->dev);
  return qk_dev_status(&s->dev);
}

/* What is asked for of the columns of a chunk, from out_host to tau[n][T][4][count]: this rank's
 * part of the sums. */
static void collect(const qk_projector_t *p, const chunk_t *c, int n, int count, double *tau) {
  const qk_geom_t *geom = &p->setup->geom;
  const int columns = c->nblock * QK_PROJECT_COLUMNS, first = c->b0 * QK_PROJECT_COLUMNS;
  const int here = count - first < columns ? count - first : columns;
  for (int i = 0; i < n; i++)
    for (int t = 0; t < c->nt; t++)
      for (int s = 0; s < 4; s++) {
        const int at = geom->lat.offset[3] + c->t0 + t;
        const size_t from = (((size_t)i * (size_t)c->nt + (size_t)t) * 4 + (size_t)s);
        const size_t to = ((size_t)i * (size_t)geom->global[3] + (size_t)at) * 4 + (size_t)s;
        memcpy(tau + 2 * (to * (size_t)count + (size_t)first),
               p->out_host + 2 * from * (size_t)columns, (size_t)here * 2 * sizeof(double));
      }
}

static qk_status_t multiply_all(const qk_projector_t *p, const qk_kept_t *kept, int n, int count,
                                const qk_field_t *const x[], double *tau) {
  const int nblock = (count + QK_PROJECT_COLUMNS - 1) / QK_PROJECT_COLUMNS;
  const int most = passes_through(p) ? 1 : BLOCKS, lt = p->setup->geom.lat.l[3];
  qk_status_t status = QK_OK;
  for (int b = 0; b < nblock; b += most)
    for (int t = 0; t < lt && status == QK_OK; t += p->slices) {
      const chunk_t c = {.b0 = b,
                         .nblock = nblock - b < most ? nblock - b : most,
                         .t0 = t,
                         .nt = lt - t < p->slices ? lt - t : p->slices};
      status = multiply(p, kept, &c, n, x);
      if (status == QK_OK) collect(p, &c, n, count, tau);
    }
  return status;
}

/* In the basis, with the factor and of the type that is asked for, in place. */
static void express(const qk_projection_t *what, size_t slices, size_t count, double *tau) {
  for (size_t t = 0; t < slices; t++)
    for (size_t m = 0; m < count; m++) {
      double in[4][2];
      for (size_t s = 0; s < 4; s++)
        memcpy(in[s], tau + 2 * ((4 * t + s) * count + m), sizeof in[s]);
      for (size_t i = 0; i < 4; i++) {
        double re = 0, im = 0;
        for (size_t j = 0; j < 4; j++) {
          const double *z = what->matrix[i][j];
          re += z[0] * in[j][0] - z[1] * in[j][1];
          im += z[0] * in[j][1] + z[1] * in[j][0];
        }
        tau[2 * ((4 * t + i) * count + m)] = what->factor * re;
        tau[2 * ((4 * t + i) * count + m) + 1] = what->factor * im;
      }
    }
  float *single = (float *)tau;
  for (size_t k = 0; k < 8 * slices * count && !what->is_double; k++) {
    const float number = (float)tau[k];
    memcpy(single + k, &number, sizeof number);
  }
}

/* ---- right-hand sides ------------------------------------------------------------------------ */

/* Whether there are such vectors. */
static bool serve(const qk_kept_t *kept, const qk_projection_t *what, qk_err_t *verdict) {
  if (kept == NULL)
    qk_fail(verdict, QK_NOT_FOUND, "there are no eigenvectors of the name %s", what->name);
  else if (kept->h.problem.kind != QUARK__EIGEN_KIND__EIGEN_LAPLACIAN)
    qk_fail(verdict, QK_BAD_ARGUMENT, "project = %s: its eigenvectors are not those of time slices",
            what->name);
  else if (what->count > kept->h.problem.count)
    qk_fail(verdict, QK_BAD_ARGUMENT, "project_count = %d: %s has %d vectors of each time slice",
            what->count, what->name, kept->h.problem.count);
  return kept != NULL && verdict->code == QK_OK;
}

/* Real numbers of a right-hand side. */
static size_t result_numbers(const qk_projector_t *p, int count) {
  return (size_t)p->setup->geom.global[3] * 4 * (size_t)count * 2;
}

static uint64_t result_bytes(const qk_projector_t *p, const qk_projection_t *what) {
  const qk_shape_t shape = {.dims = {0, 0, 0, (uint32_t)p->setup->geom.global[3]}};
  return qk_projection_bytes((uint32_t)what->count,
                             what->is_double ? QUARK__DTYPE__DTYPE_F64 : QUARK__DTYPE__DTYPE_F32,
                             &shape);
}

/* Want of memory concerns one right-hand side, which the front lets wait; the rest the process. */
static qk_status_t settle(const qk_projector_t *p, qk_status_t status, qk_err_t *verdict,
                          qk_err_t *err) {
  const qk_loaded_t *s = p->setup;
  qk_err_t why = {0};
  status = qk_comm_agree(s->geom.comm, qk_device_explain(&s->dev, status, &why), &why);
  if (status == QK_OK) return QK_OK;
  if (status == QK_DEVICE_MEMORY || status == QK_NO_MEMORY) {
    qk_fail(verdict, QK_NO_MEMORY, "no memory for a projection: %s", why.text);
    return QK_OK;
  }
  *err = why;
  return status;
}

qk_status_t qk_projector_open(qk_projector_t *p, const qk_kept_t *kept, const qk_projection_t *what,
                              const char *out, qk_object_t *object, qk_err_t *verdict,
                              qk_err_t *err) {
  if (!serve(kept, what, verdict)) return QK_OK;
  qk_status_t status = settle(p, reserve(p), verdict, err);
  if (status != QK_OK || verdict->code != QK_OK) {
    drop_buffers(p);
    return status;
  }
  status = qk_object_open(p->wire, out, (int64_t)result_bytes(p, what), object, verdict);
  if (status != QK_COMM_ERROR) return QK_OK;
  *err = *verdict;
  return status;
}

static qk_status_t write_all(const qk_projector_t *p, int n, const qk_projection_t what[],
                             const qk_object_t *const object[], double *tau, qk_err_t verdict[],
                             qk_err_t *err) {
  const size_t slices = (size_t)p->setup->geom.global[3];
  for (int i = 0; i < n; i++) {
    const size_t count = (size_t)what[i].count;
    double *one = tau + (size_t)i * slices * 4 * count * 2;
    express(&what[i], slices, count, one);
    const qk_status_t status = qk_object_write(p->wire, object[i], one, &verdict[i]);
    if (status != QK_COMM_ERROR) continue;
    *err = verdict[i];
    return status;
  }
  return QK_OK;
}

/* There is room for all of it: tau, zeros, [n][T][4][count]. */
static qk_status_t compute(qk_projector_t *p, const qk_kept_t *kept, int n,
                           const qk_projection_t what[], const qk_field_t *const x[], double *tau,
                           qk_err_t *verdict, qk_err_t *err) {
  const int count = what[0].count, nblock = (count + QK_PROJECT_COLUMNS - 1) / QK_PROJECT_COLUMNS;
  const size_t one = result_numbers(p, count);
  qk_status_t status = settle_copy(p, kept, nblock, err);
  if (status != QK_OK) return status;
  status = settle(p, multiply_all(p, kept, n, count, x, tau), verdict, err);
  for (int i = 0; i < n && status == QK_OK && verdict->code == QK_OK; i++) {
    status = qk_comm_sum(p->setup->geom.comm, tau + (size_t)i * one, (int)one);
    if (status != QK_OK) qk_fail(err, status, "the ranks could not add a projection");
  }
  return status;
}

qk_status_t qk_projector_run(qk_projector_t *p, const qk_kept_t *kept, int n,
                             const qk_projection_t what[], const qk_field_t *const x[],
                             const qk_object_t *const object[], qk_err_t verdict[], qk_err_t *err) {
  qk_status_t status = QK_OK;
  double *tau = NULL;
  if (serve(kept, &what[0], &verdict[0])) {
    tau = qk_calloc((size_t)n * result_numbers(p, what[0].count), sizeof *tau);
    status = settle(p, tau != NULL ? reserve(p) : QK_NO_MEMORY, &verdict[0], err);
    if (status == QK_OK && verdict[0].code == QK_OK && tau != NULL)
      status = compute(p, kept, n, what, x, tau, &verdict[0], err);
  }
  for (int i = 1; i < n; i++) verdict[i] = verdict[0];
  if (status == QK_OK && verdict[0].code == QK_OK && tau != NULL)
    status = write_all(p, n, what, object, tau, verdict, err);
  qk_free(tau);
  return status;
}

/* ---- life ------------------------------------------------------------------------------------ */

qk_status_t qk_projector_create(qk_loaded_t *setup, qk_wire_t *wire, qk_projector_t **projector,
                                qk_err_t *err) {
  qk_projector_t *p = *projector = qk_calloc(1, sizeof *p);
  if (p != NULL) {
    p->setup = setup;
    p->wire = wire;
  }
  return qk_comm_agree(setup->geom.comm, p != NULL ? QK_OK : QK_NO_MEMORY, err);
}

void qk_projector_destroy(qk_projector_t *p) {
  if (p == NULL) return;
  qk_projector_rest(p);
  qk_free(p);
}
