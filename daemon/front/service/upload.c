#include "daemon/front/service/upload.h"

#include "daemon/base/log.h"
#include "daemon/front/service/queue.h"

static const double AGAIN = 5; /* seconds until the spool is tried again */

void qk_upload_promise(qk_job_t *job) {
  qk_service_t *service = job->setup->service;
  const bool open = service->spool && qk_job_is_upload(job) && job->ended < job->nrhs;
  service->promised -= job->promised;
  job->promised = open ? (int64_t)((job->nrhs - job->entry.spooled) * job->field_bytes) : 0;
  service->promised += job->promised;
}

qk_status_t qk_upload_check(const qk_service_t *service, const Quark__Submit *submit,
                            int64_t field_bytes, qk_err_t *err) {
  const char *trouble = qk_journal_trouble(service->journal);
  if (trouble) return qk_fail(err, QK_BUSY, "%s", trouble);
  if (!service->spool || !submit || submit->source != QUARK__SOURCE_KIND__SOURCE_UPLOAD)
    return QK_OK;
  int64_t bytes;
  if (qk_spool_room(service->spool, &bytes, err) != QK_OK) return QK_BUSY;
  const long long need = submit->nrhs * field_bytes, room = bytes - service->promised;
  if (need <= room) return QK_OK;
  return qk_fail(err, QK_BUSY,
                 "uploads of %lld bytes: the state folder has room for %lld: make room on the file "
                 "system of %.300s, or submit fewer right-hand sides at a time",
                 need, room > 0 ? room : 0, service->settings->state);
}

/* ---- the spool ------------------------------------------------------------------------------- */

static void on_spooled(void *arg, qk_status_t status, const char *text) {
  qk_rhs_t *rhs = arg;
  qk_service_t *service = rhs->job->setup->service;
  rhs->spooling = NULL;
  if (status != QK_OK) {
    qk_log(rhs->unspooled ? QK_LOG_DEBUG : QK_LOG_WARN, "spool", rhs->job->name,
           "rhs %u: its upload is not on disk: %s: tried again every %g s", rhs->index, text,
           AGAIN);
    rhs->unspooled = true;
    if (service->spool_at == 0) service->spool_at = qk_service_now(service) + AGAIN;
    return;
  }
  rhs->spooled = true;
  rhs->unspooled = false;
  rhs->job->entry.spooled++;
  qk_upload_promise(rhs->job);
  qk_log(QK_LOG_DEBUG, "spool", rhs->job->name, "rhs %u is on the disk", rhs->index);
  qk_marks_rhs(rhs);
  qk_marks_sync(rhs->job->entry.marks);
}

void qk_upload_spool(qk_service_t *service, qk_rhs_t *rhs) {
  qk_err_t err = {0};
  if (!service->spool || rhs->spooled) return;
  if (qk_spool_write(service->spool, rhs->job->entry.id, rhs->index, rhs->source, on_spooled, rhs,
                     &rhs->spooling, &err) != QK_OK)
    on_spooled(rhs, err.code, err.text);
}

static void try_again(qk_job_t *job, void *arg) {
  int64_t *room = arg;
  qk_service_t *service = job->setup->service;
  for (uint32_t i = 0; i < job->nrhs && qk_job_is_upload(job) && !job->forgotten; i++) {
    qk_rhs_t *rhs = &job->rhs[i];
    if (!rhs->unspooled || rhs->spooling || !rhs->source || rhs->state >= QK_RHS_ENDED) continue;
    *room -= (int64_t)job->field_bytes;
    if (*room >= 0)
      qk_upload_spool(service, rhs);
    else
      service->spool_at = qk_service_now(service) + AGAIN;
  }
}

void qk_upload_tick(qk_service_t *service, double now) {
  int64_t room;
  qk_err_t err = {0};
  if (service->spool_at == 0 || now < service->spool_at) return;
  service->spool_at = now + AGAIN;
  /* what there is of a disk that is full is the journal's */
  if (qk_spool_room(service->spool, &room, &err) != QK_OK) return;
  service->spool_at = 0;
  qk_session_each_job(&service->sessions, &service->orphans, try_again, &room);
}

/* ---- what comes ------------------------------------------------------------------------------ */

void qk_upload_arrived(qk_service_t *service, qk_session_t *session, qk_job_t *job, qk_rhs_t *ready,
                       qk_rhs_t *failed, bool tell) {
  if (ready) {
    qk_queue_push(service, ready);
    qk_upload_spool(service, ready);
  }
  if (failed) qk_queue_ended(service, failed);
  if (qk_job_raise_credit(job) || tell) service->events->credit(service->events->arg, session, job);
}
