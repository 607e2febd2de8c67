#include "daemon/front/service/admit.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/front/job/joined.h"
#include "daemon/front/job/masses.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/fields.h"
#include "daemon/front/service/filing.h"
#include "daemon/front/service/job_hooks.h"
#include "daemon/front/service/limits.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/service/setups.h"
#include "daemon/front/service/upload.h"
#include "daemon/front/state/spill.h"

void qk_admit_repeat_results(qk_service_t *service, qk_session_t *session, qk_job_t *job) {
  if (!qk_filing_told(job)) return;
  for (uint32_t i = 0; i < job->nrhs && !session->closing; i++)
    if (job->rhs[i].state == QK_RHS_ENDED)
      service->events->result(service->events->arg, session, &job->rhs[i]);
}

/* A request that is there already is answered again, and executed once. True: it was answered. */
static bool repeated(qk_service_t *service, qk_session_t *session, uint64_t request,
                     const ProtobufCMessage *message, qk_err_t *err) {
  qk_job_t *job = qk_session_job(session, request);
  if (!job) return false;
  if (job->digest != qk_job_digest(message)) {
    qk_fail(err, QK_BAD_ARGUMENT, "request %llu exists with other parameters",
            (unsigned long long)request);
    return false;
  }
  service->events->accepted(service->events->arg, session, job, true);
  qk_admit_repeat_results(service, session, job);
  return true;
}

static qk_status_t check_number(const qk_session_t *session, uint64_t request, qk_err_t *err) {
  if (request > 0 && request <= session->newest)
    return qk_fail(err, QK_EXPIRED, "request %llu has ended; %llu was accepted last",
                   (unsigned long long)request, (unsigned long long)session->newest);
  if (session->njobs == QK_CLIENT_REQUESTS_MAX)
    return qk_fail(err, QK_BUSY, "all %d requests of this client are in use",
                   QK_CLIENT_REQUESTS_MAX);
  return QK_OK;
}

/* What does not depend on the request itself. */
/* setup NULL: it needs none. */
static qk_status_t check_state(const qk_service_t *service, const qk_session_t *session,
                               uint64_t request, const qk_setup_t *setup, qk_err_t *err) {
  if (check_number(session, request, err) != QK_OK) return err->code;
  if (service->draining || service->stopping)
    return qk_fail(err, QK_SHUTTING_DOWN, "the daemon accepts no new work");
  if (setup && qk_setups_check(setup, err) != QK_OK) return err->code;
  return QK_OK;
}

static qk_status_t check_user(const qk_service_t *service, const qk_session_t *session,
                              uint32_t nrhs, qk_err_t *err) {
  const long long limit = service->settings->user_rhs, open = *qk_sched_user_open(session->user);
  if (limit > 0 && nrhs > limit)
    return qk_fail(err, QK_TOO_LARGE, "nrhs = %u is over the limit of %lld (user-rhs)", nrhs,
                   limit);
  if (limit > 0 && open + nrhs > limit)
    return qk_fail(
        err, QK_BUSY,
        "%lld right-hand sides of this user have not ended, the limit is %lld (user-rhs)", open,
        limit);
  return QK_OK;
}

static qk_status_t check_room(qk_service_t *service, int64_t cost, qk_err_t *err) {
  const char *by;
  const int64_t room = qk_limits_free(service, &by);
  if (cost > service->budget.limit || cost <= room) return QK_OK;
  return qk_fail(err, QK_BUSY, "request of %lld bytes: %s has %lld", (long long)cost, by,
                 (long long)room);
}

/* bytes: what it would have taken; 0: not known. */
static qk_status_t reject(qk_service_t *service, const qk_session_t *session, uint64_t request,
                          int64_t bytes, const qk_err_t *err) {
  if (err->code == QK_BUSY && bytes > 0) qk_spill_make_room(service->spill, session, bytes);
  service->count.rejected++;
  qk_log(QK_LOG_INFO, "session", session->name, "request %llu rejected: %s: %s",
         (unsigned long long)request, qk_status_name(err->code), err->text);
  return err->code;
}

static qk_terms_t terms_of(qk_service_t *service, const qk_session_t *session, qk_setup_t *setup) {
  return (qk_terms_t){.setup = setup,
                      .setup_id = setup->id,
                      .setup_name = setup->name,
                      .shape = &setup->shape,
                      .slices = qk_operator_slices(&setup->settings.op),
                      .config = setup->digest,
                      .kappa = qk_values_kappa(&setup->settings.op),
                      .now = qk_service_now(service),
                      .budget = qk_sched_user_memory(session->user),
                      .space = &service->space,
                      .jobs = &service->jobs,
                      .hooks = &QK_JOB_HOOKS,
                      .spill = service->spill,
                      .client_id = session->client_id,
                      .user = session->user,
                      .keep = service->settings->keep_time};
}

static qk_status_t check_keep_time(const qk_service_t *service, uint64_t keep_ms, qk_err_t *err) {
  const double limit = service->settings->keep_time * 1e3;
  if ((double)keep_ms <= limit) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "keep_ms = %llu is over the limit of %.0f (--keep-time)",
                 (unsigned long long)keep_ms, limit);
}

static qk_status_t check_detach(const qk_service_t *service, uint64_t detach_ms, qk_err_t *err) {
  const double limit = service->settings->detach_time * 1e3;
  if ((double)detach_ms <= limit) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "detach_ms = %llu is over the limit of %.0f (--detach-time)",
                 (unsigned long long)detach_ms, limit);
}

/* What would be cut off by the end of the walltime is not begun. */
static qk_status_t check_walltime(const qk_service_t *service, const qk_job_t *job, qk_err_t *err) {
  const double left = qk_service_left(service), expected = qk_queue_expect(job);
  if (expected <= left) return QK_OK;
  return qk_fail(
      err, QK_SHUTTING_DOWN,
      "about %.0f s are needed with the waiting work, and %.0f s of the walltime are left: "
      "submit it again after the restart",
      expected, left);
}

/* Binds the new job to what it refers to and lets it in; or destroys it. */
static qk_status_t enter(qk_service_t *service, qk_session_t *session, qk_job_t *job,
                         qk_err_t *err) {
  qk_status_t status = job->field ? QK_OK : check_walltime(service, job, err);
  if (status == QK_OK) status = qk_kept_bind(session, job, err);
  if (status == QK_OK) status = qk_eigen_bind(job, err);
  if (status != QK_OK) {
    qk_job_destroy(job);
    return status;
  }
  service->count.accepted++;
  qk_queue_open(job);
  qk_upload_promise(job);
  qk_marks_enter(qk_journal_marks(service->journal), job);
  qk_session_adopt(session, job);
  if (job->field)
    qk_log(QK_LOG_INFO, "job", job->name, "accepted: %s of %ux%ux%ux%u",
           qk_fields_name(job->field->kind, NULL), job->shape.dims[0], job->shape.dims[1],
           job->shape.dims[2], job->shape.dims[3]);
  else if (job->contraction)
    qk_log(QK_LOG_INFO, "job", job->name, "accepted: contraction of %zu channels",
           job->contraction->n_channel);
  else if (job->recalls)
    qk_log(QK_LOG_INFO, "job", job->name, "accepted: values of eigenvectors %s",
           job->problem->name);
  else if (job->problem)
    qk_log(QK_LOG_INFO, "job", job->name, "accepted: %u eigenvectors %s", job->problem->count,
           job->problem->name);
  else if (!qk_job_solves(job))
    qk_log(QK_LOG_INFO, "job", job->name, "accepted: %u right-hand sides, work %d", job->nrhs,
           job->work);
  else
    qk_log(QK_LOG_INFO, "job", job->name, "accepted: %u right-hand sides, tol %g", job->nrhs,
           job->tol);
  service->events->accepted(service->events->arg, session, job, false);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    qk_rhs_t *rhs = qk_masses_nth(job, i);
    if (rhs->state == QK_RHS_QUEUED) qk_queue_push(service, rhs);
  }
  qk_filing_begin(job);
  return QK_OK;
}

void qk_admit_take_back(qk_service_t *service, qk_job_t *job, qk_err_t *err) {
  qk_fail(err, QK_BUSY, "%s", qk_journal_trouble(service->journal));
  qk_marks_withdraw(job);
  if (job->session) reject(service, job->session, job->request, 0, err);
  qk_queue_forget(service, job);
}

static int64_t upload_bytes(const Quark__Submit *submit, const qk_shape_t *shape) {
  if (submit->source != QUARK__SOURCE_KIND__SOURCE_UPLOAD) return 0;
  return (int64_t)(submit->nrhs * qk_job_field_bytes(submit, shape));
}

qk_status_t qk_admit_submit(qk_service_t *service, qk_session_t *session,
                            const Quark__Submit *submit, qk_err_t *err) {
  qk_job_t *job = NULL;
  if (repeated(service, session, submit->request, &submit->base, err)) return QK_OK;
  const qk_viewer_t viewer = {.user = qk_sched_user_name(session->user)};
  qk_setup_t *setup = qk_setups_find(service, &viewer, submit->setup, err);
  if (err->code == QK_OK) check_state(service, session, submit->request, setup, err);
  const qk_terms_t terms = setup ? terms_of(service, session, setup) : (qk_terms_t){0};
  if (err->code == QK_OK) qk_job_check(submit, terms.shape, err);
  if (err->code == QK_OK) qk_job_check_action(submit, qk_values_action(&setup->settings.op), err);
  if (err->code == QK_OK) qk_job_check_kappa(submit, terms.kappa, err);
  if (err->code == QK_OK) qk_job_check_shift(submit, setup->settings.boundary, err);
  const qk_shape_t shape =
      setup ? qk_job_shape(submit, terms.shape, terms.slices) : qk_shape_usual();
  const int64_t cost = err->code == QK_OK ? qk_job_cost(submit, &shape) : 0;
  if (err->code == QK_OK) qk_filing_check(service, submit, qk_job_field_bytes(submit, &shape), err);
  if (err->code == QK_OK) check_keep_time(service, submit->keep_ms, err);
  if (err->code == QK_OK) check_detach(service, submit->detach_ms, err);
  if (err->code == QK_OK) check_user(service, session, submit->nrhs, err);
  if (err->code == QK_OK) check_room(service, cost, err);
  if (err->code == QK_OK) qk_upload_check(service, upload_bytes(submit, &shape), err);
  if (err->code == QK_OK) qk_job_create(submit, &terms, &job, err);
  if (err->code == QK_OK && qk_filing_create(service, job, submit, err) != QK_OK)
    qk_job_destroy(job);
  if (err->code == QK_OK) enter(service, session, job, err);
  return err->code == QK_OK ? QK_OK : reject(service, session, submit->request, cost, err);
}

/* Where a contraction is made: with the setup of its propagator a. */
static qk_setup_t *setup_for(const qk_service_t *service, const qk_session_t *session,
                             uint64_t request_a) {
  const qk_job_t *a = qk_session_job(session, request_a);
  return a && a->setup != service->depot ? a->setup : service->primary;
}

/* For one message or the other. */
static qk_setup_t *setup_beside(const qk_service_t *service, const qk_session_t *session,
                                const Quark__Contract *c, const Quark__Eigen *e, qk_err_t *err) {
  const qk_viewer_t viewer = {.user = qk_sched_user_name(session->user)};
  if (err->code != QK_OK) return NULL;
  return c ? setup_for(service, session, c->contraction->request_a)
           : qk_setups_find(service, &viewer, e->setup, err);
}

static qk_status_t check_beside(const qk_setup_t *setup, const qk_session_t *session,
                                const qk_shape_t *shape, const Quark__Contract *c,
                                const Quark__Eigen *e, qk_err_t *err) {
  if (c) return qk_job_check_contract(c, shape, err);
  const qk_status_t status = qk_job_check_eigen(e, shape, err);
  if (status != QK_OK || e->kept) return status;
  const char *user = qk_sched_user_name(session->user);
  if (qk_eigen_may_have(setup, e->problem, user, err) != QK_OK) return err->code;
  return qk_eigen_check_room(setup, e->problem, user, err);
}

static qk_status_t admit_beside(qk_service_t *service, qk_session_t *session,
                                const Quark__Contract *c, const Quark__Eigen *e, qk_err_t *err) {
  const uint64_t request = c ? c->request : e->request;
  qk_job_t *job = NULL;
  int64_t cost = 0;
  if (repeated(service, session, request, c ? &c->base : &e->base, err)) return QK_OK;
  qk_setup_t *setup = setup_beside(service, session, c, e, err);
  if (err->code == QK_OK) check_state(service, session, request, setup, err);
  const qk_terms_t terms = setup ? terms_of(service, session, setup) : (qk_terms_t){0};
  if (err->code == QK_OK) check_beside(setup, session, terms.shape, c, e, err);
  if (err->code == QK_OK)
    cost = c ? qk_job_cost_contract(c, terms.shape) : qk_job_cost_eigen(e, terms.shape);
  if (err->code == QK_OK) check_detach(service, c ? c->detach_ms : e->detach_ms, err);
  if (err->code == QK_OK) check_user(service, session, 1, err);
  if (err->code == QK_OK) check_room(service, cost, err);
  if (err->code == QK_OK) qk_upload_check(service, 0, err);
  if (err->code == QK_OK && c) qk_job_create_contract(c, &terms, &job, err);
  if (err->code == QK_OK && e) qk_job_create_eigen(e, &terms, &job, err);
  if (err->code == QK_OK) enter(service, session, job, err);
  return err->code == QK_OK ? QK_OK : reject(service, session, request, cost, err);
}

qk_status_t qk_admit_contract(qk_service_t *service, qk_session_t *session,
                              const Quark__Contract *contract, qk_err_t *err) {
  return admit_beside(service, session, contract, NULL, err);
}

/* The digest of the client's vectors in place of their number, which means nothing when its request
 * is read again. Of a request that is there it is known, whether they still are or not. */
static void name_field(const qk_session_t *session, const Quark__Eigen *eigen,
                       char text[QK_FIELD_TEXT], qk_err_t *err) {
  const qk_job_t *job = qk_session_job(session, eigen->request);
  const char *field = eigen->problem->field;
  qk_err_t why = {0};
  if (qk_fields_name_digest(session, "field", QUARK__FIELD_KIND__FIELD_VECTORS, field, text,
                            &why) == QK_OK)
    return;
  if (job && job->problem && job->problem->field)
    snprintf(text, QK_FIELD_TEXT, "%s", job->problem->field);
  else
    *err = why;
}

/* What is kept under the name, in place of what the client says of it. Of a request that is here
 * already it is what it was, whatever has become of the set. */
static void name_kept(const qk_service_t *service, const qk_session_t *session,
                      const Quark__Eigen *eigen, Quark__EigenProblem *problem, qk_err_t *err) {
  const qk_job_t *job = qk_session_job(session, eigen->request);
  const qk_viewer_t viewer = {.user = qk_sched_user_name(session->user)};
  if (job && job->recalls && strcmp(job->problem->name, problem->name) == 0) {
    *problem = *job->problem;
    return;
  }
  const qk_setup_t *setup = qk_setups_find(service, &viewer, eigen->setup, err);
  const qk_eigen_set_t *set = setup ? qk_eigen_named(setup, "name", problem->name, err) : NULL;
  if (set) *problem = *set->problem;
}

qk_status_t qk_admit_eigen(qk_service_t *service, qk_session_t *session, const Quark__Eigen *eigen,
                           qk_err_t *err) {
  Quark__EigenProblem problem = *eigen->problem;
  Quark__Eigen named = *eigen;
  char text[QK_FIELD_TEXT];
  named.problem = &problem;
  if (eigen->kept) {
    name_kept(service, session, eigen, &problem, err);
  } else if (qk_fields_is_reference(problem.field)) {
    name_field(session, eigen, text, err);
    if (err->code == QK_OK) problem.field = text;
  }
  return admit_beside(service, session, NULL, &named, err);
}

/* ---- FIELD_OPEN ------------------------------------------------------------------------------ */

/* The same links are here: nothing is sent, and the request keeps nothing. */
static void end_at_once(qk_service_t *service, qk_job_t *job) {
  const qk_outcome_t outcome = {.status = QK_OK};
  qk_rhs_end(&job->rhs[0], &outcome, qk_service_now(service));
  qk_queue_ended(service, &job->rhs[0]);
}

qk_status_t qk_admit_field(qk_service_t *service, qk_session_t *session,
                           const Quark__FieldOpen *open, qk_err_t *err) {
  qk_job_t *job = NULL;
  const char *user = qk_sched_user_name(session->user);
  if (repeated(service, session, open->request, &open->base, err)) return QK_OK;
  if (err->code == QK_OK) check_state(service, session, open->request, NULL, err);
  if (err->code == QK_OK) qk_job_check_field(open, err);
  if (err->code == QK_OK) check_keep_time(service, open->keep_ms, err);
  const bool here =
      err->code == QK_OK && open->has_digest && qk_fields_are_here(service, user, open);
  if (err->code == QK_OK && !here) qk_fields_check_user(service, user, err);
  const int64_t cost = err->code == QK_OK && !here ? qk_job_cost_field(open) : 0;
  if (err->code == QK_OK) check_room(service, cost, err);
  if (err->code == QK_OK) qk_upload_check(service, cost, err);
  if (err->code == QK_OK) {
    const qk_shape_t shape = qk_job_field_shape(open);
    qk_terms_t terms = terms_of(service, session, service->depot);
    terms.shape = &shape;
    terms.config = open->has_digest ? open->digest : 0;
    terms.again = here;
    qk_job_create_field(open, &terms, &job, err);
  }
  if (job && here) qk_bricks_drop(job);
  if (err->code == QK_OK) enter(service, session, job, err);
  if (err->code != QK_OK) return reject(service, session, open->request, cost, err);
  if (here)
    end_at_once(service, job);
  else
    qk_fields_enter(service, job);
  return QK_OK;
}

/* ---- JOIN ------------------------------------------------------------------------------------ */

/* The request that is to be joined; NULL with the reason. */
static qk_job_t *find_whole(const qk_service_t *service, const qk_session_t *session,
                            const Quark__Join *join, qk_err_t *err) {
  const bool known = join->owner.len == QK_CLIENT_ID;
  const qk_session_t *owner = known ? qk_session_by_id(&service->sessions, join->owner.data) : NULL;
  qk_job_t *whole = owner ? qk_session_job(owner, join->owner_request) : NULL;
  if (!whole || !whole->bricks) {
    qk_fail(err, QK_NOT_FOUND,
            "owner_request = %llu: its owner has no request of this number whose fields go in "
            "parts: over, or never accepted",
            (unsigned long long)join->owner_request);
    return NULL;
  }
  if (join->token.len == QK_CLIENT_ID &&
      memcmp(join->token.data, whole->bricks->token, QK_CLIENT_ID) == 0 &&
      qk_session_is_of(session, qk_sched_user_name(whole->user)))
    return whole;
  qk_fail(err, QK_DENIED, "token: it is not that of the request, or this is another user's");
  return NULL;
}

static qk_status_t check_part(const qk_job_t *whole, uint32_t part, qk_err_t *err) {
  if (part >= whole->bricks->count)
    return qk_fail(err, QK_BAD_ARGUMENT, "part = %u: the grid has 0 .. %u", part,
                   whole->bricks->count - 1);
  if ((int)part == whole->bricks->own)
    return qk_fail(err, QK_BAD_ARGUMENT, "part = %u: the owner has it itself", part);
  return QK_OK;
}

/* The new job takes its part from who has it, and is let in. */
static void enter_part(qk_service_t *service, qk_session_t *session, qk_job_t *job,
                       qk_job_t *whole) {
  qk_queue_expire_part(whole, (uint32_t)job->part);
  qk_joined_begin(job, whole, qk_service_now(service));
  if (qk_job_is_upload(job)) qk_joined_resume(job, 0);
  service->count.accepted++;
  qk_marks_enter(qk_journal_marks(service->journal), job);
  qk_session_adopt(session, job);
  qk_log(QK_LOG_INFO, "job", job->name, "accepted: part %d of %s", job->part, whole->name);
  service->events->accepted(service->events->arg, session, job, false);
  qk_admit_repeat_results(service, session, job);
}

qk_status_t qk_admit_join(qk_service_t *service, qk_session_t *session, const Quark__Join *join,
                          qk_err_t *err) {
  qk_job_t *job = NULL;
  if (join->request == 0) qk_fail(err, QK_BAD_ARGUMENT, "request = 0: must be greater");
  if (err->code == QK_OK && repeated(service, session, join->request, &join->base, err))
    return QK_OK;
  if (err->code == QK_OK) check_number(session, join->request, err);
  qk_job_t *whole = err->code == QK_OK ? find_whole(service, session, join, err) : NULL;
  if (whole && check_part(whole, join->part, err) == QK_OK) qk_joined_check(whole, join->part, err);
  if (err->code == QK_OK) qk_upload_check(service, 0, err);
  if (err->code == QK_OK) {
    qk_terms_t terms = terms_of(service, session, whole->setup);
    terms.shape = &whole->shape;
    terms.config = whole->config;
    qk_job_create_part(join, whole, &terms, &job, err);
  }
  if (job) enter_part(service, session, job, whole);
  return err->code == QK_OK ? QK_OK : reject(service, session, join->request, 0, err);
}
