/* What a SUBMIT or CONTRACT may say on a lattice: each refusal names field, value and limit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/job/job.h"

static const int EVERY = -1; /* every time slice, spin or colour */

static bool is_noise(Quark__SourceKind source) {
  return source == QUARK__SOURCE_KIND__SOURCE_Z2 || source == QUARK__SOURCE_KIND__SOURCE_Z4;
}

/* ---- smearing ------------------------------------------------------------------------------ */

typedef struct link_rule {
  size_t params;
  double most;
  const char *name;
} link_rule_t;

static const link_rule_t LINK_RULES[] = {
    {0, 0, "unsmeared links"}, {1, 1, "APE"}, {1, 0.25, "stout"}, {3, 1, "HYP"}};

static qk_status_t check_link_smearing(const Quark__Smearing *s, const char *what, qk_err_t *err) {
  if ((int)s->links < 0 || s->links > QUARK__LINK_SMEAR__LINK_SMEAR_HYP)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: links = %d is outside 0 .. 3", what, s->links);
  const link_rule_t *rule = &LINK_RULES[s->links];
  if (s->n_link_param != rule->params)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: %zu link_param: %s needs %zu", what, s->n_link_param,
                   rule->name, rule->params);
  for (size_t i = 0; i < rule->params; i++)
    if (!(s->link_param[i] >= 0 && s->link_param[i] <= rule->most))
      return qk_fail(err, QK_BAD_ARGUMENT, "%s: link_param %zu = %g is outside 0 .. %g of %s", what,
                     i, s->link_param[i], rule->most, rule->name);
  if (s->link_steps > QK_LINK_STEPS_MAX)
    return qk_fail(err, QK_TOO_LARGE, "%s: link_steps = %u is over the limit of %d", what,
                   s->link_steps, QK_LINK_STEPS_MAX);
  return QK_OK;
}

static qk_status_t check_smearing(const Quark__Smearing *s, const char *what, qk_err_t *err) {
  if (!s) return QK_OK;
  if (!(fabs(s->alpha) <= QK_SMEAR_ALPHA_MAX) || fabs(1 + 6 * s->alpha) < QK_SMEAR_LEAST)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s: alpha = %g must be -%g .. %g, and 1 + 6 alpha must not vanish", what,
                   s->alpha, QK_SMEAR_ALPHA_MAX, QK_SMEAR_ALPHA_MAX);
  if (s->steps > QK_SMEAR_STEPS_MAX)
    return qk_fail(err, QK_TOO_LARGE, "%s: steps = %u is over the limit of %d", what, s->steps,
                   QK_SMEAR_STEPS_MAX);
  return check_link_smearing(s, what, err);
}

/* ---- columns ------------------------------------------------------------------------------- */

static qk_status_t check_site(Quark__SourceKind source, const Quark__Column *c, uint32_t i,
                              const uint32_t dims[4], qk_err_t *err) {
  const bool any_t = is_noise(source) || source == QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  const int64_t at[4] = {c->x, c->y, c->z, c->t};
  for (int mu = 0; mu < 4; mu++) {
    int64_t least = mu == 3 && any_t ? EVERY : 0;
    if (at[mu] < least || at[mu] >= (int64_t)dims[mu])
      return qk_fail(err, QK_BAD_ARGUMENT, "column %u: %c = %lld is outside %lld .. %u", i,
                     "xyzt"[mu], (long long)at[mu], (long long)least, dims[mu] - 1);
  }
  return QK_OK;
}

static qk_status_t check_momentum(const int32_t p[3], const char *what, uint32_t i,
                                  const uint32_t dims[4], qk_err_t *err) {
  for (int j = 0; j < 3; j++)
    if (llabs((long long)p[j]) >= (long long)dims[j])
      return qk_fail(err, QK_BAD_ARGUMENT, "%s %u: p%c = %d is outside -%u .. %u", what, i,
                     "xyz"[j], p[j], dims[j] - 1, dims[j] - 1);
  return QK_OK;
}

/* What only some kinds of source have. */
static qk_status_t check_extras(Quark__SourceKind source, const Quark__Column *c, uint32_t i,
                                const uint32_t dims[4], qk_err_t *err) {
  const bool sequential = source == QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  const int32_t p[3] = {c->px, c->py, c->pz};
  if (source == QUARK__SOURCE_KIND__SOURCE_POINT && (p[0] || p[1] || p[2]))
    return qk_fail(err, QK_BAD_ARGUMENT, "column %u: momentum %d %d %d: a point source has none", i,
                   p[0], p[1], p[2]);
  if (c->t_every > 0 && !is_noise(source))
    return qk_fail(err, QK_BAD_ARGUMENT, "column %u: t_every = %u is for noise only", i,
                   c->t_every);
  if (c->t_every > dims[3])
    return qk_fail(err, QK_BAD_ARGUMENT, "column %u: t_every = %u is outside 0 .. %u", i,
                   c->t_every, dims[3]);
  if (c->t_every > 0 && c->t == EVERY)
    return qk_fail(err, QK_BAD_ARGUMENT, "column %u: t_every = %u needs t >= 0", i, c->t_every);
  if (sequential != (c->request > 0))
    return qk_fail(err, QK_BAD_ARGUMENT, "column %u: request = %llu: %s", i,
                   (unsigned long long)c->request,
                   sequential ? "a sequential source needs a kept request"
                              : "it is for sequential sources only");
  if (c->rhs >= (sequential ? QK_REQUEST_RHS_MAX : 1))
    return qk_fail(err, QK_BAD_ARGUMENT, "column %u: rhs = %u is outside 0 .. %d", i, c->rhs,
                   sequential ? QK_REQUEST_RHS_MAX - 1 : 0);
  if (c->gamma > (sequential ? 15 : 0))
    return qk_fail(err, QK_BAD_ARGUMENT, "column %u: gamma = %u is outside 0 .. %d", i, c->gamma,
                   sequential ? 15 : 0);
  return check_momentum(p, "column", i, dims, err);
}

static qk_status_t check_column(const Quark__Submit *submit, uint32_t i, const uint32_t dims[4],
                                qk_err_t *err) {
  const Quark__Column *c = submit->column[i];
  qk_status_t status = check_site(submit->source, c, i, dims, err);
  if (status != QK_OK) return status;
  int least = is_noise(submit->source) ? EVERY : 0;
  if (c->spin < least || c->spin > 3)
    return qk_fail(err, QK_BAD_ARGUMENT, "column %u: spin = %d is outside %d .. 3", i, c->spin,
                   least);
  if (c->colour < least || c->colour > 2)
    return qk_fail(err, QK_BAD_ARGUMENT, "column %u: colour = %d is outside %d .. 2", i, c->colour,
                   least);
  return check_extras(submit->source, c, i, dims, err);
}

/* ---- SUBMIT -------------------------------------------------------------------------------- */

static qk_status_t check_enums(const Quark__Submit *s, qk_err_t *err) {
  if (s->dtype != QUARK__DTYPE__DTYPE_F32 && s->dtype != QUARK__DTYPE__DTYPE_F64)
    return qk_fail(err, QK_BAD_ARGUMENT, "dtype = %d: must be 1 (f32) or 2 (f64)", s->dtype);
  if ((int)s->basis < 0 || s->basis > QUARK__BASIS__BASIS_OPENQCD)
    return qk_fail(err, QK_BAD_ARGUMENT, "basis = %d is outside 0 .. 3", s->basis);
  if ((int)s->normalisation < 0 || s->normalisation > QUARK__NORMALISATION__NORMALISATION_KAPPA)
    return qk_fail(err, QK_BAD_ARGUMENT, "normalisation = %d is outside 0 .. 1", s->normalisation);
  if ((int)s->source < 0 || s->source > QUARK__SOURCE_KIND__SOURCE_FILE)
    return qk_fail(err, QK_BAD_ARGUMENT, "source = %d is outside 0 .. 6", s->source);
  if (s->sink < QUARK__SINK__SINK_DOWNLOAD || s->sink > QUARK__SINK__SINK_FILE)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "sink = %d: must be 1 (download), 2 (none), 3 (keep) or 4 (file)", s->sink);
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

static qk_status_t check_numbers(const Quark__Submit *s, qk_err_t *err) {
  if (s->nrhs == 0) return qk_fail(err, QK_BAD_ARGUMENT, "nrhs = 0: must be at least 1");
  if (s->nrhs > QK_REQUEST_RHS_MAX)
    return qk_fail(err, QK_TOO_LARGE, "nrhs = %u is over the limit of %d", s->nrhs,
                   QK_REQUEST_RHS_MAX);
  if (!(s->tol > 0 && s->tol < 1))
    return qk_fail(err, QK_BAD_ARGUMENT, "tol = %g: must be between 0 and 1", s->tol);
  if (s->max_iter == 0 || s->max_iter > QK_ITERATIONS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "max_iter = %llu is outside 1 .. %llu",
                   (unsigned long long)s->max_iter, QK_ITERATIONS_MAX);
  if (s->keep_ms > 0 && s->sink != QUARK__SINK__SINK_KEEP)
    return qk_fail(err, QK_BAD_ARGUMENT, "keep_ms = %llu: it is for SINK_KEEP only",
                   (unsigned long long)s->keep_ms);
  return QK_OK;
}

/* Not defined for other fields. */
static qk_status_t check_usual(const qk_shape_t *shape, const char *what, qk_err_t *err) {
  if (qk_shape_is_usual(shape)) return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED,
                 "%s: needs fields of spin and colour; those of this action have %u real numbers a "
                 "site and %u columns",
                 what, shape->site_reals, shape->columns);
}

qk_status_t qk_job_check(const Quark__Submit *s, const qk_shape_t *shape, qk_err_t *err) {
  qk_status_t status = check_request(s->request, s->deadline_ms, s->priority, err);
  if (status != QK_OK) return status;
  status = check_enums(s, err);
  if (status == QK_OK) status = check_numbers(s, err);
  if (status == QK_OK) status = check_smearing(s->smear, "smear", err);
  if (status == QK_OK && s->source == QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL)
    status = check_usual(shape, "a sequential source", err);
  if (status != QK_OK) return status;
  const bool fields = s->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD ||
                      s->source == QUARK__SOURCE_KIND__SOURCE_FILE;
  size_t columns = fields ? 0 : s->nrhs;
  if (s->n_column != columns)
    return qk_fail(err, QK_BAD_ARGUMENT, "%zu columns: this source needs %zu", s->n_column,
                   columns);
  for (uint32_t i = 0; i < columns && status == QK_OK; i++)
    status = check_column(s, i, shape->dims, err);
  return status;
}

/* ---- CONTRACT ------------------------------------------------------------------------------ */

static qk_status_t check_channel(const Quark__Channel *c, size_t i, qk_err_t *err) {
  if ((int)c->kind < 0 || c->kind > QUARK__CHANNEL_KIND__CHANNEL_DELTA)
    return qk_fail(err, QK_BAD_ARGUMENT, "channel %zu: kind = %d is outside 0 .. 2", i, c->kind);
  if (c->sink > 15)
    return qk_fail(err, QK_BAD_ARGUMENT, "channel %zu: sink = %u is outside 0 .. 15", i, c->sink);
  if (c->source > 15)
    return qk_fail(err, QK_BAD_ARGUMENT, "channel %zu: source = %u is outside 0 .. 15", i,
                   c->source);
  return QK_OK;
}

static qk_status_t check_first(const char *name, uint32_t first, qk_err_t *err) {
  const uint32_t most = QK_REQUEST_RHS_MAX - QK_PROPAGATOR_COLUMNS;
  if (first <= most) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "%s = %u is outside 0 .. %u", name, first, most);
}

static qk_status_t check_momenta(const Quark__Contraction *c, const uint32_t dims[4],
                                 qk_err_t *err) {
  if (c->n_momentum % 3 != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "momentum: %zu numbers: must be three for each momentum",
                   c->n_momentum);
  if (c->n_momentum / 3 > QK_MOMENTA_MAX)
    return qk_fail(err, QK_TOO_LARGE, "%zu momenta are over the limit of %d", c->n_momentum / 3,
                   QK_MOMENTA_MAX);
  qk_status_t status = QK_OK;
  for (uint32_t i = 0; i < c->n_momentum / 3 && status == QK_OK; i++)
    status = check_momentum(c->momentum + 3 * i, "momentum", i, dims, err);
  return status;
}

static qk_status_t check_origin(const Quark__Contraction *c, const uint32_t dims[4],
                                qk_err_t *err) {
  if (c->n_origin != 0 && c->n_origin != 4)
    return qk_fail(err, QK_BAD_ARGUMENT, "origin: %zu numbers: must be x, y, z, t", c->n_origin);
  for (size_t mu = 0; mu < c->n_origin; mu++)
    if (c->origin[mu] < 0 || c->origin[mu] >= (int64_t)dims[mu])
      return qk_fail(err, QK_BAD_ARGUMENT, "origin: %c = %d is outside 0 .. %u", "xyzt"[mu],
                     c -> origin[mu], dims[mu] - 1);
  return QK_OK;
}

qk_status_t qk_job_check_contract(const Quark__Contract *contract, const qk_shape_t *shape,
                                  qk_err_t *err) {
  const Quark__Contraction *c = contract->contraction;
  qk_status_t status =
      check_request(contract->request, contract->deadline_ms, contract->priority, err);
  if (status != QK_OK) return status;
  if (c->n_channel == 0) return qk_fail(err, QK_BAD_ARGUMENT, "channels: must be at least 1");
  if (c->n_channel > QK_CHANNELS_MAX)
    return qk_fail(err, QK_TOO_LARGE, "%zu channels are over the limit of %d", c->n_channel,
                   QK_CHANNELS_MAX);
  for (size_t i = 0; i < c->n_channel && status == QK_OK; i++)
    status = check_channel(c->channel[i], i, err);
  if (status == QK_OK) status = check_first("first_a", c->first_a, err);
  if (status == QK_OK) status = check_first("first_b", c->first_b, err);
  if (status == QK_OK && c->request_b == 0 && c->first_b > 0)
    status = qk_fail(err, QK_BAD_ARGUMENT, "first_b = %u needs request_b", c->first_b);
  if (status == QK_OK) status = check_momenta(c, shape->dims, err);
  if (status == QK_OK) status = check_origin(c, shape->dims, err);
  if (status == QK_OK) status = check_smearing(c->sink, "sink", err);
  if (status == QK_OK) status = check_usual(shape, "a contraction", err);
  return status;
}
