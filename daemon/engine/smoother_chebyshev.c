/*
 * Chebyshev smoothing for a field of values in an ellipse (T. A. Manteuffel, Numer. Math. 28 (1977) 307):
 *
 *   p = r + beta p,  x += alpha p,  r -= alpha Mhat p
 *   alpha_1 = 1/d,  beta_2 = (f alpha_1)^2/2,  beta_n = (f alpha_{n-1}/2)^2,  alpha_n = 1/(d - beta_n/alpha_{n-1})
 *
 * d is the centre, f the distance of the foci. The ellipse is that of the upper part of the field of values, which
 * an Arnoldi process from a random vector finds: the lower part is what coarse grids are for.
 */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/smoother_impl.h"

enum { ARNOLDI = 12, POWER = 300 };
/* Longer runs begin anew after STEPS. Scalars: [STEPS] each. */
enum { STEPS = 16, ALPHA = 0, MINUS_ALPHA = STEPS, BETA = 2 * STEPS, NSCALAR = 3 * STEPS };

/* The real interval reaches down to this share of its upper end. */
static const double lower_share = 0.1;
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
  if (!status) status = qk_scalars_sum(&a->dots, 0, 1);
  if (!status) status = qk_scalars_fetch(&a->dots, 0, 1);
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
  double norm;
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

static qk_status_t chebyshev_prepare(qk_smoother_t *s, qk_err_t *err) {
  arnoldi_t *a = qk_calloc(1, sizeof *a);
  if (!a) return QK_NO_MEMORY;
  qk_status_t status = measure(s, a);
  for (int j = ARNOLDI; j >= 0; j--) qk_field_destroy(a->v[j]);
  qk_scalars_fini(&a->dots);
  qk_free(a);
  if (status) return status;
  double d = s->ellipse.centre, f2 = s->ellipse.focus2, alpha = 1 / d, beta = 0;
  if (!(d > 0) || !isfinite(f2))
    return qk_fail(err, QK_BREAKDOWN, "smoother chebyshev: centre of the field of values %g", d);
  for (int n = 0; n < STEPS && !status; n++) {
    if (n > 0) {
      beta = f2 * alpha * alpha / (n == 1 ? 2 : 4);
      alpha = 1 / (d - beta / alpha);
    }
    status = qk_scalars_fill(&s->scalars, ALPHA + n, alpha);
    if (!status) status = qk_scalars_fill(&s->scalars, MINUS_ALPHA + n, -alpha);
    if (!status) status = qk_scalars_fill(&s->scalars, BETA + n, beta);
  }
  return status;
}

static qk_status_t chebyshev_step(qk_smoother_t *s, int n, qk_field_t *x, qk_field_t *r,
                                  qk_field_t *p, qk_field_t *w) {
  const qk_scalars_t *c = &s->scalars;
  qk_blas_args_t direction = {.f = {p->v, r->v}, .c = {qk_scalars_at(c, BETA + n)}};
  qk_blas_args_t solution = {.f = {x->v, p->v}, .c = {qk_scalars_at(c, ALPHA + n)}};
  qk_blas_args_t residual = {.f = {r->v, w->v}, .c = {qk_scalars_at(c, MINUS_ALPHA + n)}};
  qk_status_t status = qk_smoother_blas(s, n == 0 ? QK_BLAS_COPY : QK_BLAS_XPAY, &direction);
  if (!status) status = s->op->ops->apply_eo(s->op, w, p, false, NULL);
  if (!status) status = qk_smoother_blas(s, QK_BLAS_AXPY, &solution);
  return status ? status : qk_smoother_blas(s, QK_BLAS_AXPY, &residual);
}

static qk_status_t chebyshev_run(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps) {
  qk_field_t *p, *w = NULL;
  qk_status_t status = qk_smoother_field(s, &p);
  if (status) return status;
  status = qk_smoother_field(s, &w);
  for (int n = 0; n < steps && !status; n++) status = chebyshev_step(s, n % STEPS, x, r, p, w);
  qk_work_release(s->work, w);
  qk_work_release(s->work, p);
  return status;
}

const qk_smoother_kind_ops_t qk_smoother_chebyshev = {
    .name = "chebyshev", .nscalar = NSCALAR, .prepare = chebyshev_prepare, .run = chebyshev_run};
