/*
 * Chebyshev smoothing, with the polynomial as a product over its roots. It needs no reductions, and
 * each factor is one application of the operator, which also gives the new residual.
 *
 *   x += r / root_k,  r = r - Mhat r / root_k,   k = 1 .. n
 *
 * The roots are those of the Chebyshev polynomial of degree n on [low, high], in an order in which
 * no partial product is large (F. Leja). high is the upper end of the field of values of Mhat; an
 * Arnoldi process from a random vector measures it. Modes below `low` are left to the coarse grids.
 * If the field of values is wider in the imaginary direction than that interval, an ellipse has no
 * real foci, and all roots are its centre.
 */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/smoother/smoother_impl.h"

enum { ARNOLDI = 12, POWER = 300 };
/* Longer runs begin anew after STEPS. Scalars: 1 / root of degree n = 1 .. STEPS. */
enum { STEPS = QK_CHEBYSHEV_STEPS, NSCALAR = STEPS * (STEPS + 1) / 2 };

/* The real interval reaches down to this share of its upper end. */
static const double lower_share = 0.4;
/* What Ritz values lack of the true extent. */
static const double margin = 1.05;

typedef struct arnoldi {
  qk_field_t *v[ARNOLDI + 1];
  qk_scalars_t dots;
  double complex h[ARNOLDI + 1][ARNOLDI];
} arnoldi_t;

/* ---- the field of values --------------------------------------------------------------------- */

/* Any numbers will do: they differ between ranks, and between sites. */
static qk_status_t random_field(qk_smoother_t *s, qk_field_t *v) {
  const qk_device_t *dev = s->dev;
  qk_field_t *single;
  qk_status_t status = qk_field_create(dev, QK_SINGLE, 1, s->op->system, &single);
  if (status) return status;
  size_t n = single->bytes / sizeof(float);
  float *host = qk_malloc(n * sizeof *host);
  uint32_t state = 12345u + 977u * (uint32_t)qk_comm_rank(dev->geom->comm);
  for (size_t i = 0; host && i < n; i++) {
    state = state * 1664525u + 1013904223u;
    host[i] = (float)(int32_t)state * 0x1p-31f;
  }
  qk_dev_note(dev, host ? dev->ops->copy(dev->ctx, single->v.data, host, single->bytes,
                                         QK_COPY_TO_DEVICE, 0)
                        : QK_NO_MEMORY);
  qk_dev_sync(dev);
  qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {v->v, single->v}});
  qk_dev_sync(dev);
  qk_free(host);
  qk_field_destroy(single);
  return qk_dev_status(dev);
}

/* v *= 1/|v|; returns the norm as it was. */
static double normalise(qk_smoother_t *s, arnoldi_t *a, const qk_field_t *v) {
  double *c = qk_scalars_at(&a->dots, 0);
  qk_dev_blas(s->dev, QK_BLAS_NORM2, (qk_blas_args_t){.f = {v->v}, .red = c});
  qk_scalars_total(&a->dots, 0, 1);
  const double norm = sqrt(qk_scalars_host(&a->dots, 0, 0)[0]);
  qk_scalars_fill(&a->dots, 0, norm > 0 ? 1 / norm : 0);
  qk_dev_blas(s->dev, QK_BLAS_SCALE, (qk_blas_args_t){.f = {v->v}, .c = {c}});
  return norm;
}

/* Column j of the Hessenberg matrix. */
static void arnoldi_step(qk_smoother_t *s, arnoldi_t *a, int j) {
  const qk_device_t *dev = s->dev;
  qk_field_t *w = a->v[j + 1];
  qk_multi_args_t args = {.n = j + 1, .y = w->v, .red = qk_scalars_at(&a->dots, 0), .sign = -1};
  args.c = args.red;
  for (int i = 0; i <= j; i++) args.f[i] = a->v[i]->v;
  qk_smoother_mhat(s, w, a->v[j]);
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->multi_dot(dev->ctx, &args));
  qk_scalars_sum(&a->dots, 0, j + 1);
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->multi_axpy(dev->ctx, &args));
  qk_scalars_fetch(&a->dots, 0, j + 1);
  for (int i = 0; i <= j; i++) {
    const double *h = qk_scalars_host(&a->dots, i, 0);
    a->h[i][j] = h[0] + I * h[1];
  }
  a->h[j + 1][j] = normalise(s, a, w);
}

/* Largest eigenvalue of factor H + conj(factor) H^+, over two. */
static double largest(const arnoldi_t *a, double complex factor) {
  double complex m[ARNOLDI][ARNOLDI], u[ARNOLDI], w[ARNOLDI];
  double shift = 0, value = 0;
  for (int i = 0; i < ARNOLDI; i++) {
    double row = 0;
    for (int j = 0; j < ARNOLDI; j++) {
      m[i][j] = 0.5 * (factor * a->h[i][j] + conj(factor * a->h[j][i]));
      row += cabs(m[i][j]);
    }
    if (row > shift) shift = row;
    u[i] = 1.0 / (1 + i) + 0.3 * I;
  }
  for (int k = 0; k < POWER; k++) {
    double norm = 0, product = 0;
    for (int i = 0; i < ARNOLDI; i++) {
      w[i] = shift * u[i];
      for (int j = 0; j < ARNOLDI; j++) w[i] += m[i][j] * u[j];
      product += creal(conj(u[i]) * w[i]);
      norm += creal(conj(u[i]) * u[i]);
    }
    value = product / norm - shift;
    for (int i = 0; i < ARNOLDI; i++) u[i] = w[i] / (sqrt(norm) * shift);
  }
  return value;
}

static qk_status_t create_space(qk_smoother_t *s, arnoldi_t *a) {
  qk_status_t status = qk_scalars_init(&a->dots, s->dev, ARNOLDI + 1, 1);
  for (int j = 0; j <= ARNOLDI && !status; j++)
    status = qk_field_create(s->dev, s->prec, 1, s->op->system, &a->v[j]);
  return status ? status : random_field(s, a->v[0]);
}

static qk_status_t measure(qk_smoother_t *s, arnoldi_t *a) {
  qk_status_t status = qk_comm_agree(s->dev->geom->comm, create_space(s, a), NULL);
  if (status) return status;
  normalise(s, a, a->v[0]);
  for (int j = 0; j < ARNOLDI; j++) arnoldi_step(s, a, j);
  status = qk_dev_status(s->dev);
  if (status) return status;
  double high = margin * largest(a, 1), wide = margin * fmax(largest(a, I), largest(a, -I));
  double low = fmax(-largest(a, -1), lower_share * high);
  double half = 0.5 * (high - low);
  s->ellipse = (qk_ellipse_t){.centre = 0.5 * (high + low), .focus2 = half * half - wide * wide};
  return QK_OK;
}

/* ---- the smoother ---------------------------------------------------------------------------- */

/* Scalar of root k of degree n. */
static int at(int n, int k) {
  return n * (n - 1) / 2 + k;
}

/* Each next root is that whose distances from those before have the largest product. */
static void order(int n, double *root) {
  for (int i = 0; i < n; i++) {
    int best = i;
    double most = -1;
    for (int k = i; k < n; k++) {
      double product = fabs(root[k]);
      for (int j = 0; j < i; j++) product *= fabs(root[k] - root[j]);
      if (product > most) {
        most = product;
        best = k;
      }
    }
    double t = root[i];
    root[i] = root[best];
    root[best] = t;
  }
}

static qk_status_t chebyshev_prepare(qk_smoother_t *s, qk_err_t *err) {
  arnoldi_t *a = qk_calloc(1, sizeof *a);
  qk_status_t status = qk_comm_agree(s->dev->geom->comm, a ? QK_OK : QK_NO_MEMORY, err);
  if (!status) status = measure(s, a);
  for (int j = ARNOLDI; a && j >= 0; j--) qk_field_destroy(a->v[j]);
  if (a) qk_scalars_fini(&a->dots);
  qk_free(a);
  if (status) return status;
  const double d = s->ellipse.centre, f = sqrt(fmax(s->ellipse.focus2, 0)), pi = acos(-1);
  if (!(d > 0) || !isfinite(f))
    return qk_fail(err, QK_BREAKDOWN,
                   "smoother chebyshev: the field of values has its centre at %g", d);
  for (int n = 1; n <= STEPS; n++) {
    double root[STEPS];
    for (int k = 0; k < n; k++) root[k] = d + f * cos(pi * (k + 0.5) / n);
    order(n, root);
    for (int k = 0; k < n; k++) {
      s->factor[at(n, k)] = 1 / root[k];
      qk_scalars_fill(&s->scalars, at(n, k), 1 / root[k]);
    }
  }
  return qk_dev_status(s->dev);
}

/* out = in - factor k of degree n times Mhat in. */
static void relax(qk_smoother_t *s, int n, int k, qk_field_t *out, const qk_field_t *in) {
  if (qk_dev_ok(s->dev))
    qk_dev_note(s->dev, s->op->ops->relax(s->op, out, in, s->factor[at(n, k)]));
}

/* Steps k and, where there is one, k+1 of degree n: x takes in both residuals at once. */
static void two_steps(qk_smoother_t *s, int n, int k, qk_field_t *x, qk_field_t *r, qk_field_t *w) {
  const qk_device_t *dev = s->dev;
  const bool two = k + 1 < n;
  const double *c = qk_scalars_at(&s->scalars, at(n, k));
  qk_multi_args_t add = {.n = two ? 2 : 1, .f = {r->v, w->v}, .y = x->v, .c = c, .sign = 1};
  relax(s, n, k, w, r);
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->multi_axpy(dev->ctx, &add));
  if (two)
    relax(s, n, k + 1, r, w);
  else
    qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {r->v, w->v}});
}

static void chebyshev_run(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps, bool x_zero,
                          bool last) {
  (void)x_zero;
  (void)last;
  qk_field_t *w = qk_smoother_field(s);
  for (int done = 0; done < steps; done += STEPS) {
    const int n = steps - done < STEPS ? steps - done : STEPS;
    for (int k = 0; k < n; k += 2) two_steps(s, n, k, x, r, w);
  }
  qk_work_release(s->work, w);
}

const qk_smoother_kind_ops_t qk_smoother_chebyshev = {
    .name = "chebyshev", .nscalar = NSCALAR, .prepare = chebyshev_prepare, .run = chebyshev_run};
