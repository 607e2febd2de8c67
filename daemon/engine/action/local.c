#include "daemon/engine/action/local.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "daemon/engine/action/local_given.h"

enum { FLOPS_NUMBER = 24, FLOPS_BLOCKS = 504 }; /* of A times a spinor */

void qk_local_number(double a, qk_eo_parts_t *parts) {
  for (int p = 0; p < QK_PRECS; p++) {
    parts->t[p] = (qk_local_t){.prec = (qk_prec_t)p, .scalar = a};
    parts->inverse[p] = (qk_local_t){.prec = (qk_prec_t)p, .scalar = 1 / a};
  }
  parts->scale = fabs(a);
  parts->flops = FLOPS_NUMBER;
}

static qk_status_t field_alloc(const qk_device_t *dev, qk_prec_t prec, qk_local_t *local) {
  void *data = NULL;
  const size_t bytes = dev->ops->diag_bytes(&dev->geom->lat, prec);
  const qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &data);
  if (status == QK_OK) *local = (qk_local_t){.data = data, .prec = prec};
  return status;
}

/* A copy of a field in double in each precision that is wanted. */
static qk_status_t spread(const qk_action_in_t *in, const qk_local_t *from,
                          qk_local_t to[QK_PRECS]) {
  const qk_device_t *dev = in->dev;
  for (int p = 0; p < QK_PRECS; p++) {
    if (!in->params->want[p]) continue;
    qk_status_t status = field_alloc(dev, (qk_prec_t)p, &to[p]);
    if (status != QK_OK) return status;
    const qk_diag_convert_args_t convert = {.lat = dev->geom->lat, .in = *from, .out = &to[p]};
    status = dev->ops->diag_convert(dev->ctx, &convert);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

static qk_status_t refuse(const qk_action_in_t *in, const char *what, int64_t sites,
                          qk_err_t *err) {
  char text[QK_OPERATOR_TEXT];
  qk_values_text(&in->params->values, QK_TEXT_GIVEN, text);
  return qk_fail(err, QK_BAD_ARGUMENT, "%.300s: on %lld sites the local term T is %s", text,
                 (long long)sites, what);
}

/* The largest number of all precisions that are wanted. */
static double largest(const qk_action_in_t *in) {
  return in->params->want[QK_HALF] ? 65504 : in->params->want[QK_SINGLE] ? FLT_MAX : DBL_MAX;
}

/* a + C in double, or a exp(C / a); clover NULL: the term that is given. */
static qk_status_t make_term(const qk_action_in_t *in, const qk_clover_t *clover, qk_local_t *term,
                             qk_err_t *err) {
  const qk_device_t *dev = in->dev;
  int64_t beyond = 0;
  qk_status_t status = field_alloc(dev, QK_DOUBLE, term);
  if (status != QK_OK) return status;
  if (!clover) return qk_given_upload(dev, in->params->term, term, err);
  qk_clover_set_args_t set = {.gauge = in->clover, .csw = clover->csw, .out = *term};
  memcpy(set.plane, clover->plane, sizeof set.plane);
  if (!clover->exponential) {
    set.diag = clover->a;
    set.open = clover->open;
  }
  status = dev->ops->clover_set(dev->ctx, &set);
  if (status != QK_OK || !clover->exponential) return status;
  const qk_diag_exp_args_t exponential = {.lat = in->gauge.lat,
                                          .factor = 1 / clover->a,
                                          .number = clover->a,
                                          .most = largest(in),
                                          .open = clover->open,
                                          .in = *term,
                                          .out = term,
                                          .beyond = &beyond};
  status = dev->ops->diag_exp(dev->ctx, &exponential);
  if (status != QK_OK || beyond == 0) return status;
  return refuse(in, "too large for the precision, or not finite", beyond, err);
}

/* What is inverted: a term, or its square plus a number, which must be positive if `positive`. */
typedef struct recipe {
  bool square, positive;
  double shift;
} recipe_t;

/* In double. */
static qk_status_t make_inverse(const qk_action_in_t *in, const qk_local_t *term,
                                const recipe_t *recipe, qk_local_t *inverse, qk_err_t *err) {
  const qk_device_t *dev = in->dev;
  int64_t singular = 0;
  qk_status_t status = field_alloc(dev, QK_DOUBLE, inverse);
  if (status != QK_OK) return status;
  const qk_diag_invert_args_t invert = {.lat = in->gauge.lat,
                                        .in = *term,
                                        .out = inverse,
                                        .square = recipe->square,
                                        .positive = recipe->positive,
                                        .shift = recipe->shift,
                                        .most = largest(in),
                                        .singular = &singular};
  status = dev->ops->diag_invert(dev->ctx, &invert);
  if (status != QK_OK || singular == 0) return status;
  if (in->params->term) return qk_given_refuse(dev, in->params->term, singular, err);
  return refuse(in,
                recipe->positive
                    ? "not to be inverted: A^2 + mu^2 - epsilon^2, A = 4 + mass + clover term, is "
                      "not positive there, or its inverse too large for the precision; a smaller "
                      "epsilon is needed"
                    : "singular, or has an inverse too large for the precision",
                singular, err);
}

/* Terms in double, and the same in the precisions that are wanted. */
typedef struct pair {
  qk_local_t term, inverse;
} pair_t;

static void pair_free(const qk_device_t *dev, pair_t *pair) {
  if (pair->inverse.data) dev->ops->free(dev->ctx, (void *)pair->inverse.data);
  if (pair->term.data) dev->ops->free(dev->ctx, (void *)pair->term.data);
}

/* a + C, or what is given, and an inverse of it; spread to t and inverse. */
static qk_status_t make_pair(const qk_action_in_t *in, const qk_clover_t *clover,
                             const recipe_t *recipe, pair_t *pair, qk_local_t *t,
                             qk_local_t *inverse, qk_err_t *err) {
  qk_status_t status = make_term(in, clover, &pair->term, err);
  if (status != QK_OK) return status;
  status = make_inverse(in, &pair->term, recipe, &pair->inverse, err);
  if (status != QK_OK) return status;
  status = spread(in, &pair->term, t);
  if (status != QK_OK) return status;
  status = spread(in, &pair->inverse, inverse);
  return status != QK_OK ? status : in->dev->ops->queue_sync(in->dev->ctx, 0);
}

qk_status_t qk_local_clover(const qk_action_in_t *in, const qk_clover_t *clover,
                            qk_eo_parts_t *parts, qk_err_t *err) {
  pair_t pair = {{0}, {0}};
  const recipe_t recipe = {0};
  const qk_status_t status = make_pair(in, clover, &recipe, &pair, parts->t, parts->inverse, err);
  pair_free(in->dev, &pair);
  parts->scale = fabs(clover->a);
  parts->flops = FLOPS_BLOCKS;
  return status;
}

qk_status_t qk_local_given(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  pair_t pair = {{0}, {0}};
  const recipe_t recipe = {0};
  if (!in->params->term)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "clover = %s: the term is not here; clients send it (FIELD_OPEN)",
                   qk_value_word(&in->params->values, "clover"));
  /* squares are finite, too */
  const double most = fmin(largest(in), 1e150);
  qk_status_t status = qk_given_check(in->dev, in->params->term, most, err);
  if (status != QK_OK) return status;
  status = make_pair(in, NULL, &recipe, &pair, parts->t, parts->inverse, err);
  pair_free(in->dev, &pair);
  parts->scale = in->params->term_scale;
  parts->flops = FLOPS_BLOCKS;
  return status;
}

/* i mu gamma_5 of flavour +1 */
static void set_twist(double mu, qk_local_t *local) {
  local->q[0][1] = mu;
  local->q[1][1] = -mu;
}

void qk_local_twisted_number(double a, double mu, qk_eo_parts_t *parts) {
  const double n = a * a + mu * mu;
  for (int p = 0; p < QK_PRECS; p++) {
    parts->t[p] = (qk_local_t){.prec = (qk_prec_t)p, .scalar = a};
    parts->inverse[p] = (qk_local_t){.prec = (qk_prec_t)p, .scalar = a / n};
    set_twist(mu, &parts->t[p]);
    set_twist(-mu / n, &parts->inverse[p]);
  }
  parts->scale = sqrt(n);
  parts->flops = 2 * FLOPS_NUMBER;
}

/* T and T^-1 of b, (A^2 + mu^2)^-1. */
static void twist_fields(const qk_clover_t *clover, double mu, const qk_local_t b[QK_PRECS],
                         qk_eo_parts_t *parts) {
  for (int p = 0; p < QK_PRECS; p++) {
    parts->inverse[p] = parts->t[p];
    parts->inverse[p].b = b[p].data;
    set_twist(mu, &parts->t[p]);
    set_twist(-mu, &parts->inverse[p]);
  }
  parts->scale = hypot(clover->a, mu);
  parts->flops = 2 * FLOPS_BLOCKS + FLOPS_NUMBER;
}

qk_status_t qk_local_twisted_clover(const qk_action_in_t *in, const qk_clover_t *clover, double mu,
                                    qk_eo_parts_t *parts, qk_err_t *err) {
  pair_t pair = {{0}, {0}};
  qk_local_t b[QK_PRECS] = {{0}};
  const recipe_t recipe = {.square = true, .shift = mu * mu};
  const qk_status_t status = make_pair(in, clover, &recipe, &pair, parts->t, b, err);
  pair_free(in->dev, &pair);
  twist_fields(clover, mu, b, parts);
  return status;
}

void qk_local_doublet_number(double a, double mu, double epsilon, qk_eo_parts_t *parts) {
  qk_local_twisted_number(a, mu, parts);
  for (int p = 0; p < QK_PRECS; p++)
    parts->more[p] =
        (qk_local_t){.prec = (qk_prec_t)p, .scalar = 1 / (a * a + mu * mu - epsilon * epsilon)};
}

/* A pair as for twisted clover, then B of the doublet. */
static qk_status_t make_three(const qk_action_in_t *in, const qk_clover_t *clover, double mu,
                              double epsilon, pair_t *pair, qk_local_t *both,
                              qk_local_t b[QK_PRECS], qk_eo_parts_t *parts, qk_err_t *err) {
  const recipe_t one = {.square = true, .shift = mu * mu};
  const recipe_t two = {.square = true, .positive = true, .shift = mu * mu - epsilon * epsilon};
  qk_status_t status = make_pair(in, clover, &one, pair, parts->t, b, err);
  if (status != QK_OK) return status;
  status = make_inverse(in, &pair->term, &two, both, err);
  if (status != QK_OK) return status;
  status = spread(in, both, parts->more);
  return status != QK_OK ? status : in->dev->ops->queue_sync(in->dev->ctx, 0);
}

qk_status_t qk_local_doublet_clover(const qk_action_in_t *in, const qk_clover_t *clover, double mu,
                                    double epsilon, qk_eo_parts_t *parts, qk_err_t *err) {
  pair_t pair = {{0}, {0}};
  qk_local_t b[QK_PRECS] = {{0}}, both = {0};
  const qk_status_t status = make_three(in, clover, mu, epsilon, &pair, &both, b, parts, err);
  twist_fields(clover, mu, b, parts);
  if (both.data) in->dev->ops->free(in->dev->ctx, (void *)both.data);
  pair_free(in->dev, &pair);
  return status;
}

int64_t qk_local_clover_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                              const qk_action_params_t *params, bool making) {
  if (making) return 2 * (int64_t)ops->diag_bytes(lat, QK_DOUBLE);
  int64_t bytes = 0;
  for (int p = 0; p < QK_PRECS; p++)
    if (params->want[p]) bytes += 2 * (int64_t)ops->diag_bytes(lat, (qk_prec_t)p);
  return bytes;
}
