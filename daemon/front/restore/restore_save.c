/* restore_save.c: how the state folder is left. */
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/plural.h"
#include "daemon/front/restore/restore.h"
#include "daemon/front/service/upload.h"
#include "daemon/front/state/spill.h"
#include "daemon/front/state/strays.h"

/* ---- the end ------------------------------------------------------------------------------- */

/* One that its client has released, or has not used for its time, is not. */
static bool is_kept(const qk_job_t *job, double now) {
  return !job->forgotten && qk_kept_count(job) > 0 && !qk_kept_expired(job, now);
}

bool qk_restore_needed(const qk_service_t *service) {
  const double now = qk_service_now(service);
  for (int i = 0; i < service->sessions.count; i++) {
    const qk_link_t *jobs = &service->sessions.at[i]->jobs;
    for (const qk_link_t *l = jobs->next; l != jobs; l = l->next) {
      const qk_job_t *job = QK_HOLDER(l, const qk_job_t, link);
      if (job->acked < job->nrhs || is_kept(job, now)) return true;
    }
  }
  return false;
}

bool qk_restore_can_make(const qk_rhs_t *rhs) {
  const qk_job_t *job = rhs->job;
  if (rhs->state < QK_RHS_ENDED) return true; /* it is no solution yet */
  if (rhs->state == QK_RHS_ACKED || qk_job_is_beside(job) || job->sink == QUARK__SINK__SINK_KEEP)
    return false;
  if (job->deadline > 0 || rhs->losses > 0 || qk_restore_is_of_another(job)) return false;
  if (qk_job_is_upload(job)) return rhs->spooled;
  return job->source != QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL &&
         job->source != QUARK__SOURCE_KIND__SOURCE_FILE;
}

/* Whether nobody but requests that use its solutions wants the job any more. */
static bool is_over(const qk_job_t *job) {
  return job->forgotten && job->holds == 0;
}

/* Removes the shared memory that the next front can do without, wherever it runs: what is on the
 * disk, can be made again, or will be sent or read again. stay: counts what is left. */
static void leave_job(qk_job_t *job, void *stay) {
  int64_t n = 0;
  for (uint32_t k = 0; k < job->nrhs; k++) {
    const qk_rhs_t *rhs = &job->rhs[k];
    if (rhs->source) {
      if (qk_job_is_upload(job) && rhs->state == QK_RHS_UPLOADING && !job->forgotten)
        qk_log(QK_LOG_WARN, "server", job->name,
               "rhs %u: its incomplete upload is dropped; its client sends it again", k);
      /* of one that has ended without it the solution stays */
      if (job->forgotten || rhs->spooled || rhs->state == QK_RHS_UPLOADING ||
          rhs->state >= QK_RHS_ENDED || !qk_job_is_upload(job))
        rhs->source->stays = false;
      n += rhs->source->stays;
    }
    if (rhs->solution) {
      if (is_over(job) || rhs->spilled || (job->field && rhs->spooled) || qk_restore_can_make(rhs))
        rhs->solution->stays = false;
      n += rhs->solution->stays;
    }
  }
  if (n > 0)
    qk_log(QK_LOG_WARN, "server", job->name, "%lld %s in memory", (long long)n,
           qk_plural(n, "field stays", "fields stay"));
  *(int64_t *)stay += n;
}

/* The front ends in order: no engine and perhaps no front will be on this machine. */
static void leave_machine(qk_service_t *service) {
  int64_t stay = 0;
  qk_session_each_job(&service->sessions, &service->orphans, leave_job, &stay);
  if (stay > 0)
    qk_warn("server",
            "%lld %s in /dev/shm and not in %s: start quarkd with it on this machine, or remove "
            "/dev/shm/%s*",
            (long long)stay, qk_plural(stay, "field stays", "fields stay"),
            service->settings->state, service->space.prefix);
}

void qk_restore_seal(qk_service_t *service, bool leave, bool in_order) {
  qk_err_t err = {0};
  if (qk_journal_sealed(service->journal)) in_order = false; /* nothing more is recorded */
  if (leave && in_order) qk_upload_finish(service, QK_SPILL_LEAVE_SECONDS);
  const int n = leave && in_order ? qk_spill_leave(service->spill, qk_restore_can_make) : 0;
  if (n > 0)
    qk_info("spill", "%d %s on the disk now", n, qk_plural(n, "solution is", "solutions are"));
  const bool written = qk_journal_commit(service->journal, qk_service_now(service), &err) == QK_OK;
  if (!written) qk_error("journal", "%s", err.text);
  if (!leave && written) return; /* else its rows need what they name */
  if (written && in_order) leave_machine(service);
  service->space.leave = true;
  qk_journal_seal(service->journal);
}

void qk_restore_close(qk_service_t *service) {
  qk_journal_close(service->journal);
  qk_spill_close(service->spill);
  qk_spool_close(service->spool);
  qk_aside_close(&service->aside);
  qk_strays_forget(&service->space);
  if (service->journal_lock >= 0) close(service->journal_lock);
  if (service->lock >= 0) close(service->lock);
}
