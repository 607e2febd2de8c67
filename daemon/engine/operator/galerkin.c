#include "daemon/engine/operator/galerkin.h"

#include "daemon/base/mem.h"
#include "daemon/engine/operator/coarse_op.h"

/* What a construction needs beside the operator that it makes. */
typedef struct making {
  qk_operator_t *op; /* finer */
  const qk_prolongator_t *p;
  const qk_device_t *dev; /* coarse */
  qk_coarse_op_t *c;
  qk_coarse_links_t y, a, inverse, inner; /* in single */
  qk_field_t *v, *one, *w; /* the vectors, those of one chirality, an operator applied to them */
} making_t;

static qk_coarse_links_t shape_of(const qk_geom_t *geom, qk_prec_t prec, int ndir) {
  return (qk_coarse_links_t){.prec = prec, .n = geom->ncomp, .ndir = ndir};
}

static qk_status_t links_create(const qk_device_t *dev, qk_prec_t prec, int ndir,
                                qk_coarse_links_t *links) {
  void *data = NULL;
  qk_coarse_links_t l = shape_of(dev->geom, prec, ndir);
  qk_status_t status =
      dev->ops->alloc(dev->ctx, dev->ops->coarse_bytes(&dev->geom->lat, &l), &data);
  if (status) return status;
  l.data = data;
  *links = l;
  return QK_OK;
}

static qk_status_t reserve(making_t *m, qk_prec_t store) {
  const qk_device_t *fine = m->op->dev;
  qk_field_t **field[] = {&m->v, &m->one, &m->w};
  qk_coarse_links_t *kept[] = {&m->c->a, &m->c->inverse};
  qk_coarse_links_t *temporary[] = {&m->a, &m->inverse, &m->inner};
  qk_status_t status = links_create(m->dev, store, 8, &m->c->yhat);
  for (int i = 0; !status && i < 2; i++) status = links_create(m->dev, store, 1, kept[i]);
  for (int i = 0; !status && i < 3; i++) status = links_create(m->dev, QK_SINGLE, 1, temporary[i]);
  if (!status) status = links_create(m->dev, QK_SINGLE, 8, &m->y);
  for (int i = 0; !status && i < 3; i++)
    status = qk_field_create(fine, QK_SINGLE, m->p->t.nvec, QK_FULL, field[i]);
  return status;
}

static void release(making_t *m) {
  qk_field_destroy(m->w);
  qk_field_destroy(m->one);
  qk_field_destroy(m->v);
  qk_coarse_links_t *links[] = {&m->inner, &m->inverse, &m->a, &m->y};
  for (int i = 0; i < 4; i++) qk_coarse_op_free_links(m->dev, links[i]);
}

static qk_status_t clear(making_t *m) {
  qk_coarse_links_t *links[] = {&m->y, &m->a, &m->inner};
  qk_status_t status = QK_OK;
  for (int i = 0; !status && i < 3; i++)
    status = m->dev->ops->zero(m->dev->ctx, links[i]->data,
                               m->dev->ops->coarse_bytes(&m->dev->geom->lat, links[i]), 0);
  return status;
}

/* The columns (s, v) of the coarse matrices. */
static qk_status_t add_chirality(making_t *m, int s) {
  const qk_device_t *fine = m->op->dev;
  qk_chiral_args_t chiral = {.plus = s == 0, .minus = s == 1, .in = m->v->v, .out = m->one->v};
  qk_galerkin_args_t args = {.agg = m->p->t.agg,
                             .chirality = s,
                             .v = m->v->v,
                             .w = m->w->v,
                             .inner = m->inner,
                             .ahead = m->y};
  qk_status_t status = fine->ops->chiral(fine->ctx, &chiral);
  for (args.mu = 0; !status && args.mu < 4; args.mu++) {
    status = m->op->ops->hop_forward(m->op, m->w, m->one, args.mu);
    if (!status) status = fine->ops->galerkin(fine->ctx, &args);
  }
  if (!status) status = m->op->ops->diag(m->op, m->w, m->one, false);
  args.mu = -1;
  args.inner = m->a;
  return status ? status : fine->ops->galerkin(fine->ctx, &args);
}

/* ---- matrices of the neighbouring ranks ------------------------------------------------------ */

/* Y_+mu of our last face goes ahead; that of the rank behind comes back to `ghost`. */
static qk_status_t exchange_face(making_t *m, int mu, void *ghost, void *send, void *recv,
                                 size_t bytes) {
  const qk_device_t *dev = m->dev;
  qk_comm_t *comm = dev->geom->comm;
  qk_coarse_face_args_t face = {.lat = dev->geom->lat, .ahead = m->y, .mu = mu, .to = ghost};
  qk_comm_msg_t msg = {.to = qk_comm_neighbour(comm, mu, +1),
                       .from = qk_comm_neighbour(comm, mu, -1),
                       .tag = mu,
                       .send = send,
                       .recv = recv,
                       .bytes = bytes};
  qk_status_t status = dev->ops->coarse_face(dev->ctx, &face);
  if (!status) status = dev->ops->copy(dev->ctx, send, ghost, bytes, QK_COPY_TO_HOST, 0);
  if (!status) status = dev->ops->queue_sync(dev->ctx, 0);
  if (!status) status = qk_comm_exchange_begin(comm, 1, &msg);
  if (!status) status = qk_comm_exchange_end(comm);
  if (!status) status = dev->ops->copy(dev->ctx, ghost, recv, bytes, QK_COPY_TO_DEVICE, 0);
  return status ? status : dev->ops->queue_sync(dev->ctx, 0);
}

/* One buffer a direction. */
typedef struct faces {
  size_t bytes[4]; /* 0 where not split */
  void *ghost[4], *send, *recv;
} faces_t;

static qk_status_t faces_create(const qk_device_t *dev, faces_t *f) {
  const qk_lattice_t *lat = &dev->geom->lat;
  size_t n = (size_t)dev->geom->ncomp, most = 0;
  qk_status_t status = QK_OK;
  for (int mu = 0; !status && mu < 4; mu++) {
    if (!lat->split[mu]) continue;
    f->bytes[mu] = 2 * (size_t)lat->face[mu] * n * n * 2 * sizeof(double);
    if (f->bytes[mu] > most) most = f->bytes[mu];
    status = dev->ops->alloc(dev->ctx, f->bytes[mu], &f->ghost[mu]);
  }
  if (status || most == 0) return status;
  status = dev->ops->alloc_host(dev->ctx, most, &f->send);
  return status ? status : dev->ops->alloc_host(dev->ctx, most, &f->recv);
}

static void faces_destroy(const qk_device_t *dev, faces_t *f) {
  if (f->recv) dev->ops->free_host(dev->ctx, f->recv);
  if (f->send) dev->ops->free_host(dev->ctx, f->send);
  for (int mu = 0; mu < 4; mu++)
    if (f->ghost[mu]) dev->ops->free(dev->ctx, f->ghost[mu]);
}

/* Hops inside aggregates join A, and Y_-mu follows from Y_+mu. */
static qk_status_t close_links(making_t *m, qk_err_t *err) {
  const qk_device_t *dev = m->dev;
  faces_t f = {0};
  qk_coarse_close_args_t args = {
      .lat = dev->geom->lat, .inner = m->inner, .diag = m->a, .ahead = m->y};
  qk_status_t status = qk_comm_agree(dev->geom->comm, faces_create(dev, &f), err);
  for (int mu = 0; !status && mu < 4; mu++) {
    if (f.bytes[mu] == 0) continue;
    status = exchange_face(m, mu, f.ghost[mu], f.send, f.recv, f.bytes[mu]);
    args.ghost[mu] = f.ghost[mu];
  }
  if (!status) status = dev->ops->coarse_close(dev->ctx, &args);
  if (!status) status = dev->ops->queue_sync(dev->ctx, 0);
  faces_destroy(dev, &f);
  return status;
}

/* ---- from Y and A to what the operator holds ------------------------------------------------- */

static qk_status_t invert(making_t *m, qk_err_t *err) {
  const qk_device_t *dev = m->dev;
  int64_t singular = 0;
  qk_coarse_invert_args_t args = {
      .lat = dev->geom->lat, .diag = m->a, .inverse = m->inverse, .singular = &singular};
  qk_status_t status = dev->ops->coarse_invert(dev->ctx, &args);
  status = qk_comm_agree(dev->geom->comm, status, err);
  uint64_t n = (uint64_t)singular;
  if (!status) status = qk_comm_sum_u64(dev->geom->comm, &n, 1);
  if (status || n == 0) return status;
  return qk_fail(err, QK_BREAKDOWN, "the diagonal of the coarse operator is singular on %llu sites",
                 (unsigned long long)n);
}

static qk_status_t store(making_t *m) {
  const qk_device_t *dev = m->dev;
  const qk_coarse_times_args_t args[] = {
      {.lat = dev->geom->lat, .left = m->inverse, .in = m->y, .out = m->c->yhat},
      {.lat = dev->geom->lat, .in = m->a, .out = m->c->a},
      {.lat = dev->geom->lat, .in = m->inverse, .out = m->c->inverse}};
  qk_status_t status = QK_OK;
  for (int i = 0; !status && i < 3; i++) status = dev->ops->coarse_times(dev->ctx, &args[i]);
  return status ? status : dev->ops->queue_sync(dev->ctx, 0);
}

static qk_status_t make(making_t *m, qk_err_t *err) {
  qk_status_t status = clear(m);
  if (!status) status = qk_prolongator_vectors(m->p, m->v);
  for (int s = 0; !status && s < 2; s++) status = add_chirality(m, s);
  status = qk_comm_agree(m->dev->geom->comm, status, err);
  if (!status) status = close_links(m, err);
  if (!status) status = invert(m, err);
  return status ? status : store(m);
}

qk_status_t qk_coarse_create(qk_operator_t *op, const qk_prolongator_t *p, const qk_device_t *dev,
                             qk_work_t *work, const qk_coarse_params_t *params,
                             qk_operator_t **coarse, qk_err_t *err) {
  making_t m = {.op = op, .p = p, .dev = dev};
  if (op->adjoint != QK_ADJOINT_GAMMA5 || op->chirality != QK_CHIRALITY_SPIN)
    return qk_fail(err, QK_UNSUPPORTED, "there is no coarse operator of %s: M^+ is not G5 M G5",
                   op->action);
  qk_status_t status = qk_coarse_op_create(dev, work, &m.c);
  if (!status) status = reserve(&m, params->store);
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (!status) status = make(&m, err);
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (!status) {
    m.c->op.diag_scale = op->diag_scale;
    if (params->exact) {
      m.c->exact_y = m.y;
      m.c->exact_a = m.a;
      m.y.data = m.a.data = NULL;
    }
  }
  release(&m);
  if (status) {
    if (m.c) m.c->op.ops->destroy(&m.c->op);
    return qk_fail(err, status, "coarse operator: %s", qk_status_text(status));
  }
  *coarse = &m.c->op;
  return QK_OK;
}

void qk_coarse_drop_exact(qk_operator_t *coarse) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)coarse;
  qk_coarse_op_free_links(coarse->dev, &c->exact_y);
  qk_coarse_op_free_links(coarse->dev, &c->exact_a);
}

int64_t qk_coarse_operator_bytes(const qk_geom_t *geom, const qk_coarse_params_t *params) {
  const int64_t matrix = 2 * (int64_t)geom->ncomp * geom->ncomp; /* reals */
  const int64_t real = params->store == QK_HALF ? 2 : 4;
  return geom->local_volume * matrix * ((8 + 2) * real + (params->exact ? (8 + 1) * 4 : 0));
}
