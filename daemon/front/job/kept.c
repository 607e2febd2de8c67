#include "daemon/front/job/kept.h"

#include <stdio.h>
#include <string.h>

/* Solution rhs of a kept request, for the job `user`; what names the reference in errors. */
static qk_status_t find(const qk_session_t *session, const qk_job_t *user, uint64_t request,
                        uint32_t rhs, Quark__Basis basis, const char *what, qk_rhs_t **kept,
                        qk_err_t *err) {
  const unsigned long long number = request;
  qk_job_t *job = qk_session_job(session, request);
  if (!job)
    return qk_fail(err, QK_NOT_FOUND,
                   "%s: request %llu is not kept here: released, expired or never accepted", what,
                   number);
  if (job->field)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: request %llu is a field (FIELD_OPEN), no solution",
                   what, number);
  if (job->sink != QUARK__SINK__SINK_KEEP)
    return qk_fail(err, QK_NOT_FOUND, "%s: request %llu was submitted without SINK_KEEP", what,
                   number);
  const bool links = job->config == user->config &&
                     memcmp(job->shape.dims, user->shape.dims, sizeof job->shape.dims) == 0;
  if (!links)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s: request %llu has another gauge configuration (setup %s) than setup %s",
                   what, number, job->setup_name, user->setup_name);
  if (job->five_d)
    return qk_fail(err, QK_UNSUPPORTED,
                   "%s: request %llu has solutions of five dimensions (five_d), which are no "
                   "sources, and are not contracted",
                   what, number);
  if (job->shape.site_reals != user->shape.site_reals)
    return qk_fail(
        err, QK_BAD_ARGUMENT,
        "%s: request %llu (setup %s) has fields of %u real numbers a site, setup %s of %u", what,
        number, job->setup_name, job->shape.site_reals, user->setup_name, user->shape.site_reals);
  if (rhs >= job->nrhs)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: rhs = %u of request %llu is outside 0 .. %u", what,
                   rhs, number, job->nrhs - 1);
  if (job->basis != basis)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: request %llu is in basis %d, must be in %d", what,
                   number, job->basis, basis);
  qk_rhs_t *found = &job->rhs[rhs];
  if (found->state < QK_RHS_ENDED)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: rhs %u of request %llu has not ended: wait for it",
                   what, rhs, number);
  if (found->outcome.status != QK_OK)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: rhs %u of request %llu ended with %s", what, rhs,
                   number, qk_status_name(found->outcome.status));
  if (!found->solution)
    return qk_fail(err, QK_NOT_FOUND, "%s: request %llu has expired: submit it again", what,
                   number);
  *kept = found;
  return QK_OK;
}

static qk_status_t bind_propagator(const qk_session_t *session, qk_rhs_t *rhs, int i,
                                   uint64_t request, uint32_t first, qk_err_t *err) {
  const char *const what = i == 0 ? "request_a" : "request_b";
  qk_rhs_t *kept = NULL;
  qk_status_t status = QK_OK;
  for (uint32_t k = rhs->job->shape.columns; k-- > 0 && status == QK_OK;)
    status = find(session, rhs->job, request, first + k, QUARK__BASIS__BASIS_DEGRAND_ROSSI, what,
                  &kept, err);
  if (status == QK_OK && kept->job->parity != QUARK__PARITY__PARITY_ALL)
    status = qk_fail(err, QK_BAD_ARGUMENT,
                     "%s: request %llu has fields of one parity (%d): contractions need all sites",
                     what, (unsigned long long)request, kept->job->parity);
  if (status == QK_OK) qk_rhs_use(rhs, i, kept);
  return status;
}

static qk_status_t bind_columns(const qk_session_t *session, qk_job_t *job, qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (uint32_t i = 0; i < job->nrhs && status == QK_OK; i++) {
    const Quark__Column *c = &job->column[i];
    if (job->rhs[i].state >= QK_RHS_ENDED) continue; /* it came back from the journal */
    char what[32];
    qk_rhs_t *kept = NULL;
    snprintf(what, sizeof what, "column %u", i);
    status = find(session, job, c->request, c->rhs, job->basis, what, &kept, err);
    if (status == QK_OK) qk_rhs_use(&job->rhs[i], 0, kept);
  }
  return status;
}

qk_status_t qk_kept_bind(const qk_session_t *session, qk_job_t *job, qk_err_t *err) {
  const Quark__Contraction *c = job->contraction;
  if (c && job->rhs[0].state >= QK_RHS_ENDED) return QK_OK;
  if (!c)
    return job->source == QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL ? bind_columns(session, job, err)
                                                                : QK_OK;
  qk_status_t status = bind_propagator(session, job->rhs, 0, c->request_a, c->first_a, err);
  if (status == QK_OK && c->request_b > 0)
    status = bind_propagator(session, job->rhs, 1, c->request_b, c->first_b, err);
  return status;
}

bool qk_kept_expired(const qk_job_t *job, double now) {
  return job->sink == QUARK__SINK__SINK_KEEP && job->ended == job->nrhs && job->holds == 0 &&
         now - job->used_at > job->keep;
}

uint64_t qk_kept_count(const qk_job_t *job) {
  return job->kept;
}
