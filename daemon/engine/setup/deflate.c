#include "daemon/engine/setup/deflate.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/setup/actions.h"
#include "daemon/engine/setup/deflate_file.h"

/* Errors over the largest eigenvalue that vectors may have: they need not be exact. */
static const double accepted = 5e-3;

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

/* Of compressed vectors, with a basis in `store`. */
static int64_t held_compressed(const qk_geom_t *geom, int n, const qk_coherent_cut_t *cut,
                               qk_prec_t store) {
  return cut->n / QK_TILE * field(geom, store, QK_TILE) +
         qk_compressed_bytes(geom, QK_EVEN, QK_SINGLE, cut, n);
}

int64_t qk_deflate_bytes(const qk_geom_t *geom, int n, const qk_coherent_cut_t *cut,
                         qk_prec_t store, bool twist) {
  if (n > 0 && cut->n > 0) return held_compressed(geom, n, cut, store);
  return n > 0 ? (twist ? 2 : 1) * held(geom, n, store) : 0;
}

/* Lanczos; then its vectors, those that are made of them, and a block on the way. */
int64_t qk_deflate_making(const qk_geom_t *geom, int n, const qk_coherent_cut_t *cut,
                          qk_prec_t store, bool twist) {
  const qk_lanczos_params_t p = params_of(n);
  if (n == 0) return 0;
  if (cut->n > 0) /* as they are read; a block on the way, perhaps in double */
    return held_compressed(geom, n, cut, QK_SINGLE) + 2 * field(geom, QK_DOUBLE, QK_TILE);
  const int64_t finding = qk_lanczos_bytes(geom, QK_EVEN, &p);
  const int64_t taking = qk_deflation_bytes(geom, QK_EVEN, QK_SINGLE, n) + held(geom, n, store) +
                         field(geom, QK_SINGLE, qk_deflation_columns(n, 0));
  const int64_t most = finding > taking ? finding : taking;
  return twist ? most + held(geom, n, store) : most;
}

qk_status_t qk_deflate_check(const qk_geom_t *geom, const qk_load_t *load, int *n,
                             qk_coherent_cut_t *cut, qk_err_t *err) {
  qk_geom_t fields = *geom;
  int count = 0;
  *n = 0;
  *cut = (qk_coherent_cut_t){0};
  if (qk_values_action(&load->values)->is_dense) return QK_OK; /* qk_deflate_kernel_t */
  fields.inner = qk_action_vectors(qk_values_action(&load->values));
  fields.ls = qk_action_slices(qk_action_of(&load->values), &load->values);
  const int most = qk_lanczos_most(&fields, QK_LANCZOS_NORMAL);
  *n = load->deflate;
  if (load->deflate_from[0]) {
    const qk_status_t status = qk_deflate_file_count(geom, load->deflate_file, &count, cut, err);
    if (status != QK_OK) return status;
    if (*n == 0) *n = count;
  }
  if (cut->n > 0) {
    const qk_status_t status = qk_coherent_check(geom, cut, err);
    if (status != QK_OK) return status;
  }
  if (*n <= most) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "deflate = %d: at most %d vectors on this lattice", *n,
                 most);
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
  const qk_deflate_params_t *p;
  qk_progress_fn *progress;
  void *arg;
  qk_err_t *err;
} making_t;

static bool loses_process(qk_status_t status) {
  return status == QK_DEVICE_ERROR || status == QK_COMM_ERROR;
}

/* Trouble with a file is told, and nothing more. */
static qk_status_t note_trouble(qk_deflate_t *d, qk_status_t status, const qk_err_t *why) {
  if (status == QK_OK || loses_process(status)) return status;
  snprintf(d->trouble, sizeof d->trouble, "%.500s",
           why->text[0] ? why->text : qk_status_text(status));
  return QK_OK;
}

/* The setup's own file, if it is there. */
static qk_status_t read_own(const making_t *m, qk_deflate_t *d, qk_eigen_t **e) {
  qk_err_t why = {0};
  const bool first = qk_comm_rank(m->op->dev->geom->comm) == 0;
  double there =
      m->p->load->deflate_file[0] && first && access(m->p->load->deflate_file, F_OK) == 0 ? 1 : 0;
  qk_status_t status = qk_comm_max(m->op->dev->geom->comm, &there, 1);
  if (status || there == 0) return status;
  status =
      qk_deflate_file_read(m->op, m->p->load->deflate_file, m->p->identity, m->p->n, true, e, &why);
  d->restored = status == QK_OK;
  return note_trouble(d, status, &why);
}

/* Of the flavour that the operator is set to. Fewer than are wanted do, too. */
static qk_status_t compute(const making_t *m, qk_eigen_t **e) {
  qk_lanczos_params_t p = params_of(m->p->n);
  p.accept = accepted;
  const qk_status_t status = qk_lanczos(m->op, m->work, &p, m->progress, m->arg, e, m->err);
  if (status != QK_NOT_CONVERGED || (*e)->n == 0) return status;
  *m->err = (qk_err_t){0};
  return QK_OK;
}

static qk_status_t write_own(const making_t *m, qk_deflate_t *d, const qk_eigen_t *e) {
  qk_err_t why = {0};
  if (!m->p->load->deflate_file[0] || e->n < m->p->n || m->p->load->reads_only) return QK_OK;
  return note_trouble(
      d, qk_deflate_file_write(m->op, m->p->load->deflate_file, m->p->identity, e, &why), &why);
}

/* Of flavour 1. */
static qk_status_t find_eigen(const making_t *m, qk_deflate_t *d, qk_eigen_t **e) {
  if (m->p->load->deflate_from[0]) {
    snprintf(d->origin, sizeof d->origin, "%s", m->p->load->deflate_from);
    d->restored = true;
    return qk_deflate_file_read(m->op, m->p->load->deflate_file, m->p->identity, m->p->n, false, e,
                                m->err);
  }
  qk_status_t status = read_own(m, d, e);
  if (status || *e) return status;
  status = compute(m, e);
  return status ? status : write_own(m, d, *e);
}

/* Vectors of another's that are compressed stay so. */
static qk_status_t find_compressed(const making_t *m, qk_deflate_t *d) {
  qk_compressed_t *z = NULL;
  snprintf(d->origin, sizeof d->origin, "%s", m->p->load->deflate_from);
  d->restored = true;
  const qk_status_t status = qk_deflate_file_compressed(m->op, m->work, m->p->load->deflate_file,
                                                        m->p->identity, m->p->n, &z, m->err);
  return status ? status
                : qk_deflation_create_compressed(m->op, m->work, z, m->p->store, &d->flavour[0],
                                                 m->err);
}

static qk_status_t find(const making_t *m, qk_deflate_t *d) {
  qk_eigen_t *e = NULL;
  if (m->p->cut.n > 0) return find_compressed(m, d);
  const qk_status_t found = find_eigen(m, d, &e);
  const qk_status_t status =
      found ? found
            : qk_deflation_create_of(m->op, m->work, e, m->p->store, &d->flavour[0], m->err);
  qk_eigen_destroy(e);
  return status;
}

static qk_status_t compute_minus(const making_t *m, qk_deflation_t **d) {
  const qk_lanczos_params_t p = params_of(m->p->n);
  return qk_deflation_create(m->op, m->work, &p, m->p->store, m->progress, m->arg, d, m->err);
}

static qk_status_t find_minus(const making_t *m, qk_deflation_t **d) {
  const qk_device_t *dev = m->op->dev;
  void *minus = NULL;
  qk_status_t status = qk_comm_agree(dev->geom->comm, all_minus(dev, &minus), m->err);
  if (!status) {
    qk_flavours_set(m->op, minus);
    status = compute_minus(m, d);
    qk_flavours_set(m->op, NULL);
  }
  if (minus) dev->ops->free(dev->ctx, minus);
  return status;
}

static qk_status_t find_all(const making_t *m, qk_deflate_t *d) {
  const qk_device_t *dev = m->op->dev;
  const bool twist = m->op->twist != 0 && !m->p->load->deflate_from[0];
  qk_status_t status = find(m, d);
  if (status) return status;
  status = twist ? find_minus(m, &d->flavour[1]) : QK_OK;
  if (status) return status;
  const double *value = qk_deflation_values(d->flavour[0]);
  d->n = qk_deflation_count(d->flavour[0]);
  d->lowest = value[0];
  d->highest = value[d->n - 1];
  d->bytes = qk_deflate_bytes(dev->geom, d->n, &m->p->cut, m->p->store, twist);
  return QK_OK;
}

static void tell(const making_t *m, const qk_deflate_t *d) {
  if (qk_comm_rank(m->op->dev->geom->comm) != 0) return;
  if (d->n < m->p->n)
    qk_warn("setup", "%d of %d vectors for deflation have converged: solves begin with those", d->n,
            m->p->n);
  if (d->trouble[0]) qk_warn("setup", "vectors for deflation: %s", d->trouble);
  qk_info("setup", "deflated by %d vectors%s%s, eigenvalues %.4g to %.4g, after %.3g s", d->n,
          d->flavour[1] ? " of each flavour" : "", d->restored ? " of a file" : "", d->lowest,
          d->highest, d->seconds);
}

qk_status_t qk_deflate_create(qk_operator_t *op, qk_work_t *work, const qk_deflate_params_t *params,
                              qk_progress_fn *progress, void *arg, qk_deflate_t **deflate,
                              qk_err_t *err) {
  const making_t m = {op, work, params, progress, arg, err};
  const double start = qk_clock_now();
  qk_deflate_t *d = qk_calloc(1, sizeof *d);
  qk_status_t status = d ? QK_OK : qk_fail(err, QK_NO_MEMORY, "no memory for the deflation");
  status = qk_comm_agree(op->dev->geom->comm, status, err);
  if (status) goto fail;
  status = find_all(&m, d);
  qk_work_trim(work);
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

/* ---- eigenvectors of a kernel ---------------------------------------------------------------- */

static qk_mg_identity_t kernel_of(const qk_deflate_kernel_t *v) {
  qk_mg_identity_t id = *v->identity;
  qk_values_t kernel;
  if (qk_values_kernel(&v->load->values, &kernel))
    qk_values_text(&kernel, QK_TEXT_CANONICAL, id.operator_text);
  return id;
}

static qk_status_t check_residuals(const qk_eigen_t *e, int n, double residual, qk_err_t *err) {
  for (int i = 0; i < n; i++)
    if (!(e->residual[i] <= residual))
      return qk_fail(err, QK_NOT_FOUND,
                     "vector %d has a residual of %.2g, above the %.2g that sign-tol needs: they "
                     "are to be made with a smaller tolerance (quarkctl eigen --tol)",
                     i, e->residual[i], residual);
  return QK_OK;
}

/* The last one is the bound of what is not projected. */
static void describe_kernel(const qk_deflate_kernel_t *v, const qk_eigen_t *e, int n,
                            double seconds) {
  qk_deflate_t *d = v->told;
  const int64_t block =
      (int64_t)qk_field_bytes(e->block[0]->dev->geom, QK_DOUBLE, QK_EIGEN_BLOCK, QK_FULL);
  *d = (qk_deflate_t){.n = n - 1,
                      .lowest = fabs(e->value[0]),
                      .highest = fabs(e->value[n - 1]),
                      .seconds = seconds,
                      .bytes = (n - 1 + QK_EIGEN_BLOCK - 1) / QK_EIGEN_BLOCK * block,
                      .restored = true};
  snprintf(d->origin, sizeof d->origin, "%s", v->load->deflate_from);
}

static qk_status_t read_kernel(void *self, qk_operator_t *op, int n, double residual,
                               qk_eigen_t **eigen, qk_err_t *err) {
  qk_deflate_kernel_t *v = self;
  qk_comm_t *comm = op->dev->geom->comm;
  const qk_mg_identity_t id = kernel_of(v);
  const double start = qk_clock_now();
  qk_eigen_t *e = NULL;
  v->told = qk_calloc(1, sizeof *v->told);
  qk_status_t status = qk_comm_agree(comm, v->told ? QK_OK : QK_NO_MEMORY, err);
  if (status == QK_OK)
    status = qk_deflate_file_read_gamma5(op, v->load->deflate_file, &id, n, &e, err);
  status = status ? status : check_residuals(e, n, residual, err);
  if (status != QK_OK) {
    qk_err_prefix(err, "%s", v->load->deflate_from);
    qk_eigen_destroy(e);
    return status;
  }
  describe_kernel(v, e, n, qk_clock_now() - start);
  if (qk_comm_rank(comm) == 0)
    qk_info("setup", "%d eigenvectors of the kernel are those of %s, after %.3g s", n - 1,
            v->load->deflate_from, v->told->seconds);
  *eigen = e;
  return QK_OK;
}

void qk_deflate_kernel_init(qk_deflate_kernel_t *vectors, const qk_load_t *load,
                            const qk_mg_identity_t *identity) {
  *vectors = (qk_deflate_kernel_t){
      .stored = {.self = vectors, .read = read_kernel}, .load = load, .identity = identity};
}
