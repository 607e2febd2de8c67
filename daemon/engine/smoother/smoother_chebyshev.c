/*
 * Chebyshev smoothing, the polynomial as a product over its roots: no reductions, and each factor is an application
 * of the operator that makes the new residual itself.
 *
 *   x += r / root_k,  r = r - Mhat r / root_k,   k = 1 .. n
 *
 * The roots are those of the Chebyshev polynomial of degree n on [low, high], in an order in which no partial product
 * is large (F. Leja). high is the upper end of the field of values of Mhat, which an Arnoldi process from a random
 * vector finds; below `low` are the modes that coarse grids are for. Where the field of values is wider in the
 * imaginary direction than that interval, an ellipse has no real foci, and all roots are its centre.
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

/* ---- the field of values ----------------------------------------------------------------------------- */

/* Any numbers will do: they differ between ranks, and between sites. */
static qk_status_t random_field(qk_smoother_t *s, qk_field_t *v) {
  qk_field_t *single;
  qk_status_t status = qk_field_create(s->dev, QK_SINGLE, 1, QK_EVEN, &single);
  if (status) return status;
  size_t n = single->bytes / sizeof(float);
  float *host = qk_malloc(n * sizeof *host);
  uint32_t state = 12345u + 977u * (uint32_t)qk_comm_rank(s->dev->geom->comm);
  for (size_t i = 0; host && i < n; i++) {
    state = state * 1664525u + 1013904223u;
    host[i] = (float)(int32_t)state * 0x1p-31f;
  }
  status = host ? s->dev->ops->copy(s->dev->ctx, single->v.data, host, single->bytes,
                                    QK_COPY_TO_DEVICE, 0)
                : QK_NO_MEMORY;
  if (!status) status = s->dev->ops->queue_sync(s->dev->ctx, 0);
  if (!status)
    status = qk_smoother_blas(s, QK_BLAS_COPY, &(qk_blas_args_t){.f = {v->v, single->v}});
  if (!status) status = s->dev->ops->queue_sync(s->dev->ctx, 0);
  qk_free(host);
  qk_field_destroy(single);
  return status;
}

/* v *= 1/|v|; the norm as it was. */
static qk_status_t normalise(qk_smoother_t *s, arnoldi_t *a, const qk_field_t *v, double *norm) {
  qk_blas_args_t args = {.f = {v->v}, .red = qk_scalars_at(&a->dots, 0)};
  qk_status_t status = qk_smoother_blas(s, QK_BLAS_NORM2, &args);
  if (!status) status = qk_scalars_total(&a->dots, 0, 1);
  if (status) return status;
  *norm = sqrt(qk_scalars_host(&a->dots, 0, 0)[0]);
  status = qk_scalars_fill(&a->dots, 0, *norm > 0 ? 1 / *norm : 0);
  args.c[0] = qk_scalars_at(&a->dots, 0);
  return status ? status : qk_smoother_blas(s, QK_BLAS_SCALE, &args);
}

/* Column j of the Hessenberg matrix. */
static qk_status_t arnoldi_step(qk_smoother_t *s, arnoldi_t *a, int j) {
  qk_field_t *w = a->v[j + 1];
  qk_status_t status = s->op->ops->apply_eo(s->op, w, a->v[j], false, NULL);
  qk_multi_args_t args = {.n = j + 1, .y = w->v, .red = qk_scalars_at(&a->dots, 0), .sign = -1};
  args.c = args.red;
  for (int i = 0; i <= j; i++) args.f[i] = a->v[i]->v;
  if (!status) status = s->dev->ops->multi_dot(s->dev->ctx, &args);
  if (!status) status = qk_scalars_sum(&a->dots, 0, j + 1);
  if (!status) status = s->dev->ops->multi_axpy(s->dev->ctx, &args);
  if (!status) status = qk_scalars_fetch(&a->dots, 0, j + 1);
  if (status) return status;
  for (int i = 0; i <= j; i++) {
    const double *h = qk_scalars_host(&a->dots, i, 0);
    a->h[i][j] = h[0] + I * h[1];
  }
  double norm = 0;
  status = normalise(s, a, w, &norm);
  a->h[j + 1][j] = norm;
  return status;
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

static qk_status_t measure(qk_smoother_t *s, arnoldi_t *a) {
  double norm;
  qk_status_t status = qk_scalars_init(&a->dots, s->dev, ARNOLDI + 1, 1);
  for (int j = 0; j <= ARNOLDI && !status; j++)
    status = qk_field_create(s->dev, s->prec, 1, QK_EVEN, &a->v[j]);
  if (!status) status = random_field(s, a->v[0]);
  status = qk_comm_agree(s->dev->geom->comm, status, NULL);
  if (!status) status = normalise(s, a, a->v[0], &norm);
  for (int j = 0; j < ARNOLDI && !status; j++) status = arnoldi_step(s, a, j);
  if (status) return status;
  double high = margin * largest(a, 1), wide = margin * fmax(largest(a, I), largest(a, -I));
  double low = fmax(-largest(a, -1), lower_share * high);
  double half = 0.5 * (high - low);
  s->ellipse = (qk_ellipse_t){.centre = 0.5 * (high + low), .focus2 = half * half - wide * wide};
  return QK_OK;
}

/* ---- the smoother ------------------------------------------------------------------------------------ */

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
  for (int n = 1; n <= STEPS && !status; n++) {
    double root[STEPS];
    for (int k = 0; k < n; k++) root[k] = d + f * cos(pi * (k + 0.5) / n);
    order(n, root);
    for (int k = 0; k < n && !status; k++) {
      s->factor[at(n, k)] = 1 / root[k];
      status = qk_scalars_fill(&s->scalars, at(n, k), 1 / root[k]);
    }
  }
  return status;
}

/* Steps k and, where there is one, k+1 of degree n: x takes in both residuals at once. */
static qk_status_t two_steps(qk_smoother_t *s, int n, int k, qk_field_t *x, qk_field_t *r,
                             qk_field_t *w) {
  const bool two = k + 1 < n;
  const double *c = qk_scalars_at(&s->scalars, at(n, k));
  qk_multi_args_t add = {.n = two ? 2 : 1, .f = {r->v, w->v}, .y = x->v, .c = c, .sign = 1};
  qk_status_t status = s->op->ops->relax_eo(s->op, w, r, s->factor[at(n, k)]);
  if (!status) status = s->dev->ops->multi_axpy(s->dev->ctx, &add);
  if (status) return status;
  if (two) return s->op->ops->relax_eo(s->op, r, w, s->factor[at(n, k + 1)]);
  return qk_smoother_blas(s, QK_BLAS_COPY, &(qk_blas_args_t){.f = {r->v, w->v}});
}

static qk_status_t chebyshev_run(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps,
                                 bool x_zero) {
  (void)x_zero;
  qk_field_t *w;
  qk_status_t status = qk_smoother_field(s, &w);
  if (status) return status;
  for (int done = 0; done < steps && !status; done += STEPS) {
    const int n = steps - done < STEPS ? steps - done : STEPS;
    for (int k = 0; k < n && !status; k += 2) status = two_steps(s, n, k, x, r, w);
  }
  qk_work_release(s->work, w);
  return status;
}

const qk_smoother_kind_ops_t qk_smoother_chebyshev = {
    .name = "chebyshev", .nscalar = NSCALAR, .prepare = chebyshev_prepare, .run = chebyshev_run};
