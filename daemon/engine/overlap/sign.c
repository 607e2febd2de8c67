#include "daemon/engine/overlap/sign.h"

#include <math.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/eigen/lanczos.h"
#include "daemon/engine/lattice/peers.h"
#include "daemon/engine/overlap/fractions.h"
#include "daemon/engine/overlap/series.h"

/* Steps of Clenshaw's recursion whose coefficients go to the device together, two each. */
enum { B = QK_EIGEN_BLOCK, STEPS = 32, STEP_SCALARS = 2, SEED = 20 };
/* Work fields while it is created: of Lanczos, and to try it on one right-hand side. */
enum { WORK_BLOCKS = 4, WORK_FIELDS = 3 + QK_SIGN_FIELDS + QK_SIGN_SINGLE };
static const double margin = 0.95;                   /* of the lowest |h| that is not projected */
static const double single_tol = 1e-6;               /* finer than what rounding leaves */
static const double rounding = 1e-12;                /* of V in double */
static const double finest = 1e-13, coarsest = 1e-6; /* |H^2 v - h^2 v| / |H^2| of vectors */
static const double rounding_of_h = 1e-14;           /* of eigenvalues, over |H| */

struct qk_sign {
  qk_sign_params_t p;
  const qk_device_t *dev;
  qk_eigen_t *eigen; /* in double, p.modes of them used */
  int nblock;
  qk_field_t **single; /* the same in single; NULL: not wanted */
  qk_series_t series[QK_PRECS];
  qk_fractions_t *fractions; /* in their place, or NULL */
  double least;
  qk_sign_health_t health;
  /* (v_i, in_j) [8 nblock][QK_MAX_RHS]; [STEPS][2][QK_MAX_RHS]: complex, on the device and here */
  double *c, *c_host, *step, *step_host;
};

static double tol_of(const qk_sign_params_t *p, qk_prec_t prec) {
  return prec == QK_DOUBLE ? p->tol : fmax(p->tol, single_tol);
}

/* ---- calls of an iteration ------------------------------------------------------------------- */

static qk_field_t *take(const qk_sign_t *s, const qk_field_t *like) {
  return qk_work_take(s->p.d->work, like->v.prec, like->v.nrhs, QK_FULL);
}

static void release(const qk_sign_t *s, qk_field_t *f) {
  qk_work_release(s->p.d->work, f);
}

static void blas(const qk_sign_t *s, qk_blas_op_t op, const qk_field_t *a, const qk_field_t *b) {
  qk_dev_blas(s->dev, op, (qk_blas_args_t){.f = {a->v, b->v}});
}

static void zero(const qk_sign_t *s, const qk_field_t *f) {
  qk_dev_blas(s->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {f->v}});
}

/* out = x + factor D in, or D^+; x NULL: 0. x may be out. */
static void kernel(const qk_sign_t *s, qk_field_t *out, const qk_field_t *in, bool dagger,
                   const qk_field_t *x, double factor) {
  qk_operator_t *d = s->p.d;
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, d->ops->apply(d, out, in, dagger, x, factor));
}

static void gamma5(const qk_sign_t *s, const qk_field_t *out, const qk_field_t *in) {
  const qk_chiral_args_t args = {.plus = 1, .minus = -1, .in = in->v, .out = out->v};
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->dev->ops->chiral(s->dev->ctx, &args));
}

static void move(const qk_sign_t *s, double *to, const double *from, size_t n, qk_copy_t kind) {
  qk_dev_copy(s->dev, to, from, n * sizeof *to, kind);
  qk_dev_sync(s->dev);
}

/* ---- eigenvectors ---------------------------------------------------------------------------- */

/* Reals of the coefficients of all vectors. */
static size_t numbers(const qk_sign_t *s, const qk_field_t *y) {
  return (size_t)(s->nblock * B * y->v.nrhs) * 2;
}

typedef qk_status_t basis_fn(qk_ops_ctx_t *ctx, const qk_basis_args_t *args);

/* c = (v_i, y), or y += sign sum_i v_i c_i: all vectors, some blocks at a time. */
static void with_vectors(const qk_sign_t *s, basis_fn *pass, const qk_field_t *y, double sign) {
  qk_field_t *const *v = y->v.prec == QK_DOUBLE ? s->eigen->block : s->single;
  for (int first = 0; first < s->nblock; first += QK_BASIS_BLOCKS) {
    const int left = s->nblock - first, n = left < QK_BASIS_BLOCKS ? left : QK_BASIS_BLOCKS;
    qk_basis_args_t a = {.n = n, .y = y->v, .columns = y->v.nrhs, .sign = sign};
    a.c = s->c + (size_t)(first * B * y->v.nrhs) * 2;
    for (int b = 0; b < n; b++) a.v[b] = v[first + b]->v;
    if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, pass(s->dev->ctx, &a));
  }
}

/* u -= sum_i v_i (v_i, u); their coefficients stay, times the signs of their eigenvalues. */
static void project(const qk_sign_t *s, const qk_field_t *u) {
  const size_t n = numbers(s, u), row = (size_t)u->v.nrhs * 2;
  if (n == 0) return;
  with_vectors(s, s->dev->ops->basis_dot, u, 1);
  qk_dev_sum(s->dev, s->c, s->c_host, n);
  move(s, s->c_host, s->c, n, QK_COPY_TO_HOST);
  for (size_t k = (size_t)s->p.modes * row; k < n; k++) s->c_host[k] = 0;
  move(s, s->c, s->c_host, n, QK_COPY_TO_DEVICE);
  with_vectors(s, s->dev->ops->basis_axpy, u, -1);
  for (size_t i = 0; i < (size_t)s->p.modes; i++)
    for (size_t k = 0; k < row && s->eigen->value[i] < 0; k++) s->c_host[i * row + k] *= -1;
  move(s, s->c, s->c_host, n, QK_COPY_TO_DEVICE);
}

/* out += gamma_5 sum_i v_i c_i; t is work. */
static void add_projected(const qk_sign_t *s, const qk_field_t *out, const qk_field_t *t) {
  if (s->nblock == 0) return;
  zero(s, t);
  with_vectors(s, s->dev->ops->basis_axpy, t, 1);
  gamma5(s, t, t);
  blas(s, QK_BLAS_ADD, out, t);
}

/* ---- the series ------------------------------------------------------------------------------ */

/* Clenshaw's b_k = c_k u + 2 y b_(k+1) - b_(k+2) are multiplied by the signs +, +, -, - of
 * k mod 4 = 0 .. 3: then b_(k+2) is added, and b_k can be made in its place. */
static double sign_of(int k) {
  return k % 4 < 2 ? 1 : -1;
}

/* 2 y = factor (D^+ D - centre), but y in the last step. */
static double factor_of(const qk_series_t *p, int k) {
  return (k == 0 ? 2 : 4) / (p->greatest - p->least) * sign_of(k) * sign_of(k + 1);
}

/* The error that right-hand side i may have. */
static double tol_at(const qk_sign_t *s, qk_prec_t prec, const double *accuracy, int i) {
  const double least = tol_of(&s->p, prec);
  return accuracy ? fmax(accuracy[i], least) : least;
}

/* The terms that right-hand sides take, and the most of them. */
static int orders(const qk_sign_t *s, const qk_field_t *u, const double *accuracy, int *order) {
  int most = 0;
  for (int i = 0; i < u->v.nrhs; i++) {
    order[i] = qk_series_terms(&s->series[u->v.prec], tol_at(s, u->v.prec, accuracy, i));
    if (order[i] > most) most = order[i];
  }
  return most;
}

/* The coefficients of u and of b_(k+1) in steps top, top - 1, ...; of a right-hand side that takes
 * fewer terms b_k is 0 before its first one. */
static void load_steps(const qk_sign_t *s, const qk_series_t *p, int top, int nrhs,
                       const int *order) {
  const double centre = 0.5 * (p->greatest + p->least);
  double *to = s->step_host;
  for (int k = top; k >= 0 && k > top - STEPS; k--)
    for (int i = 0; i < STEP_SCALARS * nrhs; i++, to += 2) {
      const double c = i < nrhs && k <= order[i] ? p->c[k] : 0;
      to[0] = i < nrhs ? sign_of(k) * c : -centre * factor_of(p, k);
      to[1] = 0;
    }
  move(s, s->step, s->step_host, (size_t)(to - s->step_host), QK_COPY_TO_DEVICE);
}

/* b[0] = p(D^+ D) u; b[1] and t are work. */
static void apply_series(const qk_sign_t *s, const qk_field_t *u, qk_field_t *b[2], qk_field_t *t,
                         const double *accuracy) {
  const qk_series_t *p = &s->series[u->v.prec];
  const int nrhs = u->v.nrhs;
  int order[QK_MAX_RHS];
  const int top = orders(s, u, accuracy, order);
  zero(s, b[0]);
  zero(s, b[1]);
  for (int k = top; k >= 0; k--) {
    const int at = (top - k) % STEPS;
    qk_field_t *now = b[k % 2], *before = b[(k + 1) % 2];
    if (at == 0) load_steps(s, p, k, nrhs, order);
    const qk_multi_args_t add = {.n = 2,
                                 .f = {u->v, before->v},
                                 .y = now->v,
                                 .c = s->step + (size_t)(at * STEP_SCALARS * nrhs) * 2,
                                 .sign = 1};
    if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->dev->ops->multi_axpy(s->dev->ctx, &add));
    if (k == top) continue; /* what is before is 0 */
    kernel(s, t, before, false, NULL, 1);
    kernel(s, now, t, true, now, factor_of(p, k));
  }
}

/* ---- V --------------------------------------------------------------------------------------- */

/* |f|^2 of the right-hand sides, over the ranks. Waits. */
static void norms(const qk_sign_t *s, const qk_field_t *f, double *norm2) {
  const size_t n = (size_t)f->v.nrhs * 2;
  qk_dev_blas(s->dev, QK_BLAS_NORM2, (qk_blas_args_t){.f = {f->v}, .red = s->step});
  qk_dev_sum(s->dev, s->step, s->step_host, n);
  move(s, s->step_host, s->step, n, QK_COPY_TO_HOST);
  for (int i = 0; i < f->v.nrhs; i++) norm2[i] = s->step_host[2 * i];
}

/* How far |V in| and |in| may be apart. */
static double allowed(double tol) {
  return 4 * tol + rounding;
}

/* Where in is not finite nothing is said: slots do not look at each other. */
static void check_norms(const qk_sign_t *s, const qk_field_t *out, const qk_field_t *in,
                        const double *accuracy) {
  double a[QK_MAX_RHS], b[QK_MAX_RHS];
  norms(s, out, a);
  norms(s, in, b);
  for (int i = 0; i < in->v.nrhs && qk_dev_ok(s->dev); i++) {
    const double off = b[i] > 0 && isfinite(b[i]) ? fabs(a[i] / b[i] - 1) : 0;
    const double most = allowed(tol_at(s, QK_DOUBLE, accuracy, i));
    if (!(off > most)) continue;
    qk_error("overlap",
             "sgn(H) changes a norm by %.3g, more than %.3g: an eigenvalue of H below %.5g was "
             "missed; load the setup with more modes than %d",
             off, most, s->least, s->p.modes);
    qk_dev_note(s->dev, QK_BREAKDOWN);
  }
}

/* b = (D^+ D)^(-1/2) u */
static void apply_fractions(const qk_sign_t *s, const qk_field_t *u, qk_field_t *b,
                            const double *accuracy) {
  double tol[QK_MAX_RHS];
  for (int i = 0; i < u->v.nrhs; i++) tol[i] = 0.25 * tol_at(s, u->v.prec, accuracy, i);
  qk_fractions_apply(s->fractions, tol, b, u);
}

static void apply_v(const qk_sign_t *s, qk_field_t *out, const qk_field_t *in,
                    const double *accuracy) {
  qk_field_t *u = take(s, in), *t = take(s, in), *b[2] = {take(s, in), take(s, in)};
  blas(s, QK_BLAS_COPY, u, in);
  project(s, u);
  if (s->fractions)
    apply_fractions(s, u, b[0], accuracy);
  else
    apply_series(s, u, b, t, accuracy);
  kernel(s, out, b[0], false, NULL, 1);
  add_projected(s, out, t);
  release(s, b[1]);
  release(s, b[0]);
  release(s, t);
  release(s, u);
  if (in->v.prec == QK_DOUBLE) check_norms(s, out, in, accuracy);
}

void qk_sign_apply(qk_sign_t *s, qk_field_t *out, const qk_field_t *in, bool dagger,
                   const double *accuracy) {
  if (!dagger) {
    apply_v(s, out, in, accuracy);
    return;
  }
  qk_field_t *g = take(s, in);
  gamma5(s, g, in);
  apply_v(s, out, g, accuracy);
  gamma5(s, out, out);
  release(s, g);
}

/* ---- creation -------------------------------------------------------------------------------- */

/* One vector more than are projected: its eigenvalue is the bound of the others. */
static qk_lanczos_params_t lanczos_of(const qk_sign_params_t *p) {
  return (qk_lanczos_params_t){.kind = QK_LANCZOS_GAMMA5,
                               .n = p->modes + 1,
                               .prec = QK_DOUBLE,
                               .top = p->norm * p->norm,
                               .tol = fmin(fmax(1e-3 * p->tol, finest), coarsest),
                               .accept = fmax(0.1 * p->tol, 10 * finest),
                               .seed = SEED};
}

/* Stored ones are as good as those that would be made. */
static qk_status_t make_vectors(qk_sign_t *s, const qk_lanczos_params_t *p, qk_err_t *err) {
  const qk_stored_t *stored = s->p.stored;
  const double residual = p->accept * s->p.norm;
  if (stored) return stored->read(stored->self, s->p.d, p->n, residual, &s->eigen, err);
  return qk_lanczos(s->p.d, s->p.d->work, p, s->p.progress, s->p.arg, &s->eigen, err);
}

/* An eigenvalue is off by its residual at most: if it is not larger, it may have the other sign,
 * and sgn(H)^2 = 1 all the same. */
static qk_status_t check_signs(const qk_sign_t *s, qk_err_t *err) {
  for (int i = 0; i < s->p.modes; i++) {
    const double h = s->eigen->value[i],
                 off = fmax(s->eigen->residual[i], rounding_of_h * s->p.norm);
    if (fabs(h) > off) continue;
    return qk_fail(err, QK_BREAKDOWN,
                   "eigenvalue %d of H is %.2g, known to %.2g: so near 0 it has no sign; take "
                   "another M, or a smaller sign-tol",
                   i, h, off);
  }
  return QK_OK;
}

/* Bytes of work fields to try it. */
static int64_t trying_bytes(const qk_geom_t *geom) {
  return WORK_FIELDS * (int64_t)qk_field_bytes(geom, QK_DOUBLE, 1, QK_FULL);
}

/* Work fields, of Lanczos or to try it, all at once: a rank that lacked one on the way would leave
 * the others waiting. */
static qk_status_t make_work(const qk_sign_t *s, bool lanczos) {
  const qk_geom_t *geom = s->dev->geom;
  qk_work_t *work = s->p.d->work;
  qk_field_t *field[WORK_FIELDS];
  const size_t trying = (size_t)trying_bytes(geom) + WORK_FIELDS * QK_WORK_ALIGNMENT,
               finding = WORK_BLOCKS * qk_field_bytes(geom, QK_DOUBLE, B, QK_FULL);
  qk_status_t status = qk_work_make_room(work, lanczos && finding > trying ? finding : trying);
  int n = 0;
  for (; n < WORK_FIELDS && status == QK_OK; n += status == QK_OK)
    status = qk_work_reserve(work, QK_DOUBLE, 1, QK_FULL, &field[n]);
  while (n > 0) qk_work_release(work, field[--n]);
  return status;
}

static qk_status_t find_vectors(qk_sign_t *s, qk_err_t *err) {
  const qk_lanczos_params_t p = lanczos_of(&s->p);
  const int most = qk_lanczos_most(s->dev->geom, p.kind);
  if (p.n > most)
    return qk_fail(err, QK_BAD_ARGUMENT, "modes = %d: at most %d on this lattice", s->p.modes,
                   most - 1);
  const qk_status_t status = make_vectors(s, &p, err);
  if (status != QK_OK) {
    qk_err_prefix(err, "the lowest eigenvectors of H");
    return status;
  }
  qk_eigen_t *e = s->eigen;
  for (int b = e->nblock - 1; b >= s->nblock; b--) qk_field_destroy(e->block[b]);
  e->nblock = s->nblock;
  s->least = margin * fabs(e->value[s->p.modes]);
  return check_signs(s, err);
}

static qk_status_t make_fractions(qk_sign_t *s, qk_err_t *err) {
  qk_zolotarev_t z;
  if (qk_zolotarev_init(s->least, s->p.norm, 0.5 * s->p.tol, &z) == QK_OK)
    return qk_fractions_create(s->p.d, &z, &s->fractions, err);
  return qk_fail(err, QK_TOO_LARGE,
                 "modes = %d: eigenvalues of H from %.5g on are left, and partial fractions are "
                 "made from %.5g on; project more modes",
                 s->p.modes, s->least, s->p.norm / QK_ZOLOTAREV_RATIO_MAX);
}

static qk_status_t make_series(qk_sign_t *s, qk_err_t *err) {
  const double a = s->least * s->least, b = s->p.norm * s->p.norm;
  for (int p = 0; p < QK_PRECS; p++) {
    const double tol = tol_of(&s->p, (qk_prec_t)p);
    const qk_status_t status = s->p.want[p] ? qk_series_init(a, b, tol, &s->series[p]) : QK_OK;
    if (status == QK_TOO_LARGE)
      return qk_fail(err, status,
                     "modes = %d: eigenvalues of H from %.5g on are left, for which sgn(H) needs a "
                     "polynomial of order %.0f, over %d; project more modes",
                     s->p.modes, s->least, qk_series_order(a, b, tol), QK_SERIES_ORDER_MAX);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

static size_t c_bytes(int nblock) {
  return (size_t)(nblock * B * QK_MAX_RHS) * 2 * sizeof(double);
}

static size_t step_bytes(void) {
  return (size_t)(STEPS * STEP_SCALARS * QK_MAX_RHS) * 2 * sizeof(double);
}

static qk_status_t reserve(const qk_device_t *dev, size_t bytes, double **device, double **host) {
  void *memory = NULL;
  qk_status_t status = bytes ? dev->ops->alloc(dev->ctx, bytes, &memory) : QK_OK;
  if (status != QK_OK || bytes == 0) return status;
  *device = memory;
  status = dev->ops->alloc_host(dev->ctx, bytes, &memory);
  if (status == QK_OK) *host = memory;
  return status;
}

static qk_status_t make_room(qk_sign_t *s) {
  const qk_status_t status = reserve(s->dev, c_bytes(s->nblock), &s->c, &s->c_host);
  return status ? status : reserve(s->dev, step_bytes(), &s->step, &s->step_host);
}

static qk_status_t make_single(qk_sign_t *s) {
  if (!s->p.want[QK_SINGLE] || s->nblock == 0) return QK_OK;
  s->single = qk_calloc((size_t)s->nblock, sizeof(qk_field_t *));
  if (!s->single) return QK_NO_MEMORY;
  for (int b = 0; b < s->nblock; b++) {
    const qk_status_t status = qk_field_create(s->dev, QK_SINGLE, B, QK_FULL, &s->single[b]);
    if (status != QK_OK) return status;
    blas(s, QK_BLAS_COPY, s->single[b], s->eigen->block[b]);
  }
  qk_dev_sync(s->dev);
  return qk_dev_status(s->dev);
}

/* |sgn(H)^2 f - f| / |f| of noise. Waits. */
static double square_off(qk_sign_t *s) {
  qk_work_t *work = s->p.d->work;
  double norm2[1] = {0}, off2[1] = {0};
  qk_field_t *f = qk_work_take(work, QK_DOUBLE, 1, QK_FULL), *v = take(s, f), *w = take(s, f);
  const qk_noise_args_t noise = {
      .lat = s->dev->geom->lat, .field = f->v, .rhs = -1, .seed = SEED + 1};
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->dev->ops->noise(s->dev->ctx, &noise));
  qk_sign_apply(s, v, f, false, NULL);
  qk_sign_apply(s, w, v, true, NULL);
  qk_dev_blas(s->dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {w->v, w->v, f->v}});
  norms(s, f, norm2);
  norms(s, w, off2);
  release(s, w);
  release(s, v);
  release(s, f);
  return sqrt(off2[0] / norm2[0]);
}

static qk_status_t try_square(qk_sign_t *s, qk_err_t *err) {
  const double off = s->health.square = square_off(s);
  const qk_status_t status = qk_dev_status(s->dev);
  if (status != QK_OK && status != QK_BREAKDOWN) return status;
  if (status == QK_OK && off <= allowed(s->p.tol)) return QK_OK;
  return qk_fail(err, QK_BREAKDOWN,
                 "modes = %d: on noise sgn(H)^2 is not 1 but for %.3g: an eigenvalue of H below "
                 "%.5g was missed, or eigenvectors are not good enough; project more modes",
                 s->p.modes, allowed(s->p.tol), s->least);
}

static void describe(qk_sign_t *s) {
  const double *value = s->eigen->value;
  const bool fractions = s->fractions != NULL;
  s->health = (qk_sign_health_t){.vectors = s->p.modes,
                                 .tol = s->p.tol,
                                 .lowest = fabs(value[0]),
                                 .bound = fabs(value[s->p.modes]),
                                 .fractions = fractions,
                                 .order = fractions ? qk_fractions_count(s->fractions)
                                                    : s->series[QK_DOUBLE].order};
}

static void tell(const qk_sign_t *s) {
  const qk_sign_health_t *h = &s->health;
  if (qk_comm_rank(s->dev->geom->comm) != 0) return;
  qk_info(
      "overlap",
      "sgn(H): %d eigenvectors, |h| = %.5g to %.5g, from there on %s of order %d; sgn(H)^2 is 1 "
      "but for %.2g",
      h->vectors, h->lowest, h->bound, h->fractions ? "partial fractions" : "a polynomial",
      h->order, h->square);
}

/* May fail on one rank alone. */
static qk_status_t make_parts(qk_sign_t *s, qk_err_t *err) {
  qk_status_t status = make_work(s, false);
  if (status == QK_OK && !s->p.zolotarev) status = make_series(s, err);
  if (status != QK_OK) return status;
  status = make_room(s);
  return status == QK_OK ? make_single(s) : status;
}

static qk_status_t make(qk_sign_t *s, qk_err_t *err) {
  qk_comm_t *comm = s->dev->geom->comm;
  qk_status_t status = qk_comm_agree(comm, make_work(s, s->p.stored == NULL), err);
  if (status != QK_OK) return status;
  status = qk_comm_agree(comm, find_vectors(s, err), err);
  if (status != QK_OK) return status;
  status = qk_comm_agree(comm, make_parts(s, err), err);
  if (status == QK_OK && s->p.zolotarev) status = make_fractions(s, err);
  if (status != QK_OK) return status;
  describe(s);
  status = try_square(s, err);
  if (status == QK_OK) tell(s);
  return status;
}

qk_status_t qk_sign_create(const qk_sign_params_t *params, qk_sign_t **sign, qk_err_t *err) {
  qk_comm_t *comm = params->d->dev->geom->comm;
  qk_sign_t *s = qk_calloc(1, sizeof *s);
  if (s) {
    s->p = *params;
    s->dev = params->d->dev;
    s->nblock = (params->modes + B - 1) / B;
  }
  const qk_status_t there = qk_comm_agree(comm, s ? QK_OK : QK_NO_MEMORY, NULL),
                    status = there ? there : make(s, err);
  if (status == QK_OK) {
    *sign = s;
    return QK_OK;
  }
  qk_sign_destroy(s);
  return status;
}

void qk_sign_destroy(qk_sign_t *s) {
  if (!s) return;
  const qk_ops_t *ops = s->dev->ops;
  if (s->step_host) ops->free_host(s->dev->ctx, s->step_host);
  if (s->step) ops->free(s->dev->ctx, s->step);
  if (s->c_host) ops->free_host(s->dev->ctx, s->c_host);
  if (s->c) ops->free(s->dev->ctx, s->c);
  for (int b = s->nblock - 1; b >= 0 && s->single; b--) qk_field_destroy(s->single[b]);
  qk_free(s->single);
  for (int p = 0; p < QK_PRECS; p++) qk_series_fini(&s->series[p]);
  qk_fractions_destroy(s->fractions);
  qk_eigen_destroy(s->eigen);
  qk_free(s);
}

/* ---- what it is ------------------------------------------------------------------------------ */

int64_t qk_sign_cost(const qk_sign_t *s, qk_prec_t prec) {
  const double norm = s->p.norm,
               order = qk_series_order(s->least * s->least, norm * norm, tol_of(&s->p, prec));
  return 2 * (int64_t)order + 1;
}

const qk_sign_health_t *qk_sign_health(const qk_sign_t *s) {
  return &s->health;
}

/* A lattice of any size, as its limits do not matter, of which this is the part of a rank. */
static qk_geom_t geom_of(const qk_lattice_t *lat) {
  return (qk_geom_t){.lat = *lat, .ncomp = 12, .volume = (int64_t)1 << 40};
}

int64_t qk_sign_bytes(const qk_lattice_t *lat, const qk_sign_params_t *params, bool making) {
  const qk_geom_t geom = geom_of(lat);
  const int nblock = (params->modes + B - 1) / B;
  int64_t block = 0;
  for (int p = 0; p < QK_PRECS; p++)
    if (params->want[p]) block += (int64_t)qk_field_bytes(&geom, (qk_prec_t)p, B, QK_FULL);
  const int64_t fractions =
      params->zolotarev ? qk_fractions_bytes(&geom, qk_zolotarev_most(0.5 * params->tol)) : 0;
  const int64_t kept = nblock * block + (int64_t)(c_bytes(nblock) + step_bytes()) + fractions;
  if (!making) return kept;
  const qk_lanczos_params_t p = lanczos_of(params);
  const int64_t trying = trying_bytes(&geom);
  const int64_t finding = params->stored ? 0 : qk_lanczos_bytes(&geom, QK_FULL, &p);
  return finding > kept + trying ? finding - kept : trying;
}
