#include "daemon/front/job/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/links/clover_term.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/bricks.h"
#include "daemon/front/job/due.h"
#include "proto/control.h"

/* ---- memory -------------------------------------------------------------------------------- */

/* In no list of what is to be saved. */
static void leave_unsaved(qk_rhs_t *rhs) {
  qk_link_remove(&rhs->save);
  if (rhs->unsaved && rhs->job->jobs) rhs->job->jobs->unsaved--;
  rhs->unsaved = false;
}

/* Objects go once the journal says that they are not needed any more. */
static void free_source(qk_rhs_t *rhs) {
  leave_unsaved(rhs);
  qk_marks_release(rhs->job, rhs->source);
  rhs->source = NULL;
  if (rhs->charged_source) qk_budget_refund(rhs->job->budget, (int64_t)rhs->job->field_bytes);
  rhs->charged_source = false;
}

void qk_rhs_unload(qk_rhs_t *rhs) {
  qk_link_remove(&rhs->send);
  if (rhs->kept) qk_due_count_kept(rhs, -1);
  qk_bricks_stop_sending(rhs);
  qk_marks_release(rhs->job, rhs->solution);
  rhs->solution = NULL;
  /* how much of what is on its way still comes nobody will know: it is sent again */
  if (qk_rhs_is_leaving(rhs) && rhs->sent == rhs->span_until) rhs->sent = rhs->span_from;
  qk_transfer_leave(rhs->leaving);
  rhs->leaving = NULL;
  if (rhs->charged_solution) {
    const qk_job_t *job = rhs->job;
    qk_budget_refund(job->budget, (int64_t)job->field_bytes);
    if (job->sink == QUARK__SINK__SINK_KEEP)
      qk_budget_refund(qk_sched_user_kept(job->user), (int64_t)job->field_bytes);
  }
  rhs->charged_solution = false;
  if (rhs->state >= QK_RHS_ENDED) free_source(rhs);
  qk_marks_rhs(rhs);
}

void qk_rhs_unsave(qk_rhs_t *rhs, double now) {
  if (!rhs->unsaved && rhs->job->jobs) rhs->job->jobs->unsaved++;
  rhs->unsaved = true;
  rhs->unsaved_since = now;
}

void qk_rhs_saved(qk_rhs_t *rhs) {
  leave_unsaved(rhs);
  if (rhs->state >= QK_RHS_ENDED) free_source(rhs);
}

void qk_rhs_drop_solution(qk_rhs_t *rhs) {
  if (rhs->job->hooks) rhs->job->hooks->drop_solution(rhs);
  qk_rhs_unload(rhs);
}

static int64_t overhead(const Quark__Submit *submit) {
  return (int64_t)(sizeof(qk_job_t) + submit->nrhs * sizeof(qk_rhs_t) +
                   submit->n_column * sizeof(Quark__Column) +
                   protobuf_c_message_get_packed_size(&submit->base)) +
         qk_bricks_overhead(submit->n_grid, submit->grid);
}

static int64_t overhead_field(const Quark__FieldOpen *open) {
  return (int64_t)(sizeof(qk_job_t) + sizeof(qk_rhs_t) + sizeof *open +
                   2 * protobuf_c_message_get_packed_size(&open->base)) +
         qk_bricks_overhead(open->n_grid, open->grid);
}

static int64_t overhead_part(const Quark__Join *join, const qk_job_t *whole) {
  return (int64_t)(sizeof(qk_job_t) + whole->nrhs * sizeof(qk_rhs_t) +
                   protobuf_c_message_get_packed_size(&join->base));
}

static int64_t overhead_contract(const Quark__Contract *contract) {
  const Quark__Contraction *c = contract->contraction;
  return (int64_t)(sizeof(qk_job_t) + sizeof(qk_rhs_t) + sizeof *c +
                   c->n_channel * (sizeof(Quark__Channel) + sizeof(Quark__Channel *)) +
                   (c->n_momentum + c->n_origin) * sizeof(int32_t) +
                   protobuf_c_message_get_packed_size(&contract->base));
}

uint64_t qk_job_field_bytes(const Quark__Submit *submit, const qk_shape_t *shape) {
  const uint64_t real = submit->dtype == QUARK__DTYPE__DTYPE_F64 ? 8 : 4;
  const uint64_t bytes = qk_shape_sites(shape) * shape->site_reals * real;
  return submit->parity == QUARK__PARITY__PARITY_ALL ? bytes : bytes / 2;
}

/* Complex doubles [channel][momentum][T][numbers of the channel]. */
static uint64_t correlator_bytes(const Quark__Contraction *c, const qk_shape_t *shape) {
  static const uint64_t numbers[] = {[QUARK__CHANNEL_KIND__CHANNEL_MESON] = 1,
                                     [QUARK__CHANNEL_KIND__CHANNEL_NUCLEON] = 4 * 4,
                                     [QUARK__CHANNEL_KIND__CHANNEL_DELTA] = 3 * 3 * 4 * 4};
  uint64_t sum = 0, momenta = c->n_momentum > 0 ? c->n_momentum / 3 : 1;
  for (size_t i = 0; i < c->n_channel; i++) sum += numbers[c->channel[i]->kind];
  return sum * momenta * shape->dims[3] * 2 * sizeof(double);
}

static bool has_solutions(Quark__Sink sink) {
  return sink != QUARK__SINK__SINK_NONE;
}

/* Whether its fields come from outside. */
static bool has_sources(Quark__SourceKind source) {
  return source == QUARK__SOURCE_KIND__SOURCE_UPLOAD || source == QUARK__SOURCE_KIND__SOURCE_FILE;
}

int64_t qk_job_cost(const Quark__Submit *submit, const qk_shape_t *shape) {
  int64_t fields = 0;
  if (has_sources(submit->source)) fields += submit->nrhs;
  if (has_solutions(submit->sink)) fields += submit->nrhs;
  return fields * (int64_t)qk_job_field_bytes(submit, shape) + overhead(submit);
}

int64_t qk_job_cost_contract(const Quark__Contract *contract, const qk_shape_t *shape) {
  return (int64_t)correlator_bytes(contract->contraction, shape) + overhead_contract(contract);
}

qk_shape_t qk_job_field_shape(const Quark__FieldOpen *open) {
  qk_shape_t shape = qk_shape_usual();
  memcpy(shape.dims, open->dims, sizeof shape.dims);
  return shape;
}

static uint64_t links_bytes(const Quark__FieldOpen *open) {
  const qk_shape_t shape = qk_job_field_shape(open);
  const uint64_t real = open->dtype == QUARK__DTYPE__DTYPE_F64 ? 8 : 4;
  const uint64_t reals =
      open->kind == QUARK__FIELD_KIND__FIELD_CLOVER ? QK_CLOVER_TERM_SITE : 4 * open->reals;
  return qk_shape_sites(&shape) * reals * real;
}

int64_t qk_job_cost_field(const Quark__FieldOpen *open) {
  return (int64_t)links_bytes(open) + overhead_field(open);
}

/* ---- creation -------------------------------------------------------------------------------- */

uint64_t qk_job_digest(const ProtobufCMessage *message) {
  size_t bytes;
  uint8_t *packed = qk_control_pack(message, &bytes);
  uint64_t digest = packed ? qk_checksum(packed, bytes) : 0;
  free(packed);
  return digest;
}

static bool copy_message(qk_job_t *job, const ProtobufCMessage *message) {
  job->message = qk_control_pack(message, &job->message_bytes);
  if (job->message) job->digest = qk_checksum(job->message, job->message_bytes);
  return job->message;
}

/* A job with its right-hand sides in their first state, not charged yet; NULL without memory. */
static qk_job_t *allocate(uint32_t nrhs, bool upload, Quark__Sink sink, const qk_terms_t *terms) {
  qk_job_t *job = qk_calloc(1, sizeof *job + nrhs * sizeof(qk_rhs_t));
  if (!job) return NULL;
  qk_link_init(&job->arriving);
  qk_link_init(&job->link);
  qk_link_init(&job->leaving);
  qk_link_init(&job->field_link);
  qk_link_init(&job->entry.marked);
  if (terms->client_id) memcpy(job->client_id, terms->client_id, sizeof job->client_id);
  job->setup = terms->setup;
  job->setup_id = terms->setup_id;
  job->setup_name = terms->setup_name;
  job->shape = *terms->shape;
  job->config = terms->config;
  job->budget = terms->budget;
  job->space = terms->space;
  job->jobs = terms->jobs;
  job->due_at = INFINITY;
  job->hooks = terms->hooks;
  if (job->hooks) job->hooks->begin(job);
  job->spill = terms->spill;
  job->user = terms->user;
  if (job->user) qk_sched_user_share(job->user);
  job->nrhs = nrhs;
  job->sink = sink;
  job->factor = 1;
  job->used_at = terms->now;
  for (uint32_t i = 0; i < nrhs; i++) {
    qk_rhs_t *rhs = &job->rhs[i];
    rhs->job = job;
    rhs->index = i;
    rhs->state = upload ? QK_RHS_UPLOADING : QK_RHS_QUEUED;
    rhs->charged_source = upload;
    rhs->charged_solution = has_solutions(sink);
    qk_sched_item_init(&rhs->queue);
    qk_link_init(&rhs->send);
    qk_link_init(&rhs->save);
  }
  return job;
}

/* The memory of a job alone: nothing of it is charged. */
static void release_memory(qk_job_t *job) {
  for (uint32_t i = 0; i < job->nrhs; i++) qk_spool_abandon(job->rhs[i].spooling);
  if (job->hooks) job->hooks->end(job);
  qk_marks_drop_job(job);
  qk_sched_user_release(job->user);
  while (!qk_link_alone(&job->arriving))
    qk_transfer_leave(QK_HOLDER(job->arriving.next, qk_transfer_t, link));
  if (job->smear) quark__smearing__free_unpacked(job->smear, NULL);
  if (job->contraction) quark__contraction__free_unpacked(job->contraction, NULL);
  if (job->field) quark__field_open__free_unpacked(job->field, NULL);
  qk_bricks_destroy(job->bricks);
  qk_free(job->column);
  free(job->message);
  qk_free(job);
}

static bool copy_source(qk_job_t *job, const Quark__Submit *submit) {
  job->source = submit->source;
  if (submit->smear && submit->smear->steps > 0 &&
      !(job->smear = (Quark__Smearing *)qk_control_copy(&submit->smear->base)))
    return false;
  if (submit->n_column == 0) return true;
  job->column = qk_calloc(submit->n_column, sizeof *job->column);
  if (!job->column) return false;
  for (size_t i = 0; i < submit->n_column; i++) {
    job->column[i] = *submit->column[i];
    job->column[i].base = (ProtobufCMessage)PROTOBUF_C_MESSAGE_INIT(&quark__column__descriptor);
  }
  return true;
}

static double deadline_of(uint64_t deadline_ms, double now) {
  return deadline_ms > 0 ? now + (double)deadline_ms * 1e-3 : 0;
}

/* Of results with M times 2 kappa in place of M. */
static double kappa_factor(const Quark__Submit *submit, double two_kappa) {
  const bool symmetric = submit->schur == QUARK__SCHUR__SCHUR_SYMMETRIC;
  switch (submit->work) {
  case QUARK__WORK__WORK_SOLVE:
    return symmetric ? 1 : 1 / two_kappa;
  case QUARK__WORK__WORK_SCHUR:
    return submit->schur == QUARK__SCHUR__SCHUR_ASYMMETRIC ? two_kappa : 1;
  case QUARK__WORK__WORK_M:
  case QUARK__WORK__WORK_DIAG:
    return two_kappa;
  case QUARK__WORK__WORK_HOP:
  case QUARK__WORK__WORK_SMEAR:
    return 1;
  default:
    return 1 / two_kappa;
  }
}

/* Whether there is room for the job, also in its user's quota. */
static qk_status_t check_room(const qk_terms_t *terms, int64_t cost, int64_t kept, qk_err_t *err) {
  if (terms->again) return QK_OK;
  qk_status_t s = qk_budget_check(terms->budget, cost, err);
  if (s != QK_OK || kept == 0) return s;
  return qk_budget_check(qk_sched_user_kept(terms->user), kept, err);
}

qk_status_t qk_job_create(const Quark__Submit *submit, const qk_terms_t *terms, qk_job_t **out,
                          qk_err_t *err) {
  const bool keep = submit->sink == QUARK__SINK__SINK_KEEP;
  const uint64_t bytes = qk_job_field_bytes(submit, terms->shape);
  const int64_t cost = qk_job_cost(submit, terms->shape), kept = keep ? submit->nrhs * bytes : 0;
  qk_status_t status = check_room(terms, cost, kept, err);
  if (status != QK_OK) return status;
  qk_job_t *job = allocate(submit->nrhs, has_sources(submit->source), submit->sink, terms);
  if (!job || !copy_source(job, submit) || !copy_message(job, &submit->base)) {
    if (job) release_memory(job);
    return qk_fail(err, QK_NO_MEMORY, "no memory for a request of %u right-hand sides",
                   submit->nrhs);
  }
  job->request = submit->request;
  job->detach = (double)submit->detach_ms * 1e-3;
  job->field_bytes = job->part_bytes = bytes;
  job->overhead = overhead(submit);
  job->dtype = submit->dtype;
  job->basis = submit->basis;
  job->work = submit->work;
  job->dagger = submit->dagger;
  job->parity = submit->parity;
  job->schur = submit->schur;
  if (submit->n_grid > 0 &&
      !qk_bricks_create(job, submit->grid, submit->has_part ? &submit->part : NULL)) {
    release_memory(job);
    return qk_fail(err, QK_NO_MEMORY, "no memory for the parts of a request");
  }
  job->tol = qk_job_solves(job) ? submit->tol : 0;
  job->tol_abs = qk_job_solves(job) ? submit->tol_abs : 0;
  job->tol_hq = qk_job_solves(job) ? submit->tol_hq : 0;
  job->single_rhs = submit->single_rhs;
  job->max_iter = submit->max_iter;
  job->flavour = submit->flavour < 0 ? -1 : 1;
  if (submit->normalisation == QUARK__NORMALISATION__NORMALISATION_KAPPA)
    job->factor = kappa_factor(submit, 2 * terms->kappa);
  job->accepted_at = terms->now;
  job->deadline = deadline_of(submit->deadline_ms, terms->now);
  job->priority = (int)submit->priority;
  if (keep) {
    job->keep = submit->keep_ms > 0 ? (double)submit->keep_ms * 1e-3 : terms->keep;
    qk_budget_charge(qk_sched_user_kept(job->user), kept);
  }
  qk_job_raise_credit(job);
  qk_budget_charge(job->budget, cost);
  *out = job;
  return QK_OK;
}

qk_status_t qk_job_create_contract(const Quark__Contract *contract, const qk_terms_t *terms,
                                   qk_job_t **out, qk_err_t *err) {
  const int64_t cost = qk_job_cost_contract(contract, terms->shape);
  qk_status_t status = check_room(terms, cost, 0, err);
  if (status != QK_OK) return status;
  qk_job_t *job = allocate(1, false, QUARK__SINK__SINK_DOWNLOAD, terms);
  if (job) job->contraction = (Quark__Contraction *)qk_control_copy(&contract->contraction->base);
  if (!job || !job->contraction || !copy_message(job, &contract->base)) {
    if (job) release_memory(job);
    return qk_fail(err, QK_NO_MEMORY, "no memory for a contraction");
  }
  job->request = contract->request;
  job->detach = (double)contract->detach_ms * 1e-3;
  job->field_bytes = job->part_bytes = correlator_bytes(contract->contraction, terms->shape);
  job->overhead = overhead_contract(contract);
  job->accepted_at = terms->now;
  job->deadline = deadline_of(contract->deadline_ms, terms->now);
  job->priority = (int)contract->priority;
  qk_budget_charge(job->budget, cost);
  *out = job;
  return QK_OK;
}

qk_status_t qk_job_create_field(const Quark__FieldOpen *open, const qk_terms_t *terms,
                                qk_job_t **out, qk_err_t *err) {
  const int64_t bytes = (int64_t)links_bytes(open), cost = qk_job_cost_field(open);
  qk_status_t status = check_room(terms, cost, bytes, err);
  if (status != QK_OK) return status;
  qk_job_t *job = allocate(1, true, QUARK__SINK__SINK_KEEP, terms);
  if (job) job->field = (Quark__FieldOpen *)qk_control_copy(&open->base);
  if (!job || !job->field || !copy_message(job, &open->base)) {
    if (job) release_memory(job);
    return qk_fail(err, QK_NO_MEMORY, "no memory for a field");
  }
  job->rhs[0].charged_source = false;
  job->request = open->request;
  job->keep = open->keep_ms > 0 ? (double)open->keep_ms * 1e-3 : terms->keep;
  job->detach = job->keep;
  job->field_bytes = job->part_bytes = (uint64_t)bytes;
  job->overhead = overhead_field(open);
  if (open->n_grid > 0 && !qk_bricks_create(job, open->grid, open->has_part ? &open->part : NULL)) {
    release_memory(job);
    return qk_fail(err, QK_NO_MEMORY, "no memory for the parts of a field");
  }
  job->dtype = open->dtype;
  job->tol = 1;
  job->source = QUARK__SOURCE_KIND__SOURCE_UPLOAD;
  job->accepted_at = terms->now;
  qk_budget_charge(qk_sched_user_kept(job->user), bytes);
  qk_job_raise_credit(job);
  qk_budget_charge(job->budget, cost);
  *out = job;
  return QK_OK;
}

qk_status_t qk_job_create_part(const Quark__Join *join, const qk_job_t *whole,
                               const qk_terms_t *terms, qk_job_t **out, qk_err_t *err) {
  const int64_t cost = overhead_part(join, whole);
  const bool none = whole->sink == QUARK__SINK__SINK_NONE;
  qk_status_t status = check_room(terms, cost, 0, err);
  if (status != QK_OK) return status;
  qk_job_t *job = allocate(whole->nrhs, qk_job_is_upload(whole),
                           none ? QUARK__SINK__SINK_NONE : QUARK__SINK__SINK_DOWNLOAD, terms);
  if (!job || !copy_message(job, &join->base)) {
    if (job) release_memory(job);
    return qk_fail(err, QK_NO_MEMORY, "no memory for a part of %u right-hand sides", whole->nrhs);
  }
  for (uint32_t i = 0; i < job->nrhs; i++)
    job->rhs[i].charged_source = job->rhs[i].charged_solution = false;
  job->request = join->request;
  job->joined = true;
  job->part = (int)join->part;
  qk_bricks_find(whole, join->part, &job->brick);
  job->field_bytes = job->part_bytes = job->brick.bytes;
  job->overhead = cost;
  job->dtype = whole->dtype;
  job->tol = whole->tol;
  job->tol_abs = whole->tol_abs;
  job->tol_hq = whole->tol_hq;
  job->work = whole->work;
  job->flavour = 1;
  job->source = whole->source;
  job->accepted_at = terms->now;
  qk_budget_charge(job->budget, cost);
  *out = job;
  return QK_OK;
}

void qk_rhs_use(qk_rhs_t *rhs, int i, qk_rhs_t *kept) {
  QK_ASSERT(!rhs->uses[i] && kept->job != rhs->job);
  rhs->uses[i] = kept;
  qk_job_hold(kept->job);
}

void qk_job_hold(qk_job_t *job) {
  job->holds++;
}

void qk_job_let_go(qk_job_t *job, double now) {
  job->holds--;
  if (now > job->used_at) job->used_at = now;
  qk_due_at(job, job->used_at + job->keep);
  qk_job_settle(job);
}

static void let_go(qk_rhs_t *rhs, double now) {
  for (size_t i = 0; i < sizeof rhs->uses / sizeof rhs->uses[0]; i++) {
    if (!rhs->uses[i]) continue;
    qk_job_t *kept = rhs->uses[i]->job;
    rhs->uses[i] = NULL;
    qk_job_let_go(kept, now);
  }
}

void qk_job_settle(qk_job_t *job) {
  if (job->forgotten && !job->session && qk_link_alone(&job->leaving) && job->running == 0 &&
      job->holds == 0)
    qk_job_destroy(job);
}

void qk_job_destroy(qk_job_t *job) {
  if (!job) return;
  QK_ASSERT(job->running == 0 && job->holds == 0 && qk_link_alone(&job->leaving));
  QK_ASSERT(!job->whole);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    QK_ASSERT(!qk_sched_item_waits(&job->rhs[i].queue));
    let_go(&job->rhs[i], 0);
    free_source(&job->rhs[i]);
    qk_rhs_drop_solution(&job->rhs[i]);
    qk_wall_sums_drop(&job->rhs[i].wall);
  }
  qk_due_never(job);
  qk_link_remove(&job->field_link);
  qk_link_remove(&job->link);
  qk_budget_refund(job->budget, job->overhead);
  release_memory(job);
}

bool qk_job_raise_credit(qk_job_t *job) {
  if (!qk_job_has_stream(job)) return false;
  uint64_t total = job->nrhs * job->part_bytes;
  uint64_t left = total - job->upload_next;
  uint64_t until = job->upload_next + (left < QK_UPLOAD_WINDOW ? left : QK_UPLOAD_WINDOW);
  if (until < job->upload_until + QK_UPLOAD_WINDOW / 4 && until < total) return false;
  if (until == job->upload_until) return false;
  job->upload_until = until;
  return true;
}

/* ---- results ------------------------------------------------------------------------------- */

void qk_rhs_end(qk_rhs_t *rhs, const qk_outcome_t *outcome, double now) {
  QK_ASSERT(rhs->state < QK_RHS_ENDED && !qk_sched_item_waits(&rhs->queue));
  if (rhs->state == QK_RHS_RUNNING) rhs->job->running--;
  rhs->state = QK_RHS_ENDED;
  rhs->outcome = *outcome;
  rhs->ended_at = now;
  rhs->job->ended++;
  rhs->job->used_at = now;
  if (!outcome->written || !rhs->unsaved) free_source(rhs);
  let_go(rhs, now);
  if (!outcome->written) qk_rhs_drop_solution(rhs);
  if (rhs->solution && rhs->job->sink == QUARK__SINK__SINK_KEEP) qk_due_count_kept(rhs, 1);
  qk_due_count_held(rhs->job, 1);
  qk_marks_rhs(rhs);
}

void qk_rhs_keep_field(qk_rhs_t *rhs) {
  QK_ASSERT(rhs->job->field && rhs->state == QK_RHS_QUEUED && rhs->source && !rhs->solution);
  rhs->solution = rhs->source;
  rhs->source = NULL;
}

void qk_rhs_again(qk_rhs_t *rhs) {
  QK_ASSERT(rhs->state == QK_RHS_RUNNING);
  rhs->state = QK_RHS_QUEUED;
  rhs->job->running--;
  rhs->iterations = 0;
  qk_wall_sums_drop(&rhs->wall);
  qk_shm_destroy(rhs->solution); /* its room stays ours */
  rhs->solution = NULL;
}

/* Of an acknowledged one nobody needs the solution, unless it is kept or others fetch parts of
 * it. */
static void drop_acked(qk_rhs_t *rhs) {
  if (rhs->job->sink != QUARK__SINK__SINK_KEEP && rhs->others == 0) qk_rhs_drop_solution(rhs);
}

void qk_rhs_ack(qk_rhs_t *rhs) {
  QK_ASSERT(rhs->state == QK_RHS_ENDED);
  rhs->state = QK_RHS_ACKED;
  rhs->job->acked++;
  qk_wall_sums_drop(&rhs->wall);
  qk_due_count_held(rhs->job, -1);
  if (!rhs->job->field) free_source(rhs); /* that one still goes to the spool */
  qk_marks_rhs(rhs);
  drop_acked(rhs);
  if (rhs->job->whole) qk_rhs_let_go_part(qk_rhs_whole(rhs));
}

void qk_rhs_let_go_part(qk_rhs_t *whole) {
  whole->others--;
  if (whole->state == QK_RHS_ACKED) drop_acked(whole);
}

uint64_t qk_rhs_bytes(const qk_rhs_t *rhs) {
  const qk_rhs_t *whole = qk_rhs_whole(rhs);
  const qk_job_t *job = rhs->job;
  const bool there = rhs->state == QK_RHS_ENDED && rhs->outcome.written && whole &&
                     (whole->solution || whole->spilled);
  const bool fetched = there && job->sink != QUARK__SINK__SINK_FILE && !whole->job->field &&
                       !(job->bricks && job->part < 0);
  return fetched ? job->part_bytes : 0;
}

qk_status_t qk_rhs_grant(qk_rhs_t *rhs, uint64_t until, const uint64_t *from, qk_err_t *err) {
  if (until > rhs->job->part_bytes)
    return qk_fail(err, QK_BAD_ARGUMENT, "until = %llu is beyond the field's %llu bytes",
                   (unsigned long long)until, (unsigned long long)rhs->job->part_bytes);
  if (from && *from > until)
    return qk_fail(err, QK_BAD_ARGUMENT, "from = %llu is over until = %llu",
                   (unsigned long long)*from, (unsigned long long)until);
  rhs->job->granted = true;
  if (rhs->job->whole) qk_rhs_whole(rhs)->asked = true;
  if (from) {
    rhs->sent = *from;
    rhs->granted = until;
  } else if (until > rhs->granted) {
    rhs->granted = until;
  }
  return QK_OK;
}

bool qk_rhs_sendable(const qk_rhs_t *rhs) {
  const qk_rhs_t *whole = qk_rhs_whole(rhs);
  return rhs->sent < rhs->granted && whole && whole->solution && qk_rhs_bytes(rhs) > 0;
}

qk_status_t qk_rhs_send(qk_rhs_t *rhs, uint64_t most, bool by_blocks) {
  if (rhs->leaving && rhs->leaving->by_blocks != by_blocks) { /* now another client asks for it */
    qk_transfer_leave(rhs->leaving);
    rhs->leaving = NULL;
  }
  if (!rhs->leaving && !(rhs->leaving = qk_transfer_create(rhs, by_blocks))) return QK_NO_MEMORY;
  qk_transfer_set_part(rhs->leaving, &rhs->job->brick, NULL);
  qk_transfer_start(rhs->leaving, qk_rhs_whole(rhs)->solution);
  const uint64_t left = rhs->granted - rhs->sent;
  rhs->span_from = rhs->sent;
  rhs->span_until = rhs->sent += left < most ? left : most;
  return QK_OK;
}

qk_rhs_t *qk_rhs_sent(qk_transfer_t *transfer, uint64_t reached) {
  if (!qk_transfer_finish(transfer)) return NULL;
  qk_rhs_t *rhs = transfer->owner;
  if (rhs->sent == rhs->span_until) rhs->sent = reached; /* else a GRANT has moved it meanwhile */
  return rhs;
}
