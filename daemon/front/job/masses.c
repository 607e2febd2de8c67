#include "daemon/front/job/masses.h"

#include "proto/action/operator_text.h"

/* ---- SUBMIT ---------------------------------------------------------------------------------- */

uint32_t qk_masses_sources(const Quark__Submit *submit) {
  return submit->n_masses > 0 ? submit->nrhs / (uint32_t)submit->n_masses : submit->nrhs;
}

qk_status_t qk_masses_check(const Quark__Submit *s, qk_err_t *err) {
  const size_t n = s->n_masses;
  if (n == 0) return QK_OK;
  if (n > QK_MASSES_MAX)
    return qk_fail(err, QK_TOO_LARGE, "masses: there are %zu, the limit is %d", n, QK_MASSES_MAX);
  if (s->nrhs % n != 0)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "nrhs = %u: must be a multiple of %zu, one for each of the masses", s->nrhs, n);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++)
      if (s->masses[i] == s->masses[k])
        return qk_fail(err, QK_BAD_ARGUMENT, "masses[%zu] = %g: is masses[%zu], too", i,
                       s->masses[i], k);
  if (s->work != QUARK__WORK__WORK_SOLVE)
    return qk_fail(err, QK_BAD_ARGUMENT, "work = %d: with masses there are solves (0) alone",
                   (int)s->work);
  if (s->dagger || s->parity != QUARK__PARITY__PARITY_ALL || s->schur != QUARK__SCHUR__SCHUR_NONE)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "dagger, parity, schur = %d, %d, %d: with masses M x = b is solved on all sites",
                   s->dagger, (int)s->parity, (int)s->schur);
  if (s->tol_abs > 0 || s->tol_hq > 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "tol_abs, tol_hq = %g, %g: must be 0 with masses",
                   s->tol_abs, s->tol_hq);
  if (s->source == QUARK__SOURCE_KIND__SOURCE_FILE)
    return qk_fail(err, QK_UNSUPPORTED, "source = %d: not with masses; upload the sources (0)",
                   (int)s->source);
  if (s->n_grid > 0)
    return qk_fail(err, QK_UNSUPPORTED, "masses: with them fields go whole, no grid");
  if (s->five_d || s->sink == QUARK__SINK__SINK_PROJECT)
    return qk_fail(err, QK_UNSUPPORTED, "five_d, sink = %d, %d: not with masses", s->five_d,
                   (int)s->sink);
  if (s->normalisation == QUARK__NORMALISATION__NORMALISATION_KAPPA)
    return qk_fail(err, QK_BAD_ARGUMENT, "normalisation = %d: 2 kappa is that of one mass",
                   (int)s->normalisation);
  return QK_OK;
}

qk_status_t qk_masses_check_each(const Quark__Submit *s, const qk_action_row_t *action,
                                 qk_err_t *err) {
  char why[QK_WHY];
  if (s->n_masses > 0 && !action->has_masses)
    return qk_fail(err, QK_UNSUPPORTED,
                   "masses: the action %s of this setup is solved for its own mass alone",
                   action->name);
  for (size_t i = 0; i < s->n_masses; i++)
    if (!qk_action_takes_mass(action, s->masses[i], why))
      return qk_fail(err, QK_BAD_ARGUMENT, "masses[%zu] = %s", i, why);
  return QK_OK;
}

/* ---- families and blocks --------------------------------------------------------------------- */

qk_rhs_t *qk_masses_nth(qk_job_t *job, uint32_t k) {
  if (job->nmass == 0) return &job->rhs[k];
  return &job->rhs[k % job->nmass * job->nsource + k / job->nmass];
}

uint64_t qk_rhs_family(const qk_rhs_t *rhs, uint64_t number) {
  const qk_job_t *job = rhs->job;
  const qk_rhs_t *first = &job->rhs[qk_rhs_source(rhs)];
  const bool same = !qk_job_is_upload(job) || rhs->checksum == first->checksum;
  return number * QK_REQUEST_RHS_MAX + (same ? first : rhs)->index;
}

/* Sources of a block. */
static uint32_t together(const qk_job_t *job) {
  const uint32_t n = QK_MASSES_TOGETHER / job->nmass;
  return n < 1 ? 1 : n < QK_MASSES_SOURCES ? n : QK_MASSES_SOURCES;
}

static uint32_t block_of(const qk_rhs_t *rhs) {
  return qk_rhs_source(rhs) / together(rhs->job);
}

uint64_t qk_rhs_block(const qk_rhs_t *rhs, uint64_t number) {
  return number * QK_REQUEST_RHS_MAX + block_of(rhs);
}

/* The next one of the block of rhs after `last`; NULL: there is none. */
static const qk_rhs_t *next(const qk_rhs_t *rhs, const qk_rhs_t *last) {
  const qk_job_t *job = rhs->job;
  for (uint32_t i = last ? last->index + 1 : 0; i < job->nrhs; i++)
    if (block_of(&job->rhs[i]) == block_of(rhs)) return &job->rhs[i];
  return NULL;
}

/* One that was lost with an engine is tried alone. */
uint32_t qk_rhs_block_left(const qk_rhs_t *rhs) {
  uint32_t n = 0;
  if (rhs->losses > 0) return 0;
  for (const qk_rhs_t *r = NULL; (r = next(rhs, r));)
    n += r != rhs && r->state == QK_RHS_QUEUED && r->losses == 0 && qk_sched_item_waits(&r->queue);
  return n;
}

bool qk_rhs_waits_for_block(const qk_rhs_t *rhs) {
  if (rhs->job->nmass == 0) return false;
  for (const qk_rhs_t *r = NULL; (r = next(rhs, r));)
    if (r->state == QK_RHS_UPLOADING) return true;
  return false;
}

int qk_rhs_block_replica(const qk_rhs_t *rhs) {
  if (rhs->job->nmass == 0) return -1;
  for (const qk_rhs_t *r = NULL; (r = next(rhs, r));)
    if (r->state == QK_RHS_RUNNING) return r->replica;
  return -1;
}
