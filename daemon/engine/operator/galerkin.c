#include "daemon/engine/operator/galerkin.h"

#include "daemon/base/mem.h"
#include "daemon/engine/operator/coarse_op.h"
#include "daemon/engine/operator/whole_links.h"

/* What a construction needs beside the operator that it makes. */
typedef struct making {
  qk_operator_t *op; /* finer */
  const qk_prolongator_t *p;
  const qk_device_t *dev; /* coarse */
  const qk_device_t *cut; /* the ranks' aggregates: dev, or where that is whole another lattice */
  qk_coarse_op_t *c;
  /* In single; all but the inverse are of `cut` until they are gathered. */
  qk_coarse_links_t y, a, inverse, inner;
  int together;
  int held;                /* the first vector that v holds; < 0: none */
  qk_field_t *v, *one, *w; /* vectors, some of one chirality, an operator applied to them */
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

/* How many flavours have matrices of their own. */
static int flavours(double twist) {
  return twist != 0 ? 2 : 1;
}

static qk_status_t reserve_flavour(const making_t *m, int f, qk_prec_t store) {
  qk_coarse_links_t *one[] = {&m->c->a[f], &m->c->inverse[f]};
  qk_status_t status = links_create(m->dev, store, 8, &m->c->yhat[f]);
  for (int i = 0; !status && i < 2; i++) status = links_create(m->dev, store, 1, one[i]);
  return status;
}

static bool has_eight(const qk_coarse_params_t *params) {
  return params->eight && params->twist == 0;
}

static qk_status_t reserve_eight(const making_t *m) {
  const qk_ops_t *ops = m->dev->ops;
  const size_t bytes = ops->coarse_eight_bytes(&m->dev->geom->lat, &m->c->yhat[0]);
  return ops->alloc(m->dev->ctx, bytes, &m->c->eight);
}

static qk_status_t reserve(making_t *m, qk_work_t *work, const qk_coarse_params_t *params) {
  qk_field_t **field[] = {&m->v, &m->one, &m->w};
  qk_coarse_links_t *one[] = {&m->a, &m->inner};
  qk_status_t status = qk_coarse_op_create(m->dev, work, &m->c);
  for (int f = 0; !status && f < flavours(params->twist); f++)
    status = reserve_flavour(m, f, params->store);
  if (!status && has_eight(params)) status = reserve_eight(m);
  for (int i = 0; !status && i < 2; i++) status = links_create(m->cut, QK_SINGLE, 1, one[i]);
  if (status) return status;
  status = links_create(m->dev, QK_SINGLE, 1, &m->inverse);
  if (status) return status;
  status = links_create(m->cut, QK_SINGLE, 8, &m->y);
  for (int i = 0; !status && i < 3; i++)
    status = qk_field_create(m->op->dev, QK_SINGLE, m->together, QK_FULL, field[i]);
  return status;
}

static void release(making_t *m) {
  qk_field_destroy(m->w);
  qk_field_destroy(m->one);
  qk_field_destroy(m->v);
  qk_coarse_links_t *links[] = {&m->inner, &m->inverse, &m->a, &m->y};
  for (int i = 0; i < 4; i++) qk_coarse_op_free_links(m->dev, links[i]);
}

/* ---- products with the vectors: calls of an iteration (device.h) ----------------------------- */

static void clear(const making_t *m) {
  const qk_device_t *dev = m->cut;
  const qk_coarse_links_t *links[] = {&m->y, &m->a, &m->inner};
  for (int i = 0; i < 3; i++) {
    const size_t bytes = dev->ops->coarse_bytes(&dev->geom->lat, links[i]);
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->zero(dev->ctx, links[i]->data, bytes, 0));
  }
}

/* The first n columns of a block. */
static qk_field_t columns(const qk_field_t *block, int n) {
  qk_field_t f = *block;
  f.v.nrhs = n;
  f.v.ntile = (n + QK_TILE - 1) / QK_TILE;
  f.bytes = qk_spinor_bytes(&f.v);
  return f;
}

static int count(const making_t *m, int first) {
  const int left = m->p->t.nvec - first;
  return left < m->together ? left : m->together;
}

/* The vectors from `first` on, in v. */
static qk_field_t hold(making_t *m, int first) {
  qk_field_t v = columns(m->v, count(m, first));
  if (m->held != first) qk_prolongator_vectors(m->p, first, &v);
  m->held = first;
  return v;
}

/* Products of all vectors with w. */
static void multiply(making_t *m, qk_galerkin_args_t *args) {
  const qk_device_t *fine = m->op->dev;
  for (int first = 0; first < m->p->t.nvec; first += m->together) {
    args->v = hold(m, first).v;
    args->row0 = first;
    if (qk_dev_ok(fine)) qk_dev_note(fine, fine->ops->galerkin(fine->ctx, args));
  }
}

/* The columns (s, v) of the coarse matrices, of some v. */
static void add_columns(making_t *m, int s, int first) {
  qk_operator_t *op = m->op;
  const qk_device_t *fine = op->dev;
  const qk_field_t v = hold(m, first);
  qk_field_t one = columns(m->one, v.v.nrhs), w = columns(m->w, v.v.nrhs);
  qk_chiral_args_t chiral = {.plus = s == 0, .minus = s == 1, .in = v.v, .out = one.v};
  qk_galerkin_args_t args = {.agg = m->p->t.agg,
                             .chirality = s,
                             .column0 = first,
                             .w = w.v,
                             .inner = m->inner,
                             .ahead = m->y};
  if (qk_dev_ok(fine)) qk_dev_note(fine, fine->ops->chiral(fine->ctx, &chiral));
  for (args.mu = 0; args.mu < 4; args.mu++) {
    if (qk_dev_ok(fine)) qk_dev_note(fine, op->ops->hop_forward(op, &w, &one, args.mu));
    multiply(m, &args);
  }
  if (qk_dev_ok(fine)) qk_dev_note(fine, op->ops->diag(op, &w, &one, false, false));
  args.mu = -1;
  args.inner = m->a;
  multiply(m, &args);
}

static qk_status_t project(making_t *m) {
  clear(m);
  m->held = -1;
  for (int s = 0; s < 2; s++)
    for (int first = 0; first < m->p->t.nvec; first += m->together) add_columns(m, s, first);
  return qk_dev_status(m->dev);
}

/* ---- matrices of the neighbouring ranks ------------------------------------------------------ */

/* One buffer a direction. */
typedef struct faces {
  size_t bytes[4]; /* 0 where not split */
  void *ghost[4], *send, *recv;
} faces_t;

/* Y_+mu of our last face goes ahead; that of the rank behind comes back to the buffer. */
static void exchange_face(const making_t *m, int mu, const faces_t *f) {
  const qk_device_t *dev = m->cut;
  qk_comm_t *comm = dev->geom->comm;
  qk_coarse_face_args_t face = {.lat = dev->geom->lat, .ahead = m->y, .mu = mu, .to = f->ghost[mu]};
  qk_comm_msg_t msg = {.to = qk_comm_neighbour(comm, mu, +1),
                       .from = qk_comm_neighbour(comm, mu, -1),
                       .tag = mu,
                       .send = f->send,
                       .recv = f->recv,
                       .bytes = f->bytes[mu]};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->coarse_face(dev->ctx, &face));
  qk_dev_copy(dev, f->send, f->ghost[mu], f->bytes[mu], QK_COPY_TO_HOST);
  qk_dev_sync(dev);
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_comm_exchange(comm, 1, &msg));
  qk_dev_copy(dev, f->ghost[mu], f->recv, f->bytes[mu], QK_COPY_TO_DEVICE);
  qk_dev_sync(dev);
}

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

static qk_status_t close_by(const making_t *m, const faces_t *f) {
  const qk_device_t *dev = m->cut;
  qk_coarse_close_args_t args = {
      .lat = dev->geom->lat, .inner = m->inner, .diag = m->a, .ahead = m->y};
  for (int mu = 0; mu < 4; mu++) {
    if (f->bytes[mu] == 0) continue;
    exchange_face(m, mu, f);
    args.ghost[mu] = f->ghost[mu];
  }
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->coarse_close(dev->ctx, &args));
  qk_dev_sync(dev);
  return qk_dev_status(dev);
}

/* Hops inside aggregates join A, and Y_-mu follows from Y_+mu. */
static qk_status_t close_links(const making_t *m, qk_err_t *err) {
  faces_t f = {0};
  qk_status_t status = qk_comm_agree(m->cut->geom->comm, faces_create(m->cut, &f), err);
  if (!status) status = close_by(m, &f);
  faces_destroy(m->cut, &f);
  return status;
}

/* ---- the whole lattice ----------------------------------------------------------------------- */

/* Links of the ranks become whole ones. */
static qk_status_t gather_links(const making_t *m, qk_coarse_links_t *links, qk_err_t *err) {
  qk_coarse_links_t whole = {0};
  qk_status_t status = links_create(m->dev, links->prec, links->ndir, &whole);
  status = qk_comm_agree(m->cut->geom->comm, status, err);
  status = status ? status : qk_whole_links(m->cut, m->dev, links, &whole);
  if (status) {
    qk_coarse_op_free_links(m->dev, &whole);
    return status;
  }
  qk_coarse_op_free_links(m->dev, links);
  *links = whole;
  return QK_OK;
}

/* inner, which is room for other matrices from here on, has nothing that is wanted. */
static qk_status_t gather_all(making_t *m, qk_err_t *err) {
  if (m->cut == m->dev) return QK_OK;
  qk_coarse_op_free_links(m->dev, &m->inner);
  qk_status_t status = gather_links(m, &m->y, err);
  if (status) return status;
  status = gather_links(m, &m->a, err);
  if (status) return status;
  status = links_create(m->dev, QK_SINGLE, 1, &m->inner);
  return qk_comm_agree(m->cut->geom->comm, status, err);
}

/* ---- from Y and A to what the operator holds ------------------------------------------------- */

static qk_status_t invert(making_t *m, qk_err_t *err) {
  const qk_device_t *dev = m->dev;
  int64_t singular = 0;
  qk_coarse_invert_args_t args = {
      .lat = dev->geom->lat, .diag = m->a, .inverse = m->inverse, .singular = &singular};
  qk_status_t status = dev->ops->coarse_invert(dev->ctx, &args);
  status = qk_comm_agree(m->cut->geom->comm, status, err);
  if (status) return status;
  uint64_t n = (uint64_t)singular;
  status = qk_comm_sum_u64(dev->geom->comm, &n, 1);
  if (status || n == 0) return status;
  return qk_fail(err, QK_BREAKDOWN, "the diagonal of the coarse operator is singular on %llu sites",
                 (unsigned long long)n);
}

static void times(const making_t *m, const qk_coarse_times_args_t *args) {
  const qk_device_t *dev = m->dev;
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->coarse_times(dev->ctx, args));
}

static qk_status_t store(making_t *m, int f) {
  const qk_device_t *dev = m->dev;
  const qk_lattice_t lat = dev->geom->lat;
  times(m, &(qk_coarse_times_args_t){
               .lat = lat, .left = m->inverse, .in = m->y, .out = m->c->yhat[f]});
  times(m, &(qk_coarse_times_args_t){.lat = lat, .in = m->a, .out = m->c->a[f]});
  times(m, &(qk_coarse_times_args_t){.lat = lat, .in = m->inverse, .out = m->c->inverse[f]});
  const qk_coarse_eight_args_t eight = {lat, m->c->yhat[f], m->c->eight};
  if (eight.out && qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->coarse_eight(dev->ctx, &eight));
  qk_dev_sync(dev);
  return qk_dev_status(dev);
}

/* A += i twist G5, by way of the memory of the products. */
static void add_twist(making_t *m, double twist) {
  if (twist == 0) return;
  times(m, &(qk_coarse_times_args_t){
               .lat = m->dev->geom->lat, .in = m->a, .out = m->inner, .twist = twist});
  const qk_coarse_links_t a = m->a;
  m->a = m->inner;
  m->inner = a;
}

/* The matrices of each flavour; A, which has that of flavour +1 on the finer level, ends as that of
 * flavour +1 here. */
static qk_status_t finish(making_t *m, const qk_coarse_params_t *params, qk_err_t *err) {
  const double twist = params->twist;
  double held = m->op->twist;
  for (int f = flavours(twist) - 1; f >= 0; f--) {
    const double wanted = f == 0 ? twist : params->schur.is ? -params->schur.twist * twist : -twist;
    add_twist(m, wanted - held);
    held = wanted;
    qk_status_t status = invert(m, err);
    if (status) return status;
    status = store(m, f);
    if (status) return status;
  }
  return QK_OK;
}

static qk_status_t make(making_t *m, qk_work_t *work, const qk_coarse_params_t *params,
                        qk_err_t *err) {
  qk_comm_t *comm = m->cut->geom->comm;
  qk_status_t status = qk_comm_agree(comm, reserve(m, work, params), err);
  if (status) return status;
  status = qk_comm_agree(comm, project(m), err);
  if (status) return status;
  status = close_links(m, err);
  if (status) return status;
  status = gather_all(m, err);
  return status ? status : finish(m, params, err);
}

static bool has_coarse(const qk_operator_t *op) {
  return op->chirality == QK_CHIRALITY_SPIN &&
         (op->adjoint == QK_ADJOINT_GAMMA5 || op->adjoint == QK_ADJOINT_TWISTED);
}

qk_status_t qk_coarse_create(qk_operator_t *op, const qk_prolongator_t *p, const qk_device_t *dev,
                             qk_work_t *work, const qk_coarse_params_t *params,
                             qk_operator_t **coarse, qk_err_t *err) {
  making_t m = {
      .op = op, .p = p, .dev = dev, .cut = dev->geom->whole ? p->cut : dev, .together = p->t.nvec};
  if (!has_coarse(op))
    return qk_fail(err, QK_UNSUPPORTED, "there is no coarse operator of %s: M^+ is not G5 M G5",
                   op->action);
  if (params->together > 0 && params->together < p->t.nvec) m.together = params->together;
  qk_status_t status = make(&m, work, params, err);
  status = qk_comm_agree(m.cut->geom->comm, status, err);
  if (!status && params->exact) {
    m.c->exact_y = m.y;
    m.c->exact_a = m.a;
    m.y.data = m.a.data = NULL;
  }
  release(&m);
  if (status) {
    if (m.c) m.c->op.ops->destroy(&m.c->op);
    return qk_fail(err, status, "coarse operator: %s", qk_status_text(status));
  }
  m.c->op.adjoint = op->adjoint;
  m.c->op.twist = params->twist;
  m.c->op.schur = params->schur;
  m.c->op.flavours = op->flavours;
  m.c->op.diag_scale = op->diag_scale;
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
  const int64_t real = qk_prec_bytes(params->store);
  return geom->local_volume * matrix *
             (flavours(params->twist) * (8 + 2) * real + (params->exact ? (8 + 1) * 4 : 0)) +
         (has_eight(params) ? geom->local_volume * 8 * (matrix + 4 * geom->ncomp) : 0);
}
