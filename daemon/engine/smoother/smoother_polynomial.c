/*
 * Smoothing by one polynomial for all right-hand sides: x += sum_j c_j N^j r, N = 1 - Mhat, by
 * Horner's rule, an application each. No products, no other pass.
 *
 * The coefficients minimise the sum of |r - Mhat x|^2 / |r|^2 over residuals r that were learned
 * from (a GMRES polynomial, N. M. Nachtigal, L. Reichel and L. N. Trefethen, SIAM J. Matrix Anal.
 * Appl. 13 (1992) 796): in a large lattice one residual is made of modes as the others are. Powers
 * of N do not grow, so that the sums lose no digits. Coefficients are real, since modes come in
 * conjugate pairs.
 */
#include <math.h>
#include <string.h>

#include "daemon/engine/smoother/smoother_impl.h"

/* Share of its diagonal that is added to the matrix of the least squares problem. */
static const double ridge = 1e-7;

/* ---- learning -------------------------------------------------------------------------------- */

static void neumann(qk_smoother_t *s, qk_field_t *out, const qk_field_t *in, double c,
                    const qk_field_t *x, double c_x, const qk_field_t *y) {
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->op->ops->neumann(s->op, out, in, c, x, c_x, y));
}

/* to->h += products of r, N r .. N^n r over |r|^2. */
static void add_products(qk_smoother_t *s, qk_learning_t *to, int n) {
  double h[QK_LEARNED][QK_LEARNED];
  for (int rhs = 0; rhs < s->nrhs; rhs++) {
    for (int j = 0; j <= n; j++)
      for (int i = 0; i <= j; i++)
        h[i][j] = h[j][i] = qk_scalars_host(&s->products, j * (j + 1) / 2 + i, rhs)[0];
    if (!(h[0][0] > 0) || !isfinite(h[0][0])) continue;
    for (int j = 0; j <= n; j++)
      for (int i = 0; i <= n; i++) to->h[i][j] += h[i][j] / h[0][0];
  }
}

void qk_smoother_sample(qk_smoother_t *s, const qk_field_t *r, int steps) {
  const qk_device_t *dev = s->dev;
  const int n = steps < QK_POLYNOMIAL_MAX ? steps : QK_POLYNOMIAL_MAX;
  qk_field_t *v[QK_LEARNED] = {NULL};
  for (int j = 0; j <= n; j++) v[j] = qk_smoother_field(s);
  qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {v[0]->v, r->v}});
  for (int j = 0; j <= n; j++) {
    if (j > 0) neumann(s, v[j], v[j - 1], 1, NULL, 0, NULL);
    qk_multi_args_t dots = {.n = j + 1, .y = v[j]->v};
    dots.red = qk_scalars_at(&s->products, j * (j + 1) / 2);
    for (int i = 0; i <= j; i++) dots.f[i] = v[i]->v;
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->multi_dot(dev->ctx, &dots));
  }
  qk_scalars_total(&s->products, 0, (n + 1) * (n + 2) / 2);
  if (qk_dev_ok(dev)) add_products(s, s->learning, n);
  for (int j = n; j >= 0; j--) qk_work_release(s->work, v[j]);
}

/* Solves a c = b for positive a in place, b becoming c. False if it is not. */
static bool solve_positive(int n, double a[QK_POLYNOMIAL_MAX][QK_POLYNOMIAL_MAX], double *b) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      double sum = a[i][j];
      for (int k = 0; k < j; k++) sum -= a[i][k] * a[j][k];
      if (j == i && !(sum > 0)) return false;
      a[i][j] = j == i ? sqrt(sum) : sum / a[j][j];
    }
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < i; k++) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (int i = n - 1; i >= 0; i--) {
    for (int k = i + 1; k < n; k++) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return true;
}

/* (Mhat N^i r, Mhat N^j r), as Mhat = 1 - N. */
static double image_product(const qk_learning_t *l, int i, int j) {
  return l->h[i][j] - l->h[i + 1][j] - l->h[i][j + 1] + l->h[i + 1][j + 1];
}

bool qk_polynomial_fit(const qk_learning_t *l, int n, qk_polynomial_t *p) {
  double a[QK_POLYNOMIAL_MAX][QK_POLYNOMIAL_MAX];
  qk_polynomial_t fit = {.n = n};
  if (n < 1 || n > QK_POLYNOMIAL_MAX) return false;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) a[i][j] = image_product(l, i, j);
    a[i][i] *= 1 + ridge;
    fit.c[i] = l->h[0][i] - l->h[0][i + 1];
  }
  if (!solve_positive(n, a, fit.c)) return false;
  for (int i = 0; i < n; i++)
    if (!isfinite(fit.c[i])) return false;
  *p = fit;
  return true;
}

/* ---- use ------------------------------------------------------------------------------------- */

/* out = x + the polynomial of r, x NULL: 0. The last step of Horner's rule adds. */
static void add_polynomial(qk_smoother_t *s, qk_field_t *out, const qk_field_t *x,
                           const qk_field_t *r) {
  const int n = s->polynomial.n;
  const double *c = s->polynomial.c;
  qk_field_t *y[2] = {qk_smoother_field(s), qk_smoother_field(s)};
  const qk_field_t *in = r;
  double factor = c[n - 1];
  for (int j = n - 2; j > 0; j--) {
    neumann(s, y[j % 2], in, factor, r, c[j], NULL);
    in = y[j % 2];
    factor = 1;
  }
  neumann(s, out, in, factor, r, c[0], x);
  qk_work_release(s->work, y[1]);
  qk_work_release(s->work, y[0]);
}

static void polynomial_run(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps, bool x_zero,
                           bool last) {
  if (s->polynomial.n != steps || steps < 2 || !last) {
    qk_smoother_cagcr.run(s, x, r, steps, x_zero, last);
    return;
  }
  add_polynomial(s, x, x_zero ? NULL : x, r);
}

bool qk_smoother_widens(const qk_smoother_t *s, int steps) {
  return s->kind == &qk_smoother_polynomial && s->polynomial.n == steps && steps > 1 &&
         s->op->widens && qk_prec_scaled(s->prec) && !s->learning;
}

void qk_smoother_run_wide(qk_smoother_t *s, qk_field_t *wide, const qk_field_t *x,
                          const qk_field_t *r) {
  qk_smoother_set_rough(s, true);
  add_polynomial(s, wide, x, r);
  qk_smoother_set_rough(s, false);
}

const qk_smoother_kind_ops_t qk_smoother_polynomial = {
    .name = "polynomial", .nscalar = QK_CAGCR_SCALARS, .sets_x = true, .run = polynomial_run};
