#include "daemon/front/service/upload.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/bricks.h"
#include "daemon/front/service/fields.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/storage/holes.h"

static const double AGAIN = 5;   /* seconds until the spool is tried again */
static const double REMIND = 60; /* seconds between lines of the log while nothing can be solved */

const char *qk_upload_trouble(const qk_service_t *service) {
  const char *trouble = qk_journal_trouble(service->journal);
  if (!trouble) trouble = qk_spool_trouble(service->spool);
  if (trouble) return trouble;
  const bool waits = qk_queue_is_from_disk(service) && service->jobs.unsaved > 0;
  return waits && service->spool_trouble[0] ? service->spool_trouble : NULL;
}

void qk_upload_promise(qk_job_t *job) {
  qk_service_t *service = job->setup->service;
  const bool open =
      service->spool && qk_job_is_upload(job) && !job->joined && job->ended < job->nrhs;
  service->promised -= job->promised;
  job->promised = open ? (int64_t)((job->nrhs - job->entry.spooled) * job->field_bytes) : 0;
  service->promised += job->promised;
}

qk_status_t qk_upload_check(const qk_service_t *service, int64_t bytes, qk_err_t *err) {
  const char *trouble = qk_journal_trouble(service->journal);
  if (trouble) return qk_fail(err, QK_BUSY, "%s", trouble);
  if (!service->spool || bytes == 0) return QK_OK;
  trouble = qk_upload_trouble(service);
  if (trouble) return qk_fail(err, QK_BUSY, "%s", trouble);
  const long long need = bytes, room = qk_spool_room(service->spool) - service->promised;
  if (need <= room) return QK_OK;
  return qk_fail(err, QK_BUSY,
                 "uploads of %lld bytes: the state folder has room for %lld: make room on the file "
                 "system of %.300s, or submit fewer right-hand sides at a time",
                 need, room > 0 ? room : 0, service->settings->state);
}

/* ---- the spool ------------------------------------------------------------------------------- */

void qk_upload_init(qk_service_t *service) {
  for (int k = 0; k < QK_UNSAVED_LISTS; k++) qk_link_init(&service->unsaved[k]);
  qk_link_init(&service->unsynced);
}

void qk_upload_push(qk_service_t *service, qk_rhs_t *rhs) {
  if (rhs->job->field)
    qk_fields_check(service, rhs);
  else
    qk_queue_push_upload(service, rhs);
}

/* Not before a while is it tried again. */
static void fail_to_spool(qk_service_t *service, qk_rhs_t *rhs, const char *text) {
  qk_log(rhs->unspooled ? QK_LOG_DEBUG : QK_LOG_WARN, "spool", rhs->job->name,
         "rhs %u: its upload is not on disk: %s: tried again every %g s", rhs->index, text, AGAIN);
  rhs->unspooled = true;
  if (!rhs->unsaved) return; /* nobody needs it any more */
  snprintf(service->spool_trouble, sizeof service->spool_trouble,
           "uploads cannot be written, and with --spool all they are not solved before: %.400s",
           text);
  qk_list_append(&service->unsaved[QK_UNSAVED_FAILED], &rhs->save);
  if (service->spool_at == 0) service->spool_at = qk_service_now(service) + AGAIN;
}

/* It is in the spool: so says the journal now, and what waits for that goes on behind it. */
static void note_spooled(qk_service_t *service, qk_rhs_t *rhs) {
  const bool waits =
      rhs->state == QK_RHS_QUEUED && !qk_sched_item_waits(&rhs->queue) && !rhs->job->field;
  qk_marks_rhs(rhs);
  qk_marks_sync(rhs->job->entry.marks, waits);
  if (!waits) return;
  rhs->noted = qk_marks_number(rhs->job->entry.marks);
  qk_list_append(&service->unsynced, &rhs->save);
}

bool qk_upload_release(qk_service_t *service) {
  bool any = false;
  while (!qk_link_alone(&service->unsynced)) {
    qk_rhs_t *rhs = QK_HOLDER(service->unsynced.next, qk_rhs_t, save);
    if (!qk_marks_has_synced(rhs->job->entry.marks, rhs->noted)) break;
    qk_link_remove(&rhs->save);
    qk_upload_push(service, rhs);
    any = true;
  }
  return any;
}

static void on_spooled(void *arg, qk_status_t status, const char *text) {
  qk_rhs_t *rhs = arg;
  qk_service_t *service = rhs->job->setup->service;
  rhs->spooling = NULL;
  if (status != QK_OK) {
    fail_to_spool(service, rhs, text);
    return;
  }
  rhs->spooled = true;
  rhs->unspooled = false;
  if (qk_link_alone(&service->unsaved[QK_UNSAVED_FAILED])) service->spool_trouble[0] = '\0';
  rhs->job->entry.spooled++;
  qk_rhs_saved(rhs);
  qk_upload_promise(rhs->job);
  qk_log(QK_LOG_DEBUG, "spool", rhs->job->name, "rhs %u is on the disk", rhs->index);
  note_spooled(service, rhs);
}

/* What is written next: what nobody can send again, and what has waited longest. What was
 * acknowledged or has gone has left the lists. NULL: nothing. */
static qk_rhs_t *next_to_spool(qk_service_t *service) {
  for (int k = QK_UNSAVED_DETACHED; k <= QK_UNSAVED_OTHERS; k++)
    if (!qk_link_alone(&service->unsaved[k]))
      return QK_HOLDER(service->unsaved[k].next, qk_rhs_t, save);
  return NULL;
}

void qk_upload_write(qk_service_t *service) {
  qk_rhs_t *rhs;
  qk_err_t err = {0};
  while (service->spool && qk_spool_ready(service->spool) && next_to_spool(service)) {
    while (!qk_spool_full(service->spool) && (rhs = next_to_spool(service))) {
      qk_list_append(&service->unsaved[QK_UNSAVED_WRITING], &rhs->save);
      if (qk_spool_add(service->spool, rhs->job->entry.id, rhs->index,
                       rhs->source ? rhs->source : rhs->solution, on_spooled, rhs, &rhs->spooling,
                       &err) != QK_OK)
        on_spooled(rhs, err.code, err.text);
      err = (qk_err_t){0};
    }
    qk_spool_send(service->spool);
  }
}

void qk_upload_spool(qk_service_t *service, qk_rhs_t *rhs) {
  if (!service->spool || rhs->spooled || rhs->spooling || !qk_link_alone(&rhs->save)) return;
  if (!rhs->source && !rhs->solution) return; /* it has ended, for want of memory */
  qk_rhs_unsave(rhs, qk_service_now(service));
  qk_list_append(&service->unsaved[rhs->job->detach > 0 ? QK_UNSAVED_DETACHED : QK_UNSAVED_OTHERS],
                 &rhs->save);
}

void qk_upload_tick(qk_service_t *service, double now) {
  qk_link_t *failed = &service->unsaved[QK_UNSAVED_FAILED];
  qk_spool_tick(service->spool, now);
  if (service->spool_at == 0 || now < service->spool_at) return;
  service->spool_at = now + AGAIN;
  const bool waits = qk_queue_is_from_disk(service) && !qk_link_alone(failed);
  if (waits && now >= service->spool_remind_at) {
    qk_error("spool", "%s", service->spool_trouble);
    service->spool_remind_at = now + REMIND;
  }
  /* what there is of a disk that is full is the journal's */
  int64_t room = qk_spool_room(service->spool);
  while (!qk_link_alone(failed)) {
    qk_rhs_t *rhs = QK_HOLDER(failed->next, qk_rhs_t, save);
    room -= (int64_t)rhs->job->field_bytes;
    if (room < 0) return;
    qk_link_remove(&rhs->save);
    qk_upload_spool(service, rhs);
  }
  service->spool_at = 0;
}

void qk_upload_finish(qk_service_t *service, double seconds) {
  const double until = qk_clock_now() + seconds;
  for (double left = seconds; service->spool && left > 0; left = until - qk_clock_now()) {
    qk_upload_write(service);
    if (qk_link_alone(&service->unsaved[QK_UNSAVED_WRITING])) return;
    qk_spool_wait(service->spool, left);
  }
}

double qk_upload_oldest(const qk_service_t *service) {
  double oldest = INFINITY;
  for (int k = 0; k < QK_UNSAVED_LISTS; k++) {
    const qk_link_t *first = service->unsaved[k].next;
    if (first != &service->unsaved[k])
      oldest = fmin(oldest, QK_HOLDER(first, const qk_rhs_t, save)->unsaved_since);
  }
  return isinf(oldest) ? 0 : qk_service_now(service) - oldest;
}

/* ---- files of others ------------------------------------------------------------------------- */

/* Ids of all jobs, in order. */
typedef struct ids {
  int64_t *at;
  int count, room;
  bool full; /* there was no memory for all */
} ids_t;

static void add_id(qk_job_t *job, void *arg) {
  ids_t *ids = arg;
  int64_t *at = qk_grow(ids->at, &ids->room, ids->count + 1, sizeof *at);
  ids->full |= !at;
  if (!at) return;
  ids->at = at;
  ids->at[ids->count++] = job->entry.id;
}

static int compare_ids(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static bool is_known(void *arg, int64_t id) {
  const ids_t *ids = arg;
  return ids->full || (ids->count > 0 &&
                       bsearch(&id, ids->at, (size_t)ids->count, sizeof id, compare_ids) != NULL);
}

void qk_upload_sweep(qk_service_t *service) {
  ids_t ids = {.at = NULL};
  if (!service->spool) return;
  qk_session_each_job(&service->sessions, &service->orphans, add_id, &ids);
  if (ids.count > 0) qsort(ids.at, (size_t)ids.count, sizeof ids.at[0], compare_ids);
  qk_spool_sweep(service->spool, qk_journal_doubtful(service->journal) ? &service->aside : NULL,
                 is_known, &ids);
  qk_free(ids.at);
}

/* ---- the last part --------------------------------------------------------------------------- */

struct qk_brick_sum {
  uv_work_t work;
  qk_rhs_t *rhs; /* NULL: abandoned */
  int field;     /* a descriptor of its own: the field may go meanwhile */
  size_t bytes;
  uint64_t checksum;
  qk_err_t err;
};

static void run_sum(uv_work_t *work) {
  qk_brick_sum_t *s = work->data;
  qk_holes_checksum(s->field, s->bytes, true, &s->checksum, &s->err);
}

static void complete(qk_rhs_t *rhs, uint64_t checksum) {
  qk_service_t *service = rhs->job->setup->service;
  qk_rhs_complete(rhs, checksum);
  qk_upload_push(service, rhs);
  qk_upload_spool(service, rhs);
}

static void end_unsummed(qk_rhs_t *rhs) {
  qk_queue_end(rhs->job->setup->service, rhs, QK_NO_MEMORY,
               "no memory for the checksum of its parts");
}

static void after_sum(uv_work_t *work, int cancelled) {
  qk_brick_sum_t *s = work->data;
  qk_rhs_t *rhs = s->rhs;
  (void)cancelled;
  close(s->field);
  if (rhs) rhs->summing = NULL;
  if (rhs && s->err.code == QK_OK)
    complete(rhs, s->checksum);
  else if (rhs)
    end_unsummed(rhs);
  qk_free(s);
}

static bool open_field(qk_brick_sum_t *s, const qk_shm_t *field) {
  s->bytes = field->bytes;
  s->field = qk_shm_open(field, O_RDONLY);
  return s->field >= 0;
}

void qk_upload_check_parts(qk_service_t *service, qk_rhs_t *rhs) {
  if (!rhs || rhs->state != QK_RHS_UPLOADING || rhs->summing || qk_bricks_missing(rhs) > 0) return;
  if (!rhs->job->entry.marks) {
    complete(rhs, 0);
    return;
  }
  qk_brick_sum_t *s = qk_calloc(1, sizeof *s);
  if (!s || !open_field(s, rhs->source)) {
    qk_free(s);
    end_unsummed(rhs);
    return;
  }
  s->rhs = rhs;
  s->work.data = s;
  rhs->summing = s;
  uv_queue_work(&service->loop->uv, &s->work, run_sum, after_sum);
}

void qk_upload_abandon(qk_rhs_t *rhs) {
  if (rhs->summing) rhs->summing->rhs = NULL;
  rhs->summing = NULL;
}

/* ---- what comes ------------------------------------------------------------------------------ */

void qk_upload_arrived(qk_service_t *service, qk_session_t *session, qk_job_t *job, qk_rhs_t *ready,
                       qk_rhs_t *failed, bool tell) {
  if (ready && (ready->job->bricks || ready->job->joined)) {
    qk_upload_check_parts(service, qk_rhs_whole(ready));
  } else if (ready) {
    qk_upload_push(service, ready);
    qk_upload_spool(service, ready);
  }
  if (failed) {
    qk_queue_ended(service, failed);
    qk_queue_left(service, failed);
  }
  /* a detached request goes on without its client, whose last chunks may still be on their way */
  if ((qk_job_raise_credit(job) || tell) && session)
    service->events->credit(service->events->arg, session, job);
}
