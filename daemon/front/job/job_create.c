/* job_create.c: what a request costs, and how its job is made. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/links/clover_term.h"
#include "daemon/base/links/vectors.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/bricks.h"
#include "daemon/front/job/due.h"
#include "daemon/front/job/job_impl.h"
#include "daemon/front/job/masses.h"
#include "proto/control.h"
#include "proto/eigen_check.h"

static int64_t overhead(const Quark__Submit *submit) {
  return (int64_t)(sizeof(qk_job_t) + submit->nrhs * sizeof(qk_rhs_t) +
                   (submit->n_column > 0 ? submit->nrhs : 0) * sizeof(Quark__Column) +
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

static int64_t overhead_eigen(const Quark__Eigen *eigen) {
  return (int64_t)(sizeof(qk_job_t) + sizeof(qk_rhs_t) +
                   3 * protobuf_c_message_get_packed_size(&eigen->base) + sizeof *eigen->problem);
}

qk_shape_t qk_job_shape(const Quark__Submit *submit, const qk_shape_t *setup, int slices) {
  qk_shape_t shape = *setup;
  if (submit->five_d && slices > 1) shape.site_reals *= (uint32_t)slices;
  return shape;
}

uint64_t qk_job_field_bytes(const Quark__Submit *submit, const qk_shape_t *shape) {
  const uint64_t real = submit->dtype == QUARK__DTYPE__DTYPE_F64 ? 8 : 4;
  if (submit->sink == QUARK__SINK__SINK_PROJECT)
    return qk_projection_bytes(submit->project_count, submit->dtype, shape);
  const uint64_t bytes = qk_shape_sites(shape) * shape->site_reals * real;
  return submit->parity == QUARK__PARITY__PARITY_ALL ? bytes : bytes / 2;
}

/* Complex doubles [channel][momentum][T][numbers of the channel]. */
static uint64_t correlator_bytes(const Quark__Contraction *c, const qk_shape_t *shape) {
  static const uint64_t numbers[] = {[QUARK__CHANNEL_KIND__CHANNEL_MESON] = 1,
                                     [QUARK__CHANNEL_KIND__CHANNEL_NUCLEON] = 4 * 4,
                                     [QUARK__CHANNEL_KIND__CHANNEL_DELTA] = 3 * 3 * 4 * 4,
                                     [QUARK__CHANNEL_KIND__CHANNEL_CORNER] = 1};
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

int64_t qk_job_cost_eigen(const Quark__Eigen *eigen, const qk_shape_t *shape) {
  return overhead_eigen(eigen) + (int64_t)qk_eigen_bytes(eigen->problem, shape);
}

int64_t qk_job_cost_contract(const Quark__Contract *contract, const qk_shape_t *shape) {
  return (int64_t)correlator_bytes(contract->contraction, shape) + overhead_contract(contract);
}

qk_shape_t qk_job_field_shape(const Quark__FieldOpen *open) {
  qk_shape_t shape = qk_shape_usual();
  memcpy(shape.dims, open->dims, sizeof shape.dims);
  return shape;
}

uint64_t qk_job_field_site_reals(const Quark__FieldOpen *open) {
  switch (open->kind) {
  case QUARK__FIELD_KIND__FIELD_CLOVER:
    return QK_CLOVER_TERM_SITE;
  case QUARK__FIELD_KIND__FIELD_VECTORS:
    return (uint64_t)open->count * QK_VECTORS_SITE;
  default:
    return 4 * (uint64_t)open->reals;
  }
}

static uint64_t links_bytes(const Quark__FieldOpen *open) {
  const qk_shape_t shape = qk_job_field_shape(open);
  const uint64_t real = open->dtype == QUARK__DTYPE__DTYPE_F64 ? 8 : 4;
  return qk_shape_sites(&shape) * qk_job_field_site_reals(open) * real;
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
  job->nrhs = job->nsource = nrhs;
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

void qk_job_release_memory(qk_job_t *job) {
  for (uint32_t i = 0; i < job->nrhs; i++) qk_spool_abandon(job->rhs[i].spooling);
  if (job->hooks) job->hooks->end(job);
  qk_marks_drop_job(job);
  qk_sched_user_release(job->user);
  while (!qk_link_alone(&job->arriving))
    qk_transfer_leave(QK_HOLDER(job->arriving.next, qk_transfer_t, link));
  if (job->smear) quark__smearing__free_unpacked(job->smear, NULL);
  if (job->contraction) quark__contraction__free_unpacked(job->contraction, NULL);
  if (job->problem) quark__eigen_problem__free_unpacked(job->problem, NULL);
  if (job->field) quark__field_open__free_unpacked(job->field, NULL);
  qk_bricks_destroy(job->bricks);
  qk_free(job->column);
  free(job->message);
  qk_free(job);
}

static bool copy_source(qk_job_t *job, const Quark__Submit *submit) {
  job->source = submit->source;
  if (submit->vectors) snprintf(job->vectors, sizeof job->vectors, "%s", submit->vectors);
  if (submit->project) snprintf(job->project, sizeof job->project, "%s", submit->project);
  job->project_count = submit->project_count;
  if (submit->smear && (submit->smear->steps > 0 || submit->smear->shift > 0) &&
      !(job->smear = (Quark__Smearing *)qk_control_copy(&submit->smear->base)))
    return false;
  if (submit->n_column == 0) return true;
  job->column = qk_calloc(submit->nrhs, sizeof *job->column);
  if (!job->column) return false;
  for (size_t i = 0; i < submit->nrhs; i++) { /* of each mass the same ones */
    job->column[i] = *submit->column[i % submit->n_column];
    job->column[i].base = (ProtobufCMessage)PROTOBUF_C_MESSAGE_INIT(&quark__column__descriptor);
  }
  return true;
}

static double deadline_of(uint64_t deadline_ms, double now) {
  return deadline_ms > 0 ? now + (double)deadline_ms * 1e-3 : 0;
}

/* Of results with M times 2 kappa in place of M. */
static double factor_of(const Quark__Submit *submit, double two_kappa) {
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
  const qk_shape_t shape = qk_job_shape(submit, terms->shape, terms->slices);
  const uint64_t bytes = qk_job_field_bytes(submit, &shape);
  const int64_t cost = qk_job_cost(submit, &shape), kept = keep ? submit->nrhs * bytes : 0;
  qk_status_t status = check_room(terms, cost, kept, err);
  if (status != QK_OK) return status;
  /* what is projected goes as solutions go that are downloaded */
  const bool project = submit->sink == QUARK__SINK__SINK_PROJECT;
  qk_job_t *job = allocate(submit->nrhs, has_sources(submit->source),
                           project ? QUARK__SINK__SINK_DOWNLOAD : submit->sink, terms);
  if (!job || !copy_source(job, submit) || !copy_message(job, &submit->base)) {
    if (job) qk_job_release_memory(job);
    return qk_fail(err, QK_NO_MEMORY, "no memory for a request of %u right-hand sides",
                   submit->nrhs);
  }
  job->request = submit->request;
  job->nsource = qk_masses_sources(submit);
  job->nmass = (uint32_t)submit->n_masses;
  for (uint32_t k = 0; k < job->nmass; k++) job->mass[k] = submit->masses[k];
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
    qk_job_release_memory(job);
    return qk_fail(err, QK_NO_MEMORY, "no memory for the parts of a request");
  }
  job->tol = qk_job_solves(job) ? submit->tol : 0;
  job->tol_abs = qk_job_solves(job) ? submit->tol_abs : 0;
  job->tol_hq = qk_job_solves(job) ? submit->tol_hq : 0;
  job->single_rhs = submit->single_rhs;
  job->max_iter = submit->max_iter;
  job->flavour = submit->flavour < 0 ? -1 : 1;
  job->five_d = submit->five_d;
  if (submit->normalisation == QUARK__NORMALISATION__NORMALISATION_KAPPA)
    job->factor = factor_of(submit, 2 * terms->kappa);
  if (submit->normalisation == QUARK__NORMALISATION__NORMALISATION_TWICE)
    job->factor = factor_of(submit, 2);
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

/* What an engine makes beside right-hand sides: of one message or the other. */
typedef struct beside {
  const Quark__Contraction *contraction;
  const Quark__EigenProblem *problem;
  const ProtobufCMessage *message;
  uint64_t request, deadline_ms, detach_ms, bytes;
  uint32_t priority;
  int64_t overhead;
} beside_t;

static bool copy_beside(qk_job_t *job, const beside_t *b) {
  if (b->problem)
    job->problem = (Quark__EigenProblem *)qk_control_copy(&b->problem->base);
  else
    job->contraction = (Quark__Contraction *)qk_control_copy(&b->contraction->base);
  return (job->problem || job->contraction) && copy_message(job, b->message);
}

static qk_status_t create_beside(const beside_t *b, const qk_terms_t *terms, qk_job_t **out,
                                 qk_err_t *err) {
  const int64_t cost = b->overhead + (int64_t)b->bytes;
  const qk_status_t status = check_room(terms, cost, 0, err);
  if (status != QK_OK) return status;
  qk_job_t *job = allocate(1, false, QUARK__SINK__SINK_DOWNLOAD, terms);
  if (!job || !copy_beside(job, b)) {
    if (job) qk_job_release_memory(job);
    return qk_fail(err, QK_NO_MEMORY, "no memory for a contraction, or eigenvectors");
  }
  job->request = b->request;
  job->detach = (double)b->detach_ms * 1e-3;
  job->field_bytes = job->part_bytes = b->bytes;
  job->overhead = b->overhead;
  job->accepted_at = terms->now;
  job->deadline = deadline_of(b->deadline_ms, terms->now);
  job->priority = (int)b->priority;
  qk_budget_charge(job->budget, cost);
  *out = job;
  return QK_OK;
}

qk_status_t qk_job_create_contract(const Quark__Contract *c, const qk_terms_t *terms,
                                   qk_job_t **out, qk_err_t *err) {
  const beside_t b = {c->contraction,
                      NULL,
                      &c->base,
                      c->request,
                      c->deadline_ms,
                      c->detach_ms,
                      correlator_bytes(c->contraction, terms->shape),
                      c->priority,
                      overhead_contract(c)};
  return create_beside(&b, terms, out, err);
}

qk_status_t qk_job_create_eigen(const Quark__Eigen *e, const qk_terms_t *terms, qk_job_t **out,
                                qk_err_t *err) {
  const uint64_t bytes = qk_eigen_bytes(e->problem, terms->shape);
  const beside_t b = {NULL,         e->problem, &e->base,    e->request,       e->deadline_ms,
                      e->detach_ms, bytes,      e->priority, overhead_eigen(e)};
  const qk_status_t status = create_beside(&b, terms, out, err);
  if (status == QK_OK) (*out)->recalls = e->kept;
  return status;
}

qk_status_t qk_job_create_field(const Quark__FieldOpen *open, const qk_terms_t *terms,
                                qk_job_t **out, qk_err_t *err) {
  const int64_t bytes = (int64_t)links_bytes(open), cost = qk_job_cost_field(open);
  qk_status_t status = check_room(terms, cost, bytes, err);
  if (status != QK_OK) return status;
  qk_job_t *job = allocate(1, true, QUARK__SINK__SINK_KEEP, terms);
  if (job) job->field = (Quark__FieldOpen *)qk_control_copy(&open->base);
  if (!job || !job->field || !copy_message(job, &open->base)) {
    if (job) qk_job_release_memory(job);
    return qk_fail(err, QK_NO_MEMORY, "no memory for a field");
  }
  job->rhs[0].charged_source = false;
  job->request = open->request;
  job->keep = open->keep_ms > 0 ? (double)open->keep_ms * 1e-3 : terms->keep;
  job->detach = job->keep;
  job->field_bytes = job->part_bytes = (uint64_t)bytes;
  job->overhead = overhead_field(open);
  if (open->n_grid > 0 && !qk_bricks_create(job, open->grid, open->has_part ? &open->part : NULL)) {
    qk_job_release_memory(job);
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
    if (job) qk_job_release_memory(job);
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
