#include "daemon/engine/modes/laplacian.h"

#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/gauge/gaugefield.h"
#include "daemon/engine/hadron/gauss.h"

enum { B = QK_TILE, COLOURS = 3, COMPONENTS = 12, LINK_REALS = 72, TILES = 2 * QK_TILE };

struct qk_laplacian {
  qk_operator_t op; /* first: what is called back is given it */
  const qk_device_t *whole;
  const double *links;
  qk_geom_t geom;
  qk_device_t dev;
  qk_flavours_t flavours;
  int t;
  qk_gauss_t *gauss;
  void *wire;   /* device: RHS in the order of the wire ... */
  double *host; /* ... and on the host */
};

/* ---- the lattice ----------------------------------------------------------------------------- */

static int64_t sites_in_space(const qk_lattice_t *lat) {
  return (int64_t)lat->l[0] * lat->l[1] * lat->l[2];
}

/* The first of the local slices that the lattice has, where slice t is local. */
static int first_slice(const qk_geom_t *whole, int slices, int t) {
  return (t - whole->lat.offset[3]) / slices * slices;
}

static bool has(const qk_geom_t *whole, int t) {
  const int local = t - whole->lat.offset[3];
  return local >= 0 && local < whole->lat.l[3];
}

qk_geom_t qk_laplacian_geom(const qk_geom_t *whole, int t) {
  qk_geom_t g = *whole;
  const int64_t space = sites_in_space(&whole->lat);
  const int slices = space % TILES == 0 ? 1 : 2;
  g.inner = g.ls = 1;
  g.lat.l[3] = slices;
  g.lat.split[3] = 0;
  if (has(whole, t)) g.lat.offset[3] += first_slice(whole, slices, t);
  g.local_volume = space * slices;
  g.volume = g.local_volume * g.grid[0] * g.grid[1] * g.grid[2];
  g.lat.vcb = (int32_t)(g.local_volume / 2);
  for (int mu = 0; mu < 4; mu++) g.lat.face[mu] = g.lat.vcb / g.lat.l[mu];
  return g;
}

static size_t wire_bytes(const qk_geom_t *geom) {
  return (size_t)geom->local_volume * COMPONENTS * 2 * sizeof(double);
}

int64_t qk_laplacian_bytes(const qk_geom_t *whole, qk_prec_t prec) {
  const qk_geom_t g = qk_laplacian_geom(whole, 0);
  const int64_t links = g.local_volume * LINK_REALS * (int64_t)sizeof(double);
  const int64_t field =
      (int64_t)qk_gaugefield_bytes(&g.lat, 1) + (int64_t)qk_gaugefield_staging_bytes(&g.lat, 1);
  return field + links * (prec == QK_DOUBLE ? 1 : 2) + QK_RHS_TOGETHER * (int64_t)wire_bytes(&g);
}

/* ---- the operator ---------------------------------------------------------------------------- */

static qk_status_t apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                         const qk_field_t *x, double c) {
  qk_laplacian_t *l = (qk_laplacian_t *)op;
  (void)dagger;
  (void)c;
  if (x != NULL) return QK_BAD_ARGUMENT;
  op->applications[in->v.prec]++;
  return qk_gauss_laplacian(l->gauss, out, in);
}

static qk_status_t apply_system(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                bool dagger, const qk_field_t *x) {
  return apply(op, out, in, dagger, x, 0);
}

static const qk_operator_ops_t ops = {.apply = apply, .apply_system = apply_system};

qk_operator_t *qk_laplacian_operator(qk_laplacian_t *l) {
  return &l->op;
}

void qk_laplacian_restrict(const qk_operator_t *op, const qk_field_t *field) {
  const qk_laplacian_t *l = (const qk_laplacian_t *)op;
  for (int i = 0; i < field->v.nrhs; i++) {
    const qk_source_args_t a = {.lat = l->geom.lat,
                                .field = field->v,
                                .rhs = i,
                                .kind = QK_SOURCE_HELD,
                                .site = {0, 0, 0, l->t},
                                .spin = 0,
                                .colour = -1};
    if (qk_dev_ok(op->dev)) qk_dev_note(op->dev, op->dev->ops->source(op->dev->ctx, &a));
  }
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Its size is that of any slice. */
static qk_status_t reserve(qk_laplacian_t *l) {
  const qk_geom_t geom = qk_laplacian_geom(l->whole->geom, 0);
  const size_t bytes = QK_RHS_TOGETHER * wire_bytes(&geom);
  l->host = qk_malloc(bytes);
  return l->host ? l->dev.ops->alloc(l->dev.ctx, bytes, &l->wire) : QK_NO_MEMORY;
}

static qk_status_t prepare(qk_laplacian_t *l) {
  l->dev = *l->whole;
  l->geom = qk_laplacian_geom(l->whole->geom, 0);
  l->dev.geom = &l->geom;
  l->op = (qk_operator_t){.ops = &ops,
                          .dev = &l->dev,
                          .action = "laplacian",
                          .system = QK_FULL,
                          .adjoint = QK_ADJOINT_PARTS,
                          .chirality = QK_CHIRALITY_NONE,
                          .flavours = &l->flavours,
                          .diag_scale = 1};
  const qk_status_t status = qk_work_create(&l->dev, &l->op.work);
  return status ? status : reserve(l);
}

qk_status_t qk_laplacian_create(const qk_device_t *dev, const double *links,
                                qk_laplacian_t **laplacian, qk_err_t *err) {
  qk_laplacian_t *l = qk_calloc(1, sizeof *l);
  if (l) {
    l->whole = dev;
    l->links = links;
  }
  const qk_status_t status = qk_comm_agree(dev->geom->comm, l ? prepare(l) : QK_NO_MEMORY, NULL);
  if (status) {
    qk_laplacian_destroy(l);
    return qk_fail(err, status, "Laplacian of a time slice: %s", qk_status_text(status));
  }
  *laplacian = l;
  return QK_OK;
}

void qk_laplacian_destroy(qk_laplacian_t *l) {
  if (!l) return;
  qk_gauss_destroy(l->gauss);
  if (l->op.work) qk_work_destroy(l->op.work);
  if (l->wire) l->dev.ops->free(l->dev.ctx, l->wire);
  qk_free(l->host);
  qk_free(l);
}

/* ---- to a slice ------------------------------------------------------------------------------ */

/* Links of the slices that the lattice has; where t is not local, of others: they meet zeros. */
static qk_status_t take_links(qk_laplacian_t *l, qk_err_t *err) {
  const int64_t first = l->geom.lat.offset[3] - l->whole->geom->lat.offset[3];
  const double *links = l->links + first * sites_in_space(&l->geom.lat) * LINK_REALS;
  qk_gaugefield_t *field = NULL;
  qk_status_t status = qk_gaugefield_create(&l->dev, 1, &field);
  if (status) return status;
  status = qk_gaugefield_import(field, links);
  status = status ? status : qk_gauss_create(&l->dev, l->op.work, field, &l->gauss, err);
  qk_gaugefield_destroy(field);
  return status;
}

static qk_status_t go(qk_laplacian_t *l, qk_prec_t prec, qk_err_t *err) {
  const qk_field_t like = qk_field_at(&l->dev, prec, B, QK_FULL, NULL);
  const qk_status_t status = take_links(l, err);
  return status ? status : qk_gauss_prepare(l->gauss, &like);
}

qk_status_t qk_laplacian_go(qk_laplacian_t *l, int t, qk_prec_t prec, qk_err_t *err) {
  qk_gauss_destroy(l->gauss);
  l->gauss = NULL;
  qk_work_trim(l->op.work);
  l->t = t;
  l->geom = qk_laplacian_geom(l->whole->geom, t);
  const qk_status_t status = go(l, prec, err);
  return status ? qk_fail(err, status, "links of time slice %d: %s", t, qk_status_text(status))
                : QK_OK;
}

/* ---- its vectors ----------------------------------------------------------------------------- */

int64_t qk_laplacian_sites(const qk_laplacian_t *l) {
  return has(l->whole->geom, l->t) ? sites_in_space(&l->geom.lat) : 0;
}

/* Spin 0 of the slice, from the order of the wire. */
static void scatter(const qk_laplacian_t *l, int first, double *to) {
  const int64_t sites = sites_in_space(&l->geom.lat), all = l->geom.local_volume;
  const double *slice =
      l->host + (l->t - l->geom.lat.offset[3]) * sites * COMPONENTS * 2; /* of the first one */
  for (int k = 0; k < QK_RHS_TOGETHER; k++)
    for (int64_t n = 0; n < sites; n++)
      memcpy(to + (n * B + first + k) * COLOURS * 2, slice + (k * all + n) * COMPONENTS * 2,
             COLOURS * 2 * sizeof *to);
}

static void export(qk_laplacian_t *l, const qk_field_t *block, int first) {
  const qk_device_t *dev = &l->dev;
  qk_rhs_args_t a = {.lat = l->geom.lat,
                     .field = block->v,
                     .rhs = first,
                     .n = QK_RHS_TOGETHER,
                     .is_double = 1,
                     .factor = 1};
  for (int s = 0; s < 4; s++) a.basis[s][s][0] = 1;
  for (int k = 0; k < QK_RHS_TOGETHER; k++)
    a.wire[k] = (char *)l->wire + (size_t)k * wire_bytes(&l->geom);
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->rhs_export(dev->ctx, &a));
  qk_dev_copy(dev, l->host, l->wire, QK_RHS_TOGETHER * wire_bytes(&l->geom), QK_COPY_TO_HOST);
  qk_dev_sync(dev);
}

qk_status_t qk_laplacian_get(qk_laplacian_t *l, const qk_field_t *block, double *to) {
  if (qk_laplacian_sites(l) > 0)
    for (int first = 0; first < B; first += QK_RHS_TOGETHER) {
      export(l, block, first);
      if (qk_dev_ok(&l->dev)) scatter(l, first, to);
    }
  return qk_dev_status(&l->dev);
}
