#include "daemon/front/service/sessions.h"

#include <math.h>
#include <stdio.h>

#include "daemon/base/log.h"
#include "daemon/front/job/due.h"
#include "daemon/front/service/filing.h"
#include "daemon/front/service/queue.h"

static const double AGAIN = 0.05; /* seconds: at the next tick */

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
    const bool half = job->field && job->rhs[0].state == QK_RHS_UPLOADING;
    if (job->detach == 0 || half) qk_queue_leave(service, job);
  }
  qk_queue_end_some(service);
  session->away = true;
  for (qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next)
    qk_due_at(QK_HOLDER(l, qk_job_t, link), 0);
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

/* How long a solution is held that nobody fetches. */
static double fetch_time(const qk_job_t *job) {
  return fmax(job->detach, job->setup->service->settings->fetch_time);
}

/* Solutions that nobody has fetched in time; when the next one will be due. */
static double drop_unfetched(qk_job_t *job, double now) {
  const double time = fetch_time(job);
  double next = INFINITY;
  if (job->sink != QUARK__SINK__SINK_DOWNLOAD || (job->acked == job->ended && !job->bricks))
    return next;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    qk_rhs_t *rhs = &job->rhs[i];
    if (!(rhs->solution || rhs->spilled) || rhs->state < QK_RHS_ENDED) continue;
    if (now - rhs->ended_at > time)
      qk_rhs_drop_solution(rhs);
    else
      next = fmin(next, rhs->ended_at + time);
  }
  return next;
}

/* The same of its progress. */
static double tell_progress(qk_service_t *service, qk_session_t *session, qk_job_t *job,
                            double now) {
  if (!job->progress_due || job->running == 0) return INFINITY;
  if (now < job->progress_at) return job->progress_at;
  service->events->progress(service->events->arg, session, job);
  job->progress_due = false;
  job->progress_at = now + QK_PROGRESS_MS * 1e-3;
  return INFINITY;
}

/* When its time without a client, or that of what it keeps, is over. What has to end first brings
 * the job back when it does. */
static double next_end(const qk_session_t *session, const qk_job_t *job) {
  double next = INFINITY;
  if (session->away && !qk_job_is_open(job)) next = job->used_at + job->detach;
  if (qk_kept_count(job) > 0 && job->ended == job->nrhs && job->holds == 0)
    next = fmin(next, job->used_at + job->keep);
  return next;
}

/* INFINITY: when something happens. */
static void look_again(qk_job_t *job, double when, double now) {
  if (!isinf(when)) qk_due_at(job, fmax(when, now + AGAIN));
}

/* False: the job may have gone. */
static bool end_in_time(qk_service_t *service, const qk_session_t *session, qk_job_t *job,
                        double now) {
  if (session->away && !qk_filing_busy(job) && qk_job_detach_over(job, now)) {
    qk_log(QK_LOG_INFO, "job", job->name, "nobody came for it in %.0f s", job->detach);
    qk_queue_forget(service, job);
    return false;
  }
  if (!qk_kept_expired(job, now) || qk_kept_count(job) == 0) return true;
  look_again(job, next_end(session, job), now); /* its RESULTs stay until its time is over */
  qk_queue_expire(service, job);
  return false;
}

static void tick_job(qk_service_t *service, qk_job_t *job, double now) {
  qk_session_t *session = job->session;
  if (qk_queue_tick_parts(service, job)) return;
  if (job->deadline > 0 && now >= job->deadline && job->ended < job->nrhs)
    qk_queue_end_job(service, job, QK_DEADLINE, "");
  else if (job->deadline > 0 && job->ended < job->nrhs)
    qk_due_at(job, job->deadline);
  look_again(job, tell_progress(service, session, job, now), now);
  if (qk_filing_tick(job)) look_again(job, now, now);
  if (now < service->lenient_until) {
    look_again(job, service->lenient_until, now);
    return;
  }
  look_again(job, drop_unfetched(job, now), now);
  if (end_in_time(service, session, job, now)) look_again(job, next_end(session, job), now);
}

void qk_sessions_due(qk_job_t *job) {
  const qk_session_t *session = job->session;
  if (session) qk_due_at(job, job->used_at + (session->away ? job->detach : fetch_time(job)));
  if (job->sink == QUARK__SINK__SINK_KEEP) qk_due_at(job, job->used_at + job->keep);
}

static void look_at(qk_job_t *job, void *unused) {
  (void)unused;
  qk_due_at(job, 0);
}

void qk_sessions_look(qk_service_t *service) {
  qk_session_each_job(&service->sessions, NULL, look_at, NULL);
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

/* At least one, as long as there is time. True: there are more. */
static bool tick_jobs(qk_service_t *service, double now) {
  qk_job_t *job;
  do {
    job = qk_due_take(&service->jobs, now);
    if (job) tick_job(service, job, now);
  } while (job && !qk_loop_time_is_up(service->loop));
  return job;
}

/* After the sockets have been served: who has said something is not silent. */
bool qk_sessions_tick(qk_service_t *service) {
  const double now = qk_service_now(service);
  count_waits(service, now);
  const double awake = qk_service_awake(service);
  be_lenient(service, now);
  for (int i = 0; i < service->sessions.count; i++) {
    qk_session_t *session = service->sessions.at[i];
    if (!session->closing && !session->away && awake - session->seen > session->lease)
      end_lease(service, session, awake - session->seen);
  }
  const bool more = tick_jobs(service, now);
  for (int i = 0; i < service->sessions.count; i++) {
    qk_session_t *session = service->sessions.at[i];
    if (session->away && qk_link_alone(&session->jobs)) session->closing = true;
  }
  return more;
}

bool qk_sessions_idle(const qk_service_t *service) {
  for (int i = 0; i < service->sessions.count; i++) {
    const qk_session_t *session = service->sessions.at[i];
    for (qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
      const qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      if (session->away && service->journal && job->ended == job->nrhs && !qk_filing_busy(job))
        continue;                                          /* it stays */
      if (job->field && job->ended == job->nrhs) continue; /* nothing of it is to be done */
      if (job->acked < job->nrhs) return false; /* the others are there because they are kept */
    }
  }
  for (const qk_link_t *l = service->orphans.next; l != &service->orphans; l = l->next)
    if (!QK_HOLDER(l, const qk_job_t, link)->field) return false; /* setups hold those */
  return true;
}
