#include "daemon/engine/multigrid/cycle.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/engine/eigen/deflation.h"
#include "daemon/engine/lattice/peers.h"
#include "daemon/engine/multigrid/cycle_impl.h"
#include "daemon/engine/multigrid/mg_levels.h"

static const qk_device_t *device(const qk_cycle_t *c) {
  return &c->mg->level[0].dev;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Where right-hand sides stand that are not solved yet. */
static qk_status_t create_running(const qk_device_t *dev, int nrhs, qk_cycle_level_t *v) {
  void *running = NULL, *host = NULL;
  qk_status_t status = dev->ops->alloc(dev->ctx, (size_t)nrhs, &running);
  if (status) return status;
  v->running = running;
  status = dev->ops->alloc_host(dev->ctx, (size_t)nrhs, &host);
  v->running_host = host;
  return status;
}

static qk_status_t create_solver(const qk_device_t *dev, int nrhs, qk_cycle_level_t *v) {
  qk_status_t status = v->params->tol > 0 ? create_running(dev, nrhs, v) : QK_OK;
  return status ? status : qk_scalars_init(&v->scalars, dev, QK_CYCLE_SCALARS, nrhs);
}

static qk_status_t create_level(qk_cycle_t *c, int l, qk_err_t *err) {
  qk_cycle_level_t *v = &c->level[l];
  v->params = &c->mg->params.level[l];
  v->mg = &c->mg->level[l];
  v->prec = l == 0 ? v->params->smoother_prec : QK_SINGLE;
  const qk_device_t *dev = &v->mg->dev;
  qk_smoother_params_t smoother = v->params->smoother;
  qk_status_t status = QK_OK;
  if (l > 0) status = qk_comm_agree(device(c)->geom->comm, create_solver(dev, c->nrhs, v), err);
  if (status || l == c->nlevel - 1) return status;
  smoother.exact = l == 0 && !qk_prec_scaled(v->params->smoother_sums);
  status =
      qk_smoother_create(v->mg->op, v->mg->work, &smoother, v->prec, c->nrhs, &v->smoother, err);
  if (!status) qk_smoother_set_polynomial(v->smoother, &v->mg->polynomial);
  return status;
}

static void count(const qk_cycle_t *c, int64_t n[QK_PRECS]) {
  memcpy(n, c->mg->level[0].op->applications, QK_PRECS * sizeof *n);
}

static qk_status_t create_field(const qk_cycle_t *c, qk_field_t **f) {
  return qk_field_create(device(c), c->level[0].prec, c->nrhs, c->mg->level[0].op->system, f);
}

/* Applies the cycle to zero, in one field: this reserves everything for later applications, and
 * counts them. */
static qk_status_t apply_to_zero(qk_cycle_t *c, qk_field_t *zero) {
  const qk_device_t *dev = device(c);
  int64_t before[QK_PRECS], after[QK_PRECS];
  count(c, before);
  qk_cycle_precondition(c, 0, zero, zero, NULL);
  count(c, after);
  for (int p = 0; p < QK_PRECS; p++) {
    c->applications[p] = after[p] - before[p];
    c->mg->level[0].op->applications[p] = before[p];
  }
  qk_dev_sync(dev);
  return qk_dev_status(dev);
}

static qk_status_t reserve(const qk_cycle_t *c, qk_field_t **zero) {
  qk_status_t status = c->mg->deflation ? qk_deflation_prepare(c->mg->deflation, c->nrhs) : QK_OK;
  if (!status && c->mg->deflation_minus)
    status = qk_deflation_prepare(c->mg->deflation_minus, c->nrhs);
  return status ? status : create_field(c, zero);
}

static qk_status_t warm_up_flavour(qk_cycle_t *c, qk_field_t *zero, const uint8_t *minus,
                                   qk_err_t *err) {
  const qk_operator_t *op = c->mg->level[0].op;
  qk_flavours_set(op, minus);
  const qk_status_t status = qk_comm_agree(op->dev->geom->comm, apply_to_zero(c, zero), err);
  qk_flavours_set(op, NULL);
  return status;
}

/* The count of applications that stays is that of flavour +1. */
static qk_status_t warm_up_flavours(qk_cycle_t *c, qk_field_t *zero, const uint8_t *minus,
                                    qk_err_t *err) {
  const qk_status_t status = warm_up_flavour(c, zero, minus, err);
  return status || !c->mg->level[0].op->schur.is ? status : warm_up_flavour(c, zero, NULL, err);
}

/* With all that an application may take: of both flavours, if they are deflated apart or one of
 * them is smoothed in another order. */
static qk_status_t warm_up(qk_cycle_t *c, qk_err_t *err) {
  const qk_device_t *dev = device(c);
  const qk_operator_t *op = c->mg->level[0].op;
  qk_field_t *zero = NULL;
  void *minus = NULL;
  qk_status_t status = reserve(c, &zero);
  if (status == QK_OK && (c->mg->deflation_minus || op->schur.is))
    status = qk_mg_all_minus(dev, c->nrhs, &minus);
  status = qk_comm_agree(dev->geom->comm, status, err);
  const qk_status_t warm = status ? status : warm_up_flavours(c, zero, minus, err);
  if (minus) dev->ops->free(dev->ctx, minus);
  qk_field_destroy(zero);
  return warm;
}

static qk_status_t create_schur(qk_cycle_t *c) {
  const qk_schur_t *schur = &c->mg->level[0].op->schur;
  const qk_device_t *dev = device(c);
  double factor[QK_MAX_RHS][2] = {{0}};
  const size_t bytes = (size_t)c->nrhs * sizeof factor[0];
  void *memory = NULL;
  if (!schur->is) return QK_OK;
  const qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &memory);
  if (status) return status;
  c->schur_factor = memory;
  for (int i = 0; i < c->nrhs; i++) factor[i][0] = 1 / schur->scale;
  qk_dev_copy(dev, memory, factor, bytes, QK_COPY_TO_DEVICE);
  qk_dev_sync(dev);
  return qk_dev_status(dev);
}

/* A cycle in half beside an iteration that is not has its own z. */
static bool is_narrow(const qk_cycle_t *c) {
  return !qk_prec_scaled(c->prec) && qk_prec_scaled(c->level[0].prec);
}

static qk_status_t create(qk_cycle_t *c, qk_err_t *err) {
  c->graphs = !c->mg->params.no_graphs && qk_dev_alone(device(c));
  for (int l = 0; l < c->nlevel; l++) {
    qk_status_t status = create_level(c, l, err);
    if (status) return status;
    if (c->level[l].running) c->graphs = false;
  }
  qk_status_t status = create_schur(c);
  if (!status && is_narrow(c)) status = create_field(c, &c->out);
  status = qk_comm_agree(device(c)->geom->comm, status, err);
  if (status) return status;
  return warm_up(c, err);
}

qk_status_t qk_cycle_create(qk_mg_t *mg, qk_prec_t prec, int nrhs, qk_cycle_t **cycle,
                            qk_err_t *err) {
  const qk_device_t *dev = &mg->level[0].dev;
  if (nrhs < 1 || nrhs > QK_MAX_RHS)
    return qk_fail(err, QK_BAD_ARGUMENT, "cycle for %d right-hand sides: 1 .. %d", nrhs,
                   QK_MAX_RHS);
  qk_cycle_t *c = qk_calloc(1, sizeof *c);
  if (!c) return qk_fail(err, QK_NO_MEMORY, "no memory for a cycle");
  c->mg = mg;
  c->prec = prec;
  c->nrhs = nrhs;
  c->nlevel = mg->nlevel;
  int64_t before = dev->ops->allocated(dev->ctx);
  qk_status_t status = create(c, err);
  c->bytes = dev->ops->allocated(dev->ctx) - before;
  if (!status) {
    *cycle = c;
    return QK_OK;
  }
  qk_cycle_destroy(c);
  return qk_fail(err, status, "cycle for %d right-hand sides: %s", nrhs, qk_status_text(status));
}

void qk_cycle_destroy(qk_cycle_t *c) {
  if (!c) return;
  const qk_device_t *dev = device(c);
  for (int i = 0; i < QK_CYCLE_RECORDINGS; i++)
    dev->ops->graph_destroy(dev->ctx, c->recording[i].graph);
  if (c->schur_factor) dev->ops->free(dev->ctx, c->schur_factor);
  qk_field_destroy(c->out);
  qk_field_destroy(c->in);
  for (int l = c->nlevel - 1; l >= 0; l--) {
    qk_cycle_level_t *v = &c->level[l];
    qk_smoother_destroy(v->smoother);
    qk_scalars_fini(&v->scalars);
    if (v->running_host) dev->ops->free_host(dev->ctx, v->running_host);
    if (v->running) dev->ops->free(dev->ctx, v->running);
  }
  qk_free(c);
}

int64_t qk_cycle_bytes(const qk_cycle_t *c) {
  return c->bytes;
}

qk_status_t qk_cycle_learn(qk_cycle_t *c, qk_learning_t *to) {
  return qk_smoother_learn(c->level[0].smoother, to);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Takes the time when the device is idle. */
static double wait_and_look(qk_cycle_t *c) {
  const qk_device_t *dev = device(c);
  qk_dev_sync(dev);
  return qk_clock_now();
}

void qk_cycle_enter(qk_cycle_t *c, int l) {
  if (!c->timed) return;
  double now = wait_and_look(c);
  c->seconds[c->now] += now - c->since;
  c->since = now;
  c->now = l;
}

static void start_clock(qk_cycle_t *c) {
  c->since = wait_and_look(c);
  c->now = 0;
}

void qk_cycle_time(qk_cycle_t *c, bool on, double seconds[QK_MG_LEVELS_MAX]) {
  if (seconds) memcpy(seconds, c->seconds, sizeof c->seconds);
  memset(c->seconds, 0, sizeof c->seconds);
  c->timed = on;
}

/* ---- application ----------------------------------------------------------------------------- */

/* Work fields are those of the recording only where nobody else holds any. */
static bool idle(const qk_cycle_t *c) {
  for (int l = 0; l < c->nlevel; l++)
    if (!qk_work_idle(c->level[l].mg->work) || !qk_work_idle(c->level[l].mg->op->work))
      return false;
  return true;
}

/* *graph stays NULL on a backend that has none. */
static qk_status_t record(qk_cycle_t *c, qk_field_t *out, const qk_field_t *in,
                          qk_graph_t **graph) {
  const qk_device_t *dev = device(c);
  qk_status_t status = dev->ops->graph_begin(dev->ctx);
  if (status == QK_UNSUPPORTED) {
    c->graphs = false;
    return QK_OK;
  }
  if (status) return status;
  int64_t before[QK_PRECS];
  count(c, before);
  qk_cycle_precondition(c, 0, out, in, NULL);
  status = qk_dev_status(dev);
  memcpy(c->mg->level[0].op->applications, before, sizeof before);
  qk_status_t ended = dev->ops->graph_end(dev->ctx, graph);
  if (!status) return ended;
  if (!ended) dev->ops->graph_destroy(dev->ctx, *graph);
  *graph = NULL;
  return status;
}

/* The recording between these fields, made where there is none. NULL: there is none. Fields of the
 * cycle's own are the same in all. */
static qk_graph_t *graph_of(qk_cycle_t *c, qk_field_t *out, const qk_field_t *in) {
  const void *to = c->wide ? c->wide->v.data : out->v.data;
  const qk_device_t *dev = device(c);
  const uint8_t *minus = c->mg->level[0].op->flavours->minus;
  for (int i = 0; i < QK_CYCLE_RECORDINGS; i++) {
    const qk_recording_t *r = &c->recording[i];
    if (r->graph && r->in == in->v.data && r->out == to && r->minus == minus) return r->graph;
  }
  qk_recording_t *r = &c->recording[c->nrecording++ % QK_CYCLE_RECORDINGS];
  dev->ops->graph_destroy(dev->ctx, r->graph);
  *r = (qk_recording_t){.in = in->v.data, .out = to, .minus = minus};
  if (qk_dev_ok(dev)) qk_dev_note(dev, record(c, out, in, &r->graph));
  return r->graph;
}

static void run(qk_cycle_t *c, qk_field_t *out, const qk_field_t *in) {
  const qk_device_t *dev = device(c);
  const bool idle_now = c->graphs && !c->timed && idle(c);
  qk_graph_t *graph = idle_now && c->warm && qk_dev_ok(dev) ? graph_of(c, out, in) : NULL;
  if (!graph) {
    c->warm = c->warm || idle_now;
    qk_cycle_precondition(c, 0, out, in, NULL);
    return;
  }
  for (int p = 0; p < QK_PRECS; p++) c->mg->level[0].op->applications[p] += c->applications[p];
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->graph_launch(dev->ctx, graph));
}

/* A field of the cycle's own, from its first use on. */
static qk_field_t own(const qk_cycle_t *c, qk_field_t **f) {
  static const qk_field_t none;
  if (!*f && qk_dev_ok(device(c))) qk_dev_note(device(c), create_field(c, f));
  return *f ? **f : none;
}

/* r in the smoother's precision: r itself, in `room`, or in a field of the cycle's own. */
static qk_field_t input(qk_cycle_t *c, const qk_field_t *z, const qk_field_t *r, qk_field_t *room) {
  const qk_device_t *dev = device(c);
  const qk_prec_t prec = c->level[0].prec;
  if (r->v.prec == prec && z->v.data != r->v.data) return *r;
  const bool fits = room && room->bytes >= qk_field_bytes(dev->geom, prec, c->nrhs, r->v.subset);
  const qk_field_t in =
      fits ? qk_field_at(dev, prec, c->nrhs, r->v.subset, room->v.data) : own(c, &c->in);
  qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {in.v, r->v}});
  return in;
}

/* The last smoothing can leave z in single. */
static bool ends_wide(const qk_cycle_t *c) {
  const qk_cycle_level_t *v = &c->level[0];
  return is_narrow(c) && !v->mg->op->schur.is && qk_smoother_widens(v->smoother, v->params->post);
}

qk_status_t qk_cycle_apply(void *cycle, qk_field_t *z, const qk_field_t *r, qk_field_t *room,
                           const uint8_t *mask) {
  qk_cycle_t *c = cycle;
  const qk_device_t *dev = device(c);
  (void)mask; /* right-hand sides do not know each other, and none costs less than all */
  if (c->timed) start_clock(c);
  const qk_field_t in = input(c, z, r, room);
  qk_field_t out = z->v.prec == c->level[0].prec ? *z : own(c, &c->out);
  const bool wide = z->v.data != out.v.data && ends_wide(c);
  c->wide = wide ? z : NULL;
  if (qk_dev_ok(dev)) run(c, &out, &in);
  c->wide = NULL;
  if (z->v.data != out.v.data && !wide)
    qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {z->v, out.v}});
  qk_cycle_enter(c, 0);
  return qk_dev_status(dev);
}

qk_precond_t qk_cycle_precond(qk_cycle_t *c) {
  int64_t n = 0;
  for (int p = 0; p < QK_PRECS; p++) n += c->applications[p];
  return (qk_precond_t){
      .apply = qk_cycle_apply, .self = c, .narrow = is_narrow(c), .applications = n};
}
