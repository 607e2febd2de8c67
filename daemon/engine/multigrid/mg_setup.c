#include "daemon/engine/multigrid/mg_setup.h"

#include "daemon/base/clock.h"
#include "daemon/engine/multigrid/mg_vectors.h"

/* |M v| / |v| of vectors that are kept, over what it was in the last setup from noise. */
static const double worst_residual = 1.5;

static void report(const qk_mg_making_t *m, const char *phase, int level) {
  if (m->progress) m->progress(m->arg, phase, level, m->mg->nlevel - 1);
}

static qk_status_t make_level(const qk_mg_making_t *m, int l, qk_err_t *err);

/* The operator of the next level, and everything below it. */
static qk_status_t make_below(const qk_mg_making_t *m, int l, qk_err_t *err) {
  qk_mg_t *mg = m->mg;
  qk_mg_level_t *here = &mg->level[l], *next = &mg->level[l + 1];
  const qk_coarse_params_t coarse = {.store = mg->params.level[l + 1].store,
                                     .eight = mg->params.level[l + 1].smoother_bits == 8,
                                     .exact = l + 2 < mg->nlevel,
                                     .together = qk_mg_together(mg, l),
                                     .twist =
                                         mg->params.level[l + 1].twist * mg->level[0].op->twist,
                                     .schur = mg->level[0].op->schur};
  const double start = qk_clock_now();
  report(m, "coarse operator", l);
  qk_status_t status =
      qk_coarse_create(here->op, here->down, &next->dev, next->work, &coarse, &next->op, err);
  qk_work_trim(here->work);
  if (status) return status;
  here->setup_seconds += qk_clock_now() - start;
  return l + 2 < mg->nlevel ? make_level(m, l + 1, err) : QK_OK;
}

static qk_status_t set_vectors(const qk_mg_making_t *m, int l, qk_mg_from_t from, qk_err_t *err) {
  qk_mg_level_t *here = &m->mg->level[l];
  qk_mg_vectors_t made;
  const double start = qk_clock_now();
  report(m, from == QK_MG_REFINED ? "refinement" : "null vectors", l);
  qk_status_t status = qk_mg_make_vectors(m, l, from, &made, err);
  if (status) return status;
  qk_mg_drop_levels(m->mg, l);
  here->down = made.down;
  here->null = made.null;
  here->health.null_residual = made.residual;
  here->setup_seconds += qk_clock_now() - start;
  return QK_OK;
}

static qk_status_t make_vectors(const qk_mg_making_t *m, int l, qk_mg_from_t from, qk_err_t *err) {
  const qk_status_t status = set_vectors(m, l, from, err);
  return status ? status : make_below(m, l, err);
}

qk_status_t qk_mg_refine_level(const qk_mg_making_t *m, int l, qk_err_t *err) {
  return make_vectors(m, l, QK_MG_REFINED, err);
}

/* ---- evolved levels -------------------------------------------------------------------------- */

/* The null vectors of the start on level l, as they are. */
static qk_status_t take_start(const qk_mg_making_t *m, int l, qk_err_t *err) {
  qk_mg_level_t *here = &m->mg->level[l], *next = &m->mg->level[l + 1];
  qk_mg_making_t from = *m;
  from.vectors = m->start->vectors;
  from.vectors_arg = m->start->arg;
  qk_status_t status = set_vectors(&from, l, QK_MG_GIVEN, err);
  if (status) return status;
  qk_field_t *null = m->start->null(m->start->arg, l, m->mg->params.level[l].ntest, &next->dev);
  status = qk_comm_agree(here->geom.comm, null ? QK_OK : QK_IO_ERROR, err);
  if (status) {
    qk_field_destroy(null);
    return status;
  }
  qk_field_destroy(here->null);
  here->null = null;
  return qk_mg_null_residual(m->mg, l, &here->health.null_residual, err);
}

/* Whether the vectors of level 0 are as good here as where they come from. Those of the levels
 * below, which are written in terms of them, are then, too. */
static bool are_null_here(const qk_mg_making_t *m) {
  const double here = m->mg->level[0].health.null_residual, was = m->start->residual;
  return was > 0 && here <= worst_residual * was;
}

static int passes(const qk_mg_making_t *m, int l) {
  const int all = m->mg->params.level[l].setup_passes;
  if (m->vectors || all <= 0) return 0;
  return m->start && l > 0 ? (all + 1) / 2
                           : all; /* on level 0 they are what convergence rests on */
}

static qk_status_t refine_level(const qk_mg_making_t *m, int l, qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (int pass = 0; !status && pass < passes(m, l); pass++) status = qk_mg_refine_level(m, l, err);
  return status;
}

static qk_status_t make_and_refine(const qk_mg_making_t *m, int l, qk_mg_from_t from,
                                   qk_err_t *err) {
  const qk_status_t status = make_vectors(m, l, from, err);
  return status ? status : refine_level(m, l, err);
}

static qk_status_t resume_level(const qk_mg_making_t *m, int l, qk_err_t *err) {
  m->mg->evolved = QK_MG_RELAXED;
  return make_and_refine(m, l, QK_MG_RESUMED, err);
}

qk_status_t qk_mg_resume(const qk_mg_making_t *m, qk_err_t *err) {
  return resume_level(m, 0, err);
}

static qk_status_t start_level(const qk_mg_making_t *m, int l, qk_err_t *err) {
  const qk_status_t status = take_start(m, l, err);
  if (status) return status;
  if (l == 0) m->mg->evolved = are_null_here(m) ? QK_MG_KEPT : QK_MG_RELAXED;
  return m->mg->evolved == QK_MG_KEPT ? make_below(m, l, err) : resume_level(m, l, err);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The vectors of level l, and everything below it. */
static qk_status_t make_level(const qk_mg_making_t *m, int l, qk_err_t *err) {
  qk_status_t status;
  if (m->start && (l == 0 || m->mg->evolved == QK_MG_KEPT)) {
    status = start_level(m, l, err);
  } else {
    status = make_and_refine(m, l, m->vectors ? QK_MG_GIVEN : QK_MG_NOISE, err);
  }
  if (!status && l > 0) qk_coarse_drop_exact(m->mg->level[l].op);
  return status;
}

qk_status_t qk_mg_make_levels(const qk_mg_making_t *m, qk_err_t *err) {
  for (int l = 0; l < m->mg->nlevel; l++) m->mg->level[l].setup_seconds = 0;
  return make_level(m, 0, err);
}
