/* The upload of a request: chunks, and fields that come whole. */
#include <stdio.h>

#include "daemon/base/assert.h"
#include "daemon/front/job/joined.h"
#include "daemon/front/storage/holes.h"

void qk_job_resume_upload(qk_job_t *job, uint64_t next) {
  if (job->bricks || job->joined) {
    qk_joined_resume(job, next);
    return;
  }
  const uint64_t part = next % job->part_bytes;
  const bool there = part == 0 || job->rhs[next / job->part_bytes].source;
  job->upload_next = job->upload_due = there ? next : next - part;
  job->upload_until = 0;
  qk_job_raise_credit(job);
}

/* ---- chunks -------------------------------------------------------------------------------- */

static void end_without_memory(qk_rhs_t *rhs, const char *why, double now) {
  qk_outcome_t outcome = {.status = QK_NO_MEMORY};
  snprintf(outcome.text, sizeof outcome.text, "%.150s", why);
  qk_rhs_end(rhs, &outcome, now);
}

void qk_rhs_complete(qk_rhs_t *rhs, uint64_t checksum) {
  rhs->state = QK_RHS_QUEUED;
  qk_shm_unmap(rhs->source);
  rhs->checksum = checksum;
  qk_marks_rhs(rhs);
}

/* What its client sends of it is here. */
static void arrive(qk_rhs_t *rhs, uint64_t checksum) {
  if (rhs->job->joined || rhs->job->bricks)
    qk_bricks_arrived(rhs);
  else
    qk_rhs_complete(rhs, checksum);
}

/* The memory that it goes into; NULL: it is not wanted. */
static qk_rhs_t *place_of(const qk_rhs_t *rhs) {
  qk_rhs_t *whole = qk_rhs_whole(rhs);
  const bool wanted = rhs->state == QK_RHS_UPLOADING && whole && whole->state == QK_RHS_UPLOADING;
  return wanted ? whole : NULL;
}

static qk_status_t check_chunk(const qk_job_t *job, const qk_frame_t *f, qk_err_t *err) {
  if (f->rhs >= job->nrhs)
    return qk_fail(err, QK_BAD_PROTOCOL, "rhs = %u of a request of %u", f->rhs, job->nrhs);
  if (f->field_bytes != job->part_bytes)
    return qk_fail(err, QK_BAD_PROTOCOL, "field_bytes = %llu: a field has %llu",
                   (unsigned long long)f->field_bytes, (unsigned long long)job->part_bytes);
  uint64_t begin = f->rhs * job->part_bytes + f->offset, end = begin + f->chunk_bytes;
  const bool needs_credit = f->kind != QK_FRAME_UPLOAD_ZERO || job->upload_until == 0;
  if (end > job->upload_until && needs_credit) /* 0: nothing is to be sent */
    return qk_fail(err, QK_BAD_PROTOCOL, "chunk up to %llu is over the credit of %llu",
                   (unsigned long long)end, (unsigned long long)job->upload_until);
  if (begin > job->upload_due)
    return qk_fail(err, QK_BAD_PROTOCOL, "chunk at offset %llu: the next offset is %llu",
                   (unsigned long long)begin, (unsigned long long)job->upload_due);
  return QK_OK;
}

static qk_transfer_t *transfer_of(const qk_rhs_t *rhs) {
  const qk_link_t *head = &rhs->job->arriving;
  for (qk_link_t *l = head->prev; l != head; l = l->prev)
    if (QK_HOLDER(l, qk_transfer_t, link)->owner == rhs) return QK_HOLDER(l, qk_transfer_t, link);
  return NULL;
}

/* What is on its way of this right-hand side is not wanted any more. */
static void leave_chunks(const qk_rhs_t *rhs) {
  qk_transfer_t *t = transfer_of(rhs);
  if (t) rhs->job->chunks -= t->under_way;
  qk_transfer_leave(t);
}

/* The upload goes on behind what is in memory. */
static void leave_all(qk_job_t *job) {
  while (!qk_link_alone(&job->arriving))
    qk_transfer_leave(QK_HOLDER(job->arriving.next, qk_transfer_t, link));
  job->chunks = 0;
  job->upload_due = job->upload_next;
}

/* Who sends all bytes begins with a whole chunk. */
static bool begins_sparse(const qk_job_t *job, const qk_frame_t *f) {
  const bool short_one = f->chunk_bytes < QK_CHUNK_MAX && !qk_frame_is_last(f);
  return !qk_job_is_dense(job) && (f->kind == QK_FRAME_UPLOAD_ZERO || short_one);
}

static qk_status_t make_source(qk_rhs_t *place, bool sparse, qk_err_t *err) {
  const qk_job_t *job = place->job;
  const qk_status_t s =
      sparse ? qk_shm_create_sparse(job->space, job->field_bytes, &place->source, err)
             : qk_shm_create_bare(job->space, job->field_bytes, &place->source, err);
  if (s == QK_OK) qk_marks_rhs(place);
  return s;
}

/* Its transfer, with a piece under way, and its segment if it is to be kept. */
static qk_status_t start_chunk(qk_rhs_t *rhs, const qk_frame_t *f, qk_transfer_t **out,
                               qk_err_t *err) {
  qk_job_t *job = rhs->job;
  qk_rhs_t *place = place_of(rhs);
  qk_transfer_t *t = transfer_of(rhs);
  if (!t) {
    t = qk_transfer_create(rhs, f->by_blocks);
    if (!t) return qk_fail(err, QK_NO_MEMORY, "no memory for an upload");
    t->dense = qk_job_is_dense(job);
    qk_transfer_set_part(t, &job->brick, qk_job_gate(job));
    qk_list_append(&job->arriving, &t->link);
  }
  if (place && !place->source) {
    const qk_status_t s = make_source(place, begins_sparse(job, f), err);
    if (s != QK_OK) return s;
  }
  if (place) qk_shm_count(place->source, qk_frame_payload(f));
  qk_transfer_start(t, place ? place->source : NULL);
  *out = t;
  return QK_OK;
}

qk_status_t qk_job_upload(qk_job_t *job, const qk_frame_t *f, double now, qk_chunk_t *chunk,
                          qk_rhs_t **failed, qk_err_t *err) {
  *failed = NULL;
  *chunk = (qk_chunk_t){NULL};
  qk_status_t s = check_chunk(job, f, err);
  if (s != QK_OK) return s;
  const uint64_t begin = f->rhs * job->part_bytes + f->offset, end = begin + f->chunk_bytes;
  if (end <= job->upload_due) return QK_OK;
  qk_rhs_t *rhs = &job->rhs[f->rhs];
  const qk_transfer_t *begun = transfer_of(rhs);
  if (begun && begun->by_blocks != f->by_blocks)
    return qk_fail(err, QK_BAD_PROTOCOL, "chunk of version %d in a field that has begun with %d",
                   1 + f->by_blocks, 1 + begun->by_blocks);
  qk_err_t why = {0};
  s = start_chunk(rhs, f, &chunk->transfer, &why);
  if (s != QK_OK && place_of(rhs)) {
    *failed = place_of(rhs);
    end_without_memory(*failed, why.text, now);
    /* what it has to say is read all the same */
    s = start_chunk(rhs, f, &chunk->transfer, &why);
  }
  chunk->skip = (uint32_t)(job->upload_due - begin);
  chunk->offset = f->offset + chunk->skip;
  chunk->end = job->upload_due = end;
  chunk->stream = job;
  job->used_at = now;
  if (job->whole) job->whole->used_at = now;
  if (s == QK_OK)
    job->chunks++;
  else if (job->chunks == 0) /* nor is there memory to do so */
    job->upload_next = end;
  qk_marks_job(job);
  return QK_OK;
}

qk_job_t *qk_job_uploaded(const qk_chunk_t *chunk, const uint64_t *checksum, const qk_err_t *wrote,
                          double now, qk_rhs_t **ready, qk_rhs_t **failed, qk_err_t *err) {
  qk_transfer_t *t = chunk->transfer;
  *ready = *failed = NULL;
  if (!qk_transfer_finish(t)) return NULL;
  qk_rhs_t *rhs = t->owner;
  qk_job_t *job = rhs->job;
  qk_rhs_t *place = place_of(rhs);
  job->chunks--;
  if (checksum && wrote->code == QK_OK && !qk_transfer_has_checksum(t, *checksum)) {
    qk_fail(err, QK_BAD_CHECKSUM, "right-hand side %u: its checksum is %016llx, not %016llx",
            rhs->index, (unsigned long long)qk_transfer_checksum(t), (unsigned long long)*checksum);
    leave_all(job);
    return job;
  }
  job->upload_next = job->chunks > 0 ? chunk->end : job->upload_due;
  qk_marks_job(job);
  if (place && wrote->code != QK_OK) {
    end_without_memory(place, wrote->text, now);
    *failed = place;
  } else if (place && checksum) {
    arrive(rhs, *checksum);
    *ready = rhs;
  }
  if (checksum) qk_transfer_leave(t);
  return job;
}

/* ---- whole fields -------------------------------------------------------------------------- */

uint32_t qk_job_next_put(const qk_job_t *job) {
  return (uint32_t)(job->upload_next / job->part_bytes);
}

/* Moves the upload to the end of the field; false if it is already beyond it, or was set back. */
static bool pass_field(qk_job_t *job, uint32_t rhs) {
  const uint64_t end = (rhs + 1) * job->part_bytes;
  if (end <= job->upload_next || rhs > qk_job_next_put(job)) return false;
  leave_chunks(&job->rhs[rhs]);
  job->upload_next = end;
  if (job->upload_due < end) job->upload_due = end;
  qk_marks_job(job);
  return place_of(&job->rhs[rhs]) != NULL;
}

void qk_rhs_fill(qk_rhs_t *rhs, qk_shm_t *field, double now) {
  QK_ASSERT(rhs->state == QK_RHS_UPLOADING && !rhs->source);
  rhs->source = field;
  rhs->job->used_at = now;
  qk_rhs_complete(rhs, 0);
}

bool qk_rhs_slab(const qk_rhs_t *rhs, uint32_t *first, uint32_t *count) {
  const qk_shape_t *shape = &rhs->job->shape;
  const uint32_t slices = shape->dims[3];
  if (!rhs->source || slices == 0 || rhs->job->five_d) return false;
  qk_holes_slab(rhs->source, (uint32_t)qk_shape_vectors(shape), slices, first, count);
  return *count < slices;
}

qk_status_t qk_job_check_put(const qk_job_t *job, uint32_t rhs, uint32_t next, bool *wanted,
                             qk_err_t *err) {
  if (!qk_job_has_stream(job) || rhs >= job->nrhs)
    return qk_fail(err, QK_BAD_PROTOCOL, "rhs = %u of a request of %u: expects no upload", rhs,
                   job->nrhs);
  if (rhs > next) return qk_fail(err, QK_BAD_PROTOCOL, "rhs = %u where %u is next", rhs, next);
  *wanted = rhs == next && place_of(&job->rhs[rhs]) != NULL;
  return QK_OK;
}

qk_shm_t *qk_job_put_into(const qk_rhs_t *rhs, bool sparse, qk_err_t *err) {
  qk_rhs_t *place = place_of(rhs);
  qk_fail(err, QK_CANCELLED, "right-hand side %u has ended", rhs->index);
  if (!place) return NULL;
  *err = (qk_err_t){0};
  if (place->source || make_source(place, sparse && !qk_job_is_dense(rhs->job), err) == QK_OK)
    return place->source;
  err->code = QK_NO_MEMORY;
  return NULL;
}

void qk_job_put(qk_job_t *job, uint32_t index, qk_shm_t *field, uint64_t checksum,
                qk_rhs_t **ready) {
  qk_rhs_t *rhs = &job->rhs[index];
  *ready = NULL;
  if (!pass_field(job, index)) {
    qk_shm_destroy(field);
    return;
  }
  if (field) {
    qk_marks_release(job, rhs->source); /* what had come of it in chunks */
    rhs->source = field;
  }
  arrive(rhs, checksum);
  *ready = rhs;
}

void qk_job_put_failed(qk_job_t *job, uint32_t index, const char *why, double now,
                       qk_rhs_t **failed) {
  *failed = NULL;
  if (!pass_field(job, index)) return;
  *failed = place_of(&job->rhs[index]);
  end_without_memory(*failed, why, now);
}
