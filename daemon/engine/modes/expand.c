#include "daemon/engine/modes/expand.h"

#include <complex.h>
#include <string.h>

#include "daemon/base/mem.h"

enum { B = QK_EIGEN_BLOCK, REALS = 24, HALF = 6 };

/* Vector `column` of a block of coefficients, beside the blocks of the basis. */
typedef struct sum {
  const qk_kept_t *kept;
  const qk_lattice_t *lat;
  int column;
  const float *coefficient; /* of its block */
  int64_t aggregates, sites;
} sum_t;

static sum_t sum_of(const qk_kept_t *v, int n) {
  const qk_geom_t *geom = v->op->dev->geom;
  const int first = v->h.problem.cut.n / B;
  return (sum_t){.kept = v,
                 .lat = &geom->lat,
                 .column = n % B,
                 .coefficient = v->part[first + n / B],
                 .aggregates = qk_coherent_aggregates(geom, &v->h.problem.cut),
                 .sites = geom->local_volume / 2};
}

/* The sum of the planes of a number whose first plane is at p. */
static double complex number(const sum_t *s, const float *p, int64_t plane) {
  double complex z = p[0] + I * p[1];
  if (s->kept->h.planes == 2) z += (double)p[plane] + I * (double)p[plane + 1];
  return z;
}

/* The aggregate of even site n of this rank. */
static int64_t aggregate_of(const sum_t *s, int64_t n) {
  const qk_lattice_t *lat = s->lat;
  const int *block = s->kept->h.problem.cut.block;
  int64_t x[4], rest = 2 * n, aggregate = 0, stride = 1;
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = rest % lat->l[mu];
    rest /= lat->l[mu];
  }
  for (int mu = 0; mu < 4; mu++) { /* x[0] is even; its neighbour is in the same aggregate */
    aggregate += stride * (x[mu] / block[mu]);
    stride *= lat->l[mu] / block[mu];
  }
  return aggregate;
}

/* The coefficients of an aggregate, [chirality][i]. */
static void take_coefficients(const sum_t *s, int64_t aggregate, double complex *c) {
  const int n = 2 * s->kept->h.problem.cut.n;
  const int64_t plane = s->aggregates * B * n * 2;
  const float *from = s->coefficient + (aggregate * B + s->column) * n * 2;
  for (int i = 0; i < n; i++) c[i] = number(s, from + (int64_t)2 * i, plane);
}

/* What the basis has at even site n of `vector`: [12]. */
static void sum_site(const sum_t *s, int vector, int64_t n, const double complex *c,
                     double complex *out) {
  const int basis = s->kept->h.problem.cut.n;
  const int64_t one = s->sites * B * REALS, plane = s->kept->h.vectors * one;
  memset(out, 0, 2 * HALF * sizeof *out);
  for (int i = 0; i < basis; i++) {
    const float *v = s->kept->part[i / B] + vector * one + (n * B + i % B) * REALS;
    for (int a = 0; a < 2 * HALF; a++)
      out[a] += c[a / HALF * basis + i] * number(s, v + 2 * a, plane);
  }
}

/* A vector of all sites as two planes of floats. */
static void sum_vector(const sum_t *s, int vector, float *const plane[2]) {
#pragma omp parallel for schedule(static)
  for (int64_t n = 0; n < s->sites; n++) {
    double complex c[2 * QK_COHERENT_MAX], out[2 * HALF];
    take_coefficients(s, aggregate_of(s, n), c);
    sum_site(s, vector, n, c, out);
    for (int a = 0; a < REALS; a++) {
      const double x = a % 2 ? cimag(out[a / 2]) : creal(out[a / 2]);
      plane[0][n * REALS + a] = (float)x;
      plane[1][n * REALS + a] = (float)(x - (double)plane[0][n * REALS + a]);
    }
  }
}

/* Fields of the operator in double, of one right-hand side; of one vector of it. */
typedef struct fields {
  qk_geom_t geom;
  qk_device_t dev;
  qk_field_t *sum, *smooth, *one;
  float *plane[2];
} fields_t;

static qk_status_t open_fields(const qk_kept_t *v, fields_t *f) {
  const qk_device_t *dev = v->op->dev;
  const size_t floats = (size_t)(dev->geom->local_volume / 2) * REALS;
  *f = (fields_t){.geom = *dev->geom, .dev = *dev};
  f->geom.inner = f->geom.ls = 1;
  f->dev.geom = &f->geom;
  for (int k = 0; k < 2; k++)
    if (!(f->plane[k] = qk_malloc(floats * sizeof(float)))) return QK_NO_MEMORY;
  qk_status_t status = qk_field_create(dev, QK_DOUBLE, 1, QK_EVEN, &f->sum);
  if (status) return status;
  status = qk_field_create(dev, QK_DOUBLE, 1, QK_EVEN, &f->smooth);
  return status ? status : qk_field_create(&f->dev, QK_DOUBLE, 1, QK_EVEN, &f->one);
}

static void close_fields(fields_t *f) {
  qk_field_destroy(f->one);
  qk_field_destroy(f->smooth);
  qk_field_destroy(f->sum);
  for (int k = 0; k < 2; k++) qk_free(f->plane[k]);
}

/* Slice or flavour k of a field of the operator, and of a field that has one alone. */
static void move(const qk_field_t *many, int k, const qk_spinor_t *one, bool out) {
  const qk_device_t *dev = many->dev;
  const int slices = qk_geom_slices(dev->geom);
  const qk_field_t of = slices > 1 ? *many : qk_field_vector(many, k);
  const int column = slices > 1 ? k : 0;
  const qk_rhs_copy_args_t a = {.to = out ? *one : of.v,
                                .from = out ? of.v : *one,
                                .to_rhs = out ? 0 : column,
                                .from_rhs = out ? column : 0};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->rhs_copy(dev->ctx, &a));
}

static qk_status_t smooth(const qk_kept_t *v, fields_t *f) {
  qk_chebyshev_t *c = NULL;
  qk_status_t status = qk_chebyshev_create(v->op, v->op->work, &v->h.smoother, &c);
  status = qk_comm_agree(v->op->dev->geom->comm, status, NULL);
  if (status) {
    qk_chebyshev_destroy(c);
    return status;
  }
  qk_chebyshev_apply(c, f->smooth, f->sum);
  qk_dev_sync(v->op->dev);
  qk_chebyshev_destroy(c);
  return qk_comm_agree(v->op->dev->geom->comm, qk_dev_status(v->op->dev), NULL);
}

static qk_status_t expand(const qk_kept_t *v, const qk_kept_pick_t *pick, fields_t *f,
                          const qk_field_t *field) {
  const sum_t s = sum_of(v, pick->n);
  qk_status_t status = QK_OK;
  for (int k = 0; k < v->h.vectors && !status; k++) {
    sum_vector(&s, k, f->plane);
    status = qk_eigen_part_plain(f->one, f->plane);
    if (!status) move(f->sum, k, &f->one->v, false);
  }
  status = status ? status : smooth(v, f);
  if (status) return status;
  const qk_spinor_t even = qk_field_parity(field, QK_EVEN);
  qk_dev_blas(field->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {field->v}});
  move(f->smooth, pick->vector, &even, true);
  qk_dev_sync(field->dev);
  return qk_comm_agree(field->dev->geom->comm, qk_dev_status(field->dev), NULL);
}

qk_status_t qk_expand(const qk_kept_t *v, const qk_kept_pick_t *pick, const qk_field_t *field) {
  fields_t f;
  const qk_status_t opened = qk_comm_agree(field->dev->geom->comm, open_fields(v, &f), NULL);
  const qk_status_t status = opened ? opened : expand(v, pick, &f, field);
  close_fields(&f);
  return status;
}
