#include "proto/column_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((format(printf, 3, 4))) static qk_status_t
refuse(char why[QK_WHY], qk_status_t status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, QK_WHY, format, args);
  va_end(args);
  return status;
}

bool qk_source_is_noise(Quark__SourceKind source) {
  return source == QUARK__SOURCE_KIND__SOURCE_Z2 || source == QUARK__SOURCE_KIND__SOURCE_Z4;
}

/* ---- smearing ------------------------------------------------------------------------------ */

typedef struct link_rule {
  size_t params;
  double most;
  const char *name;
} link_rule_t;

static const link_rule_t LINK_RULES[] = {
    {0, 0, "links without smearing"}, {1, 1, "APE"}, {1, 0.25, "stout"}, {3, 1, "HYP"}};

static qk_status_t check_link_smearing(const Quark__Smearing *s, const char *what,
                                       char why[QK_WHY]) {
  if ((int)s->links < 0 || s->links > QUARK__LINK_SMEAR__LINK_SMEAR_HYP)
    return refuse(why, QK_BAD_ARGUMENT, "%s: links = %d is outside 0 .. 3", what, s->links);
  const link_rule_t *rule = &LINK_RULES[s->links];
  if (s->n_link_param != rule->params)
    return refuse(why, QK_BAD_ARGUMENT, "%s: link_param has %zu entries: %zu for %s", what,
                  s->n_link_param, rule->params, rule->name);
  for (size_t i = 0; i < rule->params; i++)
    if (!(s->link_param[i] >= 0 && s->link_param[i] <= rule->most))
      return refuse(why, QK_BAD_ARGUMENT, "%s: link_param %zu = %g is outside 0 .. %g of %s", what,
                    i, s->link_param[i], rule->most, rule->name);
  if (s->link_steps > QK_LINK_STEPS_MAX)
    return refuse(why, QK_TOO_LARGE, "%s: link_steps = %u is over the limit of %d", what,
                  s->link_steps, QK_LINK_STEPS_MAX);
  return QK_OK;
}

qk_status_t qk_smearing_check(const Quark__Smearing *s, const char *what, char why[QK_WHY]) {
  if (!s) return QK_OK;
  if (!(fabs(s->alpha) <= QK_SMEAR_ALPHA_MAX) || fabs(1 + 6 * s->alpha) < QK_SMEAR_LEAST)
    return refuse(why, QK_BAD_ARGUMENT,
                  "%s: alpha = %g must be -%g .. %g, and 1 + 6 alpha must not vanish", what,
                  s->alpha, QK_SMEAR_ALPHA_MAX, QK_SMEAR_ALPHA_MAX);
  if (s->steps > QK_SMEAR_STEPS_MAX)
    return refuse(why, QK_TOO_LARGE, "%s: steps = %u is over the limit of %d", what, s->steps,
                  QK_SMEAR_STEPS_MAX);
  if (s->shift > QK_SHIFT_MAX)
    return refuse(why, QK_BAD_ARGUMENT, "%s: shift = %u is outside 0 .. %d", what, s->shift,
                  QK_SHIFT_MAX);
  return check_link_smearing(s, what, why);
}

/* ---- columns ------------------------------------------------------------------------------- */

qk_status_t qk_site_check(const int64_t site[4], bool any_t, const uint32_t dims[4],
                          const char *what, char why[QK_WHY]) {
  for (int mu = 0; mu < 4; mu++) {
    const int64_t least = mu == 3 && any_t ? QK_COLUMN_EVERY : 0;
    if (site[mu] < least || site[mu] >= (int64_t)dims[mu])
      return refuse(why, QK_BAD_ARGUMENT, "%s: %c = %lld is outside %lld .. %u", what, "xyzt"[mu],
                    (long long)site[mu], (long long)least, dims[mu] - 1);
  }
  return QK_OK;
}

qk_status_t qk_momentum_check(const int32_t p[3], const uint32_t dims[4], const char *what,
                              char why[QK_WHY]) {
  for (int j = 0; j < 3; j++)
    if (llabs((long long)p[j]) >= (long long)dims[j])
      return refuse(why, QK_BAD_ARGUMENT, "%s: p%c = %d is outside -%u .. %u", what, "xyz"[j], p[j],
                    dims[j] - 1, dims[j] - 1);
  return QK_OK;
}

qk_status_t qk_t_every_check(uint32_t t_every, const uint32_t dims[4], const char *what,
                             char why[QK_WHY]) {
  if (t_every <= dims[3]) return QK_OK;
  return refuse(why, QK_BAD_ARGUMENT, "%s: t_every = %u is outside 0 .. %u", what, t_every,
                dims[3]);
}

/* What only some kinds of source have. */
static qk_status_t check_extras(Quark__SourceKind source, const Quark__Column *c, const char *what,
                                const uint32_t dims[4], char why[QK_WHY]) {
  const bool sequential = source == QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL;
  const int32_t p[3] = {c->px, c->py, c->pz};
  if (source == QUARK__SOURCE_KIND__SOURCE_POINT && (p[0] || p[1] || p[2]))
    return refuse(why, QK_BAD_ARGUMENT, "%s: momentum %d %d %d: a point source has none", what,
                  p[0], p[1], p[2]);
  if (c->t_every > 0 && !qk_source_is_noise(source))
    return refuse(why, QK_BAD_ARGUMENT, "%s: t_every = %u is for noise only", what, c->t_every);
  const qk_status_t status = qk_t_every_check(c->t_every, dims, what, why);
  if (status != QK_OK) return status;
  if (c->t_every > 0 && c->t == QK_COLUMN_EVERY)
    return refuse(why, QK_BAD_ARGUMENT, "%s: t_every = %u needs t >= 0", what, c->t_every);
  if (sequential != (c->request > 0))
    return refuse(why, QK_BAD_ARGUMENT, "%s: request = %llu: %s", what,
                  (unsigned long long)c->request,
                  sequential ? "a sequential source needs a kept request"
                             : "it is for sequential sources only");
  const bool vector = source == QUARK__SOURCE_KIND__SOURCE_VECTOR;
  if (c->vector >= (vector ? QK_EIGEN_COUNT_MAX : 1))
    return refuse(why, QK_BAD_ARGUMENT, "%s: vector = %u is outside 0 .. %d", what, c->vector,
                  vector ? QK_EIGEN_COUNT_MAX - 1 : 0);
  if (c->slice >= (vector ? QK_EIGEN_SLICES_MAX : 1))
    return refuse(why, QK_BAD_ARGUMENT, "%s: slice = %u is outside 0 .. %d", what, c->slice,
                  vector ? QK_EIGEN_SLICES_MAX - 1 : 0);
  if (c->rhs >= (sequential ? QK_REQUEST_RHS_MAX : 1))
    return refuse(why, QK_BAD_ARGUMENT, "%s: rhs = %u is outside 0 .. %d", what, c->rhs,
                  sequential ? QK_REQUEST_RHS_MAX - 1 : 0);
  if (c->gamma > (sequential ? 15 : 0))
    return refuse(why, QK_BAD_ARGUMENT, "%s: gamma = %u is outside 0 .. %d", what, c->gamma,
                  sequential ? 15 : 0);
  return qk_momentum_check(p, dims, what, why);
}

/* Which of the two vectors of a doublet's source are not 0. */
static qk_status_t check_flavour(int flavour, const qk_shape_t *shape, const char *what,
                                 char why[QK_WHY]) {
  const bool two = qk_shape_vectors(shape) > 1;
  if (flavour == 0 || flavour == 1 || (flavour == -1 && two)) return QK_OK;
  if (two)
    return refuse(why, QK_BAD_ARGUMENT, "%s: flavour = %d is outside -1 .. 1", what, flavour);
  return refuse(why, QK_BAD_ARGUMENT,
                "%s: flavour = %d: right-hand sides of this action have one flavour, only 1 is "
                "accepted",
                what, flavour);
}

qk_status_t qk_column_check(Quark__SourceKind source, const Quark__Column *c,
                            const qk_shape_t *shape, const char *what, char why[QK_WHY]) {
  const bool noise = qk_source_is_noise(source);
  const bool any_t = noise || source == QUARK__SOURCE_KIND__SOURCE_SEQUENTIAL ||
                     source == QUARK__SOURCE_KIND__SOURCE_VECTOR;
  const int64_t site[4] = {c->x, c->y, c->z, c->t};
  const int least = noise ? QK_COLUMN_EVERY : 0;
  const int spins = shape->columns < QK_PROPAGATOR_COLUMNS ? 1 : 4;
  qk_status_t status = qk_site_check(site, any_t, shape->dims, what, why);
  if (status != QK_OK) return status;
  if (c->spin < least || c->spin >= spins)
    return refuse(why, QK_BAD_ARGUMENT, "%s: spin = %d is outside %d .. %d", what, c->spin, least,
                  spins - 1);
  if (c->colour < least || c->colour > 2)
    return refuse(why, QK_BAD_ARGUMENT, "%s: colour = %d is outside %d .. 2", what, c->colour,
                  least);
  status = check_flavour(c->flavour, shape, what, why);
  return status == QK_OK ? check_extras(source, c, what, shape->dims, why) : status;
}

/* ---- contractions -------------------------------------------------------------------------- */

qk_status_t qk_momenta_check(const Quark__Contraction *c, const uint32_t dims[4],
                             char why[QK_WHY]) {
  if (c->n_momentum % 3 != 0)
    return refuse(why, QK_BAD_ARGUMENT, "momentum: %zu numbers: must be three for each momentum",
                  c->n_momentum);
  if (c->n_momentum / 3 > QK_MOMENTA_MAX)
    return refuse(why, QK_TOO_LARGE, "%zu momenta are over the limit of %d", c->n_momentum / 3,
                  QK_MOMENTA_MAX);
  qk_status_t status = QK_OK;
  for (size_t i = 0; i < c->n_momentum / 3 && status == QK_OK; i++) {
    char what[32];
    snprintf(what, sizeof what, "momentum %zu", i);
    status = qk_momentum_check(c->momentum + 3 * i, dims, what, why);
  }
  return status;
}

qk_status_t qk_origin_check(const Quark__Contraction *c, const uint32_t dims[4], char why[QK_WHY]) {
  if (c->n_origin != 0 && c->n_origin != 4)
    return refuse(why, QK_BAD_ARGUMENT, "origin: %zu numbers: must be x, y, z, t", c->n_origin);
  for (size_t mu = 0; mu < c->n_origin; mu++)
    if (c->origin[mu] < 0 || c->origin[mu] >= (int64_t)dims[mu])
      return refuse(why, QK_BAD_ARGUMENT, "origin: %c = %d is outside 0 .. %u", "xyzt"[mu],
                    c -> origin[mu], dims[mu] - 1);
  return QK_OK;
}
