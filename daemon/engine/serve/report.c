#include "daemon/engine/serve/report.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/shape.h"

/* An envelope around one body: BODY_<NAME> and the member <name> of the generated union. */
#define ENVELOPE(NAME, name, pointer)                                                              \
  ((Quark__Engine__EngineMessage){                                                                 \
      .base = PROTOBUF_C_MESSAGE_INIT(&quark__engine__engine_message__descriptor),                 \
      .body_case = QUARK__ENGINE__ENGINE_MESSAGE__BODY_##NAME,                                     \
      .name = (pointer)})

static qk_status_t send_if(qk_channel_t *channel, const Quark__Engine__EngineMessage *message) {
  return channel == NULL ? QK_OK : qk_channel_send(channel, message);
}

qk_status_t qk_report_hello(qk_channel_t *channel, int ranks, const uint64_t *nonce, bool loaded) {
  Quark__Engine__EngineHello body = QUARK__ENGINE__ENGINE_HELLO__INIT;
  body.version = QK_PROTOCOL_VERSION;
  body.pid = (uint64_t)getpid();
  body.ranks = (uint32_t)ranks;
  body.has_nonce = nonce != NULL;
  body.nonce = nonce != NULL ? *nonce : 0;
  body.has_loaded = body.loaded = loaded;
  return send_if(channel, &ENVELOPE(HELLO, hello, &body));
}

qk_status_t qk_report_load_progress(qk_channel_t *channel, const char *phase, int64_t done,
                                    int64_t total) {
  Quark__Engine__LoadProgress body = QUARK__ENGINE__LOAD_PROGRESS__INIT;
  body.phase = (char *)phase;
  body.done = (uint64_t)done;
  body.total = (uint64_t)total;
  return send_if(channel, &ENVELOPE(LOAD_PROGRESS, load_progress, &body));
}

/* ---- multigrid, memory ----------------------------------------------------------------------- */

/* A report and all that it points at. */
typedef struct mg_report {
  Quark__MultigridReport report;
  Quark__MultigridLevel level[QK_MG_LEVELS_MAX], *levels[QK_MG_LEVELS_MAX];
  uint32_t dims[QK_MG_LEVELS_MAX][4], block[QK_MG_LEVELS_MAX][4];
} mg_report_t;

static void set_figure(double x, protobuf_c_boolean *has, double *to) {
  *has = x != 0; /* 0: not measured */
  *to = x;
}

static void fill_level(const qk_mg_t *mg, int l, mg_report_t *r) {
  const qk_mg_level_params_t *p = &mg->params.level[l];
  const qk_mg_level_health_t *health = &mg->level[l].health;
  Quark__MultigridLevel *to = &r->level[l];
  *to = (Quark__MultigridLevel)QUARK__MULTIGRID_LEVEL__INIT;
  for (int mu = 0; mu < 4; mu++) {
    r->dims[l][mu] = (uint32_t)mg->level[l].geom.global[mu];
    r->block[l][mu] = (uint32_t)p->block[mu];
  }
  to->n_dims = 4;
  to->dims = r->dims[l];
  to->seconds = mg->level[l].setup_seconds;
  to->has_iterations = l > 0;
  to->iterations = (uint32_t)p->iterations;
  if (l == mg->nlevel - 1) return;
  to->n_block = 4;
  to->block = r->block[l];
  to->has_vectors = to->has_pre = to->has_post = true;
  to->vectors = (uint32_t)p->nvec;
  const bool not_learned =
      p->smoother.kind == QK_SMOOTHER_POLYNOMIAL && mg->level[l].polynomial.n == 0;
  to->smoother = (char *)qk_smoother_name(not_learned ? QK_SMOOTHER_CAGCR : p->smoother.kind);
  to->pre = p->pre > 0 ? (uint32_t)p->pre : 0;
  to->post = p->post > 0 ? (uint32_t)p->post : 0;
  set_figure(health->orthonormality, &to->has_orthonormality, &to->orthonormality);
  set_figure(health->galerkin, &to->has_galerkin, &to->galerkin);
  set_figure(health->representation, &to->has_representation, &to->representation);
  if (!mg->restored) /* a checkpoint has the vectors made orthonormal, which hides what they were */
    set_figure(health->null_residual, &to->has_null_residual, &to->null_residual);
}

static void fill_multigrid(const qk_mg_service_t *host, mg_report_t *r) {
  const qk_mg_t *mg = host->mg;
  Quark__MultigridReport *to = &r->report;
  *to = (Quark__MultigridReport)QUARK__MULTIGRID_REPORT__INIT;
  for (int l = 0; l < mg->nlevel; l++) {
    fill_level(mg, l, r);
    r->levels[l] = &r->level[l];
  }
  to->n_level = (size_t)mg->nlevel;
  to->level = r->levels;
  to->seconds = mg->setup_seconds;
  to->restored = mg->restored;
  to->attempts = (uint32_t)mg->attempts;
  set_figure(mg->convergence, &to->has_convergence, &to->convergence);
  to->bytes = (uint64_t)host->bytes;
  to->refined = (uint32_t)host->refined;
  to->rebuilt = (uint32_t)host->rebuilt;
  if (host->checkpoint[0] != '\0') to->checkpoint = (char *)host->checkpoint;
  to->has_checkpoint_written = true;
  to->checkpoint_written = host->written;
  to->has_checkpoint_writing = true;
  to->checkpoint_writing = host->save != NULL;
  if (host->trouble[0] != '\0') to->checkpoint_trouble = (char *)host->trouble;
  if (mg->origin[0] != '\0') to->origin = (char *)mg->origin;
  if (host->evolve_trouble[0] != '\0') to->origin_trouble = (char *)host->evolve_trouble;
  to->has_iterations_per_digit = host->health.in_lately >= QK_MG_HEALTH_SPAN;
  to->iterations_per_digit = host->health.lately;
  to->has_iterations_per_digit_first = host->health.in_first >= QK_MG_HEALTH_SPAN;
  to->iterations_per_digit_first = host->health.first;
}

qk_status_t qk_report_multigrid(qk_channel_t *channel, const qk_mg_service_t *mg) {
  Quark__Engine__MultigridNews body = QUARK__ENGINE__MULTIGRID_NEWS__INIT;
  mg_report_t report;
  fill_multigrid(mg, &report);
  body.multigrid = &report.report;
  body.has_wish = mg->wish != QK_MG_REFRESH_NONE;
  body.wish = (uint32_t)mg->wish;
  body.has_refresh = mg->refresh > 0;
  body.refresh = mg->refresh;
  return send_if(channel, &ENVELOPE(MULTIGRID, multigrid, &body));
}

typedef struct memory_report {
  Quark__MemoryReport report;
  Quark__MemoryShare share[QK_PLAN_SHARES], *shares[QK_PLAN_SHARES];
} memory_report_t;

static void fill_memory(const qk_loaded_t *setup, memory_report_t *r) {
  const qk_plan_t *plan = &setup->plan;
  Quark__MemoryReport *to = &r->report;
  *to = (Quark__MemoryReport)QUARK__MEMORY_REPORT__INIT;
  for (int i = 0; i < QK_PLAN_SHARES; i++) {
    if (plan->share[i] == 0) continue;
    Quark__MemoryShare *share = &r->share[to->n_share];
    *share = (Quark__MemoryShare)QUARK__MEMORY_SHARE__INIT;
    share->name = (char *)qk_plan_name((qk_plan_share_t)i);
    share->bytes = (uint64_t)plan->share[i];
    r->shares[to->n_share++] = share;
  }
  to->share = r->shares;
  to->serving = (uint64_t)plan->serving;
  to->setup = (uint64_t)plan->setup;
  to->free = (uint64_t)setup->memory_free;
}

static void fill_deflation(const qk_loaded_t *setup, Quark__DeflationReport *to) {
  const qk_deflate_t *d = setup->deflate;
  *to = (Quark__DeflationReport)QUARK__DEFLATION_REPORT__INIT;
  to->vectors = (uint32_t)d->n;
  to->lowest = d->lowest;
  to->highest = d->highest;
  to->seconds = d->seconds;
  to->restored = d->restored;
  if (d->origin[0]) to->origin = (char *)d->origin;
  if (d->trouble[0]) to->trouble = (char *)d->trouble;
  to->bytes = (uint64_t)d->bytes * (uint64_t)qk_comm_size(setup->geom.comm);
}

static void fill_sign(const qk_sign_health_t *h, Quark__SignReport *to) {
  *to = (Quark__SignReport)QUARK__SIGN_REPORT__INIT;
  to->vectors = (uint32_t)h->vectors;
  to->lowest = h->lowest;
  to->bound = h->bound;
  to->fractions = h->fractions;
  to->order = (uint32_t)h->order;
  to->square = h->square;
  to->ginsparg_wilson = 0.5 * h->square;
}

typedef struct clock_report {
  Quark__StartClock clock[QK_CLOCKS_MAX], *clocks[QK_CLOCKS_MAX];
} clock_report_t;

static void fill_clocks(const qk_clocks_t *clocks, clock_report_t *r) {
  for (int i = 0; i < clocks->n; i++) {
    const qk_clock_t *c = &clocks->clock[i];
    r->clock[i] = (Quark__StartClock)QUARK__START_CLOCK__INIT;
    r->clock[i].phase = (char *)c->name;
    r->clock[i].seconds = c->seconds;
    r->clock[i].has_beside = true;
    r->clock[i].beside = c->beside;
    r->clocks[i] = &r->clock[i];
  }
}

/* ---- messages -------------------------------------------------------------------------------- */

qk_status_t qk_report_ready(qk_channel_t *channel, const qk_loaded_t *setup, double seconds) {
  Quark__Engine__Ready body = QUARK__ENGINE__READY__INIT;
  const qk_shape_t shape = qk_shape_of(setup->action);
  uint32_t grid[4], dims[4];
  mg_report_t mg;
  memory_report_t memory;
  clock_report_t clocks;
  fill_clocks(&setup->clocks, &clocks);
  body.n_clock = (size_t)setup->clocks.n;
  body.clock = clocks.clocks;
  fill_memory(setup, &memory);
  body.memory = &memory.report;
  if (setup->mg != NULL) {
    fill_multigrid(setup->mg, &mg);
    body.multigrid = &mg.report;
    body.has_refresh = setup->mg->refresh > 0;
    body.refresh = setup->mg->refresh;
  }
  if (setup->device.bus[0] != '\0') body.bus = (char *)setup->device.bus;
  for (int mu = 0; mu < 4; mu++) {
    grid[mu] = (uint32_t)setup->geom.grid[mu];
    dims[mu] = (uint32_t)setup->geom.global[mu];
  }
  Quark__DeflationReport deflation;
  if (setup->deflate != NULL) {
    fill_deflation(setup, &deflation);
    body.deflation = &deflation;
  }
  Quark__SignReport sign;
  if (setup->op->sign != NULL) {
    fill_sign(setup->op->sign, &sign);
    body.sign = &sign;
  }
  body.backend = (char *)setup->ops->name;
  body.device = (char *)setup->device.name;
  body.ranks = (uint32_t)qk_comm_size(setup->geom.comm);
  body.n_grid = body.n_dims = 4;
  body.grid = grid;
  body.grid_why = setup->grid_why[0] != '\0' ? (char *)setup->grid_why : NULL;
  body.dims = dims;
  body.format = (char *)setup->info.format;
  body.plaquette = setup->check.plaquette;
  body.digest = setup->check.digest;
  body.unitarity = setup->check.unitarity;
  body.slots = (uint32_t)setup->nslot;
  body.has_site_reals = body.has_columns = !qk_shape_is_usual(&shape);
  body.site_reals = shape.site_reals;
  body.columns = shape.columns;
  body.has_inflight = true;
  body.inflight = (uint32_t)qk_loaded_inflight(setup);
  body.device_bytes = (uint64_t)setup->device_bytes;
  body.host_bytes = (uint64_t)setup->host_bytes;
  body.seconds = seconds;
  body.solver = (char *)qk_choice_word(&qk_choice_solvers, setup->method);
  body.has_link_reals = true;
  body.link_reals = (uint32_t)setup->link_reals;
  body.has_fingerprint = true;
  body.fingerprint = setup->fingerprint;
  return send_if(channel, &ENVELOPE(READY, ready, &body));
}

qk_status_t qk_report_load_failed(qk_channel_t *channel, const qk_err_t *err) {
  Quark__Engine__LoadFailed body = QUARK__ENGINE__LOAD_FAILED__INIT;
  body.status = err->code;
  body.text = (char *)err->text;
  return send_if(channel, &ENVELOPE(LOAD_FAILED, load_failed, &body));
}

qk_status_t qk_report_fill_progress(qk_channel_t *channel, int entry, uint64_t serial,
                                    const qk_slot_t *state) {
  Quark__Engine__FillProgress body = QUARK__ENGINE__FILL_PROGRESS__INIT;
  body.entry = (uint32_t)entry;
  body.serial = serial;
  body.iterations = (uint64_t)state->iterations;
  body.residual = state->residual;
  return send_if(channel, &ENVELOPE(FILL_PROGRESS, fill_progress, &body));
}

/* A full /dev/shm ends one piece of work; NO_MEMORY of our own would end the process. */
static qk_status_t as_told(qk_status_t status) {
  return status == QK_BUSY ? QK_NO_MEMORY : status;
}

/* Sums `which` where they are numbers. */
static void tell_walls(const qk_result_t *result, qk_wall_sum_t which, double **at, size_t *n) {
  const double *sum = result->walls + (ptrdiff_t)which * result->times;
  for (int t = 0; t < result->times; t++)
    if (!isfinite(sum[t])) return;
  *at = (double *)sum;
  *n = (size_t)result->times;
}

qk_status_t qk_report_fill_done(qk_channel_t *channel, const qk_result_t *result) {
  Quark__Engine__FillDone body = QUARK__ENGINE__FILL_DONE__INIT;
  body.entry = (uint32_t)result->entry;
  body.serial = result->serial;
  body.status = as_told(result->err.code);
  body.text = result->err.text[0] != '\0' ? (char *)result->err.text : NULL;
  body.true_residual = result->true_residual;
  body.iterations = (uint64_t)result->iterations;
  body.applications = (uint64_t)result->applications;
  body.seconds = result->seconds;
  body.written = result->written;
  body.has_norm_b = body.has_norm_x = true;
  body.norm_b = result->norm_b;
  body.norm_x = result->norm_x;
  body.has_hq_residual = !isnan(result->hq_residual);
  body.hq_residual = result->hq_residual;
  Quark__WallSums walls = QUARK__WALL_SUMS__INIT;
  if (result->walls != NULL) {
    tell_walls(result, QK_WALL_QUARK, &walls.quark, &walls.n_quark);
    tell_walls(result, QK_WALL_MIDPOINT, &walls.midpoint, &walls.n_midpoint);
    tell_walls(result, QK_WALL_AXIAL, &walls.axial, &walls.n_axial);
    if (walls.n_quark > 0) body.wall = &walls;
  }
  return send_if(channel, &ENVELOPE(FILL_DONE, fill_done, &body));
}

qk_status_t qk_report_fill_refused(qk_channel_t *channel, uint32_t entry, uint64_t serial,
                                   const qk_err_t *err) {
  Quark__Engine__FillDone body = QUARK__ENGINE__FILL_DONE__INIT;
  body.entry = entry;
  body.serial = serial;
  body.status = err->code;
  body.text = (char *)err->text;
  return send_if(channel, &ENVELOPE(FILL_DONE, fill_done, &body));
}

qk_status_t qk_report_contracted(qk_channel_t *channel, uint64_t serial, const qk_err_t *err,
                                 double seconds) {
  Quark__Engine__Contracted body = QUARK__ENGINE__CONTRACTED__INIT;
  body.serial = serial;
  body.status = as_told(err->code);
  body.text = err->text[0] != '\0' ? (char *)err->text : NULL;
  body.seconds = seconds;
  return send_if(channel, &ENVELOPE(CONTRACTED, contracted, &body));
}

qk_status_t qk_report_eigen_refused(qk_channel_t *channel, uint64_t serial, const qk_err_t *err) {
  Quark__Engine__EigenDone body = QUARK__ENGINE__EIGEN_DONE__INIT;
  body.serial = serial;
  body.status = as_told(err->code);
  body.text = (char *)err->text;
  return send_if(channel, &ENVELOPE(EIGEN_DONE, eigen_done, &body));
}

qk_status_t qk_report_eigen_progress(qk_channel_t *channel, const qk_eigens_progress_t *progress) {
  Quark__Engine__EigenProgress body = QUARK__ENGINE__EIGEN_PROGRESS__INIT;
  body.serial = progress->serial;
  body.restart = (uint32_t)progress->restart;
  body.converged = (uint32_t)progress->converged;
  body.seconds = progress->seconds;
  return send_if(channel, &ENVELOPE(EIGEN_PROGRESS, eigen_progress, &body));
}

qk_status_t qk_report_eigen_done(qk_channel_t *channel, const qk_eigens_done_t *done) {
  Quark__Engine__EigenDone body = QUARK__ENGINE__EIGEN_DONE__INIT;
  const bool good = done->verdict.code == QK_OK;
  body.serial = done->serial;
  body.status = as_told(done->verdict.code);
  body.text = done->verdict.text[0] != '\0' ? (char *)done->verdict.text : NULL;
  body.seconds = done->seconds;
  body.has_lowest = body.has_highest = body.has_residual = good;
  body.lowest = done->lowest;
  body.highest = done->highest;
  body.residual = done->residual;
  body.has_restarts = body.has_applications = good;
  body.restarts = (uint32_t)done->restarts;
  body.applications = (uint64_t)done->applications;
  body.has_device_bytes = body.has_host_bytes = good;
  body.host_bytes = (uint64_t)done->host_bytes;
  body.has_zero_plus = body.has_zero_minus = good && done->zero.known;
  body.zero_plus = (uint32_t)done->zero.plus;
  body.zero_minus = (uint32_t)done->zero.minus;
  body.unwritten = good && done->unwritten[0] ? (char *)done->unwritten : NULL;
  return send_if(channel, &ENVELOPE(EIGEN_DONE, eigen_done, &body));
}

qk_status_t qk_report_heartbeat(qk_channel_t *channel, uint64_t steps, int64_t device_bytes,
                                int64_t host_bytes) {
  Quark__Engine__Heartbeat body = QUARK__ENGINE__HEARTBEAT__INIT;
  body.steps = steps;
  body.has_device_bytes = body.has_host_bytes = true;
  body.device_bytes = (uint64_t)device_bytes;
  body.host_bytes = (uint64_t)host_bytes;
  return send_if(channel, &ENVELOPE(HEARTBEAT, heartbeat, &body));
}

qk_status_t qk_report_fatal(qk_channel_t *channel, const qk_err_t *err) {
  Quark__Engine__Fatal body = QUARK__ENGINE__FATAL__INIT;
  body.status = err->code;
  body.text = (char *)err->text;
  return send_if(channel, &ENVELOPE(FATAL, fatal, &body));
}
