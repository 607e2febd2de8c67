/* What a SUBMIT or CONTRACT may say on a lattice: each refusal names field, value and limit. */
#include <math.h>
#include <stdio.h>

#include "daemon/base/links/clover_term.h"
#include "daemon/base/links/vectors.h"
#include "daemon/front/job/bricks.h"
#include "daemon/front/job/masses.h"
#include "proto/column_check.h"
#include "proto/eigen_check.h"

static qk_status_t say(qk_status_t status, const char *why, qk_err_t *err) {
  return status == QK_OK ? QK_OK : qk_fail(err, status, "%s", why);
}

/* ---- SUBMIT -------------------------------------------------------------------------------- */

static qk_status_t check_enums(const Quark__Submit *s, qk_err_t *err) {
  if (s->dtype != QUARK__DTYPE__DTYPE_F32 && s->dtype != QUARK__DTYPE__DTYPE_F64)
    return qk_fail(err, QK_BAD_ARGUMENT, "dtype = %d: must be 1 (f32) or 2 (f64)", s->dtype);
  if ((int)s->basis < 0 || s->basis > QUARK__BASIS__BASIS_OPENQCD)
    return qk_fail(err, QK_BAD_ARGUMENT, "basis = %d is outside 0 .. 3", s->basis);
  if ((int)s->normalisation < 0 || s->normalisation > QUARK__NORMALISATION__NORMALISATION_TWICE)
    return qk_fail(err, QK_BAD_ARGUMENT, "normalisation = %d is outside 0 .. 2", s->normalisation);
  if ((int)s->source < 0 || s->source > QUARK__SOURCE_KIND__SOURCE_VECTOR)
    return qk_fail(err, QK_BAD_ARGUMENT, "source = %d is outside 0 .. 7", s->source);
  if (s->sink < QUARK__SINK__SINK_DOWNLOAD || s->sink > QUARK__SINK__SINK_PROJECT)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "sink = %d: must be 1 (download), 2 (none), 3 (keep), 4 (file) or 5 (project)",
                   s->sink);
  return QK_OK;
}

static qk_status_t check_work(const Quark__Submit *s, qk_err_t *err) {
  if ((int)s->work < 0 || s->work > QUARK__WORK__WORK_SMEAR)
    return qk_fail(err, QK_BAD_ARGUMENT, "work = %d is outside 0 .. 7", s->work);
  if ((int)s->parity < 0 || s->parity > QUARK__PARITY__PARITY_ODD)
    return qk_fail(err, QK_BAD_ARGUMENT, "parity = %d is outside 0 .. 2", s->parity);
  if ((int)s->schur < 0 || s->schur > QUARK__SCHUR__SCHUR_ASYMMETRIC)
    return qk_fail(err, QK_BAD_ARGUMENT, "schur = %d is outside 0 .. 2", s->schur);
  const bool is_schur = s->work == QUARK__WORK__WORK_SCHUR;
  const bool asks = s->schur != QUARK__SCHUR__SCHUR_NONE;
  if (asks && !is_schur && s->work != QUARK__WORK__WORK_SOLVE)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "schur = %d: work = %d has no such system, only 0 (solve) and 6 (Schur) have",
                   s->schur, s->work);
  if ((asks || is_schur) && s->parity == QUARK__PARITY__PARITY_ALL)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "parity = 0: %s = %d is of one parity, must be 1 (even) or 2 (odd)",
                   is_schur ? "work" : "schur", is_schur ? (int)s->work : (int)s->schur);
  return QK_OK;
}

/* Whether there are five the action knows. */
static qk_status_t check_five(const Quark__Submit *s, qk_err_t *err) {
  const bool uploaded = s->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD ||
                        s->source == QUARK__SOURCE_KIND__SOURCE_FILE;
  if (!s->five_d) return QK_OK;
  if (s->work != QUARK__WORK__WORK_SOLVE)
    return qk_fail(err, QK_BAD_ARGUMENT, "five_d = 1: only solves (work = 0) have, not work = %d",
                   (int)s->work);
  if (uploaded && s->smear && s->smear->steps > 0)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "five_d = 1: a source of five dimensions is not smeared (steps = %u)",
                   s->smear->steps);
  if (s->sink == QUARK__SINK__SINK_PROJECT)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "five_d = 1: solutions of five dimensions are not projected (sink = 5)");
  if (s->n_grid > 0)
    return qk_fail(err, QK_UNSUPPORTED, "five_d = 1: fields of five dimensions go whole, no grid");
  return QK_OK;
}

static qk_status_t check_request(uint64_t request, uint64_t deadline_ms, uint32_t priority,
                                 qk_err_t *err) {
  if (request == 0) return qk_fail(err, QK_BAD_ARGUMENT, "request = 0: must be at least 1");
  if (deadline_ms > QK_DEADLINE_MS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "deadline_ms = %llu is over the limit of %llu",
                   (unsigned long long)deadline_ms, QK_DEADLINE_MS_MAX);
  if (priority > QK_PRIORITY_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "priority = %u is outside 0 .. %d", priority,
                   QK_PRIORITY_MAX);
  return QK_OK;
}

static qk_status_t check_stopping(const Quark__Submit *s, qk_err_t *err) {
  if (s->work != QUARK__WORK__WORK_SOLVE) return QK_OK;
  const struct {
    const char *name;
    double value;
  } more[] = {{"tol_abs", s->tol_abs}, {"tol_hq", s->tol_hq}};
  bool asked = false;
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
    if (!(more[i].value >= 0 && isfinite(more[i].value)))
      return qk_fail(err, QK_BAD_ARGUMENT,
                     "%s = %g: must be finite, and at least 0 (not asked for)", more[i].name,
                     more[i].value);
    asked |= more[i].value > 0;
  }
  if (s->tol_hq > 0 && s->schur != QUARK__SCHUR__SCHUR_NONE)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "tol_hq = %g: not defined for the system on one parity (schur = %d)", s->tol_hq,
                   s->schur);
  if (s->tol == 0 && asked) return QK_OK;
  if (!(s->tol > 0 && s->tol < 1))
    return qk_fail(err, QK_BAD_ARGUMENT, "tol = %g: must be between 0 and 1%s", s->tol,
                   s->tol == 0 ? ", or 0 beside a tol_abs or tol_hq" : "");
  return QK_OK;
}

static qk_status_t check_numbers(const Quark__Submit *s, qk_err_t *err) {
  if (s->nrhs == 0) return qk_fail(err, QK_BAD_ARGUMENT, "nrhs = 0: must be at least 1");
  if (s->nrhs > QK_REQUEST_RHS_MAX)
    return qk_fail(err, QK_TOO_LARGE, "nrhs = %u is over the limit of %d", s->nrhs,
                   QK_REQUEST_RHS_MAX);
  const bool solves = s->work == QUARK__WORK__WORK_SOLVE;
  if (solves && (s->max_iter == 0 || s->max_iter > QK_ITERATIONS_MAX))
    return qk_fail(err, QK_BAD_ARGUMENT, "max_iter = %llu is outside 1 .. %llu",
                   (unsigned long long)s->max_iter, QK_ITERATIONS_MAX);
  if (s->flavour < -1 || s->flavour > 1)
    return qk_fail(err, QK_BAD_ARGUMENT, "flavour = %d: must be 1 or -1", s->flavour);
  if (s->keep_ms > 0 && s->sink != QUARK__SINK__SINK_KEEP)
    return qk_fail(err, QK_BAD_ARGUMENT, "keep_ms = %llu: it is for SINK_KEEP only",
                   (unsigned long long)s->keep_ms);
  return QK_OK;
}

/* Not defined for other fields. */
static qk_status_t check_usual(const qk_shape_t *shape, const char *what, qk_err_t *err) {
  if (qk_shape_is_usual(shape)) return QK_OK;
  if (qk_shape_vectors(shape) > 1)
    return qk_fail(err, QK_UNSUPPORTED,
                   "%s: is not defined for a doublet, whose right-hand sides have two flavours (%u "
                   "real numbers a site, %u columns)",
                   what, shape->site_reals, shape->columns);
  return qk_fail(err, QK_UNSUPPORTED,
                 "%s: needs fields of spin and colour; those of this action have %u real numbers a "
                 "site and %u columns",
                 what, shape->site_reals, shape->columns);
}

/* Colour vectors have neither bases nor gamma matrices. */
static qk_status_t check_colour(const Quark__Submit *s, const qk_shape_t *shape, qk_err_t *err) {
  static const char of[] = "fields of this setup have colour alone";
  const bool twice = s->normalisation == QUARK__NORMALISATION__NORMALISATION_TWICE;
  if (!qk_shape_is_colour(shape) && twice)
    return qk_fail(
        err, QK_BAD_ARGUMENT,
        "normalisation = %d: it is for staggered fermions; fields of this setup have spin",
        (int)s->normalisation);
  if (!qk_shape_is_colour(shape)) return QK_OK;
  if (s->basis != QUARK__BASIS__BASIS_DEGRAND_ROSSI)
    return qk_fail(err, QK_BAD_ARGUMENT, "basis = %d: %s, only 0 is accepted", (int)s->basis, of);
  if (s->dagger && s->work == QUARK__WORK__WORK_SOLVE)
    return qk_fail(err, QK_UNSUPPORTED,
                   "dagger: %s, and a solve of the adjoint is not defined for them; signs "
                   "(-1)^(x+y+z+t) of source and solution do that",
                   of);
  const bool sequential = s->source == QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  for (size_t i = 0; sequential && i < s->n_column; i++)
    if (s->column[i]->gamma != 0)
      return qk_fail(err, QK_UNSUPPORTED, "column %zu: gamma = %u: %s, only 0 is accepted", i,
                     s->column[i]->gamma, of);
  return QK_OK;
}

static qk_status_t check_columns(const Quark__Submit *s, const qk_shape_t *shape, qk_err_t *err) {
  const bool fields = s->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD ||
                      s->source == QUARK__SOURCE_KIND__SOURCE_FILE;
  const size_t columns = fields ? 0 : qk_masses_sources(s);
  qk_status_t status = QK_OK;
  char what[32], why[QK_WHY];
  if (s->n_column != columns)
    return qk_fail(err, QK_BAD_ARGUMENT, "%zu columns: this source needs %zu", s->n_column,
                   columns);
  for (size_t i = 0; i < columns && status == QK_OK; i++) {
    snprintf(what, sizeof what, "column %zu", i);
    status = qk_column_check(s->source, s->column[i], shape, what, why);
  }
  return say(status, why, err);
}

/* Whose eigenvectors they are the service knows. */
static qk_status_t check_vectors(const Quark__Submit *s, qk_err_t *err) {
  char why[QK_WHY];
  const bool vector = s->source == QUARK__SOURCE_KIND__SOURCE_VECTOR;
  if (vector && !s->vectors)
    return qk_fail(err, QK_BAD_ARGUMENT, "vectors: source = 7 needs the name of eigenvectors");
  if (!vector && s->vectors)
    return qk_fail(err, QK_BAD_ARGUMENT, "vectors: it is for source = 7 only, not for %d",
                   (int)s->source);
  return vector ? say(qk_eigen_check_name("vectors", s->vectors, why), why, err) : QK_OK;
}

/* What a projection needs, where there is one. Whose vectors they are the service knows. */
static qk_status_t check_project(const Quark__Submit *s, const qk_shape_t *shape, qk_err_t *err) {
  char why[QK_WHY];
  const bool fields = s->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD ||
                      s->source == QUARK__SOURCE_KIND__SOURCE_FILE;
  if (s->sink != QUARK__SINK__SINK_PROJECT) {
    if (!s->project && !s->has_project_count) return QK_OK;
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: it is for sink = 5 only, not for %d",
                   s->project ? "project" : "project_count", (int)s->sink);
  }
  if (!s->project)
    return qk_fail(err, QK_BAD_ARGUMENT, "project: sink = 5 needs the name of eigenvectors");
  if (s->project_count < 1 || s->project_count > QK_EIGEN_COUNT_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "project_count = %u is outside 1 .. %d", s->project_count,
                   QK_EIGEN_COUNT_MAX);
  if (fields)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "source = %d: with sink = 5 sources are generated; keep the solution of this "
                   "one (sink = 3), and project that (source = 5, work = 7)",
                   (int)s->source);
  if (s->parity != QUARK__PARITY__PARITY_ALL)
    return qk_fail(err, QK_BAD_ARGUMENT, "parity = %d: a projection (sink = 5) is of all sites",
                   (int)s->parity);
  if (s->n_grid > 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "grid: what is projected (sink = 5) goes whole");
  const qk_status_t status = check_usual(shape, "a projection (sink = 5)", err);
  return status != QK_OK ? status : say(qk_eigen_check_name("project", s->project, why), why, err);
}

static qk_status_t check_grid(const Quark__Submit *s, const qk_shape_t *shape, qk_err_t *err) {
  if (s->n_grid > 0 && s->sink == QUARK__SINK__SINK_FILE)
    return qk_fail(err, QK_BAD_ARGUMENT, "grid: solutions that go to a file (sink 4) go whole");
  return qk_bricks_check(s->n_grid, s->grid, s->has_part ? &s->part : NULL, shape->dims,
                         s->parity != QUARK__PARITY__PARITY_ALL, err);
}

qk_status_t qk_job_check(const Quark__Submit *s, const qk_shape_t *shape, qk_err_t *err) {
  char why[QK_WHY];
  qk_status_t status = check_request(s->request, s->deadline_ms, s->priority, err);
  if (status != QK_OK) return status;
  status = check_enums(s, err);
  if (status == QK_OK) status = check_work(s, err);
  if (status == QK_OK) status = check_five(s, err);
  if (status == QK_OK) status = check_numbers(s, err);
  if (status == QK_OK) status = check_stopping(s, err);
  if (status == QK_OK) status = qk_masses_check(s, err);
  if (status == QK_OK) status = say(qk_smearing_check(s->smear, "smear", why), why, err);
  if (status == QK_OK && s->smear && s->smear->shift > 0 && !qk_shape_is_colour(shape))
    status = qk_fail(err, QK_UNSUPPORTED, "smear: shift = %u: of fields with colour alone",
                     s->smear->shift);
  if (status == QK_OK && s->parity != QUARK__PARITY__PARITY_ALL)
    status = check_usual(shape, "a field of one parity", err);
  if (status == QK_OK && s->source == QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL &&
      !qk_shape_is_colour(shape))
    status = check_usual(shape, "a sequential source", err);
  if (status == QK_OK) status = check_colour(s, shape, err);
  if (status == QK_OK) status = check_vectors(s, err);
  if (status == QK_OK) status = check_project(s, shape, err);
  if (status == QK_OK) status = check_grid(s, shape, err);
  if (status != QK_OK) return status;
  return check_columns(s, shape, err);
}

/* M has five dimensions, and what users send four. */
static qk_status_t check_slices(const Quark__Submit *s, const qk_action_row_t *action,
                                qk_err_t *err) {
  static const char *const why =
      "%s = %d: is not defined for the action %s of this setup, whose operator has a fifth "
      "dimension: only solves of all sites are, and the source as a solve sees it (work = 7)";
  const bool parts = s->work != QUARK__WORK__WORK_SOLVE && s->work != QUARK__WORK__WORK_SMEAR;
  if (parts) return qk_fail(err, QK_UNSUPPORTED, why, "work", (int)s->work, action->name);
  if (s->parity != QUARK__PARITY__PARITY_ALL)
    return qk_fail(err, QK_UNSUPPORTED, why, "parity", (int)s->parity, action->name);
  if (s->dagger) return qk_fail(err, QK_UNSUPPORTED, why, "dagger", 1, action->name);
  if (s->tol_hq > 0)
    return qk_fail(
        err, QK_UNSUPPORTED,
        "tol_hq = %g: is not defined for the action %s of this setup, whose operator has "
        "a fifth dimension",
        s->tol_hq, action->name);
  return QK_OK;
}

/* M connects all sites, and is no sum of a hop and a local term. */
static qk_status_t check_dense(const Quark__Submit *s, const qk_action_row_t *action,
                               qk_err_t *err) {
  static const char *const why =
      "%s = %d: is not defined for the action %s of this setup, whose operator connects all sites: "
      "only M and solves of all sites are, and the source as a solve sees it (work = 7)";
  const bool parts = s->work != QUARK__WORK__WORK_SOLVE && s->work != QUARK__WORK__WORK_M &&
                     s->work != QUARK__WORK__WORK_SMEAR;
  if (parts) return qk_fail(err, QK_UNSUPPORTED, why, "work", (int)s->work, action->name);
  if (s->parity == QUARK__PARITY__PARITY_ALL) return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED, why, "parity", (int)s->parity, action->name);
}

qk_status_t qk_job_check_action(const Quark__Submit *s, const qk_action_row_t *action,
                                qk_err_t *err) {
  const qk_status_t status = action->has_slices ? check_slices(s, action, err)
                             : action->is_dense ? check_dense(s, action, err)
                                                : QK_OK;
  if (status != QK_OK) return status;
  if (qk_masses_check_each(s, action, err) != QK_OK) return err->code;
  if (s->five_d && !action->has_slices)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "five_d = 1: fields of the action %s of this setup have four dimensions",
                   action->name);
  if (s->dagger && s->work == QUARK__WORK__WORK_SOLVE && qk_action_vectors(action) > 1)
    return qk_fail(err, QK_UNSUPPORTED,
                   "dagger: the adjoint of the action %s of this setup exchanges the flavours, and "
                   "is not solved for; gamma_5 and an exchange of the flavours do that (M^+ = "
                   "tau_1 gamma_5 M gamma_5 tau_1)",
                   action->name);
  if (s->flavour >= 0 || action->has_flavours) return QK_OK;
  if (qk_action_vectors(action) > 1)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "flavour = %d: right-hand sides of the action %s of this setup have both "
                   "flavours, only 1 is accepted; which of them a generated source stands in is "
                   "said by its columns (quarkctl: ,flavour=-1 in --source)",
                   s->flavour, action->name);
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "flavour = %d: the action %s of this setup has no flavours, only 1 is accepted",
                 s->flavour, action->name);
}

qk_status_t qk_job_check_kappa(const Quark__Submit *s, double kappa, qk_err_t *err) {
  if (kappa > 0 || s->normalisation != QUARK__NORMALISATION__NORMALISATION_KAPPA) return QK_OK;
  return qk_fail(
      err, QK_BAD_ARGUMENT,
      "normalisation = %d: this setup has no kappa: ask for 0 (mass); one whose clover term tells "
      "no mass may be loaded with kappa",
      (int)s->normalisation);
}

qk_status_t qk_job_check_shift(const Quark__Submit *s, const double boundary[8], qk_err_t *err) {
  const uint32_t shift = s->smear ? s->smear->shift : 0;
  for (int mu = 0; mu < 3; mu++)
    if ((shift >> mu & 1) && (boundary[2 * mu] != 1 || boundary[2 * mu + 1] != 0))
      return qk_fail(err, QK_UNSUPPORTED,
                     "smear: shift = %u: shifts take no boundary factor, and that of this setup in "
                     "%c is not 1: what comes of them would depend on where the source is",
                     shift, "xyz"[mu]);
  return QK_OK;
}

/* ---- EIGEN --------------------------------------------------------------------------------- */

qk_status_t qk_job_check_eigen(const Quark__Eigen *eigen, const qk_shape_t *shape, qk_err_t *err) {
  char why[QK_WHY];
  qk_status_t status = check_request(eigen->request, eigen->deadline_ms, eigen->priority, err);
  if (status != QK_OK) return status;
  status = say(qk_eigen_check(eigen->problem, shape, why), why, err);
  return status == QK_OK ? say(qk_eigen_check_new_name(eigen->problem->name, why), why, err)
                         : status;
}

/* ---- CONTRACT ------------------------------------------------------------------------------ */

static qk_status_t check_channel(const Quark__Channel *c, const qk_shape_t *shape, size_t i,
                                 qk_err_t *err) {
  const bool corner = c->kind == QUARK__CHANNEL_KIND__CHANNEL_CORNER;
  if ((int)c->kind < 0 || c->kind > QUARK__CHANNEL_KIND__CHANNEL_CORNER)
    return qk_fail(err, QK_BAD_ARGUMENT, "channel %zu: kind = %d is outside 0 .. 3", i, c->kind);
  if (c->sink > 15)
    return qk_fail(err, QK_BAD_ARGUMENT, "channel %zu: sink = %u is outside 0 .. 15", i, c->sink);
  if (c->source > 15)
    return qk_fail(err, QK_BAD_ARGUMENT, "channel %zu: source = %u is outside 0 .. 15", i,
                   c->source);
  if (!qk_shape_is_colour(shape) && corner)
    return qk_fail(err, QK_UNSUPPORTED,
                   "channel %zu: kind = %d: it is for fields with colour alone; the nucleon of "
                   "quarks with spin is kind = 1",
                   i, c->kind);
  if (!qk_shape_is_colour(shape) || corner) return QK_OK;
  if (c->kind != QUARK__CHANNEL_KIND__CHANNEL_MESON)
    return qk_fail(err, QK_UNSUPPORTED,
                   "channel %zu: kind = %d: of fields with colour alone there are mesons (0) and "
                   "the local nucleon (3)",
                   i, c->kind);
  if ((c->sink ^ c->source) <= QK_SHIFT_MAX) return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED,
                 "channel %zu: sink = %u, source = %u: of fields with colour alone they are spin "
                 "and taste, which differ in x, y and z only, not in t (8)",
                 i, c->sink, c->source);
}

static uint32_t shift_of(const Quark__Channel *c) {
  return c->kind == QUARK__CHANNEL_KIND__CHANNEL_MESON ? c->sink ^ c->source : 0;
}

/* Of colour vectors; the propagator a is shifted once. */
static qk_status_t check_shifts(const Quark__Contraction *c, qk_err_t *err) {
  for (size_t i = 1; i < c->n_channel; i++)
    if (shift_of(c->channel[i]) != shift_of(c->channel[0]))
      return qk_fail(err, QK_UNSUPPORTED,
                     "channel %zu: spin and taste differ by %u, those of channel 0 by %u: each "
                     "shift is a contraction of its own",
                     i, shift_of(c->channel[i]), shift_of(c->channel[0]));
  return QK_OK;
}

static qk_status_t check_first(const char *name, uint32_t first, const qk_shape_t *shape,
                               qk_err_t *err) {
  const uint32_t most = QK_REQUEST_RHS_MAX - shape->columns;
  if (first <= most) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "%s = %u is outside 0 .. %u", name, first, most);
}

qk_status_t qk_job_check_contract(const Quark__Contract *contract, const qk_shape_t *shape,
                                  qk_err_t *err) {
  const Quark__Contraction *c = contract->contraction;
  char why[QK_WHY];
  qk_status_t status =
      check_request(contract->request, contract->deadline_ms, contract->priority, err);
  if (status == QK_OK && !qk_shape_is_colour(shape))
    status = check_usual(shape, "a contraction", err);
  if (status != QK_OK) return status;
  if (c->n_channel == 0) return qk_fail(err, QK_BAD_ARGUMENT, "channels: must be at least 1");
  if (c->n_channel > QK_CHANNELS_MAX)
    return qk_fail(err, QK_TOO_LARGE, "%zu channels are over the limit of %d", c->n_channel,
                   QK_CHANNELS_MAX);
  for (size_t i = 0; i < c->n_channel && status == QK_OK; i++)
    status = check_channel(c->channel[i], shape, i, err);
  if (status == QK_OK && qk_shape_is_colour(shape)) status = check_shifts(c, err);
  if (status == QK_OK) status = check_first("first_a", c->first_a, shape, err);
  if (status == QK_OK) status = check_first("first_b", c->first_b, shape, err);
  if (status == QK_OK && c->request_b == 0 && c->first_b > 0)
    status = qk_fail(err, QK_BAD_ARGUMENT, "first_b = %u needs request_b", c->first_b);
  if (status == QK_OK) status = say(qk_momenta_check(c, shape->dims, why), why, err);
  if (status == QK_OK) status = say(qk_origin_check(c, shape->dims, why), why, err);
  if (status == QK_OK) status = say(qk_smearing_check(c->sink, "sink", why), why, err);
  if (status == QK_OK && c->sink && c->sink->shift > 0)
    status = qk_fail(err, QK_BAD_ARGUMENT, "sink: shift = %u: that of sinks follows from channels",
                     c->sink->shift);
  return status;
}

/* ---- FIELD_OPEN ------------------------------------------------------------------------------ */

static qk_status_t check_dims(const Quark__FieldOpen *open, qk_err_t *err) {
  if (open->n_dims != 4)
    return qk_fail(err, QK_BAD_GEOMETRY, "dims of %zu numbers: 4 are needed", open->n_dims);
  for (int mu = 0; mu < 4; mu++)
    if (open->dims[mu] < 2 || open->dims[mu] % 2 != 0)
      return qk_fail(err, QK_BAD_GEOMETRY,
                     "dims: the extent of %c is %u: extents must be even and at least 2",
                     "xyzt"[mu], open -> dims[mu]);
  const qk_shape_t shape = qk_job_field_shape(open);
  const char *wrong = qk_shape_check(&shape);
  return wrong ? qk_fail(err, QK_TOO_LARGE, "dims: %s", wrong) : QK_OK;
}

/* What of FIELD_OPEN goes with its kind. */
static qk_status_t check_links(const Quark__FieldOpen *open, qk_err_t *err) {
  if (open->reals != 18 && open->reals != 12)
    return qk_fail(err, QK_BAD_ARGUMENT, "reals = %u: must be 18 or 12", open->reals);
  if (open->has_plaquette && !(fabs(open->plaquette) <= 1))
    return qk_fail(err, QK_BAD_ARGUMENT, "plaquette = %g is outside -1 .. 1", open->plaquette);
  return QK_OK;
}

static qk_status_t check_beside_links(const Quark__FieldOpen *open, const char *name,
                                      uint32_t reals, qk_err_t *err) {
  if (open->has_reals && open->reals != reals)
    return qk_fail(err, QK_BAD_ARGUMENT, "reals = %u: of %s it must be %u", open->reals, name,
                   reals);
  if (open->has_plaquette)
    return qk_fail(err, QK_BAD_ARGUMENT, "plaquette = %g: %s has none", open->plaquette, name);
  return QK_OK;
}

/* Behind the check of dims. */
static qk_status_t check_count(const Quark__FieldOpen *open, qk_err_t *err) {
  if (open->kind != QUARK__FIELD_KIND__FIELD_VECTORS) {
    if (!open->has_count) return QK_OK;
    return qk_fail(err, QK_BAD_ARGUMENT, "count = %u: only vectors (kind = 3) have one",
                   open->count);
  }
  const qk_shape_t shape = qk_job_field_shape(open);
  const uint64_t most = 3 * (qk_shape_sites(&shape) / shape.dims[3]);
  if (open->count < 1)
    return qk_fail(err, QK_BAD_ARGUMENT, "count = 0: vectors of a time slice must be 1 or more");
  if (open->count > QK_EIGEN_COUNT_MAX)
    return qk_fail(err, QK_TOO_LARGE, "count = %u is over the limit of %d", open->count,
                   QK_EIGEN_COUNT_MAX);
  if (open->count > UINT32_MAX / shape.dims[3]) /* they are counted in 32 bit */
    return qk_fail(err, QK_TOO_LARGE,
                   "count = %u: with %u time slices there are more than %u vectors", open->count,
                   shape.dims[3], UINT32_MAX);
  if (open->count <= most) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "count = %u: no more than %llu vectors of a time slice are orthogonal",
                 open->count, (unsigned long long)most);
}

static qk_status_t check_kind(const Quark__FieldOpen *open, qk_err_t *err) {
  switch (open->kind) {
  case QUARK__FIELD_KIND__FIELD_GAUGE:
    return check_links(open, err);
  case QUARK__FIELD_KIND__FIELD_CLOVER:
    return check_beside_links(open, "a clover term", QK_CLOVER_TERM_SITE, err);
  case QUARK__FIELD_KIND__FIELD_VECTORS:
    return check_beside_links(open, "a field of vectors", QK_VECTORS_SITE, err);
  default:
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "kind = %d: must be 1 (gauge links), 2 (a clover term) or 3 (vectors)",
                   open->kind);
  }
}

qk_status_t qk_job_check_field(const Quark__FieldOpen *open, qk_err_t *err) {
  qk_status_t status = check_request(open->request, 0, 0, err);
  if (status != QK_OK) return status;
  if (open->dtype != QUARK__DTYPE__DTYPE_F32 && open->dtype != QUARK__DTYPE__DTYPE_F64)
    return qk_fail(err, QK_BAD_ARGUMENT, "dtype = %d: must be 1 (f32) or 2 (f64)", open->dtype);
  status = check_kind(open, err);
  if (status == QK_OK) status = check_dims(open, err);
  if (status == QK_OK) status = check_count(open, err);
  if (status != QK_OK) return status;
  return qk_bricks_check(open->n_grid, open->grid, open->has_part ? &open->part : NULL, open->dims,
                         false, err);
}
