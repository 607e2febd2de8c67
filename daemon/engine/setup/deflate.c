#include "daemon/engine/setup/deflate.h"

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/setup/actions.h"

static int64_t field(const qk_geom_t *geom, qk_prec_t prec, int n) {
  return (int64_t)qk_field_bytes(geom, prec, n, QK_EVEN);
}

static qk_lanczos_params_t params_of(int n) {
  return (qk_lanczos_params_t){.n = n, .prec = QK_SINGLE, .seed = 1};
}

/* Of one flavour: vectors, products with them, and with a fifth dimension fields beside them. */
static int64_t held(const qk_geom_t *geom, int n, qk_prec_t store) {
  const int64_t vectors = (n + QK_TILE - 1) / QK_TILE * QK_TILE;
  const int64_t fields = qk_geom_slices(geom) > 1 ? 2 * field(geom, QK_SINGLE, 1) : 0;
  return qk_deflation_bytes(geom, QK_EVEN, store, n) +
         vectors * QK_MAX_RHS * 2 * (int64_t)sizeof(double) + fields;
}

int64_t qk_deflate_bytes(const qk_geom_t *geom, int n, qk_prec_t store, bool twist) {
  return n > 0 ? (twist ? 2 : 1) * held(geom, n, store) : 0;
}

/* Lanczos; then its vectors, those that are made of them, and a block on the way. */
int64_t qk_deflate_making(const qk_geom_t *geom, int n, qk_prec_t store, bool twist) {
  const qk_lanczos_params_t p = params_of(n);
  if (n == 0) return 0;
  const int64_t finding = qk_lanczos_bytes(geom, QK_EVEN, &p);
  const int64_t taking = qk_deflation_bytes(geom, QK_EVEN, QK_SINGLE, n) + held(geom, n, store) +
                         field(geom, QK_SINGLE, qk_deflation_columns(n, 0));
  const int64_t most = finding > taking ? finding : taking;
  return twist ? most + held(geom, n, store) : most;
}

qk_status_t qk_deflate_check(const qk_geom_t *geom, const qk_load_t *load, qk_err_t *err) {
  qk_geom_t fields = *geom;
  fields.inner = qk_action_vectors(qk_values_action(&load->values));
  fields.ls = qk_action_slices(qk_action_of(&load->values), &load->values);
  const int most = qk_lanczos_most(&fields);
  if (load->deflate <= most) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "deflate = %d: at most %d vectors on this lattice",
                 load->deflate, most);
}

/* A byte each for eight right-hand sides of flavour -1. */
static qk_status_t all_minus(const qk_device_t *dev, void **minus) {
  static const uint8_t one[QK_EIGEN_BLOCK] = {1, 1, 1, 1, 1, 1, 1, 1};
  qk_status_t status = dev->ops->alloc(dev->ctx, sizeof one, minus);
  if (status) return status;
  qk_dev_copy(dev, *minus, one, sizeof one, QK_COPY_TO_DEVICE);
  qk_dev_sync(dev);
  return qk_dev_status(dev);
}

typedef struct making {
  qk_operator_t *op;
  qk_work_t *work;
  int n;
  qk_prec_t store;
  qk_progress_fn *progress;
  void *arg;
  qk_err_t *err;
} making_t;

/* Of the flavour that the operator is set to. */
static qk_status_t find(const making_t *m, qk_deflation_t **d) {
  const qk_lanczos_params_t p = params_of(m->n);
  return qk_deflation_create(m->op, m->work, &p, m->store, m->progress, m->arg, d, m->err);
}

static qk_status_t find_minus(const making_t *m, qk_deflation_t **d) {
  const qk_device_t *dev = m->op->dev;
  void *minus = NULL;
  qk_status_t status = qk_comm_agree(dev->geom->comm, all_minus(dev, &minus), m->err);
  if (!status) {
    qk_flavours_set(m->op, minus);
    status = find(m, d);
    qk_flavours_set(m->op, NULL);
  }
  if (minus) dev->ops->free(dev->ctx, minus);
  return status;
}

static qk_status_t find_all(const making_t *m, qk_deflate_t *d) {
  const qk_device_t *dev = m->op->dev;
  const bool twist = m->op->twist != 0;
  qk_status_t status = find(m, &d->flavour[0]);
  if (!status && twist) status = find_minus(m, &d->flavour[1]);
  if (status) return status;
  const double *value = qk_deflation_values(d->flavour[0]);
  d->n = qk_deflation_count(d->flavour[0]);
  d->lowest = value[0];
  d->highest = value[d->n - 1];
  d->bytes = qk_deflate_bytes(dev->geom, d->n, m->store, twist);
  return QK_OK;
}

static void tell(const making_t *m, const qk_deflate_t *d) {
  if (qk_comm_rank(m->op->dev->geom->comm) != 0) return;
  if (d->n < m->n)
    qk_warn("setup", "%d of %d vectors for deflation have converged: solves begin with those", d->n,
            m->n);
  qk_info("setup", "deflated by %d vectors%s, eigenvalues %.4g to %.4g, after %.3g s", d->n,
          d->flavour[1] ? " of each flavour" : "", d->lowest, d->highest, d->seconds);
}

qk_status_t qk_deflate_create(qk_operator_t *op, qk_work_t *work, int n, qk_prec_t store,
                              qk_progress_fn *progress, void *arg, qk_deflate_t **deflate,
                              qk_err_t *err) {
  const making_t m = {op, work, n, store, progress, arg, err};
  const double start = qk_clock_now();
  qk_deflate_t *d = qk_calloc(1, sizeof *d);
  qk_status_t status = d ? QK_OK : qk_fail(err, QK_NO_MEMORY, "no memory for the deflation");
  status = qk_comm_agree(op->dev->geom->comm, status, err);
  if (status) goto fail;
  status = find_all(&m, d);
  if (status) goto fail;
  d->seconds = qk_clock_now() - start;
  tell(&m, d);
  *deflate = d;
  return QK_OK;

fail:
  qk_deflate_destroy(d);
  return status;
}

void qk_deflate_destroy(qk_deflate_t *d) {
  if (!d) return;
  for (int i = 1; i >= 0; i--) qk_deflation_destroy(d->flavour[i]);
  qk_free(d);
}
