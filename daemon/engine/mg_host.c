#include "daemon/engine/mg_host.h"

#include "daemon/base/log.h"
#include "daemon/base/mem.h"

/* ---- hierarchy and cycle ----------------------------------------------------------------------------- */

static qk_status_t count_bytes(qk_mg_host_t *h) {
  uint64_t bytes = (uint64_t)(qk_mg_bytes(h->mg) + qk_cycle_bytes(h->cycle));
  qk_status_t status = qk_comm_sum_u64(h->op->dev->geom->comm, &bytes, 1);
  if (status == QK_OK) h->bytes = (int64_t)bytes;
  return status;
}

static qk_status_t make_cycle(qk_mg_host_t *h, qk_err_t *err) {
  qk_work_trim(h->work);
  qk_status_t status = qk_cycle_create(h->mg, h->params.prec, h->params.nslot, &h->cycle, err);
  return status == QK_OK ? count_bytes(h) : status;
}

static qk_status_t set_up(qk_mg_host_t *h, qk_progress_fn *progress, void *arg, qk_err_t *err) {
  return qk_mg_create(h->op, h->work, &h->params.mg, progress, arg, &h->mg, err);
}

static void tell(const qk_mg_host_t *h, const char *how) {
  if (qk_comm_rank(h->op->dev->geom->comm) != 0) return;
  qk_info("multigrid", "%d levels %s in %.2f s, residual x %.2g an iteration, %.1f MiB",
          h->mg->nlevel, how, h->mg->setup_seconds, h->mg->convergence, (double)h->bytes / 1048576);
}

qk_status_t qk_mg_host_create(qk_operator_t *op, qk_work_t *work, const qk_mg_host_params_t *params,
                              qk_progress_fn *progress, void *arg, qk_mg_host_t **host,
                              qk_err_t *err) {
  qk_comm_t *comm = op->dev->geom->comm;
  qk_mg_host_t *h = qk_calloc(1, sizeof *h);
  qk_status_t status = QK_OK;
  if (h == NULL) status = qk_fail(err, QK_NO_MEMORY, "no memory for multigrid");
  status = qk_comm_agree(comm, status, err);
  if (status != QK_OK) goto fail;
  h->op = op;
  h->work = work;
  h->params = *params;
  status = set_up(h, progress, arg, err);
  if (status == QK_OK) status = make_cycle(h, err);
  if (status != QK_OK) goto fail;
  tell(h, "set up");
  *host = h;
  return QK_OK;

fail:
  qk_mg_host_destroy(h);
  return status;
}

void qk_mg_host_destroy(qk_mg_host_t *h) {
  if (h == NULL) return;
  qk_cycle_destroy(h->cycle);
  qk_mg_destroy(h->mg);
  qk_free(h);
}

qk_precond_t qk_mg_host_precond(qk_mg_host_t *h) {
  return qk_cycle_precond(h->cycle);
}

/* ---- mending ----------------------------------------------------------------------------------------- */

static bool mendable(qk_status_t status) {
  return status == QK_BREAKDOWN || status == QK_NOT_CONVERGED || status == QK_DEVICE_MEMORY;
}

qk_status_t qk_mg_host_mend(qk_mg_host_t *h, qk_mg_remedy_t remedy, qk_progress_fn *progress,
                            void *arg, qk_err_t *err) {
  qk_status_t status = QK_OK;
  qk_cycle_destroy(h->cycle);
  h->cycle = NULL;
  qk_work_trim(h->work);
  if (remedy == QK_MG_REFINE) {
    status = qk_mg_refine(h->mg, err);
    if (status == QK_OK) status = qk_mg_check(h->mg, err);
    if (status == QK_OK) {
      h->refined++;
    } else if (mendable(status)) {
      qk_warn("multigrid", "not refined: %s", err->text);
      remedy = QK_MG_REBUILD;
      *err = (qk_err_t){0};
    }
  }
  if (remedy == QK_MG_REBUILD) {
    qk_mg_destroy(h->mg);
    h->mg = NULL;
    h->params.mg.seed++;
    status = set_up(h, progress, arg, err);
    if (status == QK_OK) h->rebuilt++;
  }
  if (status == QK_OK) status = make_cycle(h, err);
  if (status != QK_OK) return status;
  qk_mg_watch_mended(&h->watch, remedy);
  tell(h, remedy == QK_MG_REFINE ? "refined" : "set up again");
  return QK_OK;
}
