#include "daemon/engine/multigrid/mg_setup.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/engine/multigrid/mg_vectors.h"

static void report(const qk_mg_making_t *m, const char *phase, int level) {
  if (m->progress) m->progress(m->arg, phase, level, m->mg->nlevel - 1);
}

void qk_mg_drop_levels(qk_mg_t *mg, int l) {
  for (int k = mg->nlevel - 1; k > l; k--) {
    qk_mg_level_t *level = &mg->level[k];
    if (level->op) level->op->ops->destroy(level->op);
    level->op = NULL;
    qk_field_destroy(mg->level[k - 1].null);
    mg->level[k - 1].null = NULL;
    qk_prolongator_destroy(mg->level[k - 1].down);
    mg->level[k - 1].down = NULL;
    if (level->work) qk_work_trim(level->work);
  }
}

static qk_status_t make_level(const qk_mg_making_t *m, int l, qk_err_t *err);

/* The operator of the next level, and everything below it. */
static qk_status_t make_below(const qk_mg_making_t *m, int l, qk_err_t *err) {
  qk_mg_t *mg = m->mg;
  qk_mg_level_t *here = &mg->level[l], *next = &mg->level[l + 1];
  const qk_coarse_params_t coarse = {.store = mg->params.level[l + 1].store,
                                     .exact = l + 2 < mg->nlevel,
                                     .together = qk_mg_together(mg, l),
                                     .twist =
                                         mg->params.level[l + 1].twist * mg->level[0].op->twist};
  const double start = qk_clock_now();
  report(m, "coarse operator", l);
  qk_status_t status =
      qk_coarse_create(here->op, here->down, &next->dev, next->work, &coarse, &next->op, err);
  qk_work_trim(here->work);
  if (status) return status;
  here->setup_seconds += qk_clock_now() - start;
  return l + 2 < mg->nlevel ? make_level(m, l + 1, err) : QK_OK;
}

static qk_status_t make_vectors(const qk_mg_making_t *m, int l, bool refine, qk_err_t *err) {
  qk_mg_level_t *here = &m->mg->level[l];
  qk_mg_vectors_t made;
  const double start = qk_clock_now();
  report(m, refine ? "refinement" : "null vectors", l);
  qk_status_t status = qk_mg_make_vectors(m, l, refine, &made, err);
  if (status) return status;
  qk_mg_drop_levels(m->mg, l);
  here->down = made.down;
  here->null = made.null;
  here->health.null_residual = made.residual;
  here->setup_seconds += qk_clock_now() - start;
  return make_below(m, l, err);
}

qk_status_t qk_mg_refine_level(const qk_mg_making_t *m, int l, qk_err_t *err) {
  return make_vectors(m, l, true, err);
}

/* The vectors of level l, and everything below it. */
static qk_status_t make_level(const qk_mg_making_t *m, int l, qk_err_t *err) {
  qk_status_t status = make_vectors(m, l, false, err);
  for (int pass = 0; !status && !m->vectors && pass < m->mg->params.level[l].setup_passes; pass++)
    status = qk_mg_refine_level(m, l, err);
  if (!status && l > 0) qk_coarse_drop_exact(m->mg->level[l].op);
  return status;
}

qk_status_t qk_mg_make_levels(const qk_mg_making_t *m, qk_err_t *err) {
  for (int l = 0; l < m->mg->nlevel; l++) m->mg->level[l].setup_seconds = 0;
  return make_level(m, 0, err);
}

qk_status_t qk_mg_all_minus(const qk_device_t *dev, int n, void **minus) {
  uint8_t one[QK_MAX_RHS];
  memset(one, 1, sizeof one);
  qk_status_t status = dev->ops->alloc(dev->ctx, (size_t)n, minus);
  if (status) return status;
  status = dev->ops->copy(dev->ctx, *minus, one, (size_t)n, QK_COPY_TO_DEVICE, 0);
  return status ? status : dev->ops->queue_sync(dev->ctx, 0);
}
