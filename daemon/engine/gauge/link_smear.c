#include "daemon/engine/gauge/link_smear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"

enum { SPACE = 7, ALL = 15 };

static const char *const kind_name[] = {"none", "ape", "stout", "hyp"};

/* ---- what is asked for ---- */

qk_status_t qk_link_smear_check(const qk_link_smear_t *smear, qk_err_t *err) {
  char why[QK_WHY];
  return qk_link_smear_fits(smear, why) ? QK_OK : qk_fail(err, QK_BAD_ARGUMENT, "%s", why);
}

static qk_status_t bad_text(const char *text, const char *why, qk_err_t *err) {
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "link smearing \"%.64s\": %s: none, ape:ALPHA,STEPS[,4d], stout:RHO,STEPS[,4d] or "
                 "hyp:ALPHA1,ALPHA2,ALPHA3,STEPS is wanted",
                 text, why);
}

/* Number and the comma behind it, if there is one. */
static bool take_number(const char **p, double *value) {
  char *end;
  if (strchr("0123456789.-+", **p) == NULL || **p == '\0') return false;
  *value = strtod(*p, &end);
  if (end == *p || (*end != '\0' && *end != ',')) return false;
  *p = *end == ',' ? end + 1 : end;
  return true;
}

qk_status_t qk_link_smear_parse(const char *text, qk_link_smear_t *smear, qk_err_t *err) {
  if (strcmp(text, kind_name[QK_LINK_SMEAR_NONE]) == 0) {
    *smear = (qk_link_smear_t){.spatial = true};
    return QK_OK;
  }
  const char *colon = strchr(text, ':');
  const size_t word = colon ? (size_t)(colon - text) : 0;
  qk_link_smear_t s = {.spatial = true};
  for (int k = QK_LINK_SMEAR_APE; k <= QK_LINK_SMEAR_HYP; k++)
    if (word == strlen(kind_name[k]) && strncmp(text, kind_name[k], word) == 0)
      s.kind = (qk_link_smear_kind_t)k;
  if (s.kind == QK_LINK_SMEAR_NONE) return bad_text(text, "unknown kind", err);
  const bool hyp = s.kind == QK_LINK_SMEAR_HYP;
  const char *p = colon + 1;
  double steps;
  for (int i = 0; i < (hyp ? 3 : 1); i++)
    if (!take_number(&p, &s.param[i])) return bad_text(text, "a number is missing", err);
  if (!take_number(&p, &steps)) return bad_text(text, "the number of steps is missing", err);
  if (!(fabs(steps) <= 1e6) || steps != floor(steps))
    return bad_text(text, "steps must be a whole number", err);
  s.steps = (int)steps;
  if (!hyp && strcmp(p, "4d") == 0)
    s.spatial = false;
  else if (*p != '\0' || p[-1] == ',')
    return bad_text(text, "what follows the steps is not understood", err);
  qk_status_t status = qk_link_smear_check(&s, err);
  if (status == QK_OK) *smear = s;
  return status;
}

/* ---- stages ---- */

/* A stage on all ranks, and the halo of what it made. */
static qk_status_t run_stage(qk_gaugefield_t *out, qk_link_smear_args_t *args) {
  const qk_device_t *dev = out->dev;
  args->lat = dev->geom->lat;
  args->out = out->v;
  qk_status_t status = dev->ops->link_smear(dev->ctx, args);
  status = qk_comm_agree(dev->geom->comm, status, NULL);
  return status == QK_OK ? qk_gaugefield_exchange(out, args->mask) : status;
}

/* next: work space. The fields exchange their memory after each step. */
static qk_status_t smear_staples(qk_gaugefield_t *field, const qk_link_smear_t *smear,
                                 qk_gaugefield_t *next) {
  const bool stout = smear->kind == QK_LINK_SMEAR_STOUT;
  const double c = smear->param[0];
  const int extent = smear->spatial ? 3 : 4, staples = 2 * (extent - 1);
  qk_status_t status = qk_gaugefield_copy(next, field); /* U_t may stay as it is */
  status = qk_comm_agree(field->dev->geom->comm, status, NULL);
  for (int i = 0; status == QK_OK && i < smear->steps; i++) {
    qk_link_smear_args_t args = {.u = field->v,
                                 .mask = smear->spatial ? SPACE : ALL,
                                 .stout = stout,
                                 .own = stout ? 0 : 1 - c,
                                 .weight = stout ? c : c / staples};
    for (int mu = 0; mu < extent; mu++)
      for (int nu = 0; nu < extent; nu++)
        if (mu != nu) args.side[mu][nu] = args.top[mu][nu] = field->v.data;
    status = run_stage(next, &args);
    double *data = field->v.data;
    field->v.data = next->v.data;
    next->v.data = data;
  }
  return status;
}

/* Position of nu among the three directions other than mu, in ascending order; and direction
 * number k of these. */
static int number_of(int mu, int nu) {
  return nu < mu ? nu : nu - 1;
}
static int other(int mu, int k) {
  return k < mu ? k : k + 1;
}

/* What the levels of HYP and HEX have in common, with so many staples. */
static qk_link_smear_args_t level(const qk_gaugefield_t *field, const qk_link_smear_t *smear,
                                  double alpha, int staples) {
  return (qk_link_smear_args_t){.u = field->v,
                                .mask = ALL,
                                .stout = smear->hex,
                                .own = smear->hex ? 0 : 1 - alpha,
                                .weight = alpha / staples};
}

/* Level one, the V with two bars of eq. (3): decorated[k] holds at mu the links smeared in
 * direction number k other than mu. */
static qk_status_t hyp_first(const qk_gaugefield_t *field, const qk_link_smear_t *smear,
                             qk_gaugefield_t *decorated[3]) {
  qk_status_t status = QK_OK;
  for (int k = 0; status == QK_OK && k < 3; k++) {
    qk_link_smear_args_t args = level(field, smear, smear->param[2], 2);
    for (int mu = 0; mu < 4; mu++) {
      const int eta = other(mu, k);
      args.side[mu][eta] = args.top[mu][eta] = field->v.data;
    }
    status = run_stage(decorated[k], &args);
  }
  return status;
}

/* Level two, eq. (2): out[k] holds at mu the links smeared in all directions except nu (number k
 * other than mu), made of links that level one smeared in the remaining direction. */
static qk_status_t hyp_second(const qk_gaugefield_t *field, const qk_link_smear_t *smear,
                              qk_gaugefield_t *const decorated[3], qk_gaugefield_t *out[3]) {
  qk_status_t status = QK_OK;
  for (int k = 0; status == QK_OK && k < 3; k++) {
    qk_link_smear_args_t args = level(field, smear, smear->param[1], 4);
    for (int mu = 0; mu < 4; mu++) {
      const int nu = other(mu, k);
      for (int rho = 0; rho < 4; rho++) {
        if (rho == mu || rho == nu) continue;
        const int left = 6 - mu - nu - rho;
        args.side[mu][rho] = decorated[number_of(rho, left)]->v.data;
        args.top[mu][rho] = decorated[number_of(mu, left)]->v.data;
      }
    }
    status = run_stage(out[k], &args);
  }
  return status;
}

/* Level three, eq. (1), in place: staples are of level two alone. */
static qk_status_t hyp_third(qk_gaugefield_t *field, const qk_link_smear_t *smear,
                             qk_gaugefield_t *const second[3]) {
  qk_link_smear_args_t args = level(field, smear, smear->param[0], 6);
  for (int mu = 0; mu < 4; mu++)
    for (int nu = 0; nu < 4; nu++) {
      if (mu == nu) continue;
      args.side[mu][nu] = second[number_of(nu, mu)]->v.data;
      args.top[mu][nu] = second[number_of(mu, nu)]->v.data;
    }
  return run_stage(field, &args);
}

/* work: six fields. */
static qk_status_t smear_hyp(qk_gaugefield_t *field, const qk_link_smear_t *smear,
                             qk_gaugefield_t *work[6]) {
  for (int i = 0; i < smear->steps; i++) {
    qk_status_t status = hyp_first(field, smear, work);
    if (status != QK_OK) return status;
    status = hyp_second(field, smear, work, work + 3);
    if (status != QK_OK) return status;
    status = hyp_third(field, smear, work + 3);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

static int work_fields(const qk_link_smear_t *smear) {
  return smear->kind == QK_LINK_SMEAR_HYP ? 6 : smear->kind == QK_LINK_SMEAR_NONE ? 0 : 1;
}

int64_t qk_link_smear_bytes(const qk_lattice_t *lat, const qk_link_smear_t *smear) {
  return (1 + work_fields(smear)) *
         (int64_t)(qk_gaugefield_bytes(lat, 1) + qk_gaugefield_staging_bytes(lat, 1));
}

static qk_status_t smear_by(qk_gaugefield_t *field, const qk_link_smear_t *smear,
                            qk_gaugefield_t *work[6]) {
  const bool hyp = smear->kind == QK_LINK_SMEAR_HYP;
  for (int i = 0; i < work_fields(smear); i++) {
    qk_status_t status = qk_gaugefield_create(field->dev, field->v.halo, &work[i]);
    if (status != QK_OK) return status;
  }
  qk_status_t status = hyp ? smear_hyp(field, smear, work) : smear_staples(field, smear, work[0]);
  return status == QK_OK ? field->dev->ops->queue_sync(field->dev->ctx, 0) : status;
}

qk_status_t qk_link_smear_apply(qk_gaugefield_t *field, const qk_link_smear_t *smear,
                                qk_err_t *err) {
  qk_status_t status = qk_link_smear_check(smear, err);
  if (status != QK_OK || smear->kind == QK_LINK_SMEAR_NONE || smear->steps == 0) return status;
  qk_gaugefield_t *work[6] = {NULL};
  status = smear_by(field, smear, work);
  for (int i = 0; i < 6; i++) qk_gaugefield_destroy(work[i]);
  if (status != QK_OK) return qk_fail(err, status, "smearing of links: %s", qk_status_text(status));
  return QK_OK;
}
