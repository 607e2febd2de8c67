/*
 * Flexible GCR truncated to the last gcr_keep directions (S. C. Eisenstat, H. C. Elman and M. H. Schultz,
 * SIAM J. Numer. Anal. 20 (1983) 345; the truncated form is ORTHOMIN). One application, one call of the
 * preconditioner, and one block of dot products an iteration; 2 (gcr_keep + 1) fields are kept.
 *
 *   z = K r,  w = Mhat z
 *   z -= sum_k (w_k,w)/(w_k,w_k) z_k,  w -= sum_k (w_k,w)/(w_k,w_k) w_k
 *   xi += (w,r)/(w,w) z,  r -= (w,r)/(w,w) w
 *
 * Directions stand in a ring that all slots share. Those older than a slot are masked for it, so a slot
 * can be filled at any time; they are visited newest first, so that a slot's sums have one order
 * wherever the ring stood when it was filled.
 */
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/solver_impl.h"

enum { MAX_RING = QK_MULTI_MAX + 1 };

typedef struct gcr {
  int keep, ring;          /* ring = keep + 1: one more for the direction being made */
  int head;                /* entry of the newest direction; older ones follow upwards */
  int64_t age[QK_MAX_RHS]; /* directions that a slot has made */
  qk_field_t *z[MAX_RING], *w[MAX_RING];
  uint8_t *valid, *valid_host; /* [check][keep][nslot], newest first */
} gcr_t;

/* Scalars: (w,r) and |w|^2 of the new direction; (w_k,w); |w_k|^2 of the ring twice over, so that any
 * run of `keep` entries is contiguous; |r|^2 of the iterations of a step. */
enum { WR, WW, DOTS };
static int scalar_norms(const gcr_t *m) {
  return DOTS + m->keep;
}
static int scalar_trace(const gcr_t *m) {
  return scalar_norms(m) + 2 * m->ring;
}

static qk_status_t gcr_create(qk_solver_t *s) {
  gcr_t *m = s->method_state = qk_calloc(1, sizeof *m);
  if (!m) return QK_NO_MEMORY;
  m->keep = s->params.gcr_keep;
  m->ring = m->keep + 1;
  for (int k = 0; k < m->ring; k++) {
    qk_status_t status = qk_solver_field(s, &m->z[k]);
    if (!status) status = qk_solver_field(s, &m->w[k]);
    if (status) return status;
  }
  void *valid = NULL, *valid_host = NULL;
  size_t bytes = (size_t)s->check * m->keep * s->nslot;
  qk_status_t status = s->dev->ops->alloc(s->dev->ctx, bytes, &valid);
  m->valid = valid;
  if (!status) status = s->dev->ops->alloc_host(s->dev->ctx, bytes, &valid_host);
  m->valid_host = valid_host;
  if (status) return status;
  return qk_solver_scalars(s, scalar_trace(m) + s->check);
}

static void gcr_destroy(qk_solver_t *s) {
  gcr_t *m = s->method_state;
  if (!m) return;
  if (m->valid_host) s->dev->ops->free_host(s->dev->ctx, m->valid_host);
  if (m->valid) s->dev->ops->free(s->dev->ctx, m->valid);
  for (int k = m->ring - 1; k >= 0; k--) {
    qk_field_destroy(m->w[k]);
    qk_field_destroy(m->z[k]);
  }
  qk_free(m);
}

static qk_status_t gcr_start(qk_solver_t *s, const uint8_t *mask) {
  gcr_t *m = s->method_state;
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) m->age[i] = 0;
  return QK_OK;
}

static qk_status_t gcr_replaced(qk_solver_t *s, const uint8_t *mask) {
  (void)s;
  (void)mask;
  return QK_OK; /* w_k = Mhat z_k holds whatever r is */
}

/* Which directions each slot may use in the iterations of this step. */
static qk_status_t upload_valid(qk_solver_t *s) {
  gcr_t *m = s->method_state;
  uint8_t *byte = m->valid_host;
  for (int i = 0; i < s->check; i++)
    for (int k = 0; k < m->keep; k++)
      for (int slot = 0; slot < s->nslot; slot++)
        *byte++ = s->slot[slot].state == QK_SLOT_RUNNING && m->age[slot] + i > k;
  return s->dev->ops->copy(s->dev->ctx, m->valid, m->valid_host, (size_t)(byte - m->valid_host),
                           QK_COPY_TO_DEVICE, 0);
}

static int64_t oldest_age(const qk_solver_t *s) {
  const gcr_t *m = s->method_state;
  int64_t age = 0;
  for (int i = 0; i < s->nslot; i++)
    if (s->slot[i].state == QK_SLOT_RUNNING && m->age[i] > age) age = m->age[i];
  return age;
}

/* Takes from w and z of entry `now` what the n directions after it (newest first) can do. */
static qk_status_t orthogonalise(qk_solver_t *s, int now, int n, const uint8_t *valid) {
  gcr_t *m = s->method_state;
  if (n == 0) return QK_OK;
  qk_multi_args_t a = {.n = n,
                       .y = m->w[now]->v,
                       .mask = valid,
                       .c = qk_scalar(s, DOTS),
                       .d = qk_scalar(s, scalar_norms(m) + now + 1),
                       .sign = -1,
                       .red = qk_scalar(s, DOTS)};
  for (int k = 0; k < n; k++) a.f[k] = m->w[(now + 1 + k) % m->ring]->v;
  qk_status_t status = s->dev->ops->multi_dot(s->dev->ctx, &a);
  if (!status) status = qk_solver_sum(s, qk_scalar(s, DOTS), n);
  if (!status) status = s->dev->ops->multi_axpy(s->dev->ctx, &a);
  if (status) return status;
  a.y = m->z[now]->v;
  for (int k = 0; k < n; k++) a.f[k] = m->z[(now + 1 + k) % m->ring]->v;
  return s->dev->ops->multi_axpy(s->dev->ctx, &a);
}

/* |w|^2 of entry `now` to both of its places. */
static qk_status_t keep_norm(qk_solver_t *s, int now) {
  const gcr_t *m = s->method_state;
  size_t bytes = (size_t)s->nslot * 2 * sizeof(double);
  qk_status_t status = QK_OK;
  for (int copy = 0; copy < 2 && !status; copy++)
    status = s->dev->ops->copy(s->dev->ctx, qk_scalar(s, scalar_norms(m) + now + copy * m->ring),
                               qk_scalar(s, WW), bytes, QK_COPY_DEVICE, 0);
  return status;
}

static qk_status_t gcr_iteration(qk_solver_t *s, int n, const uint8_t *valid, double *rr) {
  gcr_t *m = s->method_state;
  const uint8_t *on = qk_solver_running_mask(s);
  const qk_precond_t *precond = &s->params.precond;
  int now = (m->head + m->ring - 1) % m->ring;
  qk_field_t *z = m->z[now], *w = m->w[now];
  m->head = now;

  qk_status_t status;
  if (precond->apply)
    status = precond->apply(precond->self, z, s->r, on);
  else
    status = qk_solver_blas(s, QK_BLAS_COPY, &(qk_blas_args_t){.f = {z->v, s->r->v}, .mask = on});
  if (!status) status = qk_solver_mhat(s, w, z, false);
  if (!status) status = orthogonalise(s, now, n, valid);
  double *wr = qk_scalar(s, WR), *ww = qk_scalar(s, WW);
  if (!status)
    status = qk_solver_blas(s, QK_BLAS_CDOT_NORM2,
                            &(qk_blas_args_t){.f = {w->v, s->r->v}, .mask = on, .red = wr});
  if (!status) status = qk_solver_sum(s, wr, 2);
  if (!status) status = keep_norm(s, now);
  if (!status)
    status = qk_solver_blas(
        s, QK_BLAS_GCR_XR,
        &(qk_blas_args_t){
            .f = {s->xi->v, s->r->v, z->v, w->v}, .c = {wr, ww}, .mask = on, .red = rr});
  if (!status) status = qk_solver_sum(s, rr, 1);
  return status;
}

static qk_status_t gcr_iterate(qk_solver_t *s) {
  gcr_t *m = s->method_state;
  qk_status_t status = upload_valid(s);
  int64_t oldest = oldest_age(s);
  for (int i = 0; i < s->check && !status; i++) {
    int64_t n = oldest + i;
    if (n > m->keep) n = m->keep;
    status = gcr_iteration(s, (int)n, m->valid + (size_t)i * m->keep * s->nslot,
                           qk_scalar(s, scalar_trace(m) + i));
  }
  if (!status) status = qk_solver_fetch(s);
  if (status) return status;
  for (int slot = 0; slot < s->nslot; slot++) {
    for (int i = 0; i < s->check; i++)
      s->trace[i * s->nslot + slot] = qk_scalar_host(s, scalar_trace(m) + i, slot)[0];
    const double *wr = qk_scalar_host(s, WR, slot), *ww = qk_scalar_host(s, WW, slot);
    s->broken[slot] =
        !isfinite(ww[0]) || ww[0] == 0 || !isfinite(wr[0]) || (wr[0] == 0 && wr[1] == 0);
    m->age[slot] += s->check;
  }
  return QK_OK;
}

const qk_method_t qk_method_gcr = {.name = "gcr",
                                   .check = 4,
                                   .applications_per_iteration = 1,
                                   .create = gcr_create,
                                   .destroy = gcr_destroy,
                                   .start = gcr_start,
                                   .replaced = gcr_replaced,
                                   .iterate = gcr_iterate};
