#include "client/libquark/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/libquark/ask.h"
#include "client/libquark/setups.h"
#include "proto/counters.h"

#define COPY(to, from) snprintf((to), sizeof(to), "%s", (from) ? (from) : "")

#define NUMBER(m, name) ((m)->has_##name ? (m)->name : NAN)

static void copy_four(uint32_t to[4], size_t n, const uint32_t *from) {
  for (size_t mu = 0; mu < 4; mu++) to[mu] = mu < n ? from[mu] : 0;
}

static void read_level(quark_mg_level_t *level, const Quark__MultigridLevel *m) {
  copy_four(level->dims, m->n_dims, m->dims);
  copy_four(level->block, m->n_block, m->block);
  COPY(level->smoother, m->smoother);
  level->vectors = m->vectors;
  level->pre = m->pre;
  level->post = m->post;
  level->iterations = m->iterations;
  level->orthonormality = NUMBER(m, orthonormality);
  level->galerkin = NUMBER(m, galerkin);
  level->representation = NUMBER(m, representation);
  level->null_residual = NUMBER(m, null_residual);
  level->seconds = m->seconds;
}

static void read_multigrid(quark_mg_report_t *mg, const Quark__MultigridReport *m) {
  mg->levels = (uint32_t)(m->n_level < QUARK_MG_LEVELS ? m->n_level : QUARK_MG_LEVELS);
  for (uint32_t l = 0; l < mg->levels; l++) read_level(&mg->level[l], m->level[l]);
  mg->seconds = m->seconds;
  mg->restored = m->restored;
  mg->attempts = m->attempts;
  mg->refined = m->refined;
  mg->rebuilt = m->rebuilt;
  mg->convergence = NUMBER(m, convergence);
  mg->bytes = m->bytes;
  COPY(mg->checkpoint, m->checkpoint);
  COPY(mg->checkpoint_trouble, m->checkpoint_trouble);
  mg->checkpoint_written = m->checkpoint_written;
  mg->iterations_per_digit = NUMBER(m, iterations_per_digit);
  mg->iterations_per_digit_first = NUMBER(m, iterations_per_digit_first);
  COPY(mg->origin, m->origin);
  COPY(mg->origin_trouble, m->origin_trouble);
}

static void read_memory(quark_memory_plan_t *plan, const Quark__MemoryReport *m) {
  plan->shares = (uint32_t)(m->n_share < QUARK_MEMORY_SHARES ? m->n_share : QUARK_MEMORY_SHARES);
  for (uint32_t i = 0; i < plan->shares; i++) {
    COPY(plan->share[i].name, m->share[i]->name);
    plan->share[i].bytes = m->share[i]->bytes;
  }
  plan->serving = m->serving;
  plan->setup = m->setup;
  plan->free = m->free;
}

static void read_start(quark_report_t *report, const Quark__SetupReport *m) {
  uint32_t n = 0;
  for (; n < m->n_clock && n < QUARK_START_PARTS; n++) {
    COPY(report->setup.start[n].phase, m->clock[n]->phase);
    report->setup.start[n].seconds = m->clock[n]->seconds;
    report->setup.start[n].beside = m->clock[n]->beside;
  }
  report->setup.start_parts = n;
}

static void read_sign(quark_sign_t *s, const Quark__SignReport *m) {
  *s = (quark_sign_t){0};
  if (!m) return;
  s->vectors = m->vectors;
  s->lowest = m->lowest;
  s->bound = m->bound;
  s->fractions = m->fractions;
  s->order = m->order;
  s->square = m->square;
  s->ginsparg_wilson = m->ginsparg_wilson;
}

static void read_setup(quark_report_t *report, const Quark__SetupReport *m) {
  COPY(report->setup.name, m->name);
  COPY(report->setup.gauge, m->gauge);
  COPY(report->setup.format, m->format);
  COPY(report->setup.solver, m->solver);
  COPY(report->setup.precision, m->precision);
  report->setup.mass = m->mass;
  report->setup.kappa = m->kappa;
  report->setup.csw = m->csw;
  for (size_t i = 0; i < 8; i++)
    report->setup.boundary[i] = i < m->n_boundary ? m->boundary[i] : NAN;
  copy_four(report->setup.dims, m->n_dims, m->dims);
  report->setup.link_reals = m->link_reals;
  report->setup.plaquette = NUMBER(m, plaquette);
  report->setup.unitarity = NUMBER(m, unitarity);
  report->setup.load_seconds = NUMBER(m, load_seconds);
  report->setup.digest = m->digest;
  read_start(report, m);
  COPY(report->setup.action, m->action);
  quark__parameters_read(m->parameter, m->n_parameter, report->setup.parameters);
  report->setup.site_reals = m->has_site_reals ? m->site_reals : QK_SITE_REALS;
  report->setup.columns = m->has_columns ? m->columns : QK_PROPAGATOR_COLUMNS;
  report->setup.checksum_ignored = m->checksum_ignored;
  report->setup.deflate = m->deflate;
  COPY(report->setup.deflate_from, m->deflate_from);
  COPY(report->setup.fix_gauge, m->fix_gauge);
  quark__deflation_read(&report->setup.deflation, m->deflation);
  read_sign(&report->setup.sign, m->sign);
  if (m->multigrid) read_multigrid(&report->setup.mg, m->multigrid);
}

static void read_engine(quark_report_t *report, const Quark__EngineReport *m) {
  COPY(report->engine.backend, m->backend);
  COPY(report->engine.device, m->device);
  COPY(report->engine.last_error, m->last_error);
  COPY(report->engine.grid_why, m->grid_why);
  report->engine.pid = m->pid;
  report->engine.ranks = m->ranks;
  copy_four(report->engine.grid, m->n_grid, m->grid);
  report->engine.restarts = m->restarts;
  report->engine.slots = m->slots;
  report->engine.slots_busy = m->slots_busy;
  report->engine.device_bytes = m->device_bytes;
  report->engine.host_bytes = m->host_bytes;
  if (m->memory) read_memory(&report->engine.memory, m->memory);
}

static void read_replicas(quark_report_t *report, const Quark__EngineReport *m) {
  uint32_t n = 0;
  for (; n < m->n_replica && n < QUARK_REPLICAS; n++) {
    const Quark__ReplicaReport *from = m->replica[n];
    quark_replica_t *to = &report->replica[n];
    to->state = (quark_state_t)from->state;
    COPY(to->phase, from->phase);
    COPY(to->device, from->device);
    COPY(to->last_error, from->last_error);
    to->pid = from->pid;
    to->solved = from->solved;
    to->slots = from->slots;
    to->slots_busy = from->slots_busy;
    to->restarts = from->restarts;
    to->refreshes = from->refreshes;
  }
  report->replicas = n;
}

static void read_report(quark_report_t *report, const Quark__StatusReport *m) {
  memset(report, 0, sizeof *report);
  report->state = (quark_state_t)m->state;
  COPY(report->version, m->version);
  report->pid = m->pid;
  report->uptime = m->uptime;
  report->walltime_left = m->has_walltime_left ? m->walltime_left : NAN;
  COPY(report->phase, m->phase);
  report->phase_done = m->done;
  report->phase_total = m->total;
  report->memory_used = m->memory_used;
  COPY(report->trouble, m->trouble);
  report->memory_limit = m->memory_limit;
  COPY(report->memory_by, m->memory_by);
  report->eigen_used = m->eigen_used;
  report->eigen_limit = m->eigen_limit;
  read_setup(report, m->setup);
  read_engine(report, m->engine);
  read_replicas(report, m->engine);
  const Quark__OccupancyReport *o = m->occupancy;
  report->occupancy.saturated = o ? o->saturated : NAN;
  report->occupancy.solving = o ? o->solving : NAN;
  report->occupancy.moving = o ? o->moving : NAN;
  report->occupancy.idle = o ? o->idle : NAN;
  COPY(report->set_aside, m->set_aside);
  const Quark__CounterReport *c = m->counters;
#define READ(name) report->counters.name = c->name;
  QK_COUNTERS(READ)
#undef READ
}

static void read_slot(quark_slot_t *slot, const Quark__SlotReport *m) {
  slot->contraction = !m->has_slot;
  COPY(slot->setup, m->setup);
  slot->slot = m->slot;
  COPY(slot->job, m->job);
  COPY(slot->user, m->user);
  slot->rhs = m->rhs;
  slot->iterations = m->iterations;
  slot->residual = m->residual;
  slot->tol = m->tol;
  slot->seconds = m->seconds;
  slot->flavour = m->has_flavour ? m->flavour : 0;
  slot->work = m->has_work ? (quark_work_t)m->work : QUARK_WORK_SOLVE;
}

static void read_user(quark_user_t *user, const Quark__UserReport *m) {
  COPY(user->name, m->name);
  user->queued = m->queued;
  user->running = m->running;
  user->work = m->work;
  user->memory = m->memory;
}

static void read_activity(quark_activity_t *activity, const Quark__ActivityReport *m) {
  memset(activity, 0, sizeof *activity);
  activity->slots = (uint32_t)(m->n_slot < QUARK_SLOTS ? m->n_slot : QUARK_SLOTS);
  activity->users = (uint32_t)(m->n_user < QUARK_USERS ? m->n_user : QUARK_USERS);
  activity->users_left_out = m->users_left_out + (uint32_t)(m->n_user - activity->users);
  for (uint32_t i = 0; i < activity->slots; i++) read_slot(&activity->slot[i], m->slot[i]);
  for (uint32_t i = 0; i < activity->users; i++) read_user(&activity->user[i], m->user[i]);
}

void quark__report_read_locked(quark_connection_t *conn, const Quark__StatusReport *m) {
  answers_t *answers = conn->answers;
  read_report(&answers->report, m);
  answers->reports++;
  if (!m->activity) return;
  read_activity(&answers->activity, m->activity);
  answers->activities++;
}

/* activity may be NULL: the report has none. */
static quark_code_t ask_status(quark_connection_t *conn, quark_report_t *report,
                               quark_activity_t *activity, quark_error_t *err) {
  const answers_t *answers = conn->answers;
  Quark__StatusRequest request = QUARK__STATUS_REQUEST__INIT;
  request.has_activity = request.activity = activity != NULL;
  request.setup = conn->setup;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_STATUS;
  message.status = &request;
  pthread_mutex_lock(&conn->lock);
  const quark_code_t code = quark__ask_locked(
      conn, &message, activity ? &answers->activities : &answers->reports, "STATUS", err);
  if (code == QUARK_OK) *report = answers->report;
  if (code == QUARK_OK && activity) *activity = answers->activity;
  pthread_mutex_unlock(&conn->lock);
  return code;
}

quark_code_t quark_status(quark_connection_t *conn, quark_report_t *report, quark_error_t *err) {
  return ask_status(conn, report, NULL, err);
}

quark_code_t quark_activity(quark_connection_t *conn, quark_report_t *report,
                            quark_activity_t *activity, quark_error_t *err) {
  return ask_status(conn, report, activity, err);
}

quark_code_t quark_shutdown(quark_connection_t *conn, bool now, quark_error_t *err) {
  const answers_t *answers = conn->answers;
  Quark__Shutdown request = QUARK__SHUTDOWN__INIT;
  request.has_now = true;
  request.now = now;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_SHUTDOWN;
  message.shutdown = &request;
  pthread_mutex_lock(&conn->lock);
  const uint64_t before = answers->shutdowns;
  quark_code_t code = quark__ask_locked(conn, &message, &answers->shutdowns, "SHUTDOWN", err);
  if (answers->shutdowns != before)
    code = QUARK_OK; /* the session may have ended right after the answer */
  pthread_mutex_unlock(&conn->lock);
  return code;
}
