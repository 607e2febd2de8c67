#include "daemon/engine/eigen/coherent.h"

#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"

enum { B = QK_TILE, MOST_SITES = 4 * 65535 }; /* of a block: what a kernel's grid takes */

/* A column of which less than this is left beside those before it in its block of eight counts as
 * dependent: by precision, whose rounding products have. */
static const double dependent[] = {1e-6, 1e-3};

/* ---- the cut --------------------------------------------------------------------------------- */

qk_status_t qk_coherent_check(const qk_geom_t *geom, const qk_coherent_cut_t *cut, qk_err_t *err) {
  if (cut->n < B || cut->n > QK_COHERENT_MAX || cut->n % B != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "basis = %d: must be a multiple of %d up to %d", cut->n, B,
                   QK_COHERENT_MAX);
  for (int mu = 0; mu < 4; mu++) {
    const int l = geom->lat.l[mu], b = cut->block[mu];
    if (b >= 1 && l % b == 0 && (mu > 0 || b % 2 == 0)) continue;
    return qk_fail(err, QK_BAD_GEOMETRY,
                   "block: %d in %c: must be a divisor of %d, the extent on a device%s", b,
                   "xyzt"[mu], l, mu == 0 ? ", and even" : "");
  }
  const int64_t sites = (int64_t)cut->block[0] * cut->block[1] * cut->block[2] * cut->block[3];
  if (sites * qk_geom_slices(geom) <= MOST_SITES) return QK_OK;
  return qk_fail(err, QK_BAD_GEOMETRY, "block: %lld sites with %d slices each: at most %d together",
                 (long long)sites, (int)qk_geom_slices(geom), MOST_SITES);
}

int64_t qk_coherent_aggregates(const qk_geom_t *geom, const qk_coherent_cut_t *cut) {
  int64_t n = 1;
  for (int mu = 0; mu < 4; mu++) n *= geom->lat.l[mu] / cut->block[mu];
  return n;
}

int64_t qk_coherent_numbers(const qk_geom_t *geom, const qk_coherent_cut_t *cut) {
  int64_t n = (int64_t)2 * cut->n;
  for (int mu = 0; mu < 4; mu++) n *= geom->global[mu] / cut->block[mu];
  return n;
}

qk_geom_t qk_coherent_geom(const qk_geom_t *geom, const qk_coherent_cut_t *cut) {
  qk_geom_t g = *geom;
  g.ncomp = 2 * cut->n;
  g.inner = g.ls = 1;
  g.lat.vcb = (int32_t)((qk_coherent_aggregates(geom, cut) + B - 1) / B * B);
  g.local_volume = 2 * (int64_t)g.lat.vcb;
  return g;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Without vectors. */
static qk_coherent_t *begin(const qk_device_t *dev, const qk_coherent_cut_t *cut) {
  qk_coherent_t *h = qk_calloc(1, sizeof *h);
  if (!h) return NULL;
  h->cut = *cut;
  qk_flat_init(&h->flat, dev);
  h->geom = qk_coherent_geom(dev->geom, cut);
  h->dev = *dev;
  h->dev.geom = &h->geom;
  h->aggregates = (int)qk_coherent_aggregates(dev->geom, cut);
  return h;
}

qk_status_t qk_coherent_create(const qk_device_t *dev, qk_subset_t system, qk_prec_t prec,
                               const qk_coherent_cut_t *cut, qk_coherent_t **coherent) {
  qk_coherent_t *h = begin(dev, cut);
  if (!h) return QK_NO_MEMORY;
  for (; h->nblock < cut->n / B; h->nblock++) {
    const qk_status_t status =
        qk_field_create(qk_flat_dev(&h->flat), prec, B, system, &h->v[h->nblock]);
    if (!status) continue;
    qk_coherent_destroy(h);
    return status;
  }
  *coherent = h;
  return QK_OK;
}

qk_status_t qk_coherent_create_from(const qk_device_t *dev, const qk_coherent_cut_t *cut,
                                    qk_field_t **block, qk_coherent_t **coherent) {
  qk_coherent_t *h = begin(dev, cut);
  if (!h) return QK_NO_MEMORY;
  for (; h->nblock < cut->n / B; h->nblock++) {
    h->v[h->nblock] = block[h->nblock];
    h->v[h->nblock]->dev = qk_flat_dev(&h->flat);
    block[h->nblock] = NULL;
  }
  *coherent = h;
  return QK_OK;
}

void qk_coherent_destroy(qk_coherent_t *h) {
  if (!h) return;
  for (int b = h->nblock - 1; b >= 0; b--) qk_field_destroy(h->v[b]);
  qk_free(h);
}

qk_status_t qk_coherent_convert(qk_coherent_t *h, qk_prec_t prec) {
  const qk_device_t *dev = qk_flat_dev(&h->flat);
  for (int b = 0; b < h->nblock; b++) {
    qk_field_t *to = NULL;
    if (h->v[b]->v.prec == prec) continue;
    const qk_status_t status = qk_field_create(dev, prec, B, h->v[b]->v.subset, &to);
    if (status) return status;
    qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {to->v, h->v[b]->v}});
    qk_dev_sync(dev);
    qk_field_destroy(h->v[b]);
    h->v[b] = to;
  }
  return qk_dev_status(dev);
}

/* ---- between lattices ------------------------------------------------------------------------ */

/* Of blocks first .. first + n - 1. */
static qk_coherent_args_t args_of(const qk_coherent_t *h, int first, int n, const qk_field_t *y,
                                  const qk_field_t *c) {
  qk_coherent_args_t a = {.lat = h->flat.from->geom->lat, .n = n, .y = y->v, .c = c->v};
  memcpy(a.block, h->cut.block, sizeof h->cut.block);
  for (int b = 0; b < n; b++) a.v[b] = h->v[first + b]->v;
  return a;
}

/* Blocks first .. first + n - 1: c = V^+ y, or y = V c. */
static void transfer(const qk_coherent_t *h, bool up, int first, int n, const qk_field_t *c,
                     const qk_field_t *y) {
  const qk_coherent_args_t a = args_of(h, first, n, y, c);
  const qk_ops_t *ops = h->dev.ops;
  if (qk_dev_ok(&h->dev))
    qk_dev_note(&h->dev, (up ? ops->coherent_restrict : ops->coherent_prolong)(h->dev.ctx, &a));
}

void qk_coherent_restrict(const qk_coherent_t *h, const qk_field_t *c, const qk_field_t *y) {
  transfer(h, true, 0, h->nblock, c, y);
}

void qk_coherent_prolong(const qk_coherent_t *h, const qk_field_t *y, const qk_field_t *c) {
  transfer(h, false, 0, h->nblock, c, y);
}

/* ---- to host memory -------------------------------------------------------------------------- */

/* A field in single, and as many plain floats on the device. */
typedef struct room {
  qk_field_t *single, *wide;
  void *plain;
  size_t bytes;
} room_t;

static void close_room(const qk_device_t *dev, room_t *r) {
  if (r->plain) dev->ops->free(dev->ctx, r->plain);
  qk_field_destroy(r->wide);
  qk_field_destroy(r->single);
}

static qk_status_t open_room(const qk_field_t *like, room_t *r) {
  const qk_device_t *dev = like->dev;
  *r = (room_t){.bytes = (size_t)like->v.nsites * B * 2 * (size_t)like->v.ncomp * sizeof(float)};
  qk_status_t status = dev->ops->alloc(dev->ctx, r->bytes, &r->plain);
  if (status) return status;
  status = qk_field_create(dev, QK_SINGLE, B, like->v.subset, &r->single);
  if (status || like->v.prec != QK_DOUBLE) return status;
  return qk_field_create(dev, QK_DOUBLE, B, like->v.subset, &r->wide);
}

static void move(const qk_device_t *dev, const room_t *r, float *host, bool to_field) {
  const qk_sites_args_t a = {dev->geom->lat,     r->single->v, QK_SINGLE, r->plain, 0,
                             r->single->v.nsites};
  if (to_field) {
    qk_dev_copy(dev, r->plain, host, r->bytes, QK_COPY_TO_DEVICE);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->sites_set(dev->ctx, &a));
  } else {
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->sites_get(dev->ctx, &a));
    qk_dev_copy(dev, host, r->plain, r->bytes, QK_COPY_TO_HOST);
  }
  qk_dev_sync(dev);
}

qk_status_t qk_coherent_get(const qk_field_t *field, int plane, float *plain) {
  const qk_device_t *dev = field->dev;
  room_t r;
  const qk_status_t status = open_room(field, &r);
  if (!status) {
    qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {r.single->v, field->v}});
    if (plane > 0 && r.wide) {
      qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {r.wide->v, r.single->v}});
      qk_dev_blas(dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {r.wide->v, field->v, r.wide->v}});
      qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {r.single->v, r.wide->v}});
    }
    move(dev, &r, plain, false);
  }
  close_room(dev, &r);
  return status ? status : qk_dev_status(dev);
}

qk_status_t qk_coherent_set(qk_field_t *field, int planes, float *const plain[2]) {
  const qk_device_t *dev = field->dev;
  room_t r;
  const qk_status_t status = open_room(field, &r);
  for (int k = 0; k < planes && !status; k++) {
    move(dev, &r, plain[k], true);
    qk_dev_blas(dev, k == 0 ? QK_BLAS_COPY : QK_BLAS_ADD,
                (qk_blas_args_t){.f = {field->v, r.single->v}});
    qk_dev_sync(dev);
  }
  close_room(dev, &r);
  return status ? status : qk_dev_status(dev);
}

/* ---- orthonormal vectors --------------------------------------------------------------------- */

/* Work of a block: what it is made of the blocks before it, products of its columns. */
typedef struct gram {
  qk_geom_t geom; /* of coefficients of one block */
  qk_device_t dev;
  qk_field_t *block, *c, *small;
  float *plane[2]; /* of small */
} gram_t;

static void gram_fini(gram_t *g) {
  qk_field_destroy(g->small);
  qk_field_destroy(g->c);
  qk_field_destroy(g->block);
  for (int k = 0; k < 2; k++) qk_free(g->plane[k]);
}

static qk_status_t gram_init(const qk_coherent_t *h, gram_t *g) {
  const qk_prec_t prec = h->v[0]->v.prec;
  const size_t numbers = (size_t)h->geom.lat.vcb * B * 2 * 2 * B;
  *g = (gram_t){.geom = h->geom, .dev = h->dev};
  g->geom.ncomp = 2 * B;
  g->dev.geom = &g->geom;
  for (int k = 0; k < 2; k++)
    if (!(g->plane[k] = qk_calloc(numbers, sizeof(float)))) return QK_NO_MEMORY;
  qk_status_t status =
      qk_field_create(qk_flat_dev(&h->flat), prec, B, h->v[0]->v.subset, &g->block);
  if (status) return status;
  status = qk_field_create(&h->dev, prec, B, QK_EVEN, &g->c);
  return status ? status : qk_field_create(&g->dev, prec, B, QK_EVEN, &g->small);
}

static size_t at(int aggregate, int column, int s, int i) {
  return (((size_t)aggregate * B + (size_t)column) * 2 * B + (size_t)(s * B + i)) * 2;
}

static double complex number(const gram_t *g, int aggregate, int column, int s, int i) {
  const size_t k = at(aggregate, column, s, i);
  return g->plane[0][k] + (double)g->plane[1][k] +
         I * (g->plane[0][k + 1] + (double)g->plane[1][k + 1]);
}

static void put_number(gram_t *g, int aggregate, int column, int s, int i, double complex z) {
  const size_t k = at(aggregate, column, s, i);
  const double part[2] = {creal(z), cimag(z)};
  for (int im = 0; im < 2; im++) {
    g->plane[0][k + (size_t)im] = (float)part[im];
    g->plane[1][k + (size_t)im] = (float)(part[im] - (double)g->plane[0][k + (size_t)im]);
  }
}

/* x, upper triangular, with x^+ m x = 1 but for columns that depend on those before: they are 0. */
static void orthonormal_factor(double complex m[B][B], double limit, double complex x[B][B]) {
  memset(x, 0, sizeof(double complex) * B * B);
  for (int j = 0; j < B; j++) {
    double complex column[B] = {0}, image[B];
    const double whole = creal(m[j][j]);
    column[j] = 1;
    for (int i = 0; i < j; i++) { /* - x_i (x_i^+ m e_j) */
      double complex product = 0;
      for (int k = 0; k <= i; k++) product += conj(x[k][i]) * m[k][j];
      for (int k = 0; k <= i; k++) column[k] -= x[k][i] * product;
    }
    double norm2 = 0;
    for (int i = 0; i <= j; i++) {
      image[i] = 0;
      for (int k = 0; k <= j; k++) image[i] += m[i][k] * column[k];
      norm2 += creal(conj(column[i]) * image[i]);
    }
    if (!(norm2 > limit * limit * whole)) continue;
    for (int i = 0; i <= j; i++) x[i][j] = column[i] / sqrt(norm2);
  }
}

/* Products of the columns of a block become the factors that make them orthonormal. */
static void factor(const qk_coherent_t *h, gram_t *g) {
  const double limit = dependent[g->small->v.prec];
#pragma omp parallel for schedule(static)
  for (int n = 0; n < h->aggregates; n++)
    for (int s = 0; s < 2; s++) {
      double complex m[B][B], x[B][B];
      for (int i = 0; i < B; i++)
        for (int j = 0; j < B; j++) m[i][j] = number(g, n, j, s, i);
      orthonormal_factor(m, limit, x);
      for (int i = 0; i < B; i++)
        for (int j = 0; j < B; j++) put_number(g, n, j, s, i, x[i][j]);
    }
}

/* Block b without what the blocks before it have of it. */
static void project_out(qk_coherent_t *h, gram_t *g, int b) {
  if (b == 0) return;
  transfer(h, true, 0, b, g->c, h->v[b]);
  transfer(h, false, 0, b, g->c, g->block);
  qk_dev_blas(&h->dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {h->v[b]->v, h->v[b]->v, g->block->v}});
}

static qk_status_t normalise(qk_coherent_t *h, gram_t *g, int b) {
  const int planes = g->small->v.prec == QK_DOUBLE ? 2 : 1;
  transfer(h, true, b, 1, g->small, h->v[b]);
  for (int k = 0; k < planes; k++) {
    const qk_status_t status = qk_coherent_get(g->small, k, g->plane[k]);
    if (status) return status;
  }
  factor(h, g);
  const qk_status_t status = qk_coherent_set(g->small, planes, g->plane);
  if (status) return status;
  transfer(h, false, b, 1, g->small, g->block);
  qk_dev_blas(&h->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {h->v[b]->v, g->block->v}});
  return qk_dev_status(&h->dev);
}

/* Everything twice, since what is left of a column may be small. */
enum { PASSES = 2 };

struct qk_coherent_pass {
  qk_coherent_t *h;
  gram_t g;
  int step; /* the next one: of block step / PASSES */
};

static qk_status_t tell(const qk_coherent_t *h, qk_status_t made, qk_err_t *err) {
  const qk_status_t status = qk_comm_agree(h->flat.from->geom->comm, made, NULL);
  return status
             ? qk_fail(err, status, "a basis of %d vectors: %s", h->cut.n, qk_status_text(status))
             : QK_OK;
}

qk_status_t qk_coherent_pass_create(qk_coherent_t *h, qk_coherent_pass_t **pass, qk_err_t *err) {
  qk_coherent_pass_t *p = qk_calloc(1, sizeof *p);
  if (p) p->h = h;
  const qk_status_t status = tell(h, p ? gram_init(h, &p->g) : QK_NO_MEMORY, err);
  if (status) {
    qk_coherent_pass_destroy(p);
    return status;
  }
  *pass = p;
  return QK_OK;
}

qk_status_t qk_coherent_pass_step(qk_coherent_pass_t *p, bool *over, qk_err_t *err) {
  const int b = p->step++ / PASSES;
  project_out(p->h, &p->g, b);
  *over = p->step == PASSES * p->h->nblock;
  return tell(p->h, normalise(p->h, &p->g, b), err);
}

void qk_coherent_pass_destroy(qk_coherent_pass_t *p) {
  if (!p) return;
  gram_fini(&p->g);
  qk_free(p);
}
