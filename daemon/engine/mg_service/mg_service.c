#include "daemon/engine/mg_service/mg_service.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"

/* ---- checkpoint ------------------------------------------------------------------------------ */

typedef struct place {
  char path[QK_FILE_PATH];
  bool taken; /* something stands there */
} place_t;

/* A folder holds one file for each configuration and operator. The same on all ranks. */
static qk_status_t find_place(const qk_mg_service_t *h, place_t *place, qk_err_t *err) {
  const char *given = h->params.checkpoint;
  qk_comm_t *comm = h->op->dev->geom->comm;
  struct stat st;
  qk_status_t status = QK_OK;
  if (given[0] != '\0' && qk_comm_rank(comm) == 0) {
    bool folder = stat(given, &st) == 0 && S_ISDIR(st.st_mode);
    int n = snprintf(place->path, sizeof place->path, "%s", given);
    if (folder)
      n = snprintf(place->path, sizeof place->path, "%s/multigrid-%016llx", given,
                   (unsigned long long)qk_mg_identity_digest(&h->params.identity));
    if (n >= (int)sizeof place->path)
      status = qk_fail(err, QK_BAD_ARGUMENT, "checkpoint: a path of %d bytes: at most %zu", n,
                       sizeof place->path - 1);
    place->taken = stat(place->path, &st) == 0;
  }
  status = qk_comm_agree(comm, status, err);
  return status == QK_OK ? qk_comm_bcast(comm, place, sizeof *place, 0) : status;
}

static void trouble(qk_mg_service_t *h, const char *what, const qk_err_t *err) {
  snprintf(h->trouble, sizeof h->trouble, "%s: %.200s", what, err->text);
  if (qk_comm_rank(h->op->dev->geom->comm) == 0)
    qk_warn("multigrid", "checkpoint %s %s: %s", h->checkpoint, what, err->text);
}

/* What was set up goes to the file, beside the solves. A failure is no failure of the setup. */
static qk_status_t begin_save(qk_mg_service_t *h) {
  qk_err_t err = {0};
  h->written = false;
  if (h->checkpoint[0] == '\0' || h->params.reads_only) return QK_OK;
  qk_status_t status = qk_mg_save_begin(h->mg, h->checkpoint, &h->params.identity, &h->save, &err);
  if (status == QK_OK) return QK_OK;
  trouble(h, "not written", &err);
  return status == QK_DEVICE_ERROR || status == QK_COMM_ERROR ? status : QK_OK;
}

/* Waits for it where `wait`. */
static qk_status_t end_save(qk_mg_service_t *h, bool wait, bool *ended) {
  qk_err_t err = {0};
  *ended = false;
  if (h->save == NULL) return QK_OK;
  qk_status_t status = qk_mg_save_poll(&h->save, wait, ended, &err);
  if (!*ended) return status;
  h->written = status == QK_OK;
  if (status == QK_OK)
    h->trouble[0] = '\0';
  else
    trouble(h, "not written", &err);
  return status == QK_COMM_ERROR ? status : QK_OK;
}

static bool evolves(const qk_mg_service_t *h) {
  return h->params.evolve_from && h->params.evolve_from[0] != '\0';
}

/* Leaves h->mg NULL if no file can be used. */
static qk_status_t restore(qk_mg_service_t *h, qk_progress_fn *progress, void *arg, qk_err_t *err) {
  place_t place = {0};
  qk_err_t why = {0};
  qk_status_t status = find_place(h, &place, err);
  if (status != QK_OK) return status;
  snprintf(h->checkpoint, sizeof h->checkpoint, "%s", place.path);
  if (!place.taken) return QK_OK;
  status = qk_mg_load(h->op, h->work, h->checkpoint, &h->params.identity, &h->params.mg, progress,
                      arg, &h->mg, &why);
  if (status == QK_OK) status = qk_mg_check_restored(h->mg, progress, arg, &why);
  h->written = status == QK_OK;
  if (status == QK_OK) return QK_OK;
  qk_mg_destroy(h->mg);
  h->mg = NULL;
  qk_work_trim(h->work);
  if (status == QK_DEVICE_ERROR || status == QK_COMM_ERROR) {
    *err = why;
    return status;
  }
  /* that of the setup before, which this one evolves from, is no trouble */
  if (status != QK_NOT_FOUND || !evolves(h) || strcmp(h->params.evolve_path, h->checkpoint) != 0)
    trouble(h, "not used", &why);
  return QK_OK;
}

/* Leaves h->mg NULL if there are no such vectors, or they will not do: then a setup from noise
 * follows, and evolve_trouble says why. */
static qk_status_t evolve(qk_mg_service_t *h, qk_progress_fn *progress, void *arg, qk_err_t *err) {
  const qk_mg_service_params_t *p = &h->params;
  qk_err_t why = {0};
  qk_status_t status;
  if (!evolves(h)) return QK_OK;
  if (p->evolve_path[0] == '\0')
    status = qk_fail(&why, QK_NOT_FOUND, "it is not here any more, or has no checkpoint");
  else
    status = qk_mg_load_evolved(h->op, h->work, p->evolve_path, p->evolve_from, &p->mg, progress,
                                arg, &h->mg, &why);
  if (status == QK_OK) return begin_save(h);
  qk_work_trim(h->work);
  if (status == QK_DEVICE_ERROR || status == QK_COMM_ERROR) {
    *err = why;
    return status;
  }
  snprintf(h->evolve_trouble, sizeof h->evolve_trouble, "null vectors of %.64s not used: %.400s",
           p->evolve_from, why.text);
  if (qk_comm_rank(h->op->dev->geom->comm) == 0) qk_warn("multigrid", "%s", h->evolve_trouble);
  return QK_OK;
}

/* ---- hierarchy and cycles -------------------------------------------------------------------- */

static qk_status_t count_bytes(qk_mg_service_t *h) {
  uint64_t bytes = (uint64_t)(qk_mg_bytes(h->mg) + qk_cycle_bytes(h->cycle));
  if (h->single_rhs != NULL) bytes += (uint64_t)qk_cycle_bytes(h->single_rhs);
  qk_status_t status = qk_comm_sum_u64(h->op->dev->geom->comm, &bytes, 1);
  if (status == QK_OK) h->bytes = (int64_t)bytes;
  return status;
}

static qk_status_t make_vectors(qk_mg_service_t *h, qk_err_t *err) {
  qk_status_t status = qk_cycle_vectors_create(h->cycle, h->outer, &h->cycle_vectors);
  if (status == QK_OK && h->single_rhs)
    status = qk_cycle_vectors_create(h->single_rhs, h->outer, &h->single_rhs_vectors);
  return qk_comm_agree(h->op->dev->geom->comm, status, err);
}

static qk_status_t make_cycles(qk_mg_service_t *h, qk_err_t *err) {
  qk_work_trim(h->work);
  qk_status_t status = qk_work_make_room(h->work, h->params.room);
  status = qk_comm_agree(h->op->dev->geom->comm, status, err);
  if (status == QK_OK)
    status = qk_cycle_create(h->mg, h->params.prec, h->params.nslot, &h->cycle, err);
  if (status == QK_OK && h->params.single_rhs)
    status = qk_cycle_create(h->mg, h->params.prec, 1, &h->single_rhs, err);
  if (status != QK_OK) return status;
  status = make_vectors(h, err);
  return status == QK_OK ? count_bytes(h) : status;
}

static void drop_cycles(qk_mg_service_t *h) {
  qk_cycle_vectors_destroy(h->single_rhs_vectors);
  qk_cycle_vectors_destroy(h->cycle_vectors);
  h->cycle_vectors = h->single_rhs_vectors = NULL;
  qk_cycle_destroy(h->single_rhs);
  qk_cycle_destroy(h->cycle);
  h->cycle = h->single_rhs = NULL;
}

static qk_status_t set_up(qk_mg_service_t *h, qk_progress_fn *progress, void *arg, qk_err_t *err) {
  qk_status_t status = qk_mg_create(h->op, h->work, &h->params.mg, progress, arg, &h->mg, err);
  return status == QK_OK ? begin_save(h) : status;
}

static void tell(const qk_mg_service_t *h, const char *how) {
  if (qk_comm_rank(h->op->dev->geom->comm) != 0) return;
  qk_info("multigrid", "%d levels %s in %.2f s, residual x %.2g an iteration, %.1f MiB",
          h->mg->nlevel, how, h->mg->setup_seconds, h->mg->convergence, (double)h->bytes / 1048576);
}

static qk_status_t make_new(qk_mg_service_t *h, qk_progress_fn *progress, void *arg,
                            qk_err_t *err) {
  const qk_status_t status = evolve(h, progress, arg, err);
  return status != QK_OK || h->mg != NULL ? status : set_up(h, progress, arg, err);
}

/* Vectors of a file are orthonormalised again, so they are those that were written but for
 * rounding. An engine that shares its file with others goes on with these, too: then all of them
 * give the same bits, and so does one that is started again. */
static qk_status_t go_on_with_file(qk_mg_service_t *h, qk_progress_fn *progress, void *arg,
                                   qk_err_t *err) {
  bool ended;
  if (!h->params.shared || h->params.reads_only) return QK_OK;
  qk_status_t status = end_save(h, true, &ended);
  if (status != QK_OK || !h->written) return status;
  qk_mg_destroy(h->mg);
  h->mg = NULL;
  qk_work_trim(h->work);
  status = restore(h, progress, arg, err);
  return status == QK_OK && h->mg == NULL ? set_up(h, progress, arg, err) : status;
}

static qk_status_t make(qk_mg_service_t *h, qk_progress_fn *progress, void *arg, qk_err_t *err) {
  qk_status_t status = restore(h, progress, arg, err);
  if (status != QK_OK) return status;
  if (h->mg == NULL) {
    status = make_new(h, progress, arg, err);
    if (status != QK_OK) return status;
    status = go_on_with_file(h, progress, arg, err);
  }
  return status == QK_OK ? make_cycles(h, err) : status;
}

qk_status_t qk_mg_service_create(qk_operator_t *op, qk_work_t *work,
                                 const qk_mg_service_params_t *params, qk_progress_fn *progress,
                                 void *arg, qk_mg_service_t **host, qk_err_t *err) {
  qk_comm_t *comm = op->dev->geom->comm;
  qk_mg_service_t *h = qk_calloc(1, sizeof *h);
  qk_status_t status = QK_OK;
  if (h == NULL) status = qk_fail(err, QK_NO_MEMORY, "no memory for multigrid");
  status = qk_comm_agree(comm, status, err);
  if (status != QK_OK) goto fail;
  h->outer = op;
  h->op = qk_operator_base(op);
  h->work = work;
  h->params = *params;
  h->seed = params->mg.seed;
  status = make(h, progress, arg, err);
  if (status != QK_OK) goto fail;
  tell(h, h->mg->restored ? "restored" : h->mg->origin[0] ? h->mg->origin : "set up");
  *host = h;
  return QK_OK;

fail:
  qk_mg_service_destroy(h);
  return status;
}

void qk_mg_service_destroy(qk_mg_service_t *h) {
  bool ended;
  if (h == NULL) return;
  end_save(h, true, &ended);
  drop_cycles(h);
  qk_mg_destroy(h->mg);
  qk_free(h);
}

void qk_mg_service_abandon(qk_mg_service_t *h) {
  if (h != NULL) qk_mg_save_abandon(&h->save);
}

qk_precond_t qk_mg_service_precond(qk_mg_service_t *h, bool single_rhs) {
  return single_rhs ? qk_cycle_vectors_precond(h->single_rhs, h->single_rhs_vectors)
                    : qk_cycle_vectors_precond(h->cycle, h->cycle_vectors);
}

qk_status_t qk_mg_service_poll(qk_mg_service_t *h, bool *news) {
  return end_save(h, false, news);
}

/* ---- refresh --------------------------------------------------------------------------------- */

static qk_status_t refine(qk_mg_service_t *h, qk_progress_fn *progress, void *arg, qk_err_t *err) {
  qk_status_t status = qk_mg_refine(h->mg, progress, arg, err);
  return status == QK_OK ? qk_mg_check(h->mg, progress, arg, err) : status;
}

/* What another engine has written, in place of what is here; else it is made anew. */
static qk_status_t reload(qk_mg_service_t *h, qk_mg_refresh_t *refresh, qk_progress_fn *progress,
                          void *arg, qk_err_t *err) {
  qk_mg_destroy(h->mg);
  h->mg = NULL;
  const qk_status_t status = restore(h, progress, arg, err);
  if (status == QK_OK && h->mg == NULL) *refresh = QK_MG_REBUILD;
  return status;
}

static bool can_retry(qk_status_t status) {
  return status == QK_BREAKDOWN || status == QK_NOT_CONVERGED || status == QK_DEVICE_MEMORY;
}

qk_status_t qk_mg_service_refresh(qk_mg_service_t *h, qk_mg_order_t order, qk_progress_fn *progress,
                                  void *arg, qk_err_t *err) {
  qk_mg_refresh_t refresh = order.refresh;
  bool ended;
  qk_status_t status = end_save(h, true, &ended);
  if (status != QK_OK) return status;
  if (order.number > 0) h->params.reads_only = !order.writes;
  drop_cycles(h);
  qk_work_trim(h->work);
  if (refresh == QK_MG_REFINE) {
    status = refine(h, progress, arg, err);
    if (status == QK_OK) {
      h->refined++;
      status = begin_save(h);
    } else if (can_retry(status)) {
      qk_warn("multigrid", "not refined: %s", err->text);
      refresh = QK_MG_REBUILD;
      *err = (qk_err_t){0};
    }
  }
  if (refresh == QK_MG_RELOAD) status = reload(h, &refresh, progress, arg, err);
  if (refresh == QK_MG_REBUILD && (status == QK_OK || order.refresh != QK_MG_RELOAD)) {
    qk_mg_destroy(h->mg);
    h->mg = NULL;
    h->params.mg.seed = order.number > 0 ? h->seed + order.number : h->params.mg.seed + 1;
    status = set_up(h, progress, arg, err);
    if (status == QK_OK) h->rebuilt++;
  }
  if (status == QK_OK && refresh != QK_MG_RELOAD) status = go_on_with_file(h, progress, arg, err);
  if (status == QK_OK) status = make_cycles(h, err);
  if (status != QK_OK) return status;
  qk_mg_health_refreshed(&h->health, refresh);
  h->wish = QK_MG_REFRESH_NONE;
  if (order.number > 0) h->refresh = order.number;
  tell(h, refresh == QK_MG_REFINE   ? "refined"
          : refresh == QK_MG_RELOAD ? "restored again"
                                    : "set up again");
  return QK_OK;
}
