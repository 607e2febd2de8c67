#include "daemon/front/service/sessions.h"

#include <math.h>
#include <stdio.h>

#include "daemon/base/log.h"
#include "daemon/front/service/filing.h"
#include "daemon/front/service/queue.h"

void qk_sessions_close(qk_service_t *service, qk_session_t *session, qk_status_t status,
                       const char *text) {
  if (session->closing) return;
  qk_log(QK_LOG_WARN, "session", session->name, "dropped: %s", text);
  service->count.dropped++;
  service->events->error(service->events->arg, session, status, text, true, 0);
  session->control.bytes = 0; /* which another session may use before this one is gone */
  session->closing = true;
}

void qk_sessions_part(qk_service_t *service, qk_session_t *session) {
  for (qk_link_t *l = session->jobs.next, *next; l != &session->jobs; l = next) {
    next = l->next;
    qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    if (job->detach == 0) qk_queue_leave(service, job);
  }
  qk_queue_end_some(service);
  session->away = true;
  session->control.bytes = session->data.bytes = 0;
  service->events->closed(service->events->arg, session);
  if (qk_link_alone(&session->jobs)) session->closing = true;
}

void qk_sessions_drop(qk_service_t *service, qk_session_t *session) {
  qk_marks_drop_session(qk_journal_marks(service->journal), session->client_id);
  service->events->closed(service->events->arg, session);
  while (!qk_link_alone(&session->jobs))
    qk_queue_leave(service, QK_HOLDER(session->jobs.next, qk_job_t, link));
  qk_session_destroy(&service->sessions, session);
}

void qk_sessions_sweep(qk_service_t *service) {
  for (int i = service->sessions.count - 1; i >= 0; i--)
    if (service->sessions.at[i]->closing) qk_sessions_drop(service, service->sessions.at[i]);
}

/* ---- ticks ----------------------------------------------------------------------------------- */

/* While the journal waits for a slow disk, clients that wait for it may be silent. */
static void count_waits(qk_service_t *service, double now) {
  const double looked = qk_loop_awake(service->loop);
  if (qk_journal_waits(service->journal, now)) service->waited += looked - service->looked;
  service->looked = looked;
}

/* Nothing that clients could not come for while the front stood still is over the sooner. */
static void be_lenient(qk_service_t *service, double now) {
  const double stood = now - qk_service_awake(service);
  if (stood > service->stood + 1) service->resumed = now;
  if (stood > service->stood)
    service->lenient_until = fmax(now, service->lenient_until) + stood - service->stood;
  service->stood = stood;
}

static void tick_job(qk_service_t *service, qk_session_t *session, qk_job_t *job, double now) {
  if (job->deadline > 0 && now >= job->deadline && job->ended < job->nrhs)
    qk_queue_end_job(service, job, QK_DEADLINE, "");
  const bool lenient = now < service->lenient_until,
             told = job->sink == QUARK__SINK__SINK_DOWNLOAD && job->acked < job->ended && !lenient;
  for (uint32_t i = 0; i < job->nrhs && told; i++) {
    qk_rhs_t *rhs = &job->rhs[i];
    if ((rhs->solution || rhs->spilled) && rhs->state == QK_RHS_ENDED &&
        now - rhs->ended_at > fmax(job->detach, service->settings->fetch_time))
      qk_rhs_drop_solution(rhs);
  }
  qk_filing_tick(job);
  if (job->progress_due && job->running > 0 && now >= job->progress_at) {
    service->events->progress(service->events->arg, session, job);
    job->progress_due = false;
    job->progress_at = now + QK_PROGRESS_MS * 1e-3;
  }
  if (lenient) return;
  if (session->away && !qk_filing_busy(job) && qk_job_detach_over(job, now)) {
    qk_log(QK_LOG_INFO, "job", job->name, "nobody came for it in %.0f s", job->detach);
    qk_queue_forget(service, job);
  } else if (qk_kept_expired(job, now) && qk_kept_count(job) > 0) {
    qk_queue_expire(service, job);
  }
}

/* The client may only have been slow, or its messages: it is told what is left, and how to go
 * on. */
static void end_lease(qk_service_t *service, qk_session_t *session, double silent) {
  char text[QK_TEXT_MAX];
  int stay = 0;
  for (const qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next)
    stay += QK_HOLDER(l, const qk_job_t, link)->detach > 0;
  snprintf(text, sizeof text,
           "lease expired: nothing came from this client for %.3g s, and its lease is %.3g s: its "
           "session and %d of its requests have ended, %d continue detached; send HELLO to open "
           "a new session, submit the ended requests again, and send a PING every %.3g s",
           silent, session->lease, session->njobs - stay, stay, session->lease / 3);
  qk_log(QK_LOG_INFO, "session", session->name, "%s", text);
  service->events->error(service->events->arg, session, QK_EXPIRED, text, true, 0);
  qk_sessions_part(service, session);
}

/* After the sockets have been served: who has said something is not silent. */
void qk_sessions_tick(qk_service_t *service) {
  const double now = qk_service_now(service);
  count_waits(service, now);
  const double awake = qk_service_awake(service);
  be_lenient(service, now);
  for (int i = 0; i < service->sessions.count; i++) {
    qk_session_t *session = service->sessions.at[i];
    if (!session->closing && !session->away && awake - session->seen > session->lease)
      end_lease(service, session, awake - session->seen);
    for (qk_link_t *l = session->jobs.next, *next; l != &session->jobs; l = next) {
      next = l->next;
      tick_job(service, session, QK_HOLDER(l, qk_job_t, link), now);
    }
    if (session->away && qk_link_alone(&session->jobs)) session->closing = true;
  }
}

bool qk_sessions_idle(const qk_service_t *service) {
  for (int i = 0; i < service->sessions.count; i++) {
    const qk_session_t *session = service->sessions.at[i];
    for (qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
      const qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      if (session->away && service->journal && job->ended == job->nrhs && !qk_filing_busy(job))
        continue;                               /* it stays */
      if (job->acked < job->nrhs) return false; /* the others are there because they are kept */
    }
  }
  return qk_link_alone(&service->orphans);
}
