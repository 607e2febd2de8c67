#include "daemon/front/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "proto/control.h"

/* ---- memory -------------------------------------------------------------------------------- */

static void refund(qk_budget_t *budget, uint64_t bytes) {
  budget->used -= (int64_t)bytes;
  QK_ASSERT(budget->used >= 0);
}

static void free_source(qk_rhs_t *rhs) {
  qk_shm_destroy(rhs->source);
  rhs->source = NULL;
  if (rhs->charged_source) refund(rhs->job->budget, rhs->job->field_bytes);
  rhs->charged_source = false;
}

void qk_rhs_drop_solution(qk_rhs_t *rhs) {
  qk_link_remove(&rhs->send);
  qk_shm_destroy(rhs->solution);
  rhs->solution = NULL;
  qk_field_hash_destroy(rhs->hash);
  rhs->hash = NULL;
  if (rhs->charged_solution) refund(rhs->job->budget, rhs->job->field_bytes);
  rhs->charged_solution = false;
}

static int64_t overhead(const Quark__Submit *submit) {
  return (int64_t)(sizeof(qk_job_t) + submit->nrhs * sizeof(qk_rhs_t) +
                   submit->n_column * sizeof(Quark__Column));
}

static uint64_t field_bytes(const Quark__Submit *submit, const uint32_t dims[4]) {
  uint64_t sites = 1;
  for (int mu = 0; mu < 4; mu++) sites *= dims[mu];
  return sites * 24 * (submit->dtype == QUARK__DTYPE__DTYPE_F64 ? 8 : 4);
}

int64_t qk_job_cost(const Quark__Submit *submit, const uint32_t dims[4]) {
  int64_t fields = 0;
  if (submit->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD) fields += submit->nrhs;
  if (submit->sink == QUARK__SINK__SINK_DOWNLOAD) fields += submit->nrhs;
  return fields * (int64_t)field_bytes(submit, dims) + overhead(submit);
}

/* ---- SUBMIT -------------------------------------------------------------------------------- */

static qk_status_t check_column(const Quark__Submit *submit, uint32_t i, const uint32_t dims[4],
                                qk_err_t *err) {
  const Quark__Column *c = submit->column[i];
  bool noise = submit->source == QUARK__SOURCE_KIND__SOURCE_Z2 ||
               submit->source == QUARK__SOURCE_KIND__SOURCE_Z4;
  const int64_t at[4] = {c->x, c->y, c->z, c->t};
  for (int mu = 0; mu < 4; mu++) {
    int64_t least = mu == 3 && noise ? -1 : 0;
    if (at[mu] < least || at[mu] >= (int64_t)dims[mu])
      return qk_fail(err, QK_BAD_ARGUMENT, "column %u: %c = %lld is outside %lld .. %u", i,
                     "xyzt"[mu], (long long)at[mu], (long long)least, dims[mu] - 1);
  }
  int least = noise ? -1 : 0;
  if (c->spin < least || c->spin > 3)
    return qk_fail(err, QK_BAD_ARGUMENT, "column %u: spin = %d is outside %d .. 3", i, c->spin,
                   least);
  if (c->colour < least || c->colour > 2)
    return qk_fail(err, QK_BAD_ARGUMENT, "column %u: colour = %d is outside %d .. 2", i, c->colour,
                   least);
  return QK_OK;
}

static qk_status_t check_enums(const Quark__Submit *s, qk_err_t *err) {
  if (s->dtype != QUARK__DTYPE__DTYPE_F32 && s->dtype != QUARK__DTYPE__DTYPE_F64)
    return qk_fail(err, QK_BAD_ARGUMENT, "dtype = %d: 1 (f32) and 2 (f64) are known", s->dtype);
  if ((int)s->basis < 0 || s->basis > QUARK__BASIS__BASIS_OPENQCD)
    return qk_fail(err, QK_BAD_ARGUMENT, "basis = %d is outside 0 .. 3", s->basis);
  if ((int)s->normalisation < 0 || s->normalisation > QUARK__NORMALISATION__NORMALISATION_KAPPA)
    return qk_fail(err, QK_BAD_ARGUMENT, "normalisation = %d is outside 0 .. 1", s->normalisation);
  if ((int)s->source < 0 || s->source > QUARK__SOURCE_KIND__SOURCE_Z4)
    return qk_fail(err, QK_BAD_ARGUMENT, "source = %d is outside 0 .. 4", s->source);
  if (s->sink != QUARK__SINK__SINK_DOWNLOAD && s->sink != QUARK__SINK__SINK_NONE)
    return qk_fail(err, QK_BAD_ARGUMENT, "sink = %d: 1 (download) and 2 (none) are known", s->sink);
  return QK_OK;
}

qk_status_t qk_job_check(const Quark__Submit *s, const uint32_t dims[4], qk_err_t *err) {
  if (s->request == 0) return qk_fail(err, QK_BAD_ARGUMENT, "request = 0: numbers begin at 1");
  if (s->setup && strcmp(s->setup, "default") != 0)
    return qk_fail(err, QK_NOT_FOUND, "setup \"%.64s\": only \"default\" is there", s->setup);
  if (s->nrhs == 0) return qk_fail(err, QK_BAD_ARGUMENT, "nrhs = 0: at least 1 is needed");
  if (s->nrhs > QK_REQUEST_RHS_MAX)
    return qk_fail(err, QK_TOO_LARGE, "nrhs = %u is over the limit of %d", s->nrhs,
                   QK_REQUEST_RHS_MAX);
  qk_status_t status = check_enums(s, err);
  if (status != QK_OK) return status;
  if (!(s->tol > 0 && s->tol < 1))
    return qk_fail(err, QK_BAD_ARGUMENT, "tol = %g is not between 0 and 1", s->tol);
  if (s->max_iter == 0 || s->max_iter > QK_ITERATIONS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "max_iter = %llu is outside 1 .. %llu",
                   (unsigned long long)s->max_iter, QK_ITERATIONS_MAX);
  if (s->deadline_ms > QK_DEADLINE_MS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "deadline_ms = %llu is over the limit of %llu",
                   (unsigned long long)s->deadline_ms, QK_DEADLINE_MS_MAX);
  size_t columns = s->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD ? 0 : s->nrhs;
  if (s->n_column != columns)
    return qk_fail(err, QK_BAD_ARGUMENT, "%zu columns where this source needs %zu", s->n_column,
                   columns);
  for (uint32_t i = 0; i < columns && status == QK_OK; i++) status = check_column(s, i, dims, err);
  return status;
}

uint64_t qk_job_digest(const Quark__Submit *submit) {
  size_t bytes;
  uint8_t *packed = qk_control_pack(&submit->base, &bytes);
  uint64_t digest = packed ? qk_checksum(packed, bytes) : 0;
  free(packed);
  return digest;
}

static void init_rhs(qk_job_t *job) {
  bool upload = job->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    qk_rhs_t *rhs = &job->rhs[i];
    rhs->job = job;
    rhs->index = i;
    rhs->state = upload ? QK_RHS_UPLOADING : QK_RHS_QUEUED;
    rhs->charged_source = upload;
    rhs->charged_solution = job->sink == QUARK__SINK__SINK_DOWNLOAD;
    qk_link_init(&rhs->queue);
    qk_link_init(&rhs->send);
  }
}

qk_status_t qk_job_create(const Quark__Submit *submit, const uint32_t dims[4], double kappa,
                          double now, qk_budget_t *budget, qk_job_t **out, qk_err_t *err) {
  int64_t cost = qk_job_cost(submit, dims);
  if (cost > budget->limit)
    return qk_fail(err, QK_TOO_LARGE, "request of %lld bytes: the limit is %lld", (long long)cost,
                   (long long)budget->limit);
  if (cost > budget->limit - budget->used)
    return qk_fail(err, QK_BUSY, "request of %lld bytes: %lld of %lld are free now",
                   (long long)cost, (long long)(budget->limit - budget->used),
                   (long long)budget->limit);
  qk_job_t *job = qk_calloc(1, sizeof *job + submit->nrhs * sizeof(qk_rhs_t));
  if (!job) goto no_memory;
  if (submit->n_column > 0 && !(job->column = qk_calloc(submit->n_column, sizeof *job->column)))
    goto no_memory;
  job->hash = qk_field_hash_create();
  if (!job->hash) goto no_memory;
  for (size_t i = 0; i < submit->n_column; i++) {
    job->column[i] = *submit->column[i];
    job->column[i].base = (ProtobufCMessage)PROTOBUF_C_MESSAGE_INIT(&quark__column__descriptor);
  }
  qk_link_init(&job->link);
  job->budget = budget;
  job->request = submit->request;
  job->digest = qk_job_digest(submit);
  job->nrhs = submit->nrhs;
  job->field_bytes = field_bytes(submit, dims);
  job->dtype = submit->dtype;
  job->basis = submit->basis;
  job->tol = submit->tol;
  job->max_iter = submit->max_iter;
  job->factor =
      submit->normalisation == QUARK__NORMALISATION__NORMALISATION_KAPPA ? 1 / (2 * kappa) : 1;
  job->source = submit->source;
  job->sink = submit->sink;
  job->deadline = submit->deadline_ms > 0 ? now + (double)submit->deadline_ms * 1e-3 : 0;
  init_rhs(job);
  qk_job_raise_credit(job);
  budget->used += cost;
  *out = job;
  return QK_OK;

no_memory:
  if (job) qk_free(job->column);
  qk_free(job);
  return qk_fail(err, QK_NO_MEMORY, "no memory for a request of %u right-hand sides", submit->nrhs);
}

void qk_job_destroy(qk_job_t *job) {
  if (!job) return;
  QK_ASSERT(job->running == 0);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    QK_ASSERT(qk_link_alone(&job->rhs[i].queue));
    free_source(&job->rhs[i]);
    qk_rhs_drop_solution(&job->rhs[i]);
  }
  qk_link_remove(&job->link);
  refund(job->budget, sizeof *job + job->nrhs * sizeof(qk_rhs_t) +
                          (job->column ? job->nrhs * sizeof *job->column : 0));
  qk_field_hash_destroy(job->hash);
  qk_free(job->column);
  qk_free(job);
}

/* ---- upload -------------------------------------------------------------------------------- */

bool qk_job_raise_credit(qk_job_t *job) {
  if (job->source != QUARK__SOURCE_KIND__SOURCE_UPLOAD) return false;
  uint64_t total = job->nrhs * job->field_bytes;
  uint64_t left = total - job->upload_next;
  uint64_t until = job->upload_next + (left < QK_UPLOAD_WINDOW ? left : QK_UPLOAD_WINDOW);
  if (until < job->upload_until + QK_UPLOAD_WINDOW / 4 && until < total) return false;
  if (until == job->upload_until) return false;
  job->upload_until = until;
  return true;
}

static qk_status_t check_chunk(const qk_job_t *job, const qk_frame_t *f, qk_err_t *err) {
  if (f->rhs >= job->nrhs)
    return qk_fail(err, QK_BAD_PROTOCOL, "rhs = %u of a request of %u", f->rhs, job->nrhs);
  if (f->field_bytes != job->field_bytes)
    return qk_fail(err, QK_BAD_PROTOCOL, "field_bytes = %llu where a field has %llu",
                   (unsigned long long)f->field_bytes, (unsigned long long)job->field_bytes);
  uint64_t begin = f->rhs * job->field_bytes + f->offset, end = begin + f->chunk_bytes;
  if (end > job->upload_until)
    return qk_fail(err, QK_BAD_PROTOCOL, "chunk up to %llu is over the credit of %llu",
                   (unsigned long long)end, (unsigned long long)job->upload_until);
  if (end > job->upload_next && begin != job->upload_next)
    return qk_fail(err, QK_BAD_PROTOCOL, "chunk at %llu where %llu is next",
                   (unsigned long long)begin, (unsigned long long)job->upload_next);
  return QK_OK;
}

qk_status_t qk_job_upload(qk_job_t *job, const qk_frame_t *f, const uint8_t *payload,
                          uint64_t *shm_number, double now, qk_rhs_t **ready, qk_rhs_t **failed,
                          qk_err_t *err) {
  *ready = *failed = NULL;
  qk_status_t s = check_chunk(job, f, err);
  if (s != QK_OK) return s;
  uint64_t end = f->rhs * job->field_bytes + f->offset + f->chunk_bytes;
  if (end <= job->upload_next) return QK_OK;
  if (f->offset == 0) qk_field_hash_init(job->hash);
  qk_field_hash_update(job->hash, payload, f->chunk_bytes);
  bool last = qk_frame_is_last(f);
  if (last && qk_field_hash_digest(job->hash) != f->field_checksum)
    return qk_fail(err, QK_BAD_CHECKSUM, "right-hand side %u: its checksum is %016llx, not %016llx",
                   f->rhs, (unsigned long long)qk_field_hash_digest(job->hash),
                   (unsigned long long)f->field_checksum);
  job->upload_next = end;

  qk_rhs_t *rhs = &job->rhs[f->rhs];
  if (rhs->state != QK_RHS_UPLOADING) return QK_OK;
  if (!rhs->source) {
    qk_err_t why = {0};
    s = qk_shm_create((*shm_number)++, job->field_bytes, &rhs->source, &why);
    if (s != QK_OK) {
      qk_outcome_t outcome = {.status = QK_NO_MEMORY};
      snprintf(outcome.text, sizeof outcome.text, "%.150s", why.text);
      qk_rhs_end(rhs, &outcome, now);
      *failed = rhs;
      return QK_OK;
    }
  }
  memcpy(rhs->source->data + f->offset, payload, f->chunk_bytes);
  if (last) {
    rhs->state = QK_RHS_QUEUED;
    *ready = rhs;
  }
  return QK_OK;
}

/* ---- results ------------------------------------------------------------------------------- */

void qk_rhs_end(qk_rhs_t *rhs, const qk_outcome_t *outcome, double now) {
  QK_ASSERT(rhs->state < QK_RHS_ENDED && qk_link_alone(&rhs->queue));
  if (rhs->state == QK_RHS_RUNNING) rhs->job->running--;
  rhs->state = QK_RHS_ENDED;
  rhs->outcome = *outcome;
  rhs->ended_at = now;
  rhs->job->ended++;
  free_source(rhs);
  if (!outcome->written) qk_rhs_drop_solution(rhs);
}

void qk_rhs_ack(qk_rhs_t *rhs) {
  QK_ASSERT(rhs->state == QK_RHS_ENDED);
  rhs->state = QK_RHS_ACKED;
  rhs->job->acked++;
  qk_rhs_drop_solution(rhs);
}

uint64_t qk_rhs_bytes(const qk_rhs_t *rhs) {
  return rhs->state == QK_RHS_ENDED && rhs->outcome.written && rhs->solution ? rhs->job->field_bytes
                                                                             : 0;
}

qk_status_t qk_rhs_grant(qk_rhs_t *rhs, uint64_t until, const uint64_t *from, qk_err_t *err) {
  if (until > rhs->job->field_bytes)
    return qk_fail(err, QK_BAD_ARGUMENT, "until = %llu is over the field's %llu bytes",
                   (unsigned long long)until, (unsigned long long)rhs->job->field_bytes);
  if (from && *from > until)
    return qk_fail(err, QK_BAD_ARGUMENT, "from = %llu is over until = %llu",
                   (unsigned long long)*from, (unsigned long long)until);
  if (from) {
    rhs->sent = *from;
    rhs->granted = until;
  } else if (until > rhs->granted) {
    rhs->granted = until;
  }
  return QK_OK;
}

bool qk_rhs_sendable(const qk_rhs_t *rhs) {
  return rhs->sent < rhs->granted && qk_rhs_bytes(rhs) > 0;
}

qk_status_t qk_rhs_next_chunk(qk_rhs_t *rhs, qk_frame_t *frame, const uint8_t **data) {
  uint64_t left = rhs->granted - rhs->sent;
  uint32_t bytes = (uint32_t)(left < QK_CHUNK_MAX ? left : QK_CHUNK_MAX);
  uint64_t end = rhs->sent + bytes;
  if (!rhs->hash && !(rhs->hash = qk_field_hash_create())) return QK_NO_MEMORY;
  if (end > rhs->hashed) {
    qk_field_hash_update(rhs->hash, rhs->solution->data + rhs->hashed, end - rhs->hashed);
    rhs->hashed = end;
  }
  *frame = (qk_frame_t){.kind = QK_FRAME_DOWNLOAD,
                        .request = rhs->job->request,
                        .rhs = rhs->index,
                        .chunk_bytes = bytes,
                        .field_bytes = rhs->job->field_bytes,
                        .offset = rhs->sent};
  if (end == rhs->job->field_bytes) frame->field_checksum = qk_field_hash_digest(rhs->hash);
  *data = rhs->solution->data + rhs->sent;
  return QK_OK;
}

void qk_rhs_sent(qk_rhs_t *rhs, uint32_t bytes) {
  rhs->sent += bytes;
}
