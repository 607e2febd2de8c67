/*
 * Flexible GCR in runs of gcr_keep directions (S. C. Eisenstat, H. C. Elman and M. H. Schultz, SIAM
 * J. Numer. Anal. 20 (1983) 345). Per iteration: one application, one call of the preconditioner,
 * one block of dot products and one pass over the directions; 2 gcr_keep fields are kept.
 *
 *   z_n = K r,  w_n = Mhat z_n
 *   w'_n = w_n - sum over k < n of s_nk w_k, orthogonal to those before it
 *   r -= a_n w'_n,  a_n = (w'_n,r)/|w'_n|^2
 *
 * Neither the z nor the w are changed; the w' are known by the s. What the z are in the solution is
 * computed at the end of a run:
 *   xi += sum_k y_k z_k,  y_k = a_k - sum over n > k of a_n s_nk
 *
 * A step leaves r also as the preconditioner wants it, in the place of the w that comes next.
 *
 * All slots share one ring of directions; each slot has its own runs. Directions that do not belong
 * to a slot's run are masked for it, so that a slot can be filled at any time. Directions are
 * visited oldest first, and masked ones add nothing, so that a slot's numbers do not depend on the
 * position in the ring.
 */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/krylov/gcr_step.h"
#include "daemon/engine/krylov/solver_impl.h"

typedef struct gcr {
  int keep;
  int head;              /* entry of the next direction */
  int run[QK_MAX_RHS];   /* directions that a slot has made in this run */
  bool none[QK_MAX_RHS]; /* xi of the slot is 0, whatever stands there */
  int older[QK_GCR_MAX]; /* how many directions each entry was made orthogonal to */
  qk_field_t *z[QK_GCR_MAX], *w[QK_GCR_MAX];
  bool narrowed;               /* r stands in half in the place of the next w */
  uint8_t *valid, *valid_host; /* [check + 1][keep + 1][nslot] */
} gcr_t;

/* Scalars: (w_k,w_n), k oldest first and n last, then (r,w_n), of each entry; |w'|^2 of each
 * entry, and its s of the directions before it, the latest first; the y of a run; |r|^2 of the
 * iterations of a step. */
static int scalar_dots(const gcr_t *m, int entry) {
  return QK_SOLVER_OWN + entry * (m->keep + 1);
}
static int scalar_norm(const gcr_t *m, int entry) {
  return scalar_dots(m, m->keep) + entry * m->keep;
}
static int scalar_y(const gcr_t *m, int k) {
  return scalar_norm(m, m->keep) + k;
}
static int scalar_trace(const gcr_t *m, int i) {
  return scalar_y(m, m->keep) + i;
}

/* The entry that was made `back` directions before the next one. */
static int entry_of(const gcr_t *m, int back) {
  return (m->head + m->keep - back) % m->keep;
}

static size_t valid_rows(const qk_solver_t *s, int i) {
  const gcr_t *m = s->method_state;
  return (size_t)i * (m->keep + 1) * s->nslot;
}

/* ---- life ------------------------------------------------------------------------------------ */

static qk_status_t gcr_create(qk_solver_t *s) {
  gcr_t *m = s->method_state = qk_calloc(1, sizeof *m);
  if (!m) return QK_NO_MEMORY;
  m->keep = s->params.gcr_keep;
  for (int k = 0; k < m->keep; k++) {
    qk_status_t status = qk_solver_field(s, &m->z[k]);
    if (status) return status;
    status = qk_solver_field(s, &m->w[k]);
    if (status) return status;
  }
  void *valid = NULL, *valid_host = NULL;
  size_t bytes = valid_rows(s, s->check + 1);
  qk_status_t status = s->dev->ops->alloc(s->dev->ctx, bytes, &valid);
  if (status) return status;
  m->valid = valid;
  status = s->dev->ops->alloc_host(s->dev->ctx, bytes, &valid_host);
  if (status) return status;
  m->valid_host = valid_host;
  return qk_scalars_init(&s->scalars, s->dev, scalar_trace(m, s->check), s->nslot);
}

static void gcr_destroy(qk_solver_t *s) {
  gcr_t *m = s->method_state;
  if (!m) return;
  if (m->valid_host) s->dev->ops->free_host(s->dev->ctx, m->valid_host);
  if (m->valid) s->dev->ops->free(s->dev->ctx, m->valid);
  for (int k = m->keep - 1; k >= 0; k--) {
    qk_field_destroy(m->w[k]);
    qk_field_destroy(m->z[k]);
  }
  qk_free(m);
}

static void gcr_start(qk_solver_t *s, const uint8_t *mask) {
  gcr_t *m = s->method_state;
  m->narrowed = false;
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) m->run[i] = 0;
}

static void gcr_clear(qk_solver_t *s, const uint8_t *mask) {
  gcr_t *m = s->method_state;
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) m->none[i] = true;
}

/* ---- the end of a run ------------------------------------------------------------------------ */

static double complex scalar(const qk_solver_t *s, int k, int slot) {
  const double *v = qk_scalars_host(&s->scalars, k, slot);
  return v[0] + I * v[1];
}

/* As the kernels divide. */
static double complex ratio(double complex a, double b) {
  double complex q = b > 0 ? a / b : 0;
  return isfinite(creal(q)) && isfinite(cimag(q)) ? q : 0;
}

/* y of a slot's run, oldest first, to the last `run` of the n scalars. */
static void weigh(qk_solver_t *s, int slot, int n) {
  const gcr_t *m = s->method_state;
  const int run = m->run[slot];
  double complex y[QK_GCR_MAX];
  for (int i = 0; i < run; i++) {
    const int e = entry_of(m, run - i);
    y[i] = ratio(conj(scalar(s, scalar_dots(m, e) + m->older[e] + 1, slot)),
                 creal(scalar(s, scalar_norm(m, e), slot)));
    for (int k = 0; k < i; k++) y[k] -= y[i] * scalar(s, scalar_norm(m, e) + i - k, slot);
  }
  for (int k = 0; k < run; k++) {
    double *to = qk_scalars_host(&s->scalars, scalar_y(m, n - run + k), slot);
    to[0] = creal(y[k]);
    to[1] = cimag(y[k]);
  }
}

static void multi_axpy(const qk_solver_t *s, const qk_multi_args_t *args) {
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->dev->ops->multi_axpy(s->dev->ctx, args));
}

/* xi += sum over the last n directions, oldest first; of fresh slots xi = that. */
static void add_directions(qk_solver_t *s, int n, const uint8_t *valid, const uint8_t *fresh) {
  const gcr_t *m = s->method_state;
  const qk_spinor_t xi = s->xi->v;
  qk_multi_args_t add = {.n = n,
                         .y = xi,
                         .c = qk_scalars_at(&s->scalars, scalar_y(m, 0)),
                         .mask = valid,
                         .fresh = fresh,
                         .sign = 1};
  for (int k = 0; k < n; k++) add.f[k] = m->z[entry_of(m, n - k)]->v;
  if (xi.prec == s->params.inner) {
    multi_axpy(s, &add);
    return;
  }
  qk_field_t *t = qk_work_take(s->work, xi.prec, s->nslot, s->op->system);
  qk_solver_blas(s, QK_BLAS_ZERO, (qk_blas_args_t){.f = {xi}, .mask = fresh});
  for (int k = 0; k < n; k++) {
    const uint8_t *on = valid + (size_t)k * s->nslot;
    const double *y = qk_scalars_at(&s->scalars, scalar_y(m, k));
    qk_solver_blas(s, QK_BLAS_COPY, (qk_blas_args_t){.f = {t->v, add.f[k]}, .mask = on});
    qk_solver_blas(s, QK_BLAS_AXPY, (qk_blas_args_t){.f = {xi, t->v}, .c = {y}, .mask = on});
  }
  qk_work_release(s->work, t);
}

/* Lists which of the last n directions belong to the slots of the mask, oldest first, and then
 * the slots whose xi is 0. */
static void list_gathered(const qk_solver_t *s, const uint8_t *mask, int n, uint8_t *byte) {
  const gcr_t *m = s->method_state;
  for (int k = 0; k < n; k++)
    for (int i = 0; i < s->nslot; i++) *byte++ = mask[i] && m->run[i] >= n - k;
  for (int i = 0; i < s->nslot; i++) *byte++ = mask[i] && m->none[i];
}

/* The bytes of valid from `at` on as they are on the host. */
static void upload_valid(const qk_solver_t *s, size_t at, size_t bytes) {
  const gcr_t *m = s->method_state;
  qk_dev_copy(s->dev, m->valid + at, m->valid_host + at, bytes, QK_COPY_TO_DEVICE);
}

static void gcr_gather(qk_solver_t *s, const uint8_t *mask) {
  gcr_t *m = s->method_state;
  int n = 0;
  bool none = false;
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i]) continue;
    if (m->run[i] > n) n = m->run[i];
    none = none || m->none[i];
  }
  if (n == 0 && !none) return;
  qk_scalars_fetch(&s->scalars, 0, s->scalars.n);
  const size_t at = valid_rows(s, s->check), rows = (size_t)n * s->nslot;
  list_gathered(s, mask, n, m->valid_host + at);
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i]) continue;
    weigh(s, i, n);
    m->run[i] = 0;
    m->none[i] = false;
  }
  upload_valid(s, at, rows + s->nslot);
  qk_scalars_store(&s->scalars, 0, s->scalars.n);
  add_directions(s, n, m->valid + at, m->valid + at + rows);
}

/* Runs that have as many directions as are kept. */
static void end_runs(qk_solver_t *s) {
  const gcr_t *m = s->method_state;
  uint8_t full[QK_MAX_RHS] = {0};
  bool any = false;
  for (int i = 0; i < s->nslot; i++) {
    full[i] = s->slot[i].state == QK_SLOT_RUNNING && m->run[i] == m->keep;
    any = any || full[i];
  }
  if (any) gcr_gather(s, full);
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* Lists which of n directions, oldest first, each slot may use in iteration i; then the new one
 * and r. */
static const uint8_t *list_valid(qk_solver_t *s, int i, int n) {
  const gcr_t *m = s->method_state;
  const size_t at = valid_rows(s, i);
  uint8_t *byte = m->valid_host + at;
  for (int k = 0; k < n + 2; k++)
    for (int slot = 0; slot < s->nslot; slot++)
      *byte++ = s->slot[slot].state == QK_SLOT_RUNNING && (k >= n || m->run[slot] >= n - k);
  upload_valid(s, at, (size_t)(n + 2) * s->nslot);
  return m->valid + at;
}

/* The preconditioner works in half beside an iteration in single. */
static bool is_narrow(const qk_solver_t *s) {
  return s->params.precond.narrow && s->params.inner == QK_SINGLE;
}

/* r in half, in the place of w. */
static qk_field_t narrow_in(const qk_solver_t *s, const qk_field_t *w) {
  return qk_field_at(s->dev, QK_HALF, s->nslot, s->op->system, w->v.data);
}

/* z = K r. w has nothing to say before it is Mhat z. */
static void precondition(qk_solver_t *s, qk_field_t *z, qk_field_t *w) {
  const gcr_t *m = s->method_state;
  const qk_precond_t *k = &s->params.precond;
  const uint8_t *on = qk_solver_running_mask(s);
  const qk_field_t narrow = narrow_in(s, w);
  if (!k->apply)
    qk_solver_blas(s, QK_BLAS_COPY, (qk_blas_args_t){.f = {z->v, s->r->v}, .mask = on});
  else if (qk_dev_ok(s->dev))
    qk_dev_note(s->dev, m->narrowed ? k->apply(k->self, z, &narrow, NULL, on)
                                    : k->apply(k->self, z, s->r, w, on));
}

/* w = Mhat z. Low precision loses little where it only stores: the operator is single then. */
static void apply(qk_solver_t *s, qk_field_t *w, const qk_field_t *z) {
  if (!s->params.precond.apply || !qk_prec_scaled(s->params.inner)) {
    qk_solver_mhat(s, w, z, false);
    return;
  }
  qk_field_t *in = qk_work_take(s->work, QK_SINGLE, s->nslot, s->op->system);
  qk_field_t *out = qk_work_take(s->work, QK_SINGLE, s->nslot, s->op->system);
  qk_solver_blas(s, QK_BLAS_COPY, (qk_blas_args_t){.f = {in->v, z->v}});
  qk_solver_mhat(s, out, in, false);
  qk_solver_blas(s, QK_BLAS_COPY, (qk_blas_args_t){.f = {w->v, out->v}});
  qk_work_release(s->work, out);
  qk_work_release(s->work, in);
}

/* The new direction against n older ones, r, and its norm. The place of the next w is free unless
 * the oldest direction stands there. */
static void advance(qk_solver_t *s, int i, int entry, int n, const uint8_t *valid) {
  gcr_t *m = s->method_state;
  qk_field_t *w[QK_GCR_MAX];
  int norm2[QK_GCR_MAX];
  const qk_field_t narrow = narrow_in(s, m->w[(entry + 1) % m->keep]);
  m->narrowed = is_narrow(s) && n + 1 < m->keep;
  for (int k = 0; k <= n; k++) {
    int e = k < n ? entry_of(m, n - k) : entry;
    w[k] = m->w[e];
    norm2[k] = scalar_norm(m, e);
  }
  qk_gcr_advance(&s->scalars, &(qk_gcr_step_t){.n = n,
                                               .dots = scalar_dots(m, entry),
                                               .norm2 = norm2,
                                               .w = w,
                                               .r = s->r,
                                               .next = m->narrowed ? &narrow : NULL,
                                               .rr = scalar_trace(m, i),
                                               .valid = valid,
                                               .mask = qk_solver_running_mask(s)});
}

static void gcr_iteration(qk_solver_t *s, int i) {
  gcr_t *m = s->method_state;
  const int entry = m->head;
  int n = 0;
  end_runs(s);
  for (int k = 0; k < s->nslot; k++)
    if (s->slot[k].state == QK_SLOT_RUNNING && m->run[k] > n) n = m->run[k];
  const uint8_t *valid = list_valid(s, i, n);
  precondition(s, m->z[entry], m->w[entry]);
  apply(s, m->w[entry], m->z[entry]);
  advance(s, i, entry, n, valid);
  m->older[entry] = n;
  m->head = (entry + 1) % m->keep;
  for (int k = 0; k < s->nslot; k++)
    if (s->slot[k].state == QK_SLOT_RUNNING) m->run[k]++;
}

static qk_status_t gcr_iterate(qk_solver_t *s) {
  const gcr_t *m = s->method_state;
  for (int i = 0; i < s->check; i++) gcr_iteration(s, i);
  qk_status_t status = qk_solver_await(s);
  if (status) return status;
  const int last = entry_of(m, 1);
  for (int slot = 0; slot < s->nslot; slot++) {
    for (int i = 0; i < s->check; i++)
      s->trace[i * s->nslot + slot] = qk_scalars_host(&s->scalars, scalar_trace(m, i), slot)[0];
    double ww = creal(scalar(s, scalar_norm(m, last), slot));
    double complex rw = scalar(s, scalar_dots(m, last) + m->older[last] + 1, slot);
    s->broken[slot] = !isfinite(ww) || ww == 0 || !isfinite(cabs(rw)) || rw == 0;
  }
  return QK_OK;
}

const qk_method_t qk_method_gcr = {.name = "gcr",
                                   .check = 4,
                                   .applications_per_iteration = 1,
                                   .wide_solution = true,
                                   .create = gcr_create,
                                   .destroy = gcr_destroy,
                                   .start = gcr_start,
                                   .clear = gcr_clear,
                                   .replaced = gcr_start,
                                   .gather = gcr_gather,
                                   .iterate = gcr_iterate};
