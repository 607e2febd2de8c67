#include "daemon/front/job/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/bricks.h"

/* ---- taking ---------------------------------------------------------------------------------- */

/* Whether a file in the spool is of no use any more. A field is there as long as its job. */
static bool leaves_spool(const qk_job_record_t *job, const qk_rhs_record_t *rhs) {
  return rhs->spooled && rhs->state == QK_RHS_ACKED && !job->keeps_spool;
}

static bool is_due(const qk_rhs_t *rhs) {
  return rhs->marked || (rhs->spooled && rhs->state == QK_RHS_ACKED && !rhs->job->field);
}

/* The name of a field that a row will have; "": none. */
static void name_field(char name[QK_SHM_NAME_MAX], qk_shm_t *field) {
  if (!field) return;
  field->stays = true;
  memcpy(name, field->name, QK_SHM_NAME_MAX);
}

static void record_rhs(qk_rhs_record_t *record, qk_rhs_t *rhs) {
  *record = (qk_rhs_record_t){.index = rhs->index,
                              .state = rhs->state,
                              .spooled = rhs->spooled,
                              .spilled = rhs->spilled,
                              .digested = rhs->digested,
                              .checksum = rhs->checksum,
                              .digest = rhs->digest,
                              .losses = rhs->losses,
                              .attempt = rhs->attempt,
                              .outcome = rhs->outcome,
                              .wall = qk_wall_sums_hold(rhs->wall)};
  name_field(record->source, rhs->source);
  if (rhs->state >= QK_RHS_ENDED) name_field(record->solution, rhs->solution);
}

static void record_new(qk_new_request_t *record, const qk_job_t *job) {
  *record = (qk_new_request_t){.request = job->request,
                               .contraction = job->contraction != NULL,
                               .problem = job->problem != NULL,
                               .field = job->field != NULL,
                               .joined = job->joined,
                               .has_token = job->bricks != NULL,
                               .message = job->message,
                               .message_bytes = job->message_bytes,
                               .accepted_at = job->accepted_at,
                               .deadline = job->deadline,
                               .setup_id = job->setup_id,
                               .shape = job->shape,
                               .config = job->config};
  memcpy(record->client_id, job->client_id, sizeof record->client_id);
  if (job->bricks) memcpy(record->token, job->bricks->token, sizeof record->token);
  if (job->user) snprintf(record->user, sizeof record->user, "%s", qk_sched_user_name(job->user));
}

/* How far each part is. */
static void record_parts(qk_job_record_t *record, uint32_t *arrived, const qk_bricks_t *b) {
  record->nparts = b->count;
  record->arrived = arrived;
  for (uint32_t p = 0; p < b->count; p++) arrived[p] = b->part[p].arrived;
}

static qk_job_record_t *record_job(qk_job_t *job, size_t *bytes) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < job->nrhs; i++) n += is_due(&job->rhs[i]);
  const size_t parts = job->bricks ? job->bricks->count * sizeof(uint32_t) : 0,
               size = sizeof(qk_job_record_t) + n * sizeof(qk_rhs_record_t) + parts;
  qk_job_record_t *record = qk_calloc(1, size);
  if (!record) return NULL;
  *bytes += size;
  record->job = job;
  record->number = job->entry.number;
  record->id = job->entry.id;
  record->is_new = !job->entry.written;
  record->changed = job->entry.changed;
  record->keeps_spool = job->field != NULL;
  record->upload_next = job->upload_next;
  record->forgotten = job->forgotten;
  if (parts > 0) record_parts(record, (uint32_t *)(void *)&record->rhs[n], job->bricks);
  if (record->is_new) record_new(&record->new_request, job);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    if (!is_due(&job->rhs[i])) continue;
    record_rhs(&record->rhs[record->nrhs++], &job->rhs[i]);
    job->rhs[i].marked = false;
  }
  qk_link_remove(&job->entry.marked);
  job->entry.changed = false;
  job->entry.taken = record;
  return record;
}

static qk_job_t *first_changed(const qk_marks_t *marks) {
  return qk_link_alone(&marks->changed) ? NULL
                                        : QK_HOLDER(marks->changed.next, qk_job_t, entry.marked);
}

/* They take no memory here, and go with all rows that might name them: where some of these stay
 * for the next snapshot, they do, too. */
static void take_gone(qk_marks_t *marks, qk_snapshot_t *snapshot) {
  if (first_changed(marks)) {
    snapshot->number = first_changed(marks)->entry.number - 1;
    if (marks->gone && marks->gone_since <= snapshot->number)
      snapshot->number = marks->gone_since - 1;
    return;
  }
  snapshot->gone_since = marks->gone_since;
  snapshot->gone = marks->gone;
  snapshot->released = marks->released;
  marks->gone = NULL;
  marks->released = NULL;
}

qk_status_t qk_snapshot_take(qk_marks_t *marks, bool sync, qk_snapshot_t *snapshot) {
  qk_job_record_t **last = &snapshot->jobs;
  QK_ASSERT(!marks->taken);
  *snapshot = (qk_snapshot_t){.sync = sync, .number = marks->number};
  marks->taken = snapshot;
  for (qk_job_t *job; snapshot->bytes < QK_SNAPSHOT_BYTES && (job = first_changed(marks));) {
    *last = record_job(job, &snapshot->bytes);
    if (!*last) {
      qk_snapshot_put_back(marks, snapshot);
      return QK_NO_MEMORY;
    }
    snapshot->is_new |= (*last)->is_new;
    last = &(*last)->next;
  }
  take_gone(marks, snapshot);
  snapshot->sync |= snapshot->is_new;
  if (snapshot->sync) marks->sync = !qk_link_alone(&marks->changed) && marks->sync;
  marks->sync_now &= marks->sync;
  return QK_OK;
}

void qk_snapshot_part(qk_job_t *job) {
  qk_job_record_t *record = job->entry.taken;
  if (!record) return;
  record->job = NULL;
  job->entry.taken = NULL;
  if (record->is_new) job->message = NULL;
}

/* ---- written --------------------------------------------------------------------------------- */

static void free_record(qk_job_record_t *record) {
  for (uint32_t i = 0; i < record->nrhs; i++) qk_wall_sums_drop(&record->rhs[i].wall);
  if (record->job)
    record->job->entry.taken = NULL;
  else
    free((void *)record->new_request.message);
  qk_free(record);
}

static void free_records(qk_snapshot_t *snapshot) {
  for (qk_job_record_t *record; (record = snapshot->jobs) != NULL;) {
    snapshot->jobs = record->next;
    free_record(record);
  }
}

static void settle_job(qk_job_t *job, const qk_job_record_t *record) {
  job->entry.written = true;
  for (uint32_t i = 0; i < record->nrhs; i++) {
    const qk_rhs_record_t *written = &record->rhs[i];
    qk_rhs_t *rhs = &job->rhs[written->index];
    rhs->recorded = written->state >= QK_RHS_ENDED;
    if (leaves_spool(record, written)) rhs->spooled = false;
  }
}

/* A file of the spool that nobody wants any more; without memory for it, it goes with its job. */
static void leave_file(qk_gone_t **left, int64_t job, uint32_t index) {
  qk_gone_t *file = qk_malloc(sizeof *file);
  if (!file) return;
  *file = (qk_gone_t){.next = *left, .what = QK_GONE_FILE, .job = job, .index = index};
  *left = file;
}

static void leave_files(qk_snapshot_t *snapshot, qk_gone_t **left) {
  for (const qk_job_record_t *record = snapshot->jobs; record; record = record->next)
    for (uint32_t i = 0; i < record->nrhs; i++)
      if (leaves_spool(record, &record->rhs[i])) leave_file(left, record->id, record->rhs[i].index);
  for (qk_gone_t *gone; (gone = snapshot->gone) != NULL;) {
    snapshot->gone = gone->next;
    if (gone->what == QK_GONE_FILE || gone->nrhs > 0) {
      gone->next = *left;
      *left = gone;
    } else {
      qk_free(gone);
    }
  }
}

void qk_snapshot_settle(qk_marks_t *marks, qk_snapshot_t *snapshot, qk_gone_t **left) {
  QK_ASSERT(marks->taken == snapshot);
  for (const qk_job_record_t *record = snapshot->jobs; record; record = record->next)
    if (record->job) settle_job(record->job, record);
  leave_files(snapshot, left);
  qk_marks_destroy(marks, &snapshot->released);
  free_records(snapshot);
  if (snapshot->number > marks->written) marks->written = snapshot->number;
  if (snapshot->sync) marks->synced = marks->written;
  marks->taken = NULL;
}

/* ---- not written ----------------------------------------------------------------------------- */

static void mark_again(qk_marks_t *marks, const qk_job_record_t *record) {
  qk_job_t *job = record->job;
  job->entry.changed |= record->changed;
  job->entry.number = record->number;
  for (uint32_t i = 0; i < record->nrhs; i++) job->rhs[record->rhs[i].index].marked = true;
  qk_list_append(&marks->changed, &job->entry.marked);
}

void qk_snapshot_put_back(qk_marks_t *marks, qk_snapshot_t *snapshot) {
  qk_link_t since;
  qk_gone_t **gone = &snapshot->gone;
  qk_shm_t **released = &snapshot->released;
  QK_ASSERT(marks->taken == snapshot);
  qk_link_init(&since);
  while (!qk_link_alone(&marks->changed)) qk_list_append(&since, marks->changed.next);
  for (const qk_job_record_t *record = snapshot->jobs; record; record = record->next)
    if (record->job) mark_again(marks, record);
  while (!qk_link_alone(&since)) qk_list_append(&marks->changed, since.next);
  free_records(snapshot);
  if (snapshot->gone) marks->gone_since = snapshot->gone_since;
  while (*gone) gone = &(*gone)->next;
  *gone = marks->gone;
  marks->gone = snapshot->gone;
  while (*released) released = &(*released)->after;
  *released = marks->released;
  marks->released = snapshot->released;
  marks->sync |= snapshot->sync;
  marks->taken = NULL;
}
