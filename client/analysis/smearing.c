#include "client/analysis/smearing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/analysis/scan.h"
#include "proto/action/operator_text.h"
#include "proto/limits.h"

/* Negative ones are Chroma's widths with few steps. */
static bool alpha_is_legal(double alpha) {
  return fabs(alpha) <= QK_SMEAR_ALPHA_MAX && fabs(1 + 6 * alpha) >= QK_SMEAR_LEAST;
}

static qk_status_t bad_form(const char *text, const char *forms, qk_err_t *err) {
  return qk_fail(err, QK_BAD_ARGUMENT, "smearing \"%.80s\": must be %s", text, forms);
}

/* width=W,steps=N */
static qk_status_t parse_width(const char *text, const char *p, quark_smearing_t *s,
                               qk_err_t *err) {
  double width;
  int64_t steps;
  if (!qk_scan_word(&p, "width=") || !qk_scan_real(&p, &width) || !qk_scan_word(&p, ",steps=") ||
      !qk_scan_int(&p, 1, QK_SMEAR_STEPS_MAX, &steps) || *p)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "smearing \"%.80s\": must be gauss:width=W,steps=N with N from 1 to %d", text,
                   QK_SMEAR_STEPS_MAX);
  const double a = width * width / (4 * (double)steps);
  const double alpha = a / (1 - 6 * a);
  if (!(width > 0) || !alpha_is_legal(alpha))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "smearing \"%.80s\": the width must be positive, and the steps not near %.2f",
                   text, 1.5 * width * width);
  s->alpha = alpha;
  s->steps = (uint32_t)steps;
  return QK_OK;
}

qk_status_t qk_smearing_parse(const char *text, quark_smearing_t *smearing, qk_err_t *err) {
  const char *p = text;
  double alpha;
  int64_t steps;
  if (strcmp(text, "none") == 0) {
    smearing->alpha = 0;
    smearing->steps = 0;
    return QK_OK;
  }
  if (!qk_scan_word(&p, "gauss:"))
    return bad_form(text, "none, gauss:ALPHA,STEPS or gauss:width=W,steps=N", err);
  if (*p == 'w') return parse_width(text, p, smearing, err);
  if (!qk_scan_real(&p, &alpha) || !qk_scan_word(&p, ",") ||
      !qk_scan_int(&p, 1, QK_SMEAR_STEPS_MAX, &steps) || *p || !alpha_is_legal(alpha))
    return qk_fail(
        err, QK_BAD_ARGUMENT,
        "smearing \"%.80s\": must be gauss:ALPHA,STEPS with ALPHA from -%g to %g but not "
        "-1/6, and STEPS from 1 to %d",
        text, QK_SMEAR_ALPHA_MAX, QK_SMEAR_ALPHA_MAX, QK_SMEAR_STEPS_MAX);
  smearing->alpha = alpha;
  smearing->steps = (uint32_t)steps;
  return QK_OK;
}

static const struct {
  const char *name;
  quark_link_smear_t kind;
  int params;
  double max; /* of each parameter */
} link_kinds[] = {
    {"ape:", QUARK_APE, 1, 1}, {"stout:", QUARK_STOUT, 1, 0.25}, {"hyp:", QUARK_HYP, 3, 1}};
enum { NLINKKIND = sizeof link_kinds / sizeof link_kinds[0] };

qk_status_t qk_smearing_parse_links(const char *text, quark_smearing_t *smearing, qk_err_t *err) {
  static const char forms[] = "none, ape:ALPHA,STEPS[,4d], stout:RHO,STEPS[,4d] or "
                              "hyp:ALPHA1,ALPHA2,ALPHA3[,STEPS]";
  quark_smearing_t s = {.alpha = smearing->alpha, .steps = smearing->steps};
  const char *p = text;
  int i = 0;
  int64_t steps = 1;
  if (strcmp(text, "none") == 0) {
    *smearing = s;
    return QK_OK;
  }
  while (i < NLINKKIND && !qk_scan_word(&p, link_kinds[i].name)) i++;
  if (i == NLINKKIND) return bad_form(text, forms, err);
  s.links = link_kinds[i].kind;
  for (int k = 0; k < link_kinds[i].params; k++) {
    if ((k && !qk_scan_word(&p, ",")) || !qk_scan_real(&p, &s.link_param[k]))
      return bad_form(text, forms, err);
    if (!(s.link_param[k] >= 0 && s.link_param[k] <= link_kinds[i].max))
      return qk_fail(err, QK_BAD_ARGUMENT,
                     "smearing \"%.80s\": parameter %d is %g, must be 0 to %g", text, k + 1,
                     s.link_param[k], link_kinds[i].max);
  }
  if (s.links != QUARK_HYP || *p) {
    if (!qk_scan_word(&p, ",") || !qk_scan_int(&p, 0, INT32_MAX, &steps))
      return bad_form(text, forms, err);
    s.link_all = s.links != QUARK_HYP && qk_scan_word(&p, ",4d");
  }
  if (*p) return bad_form(text, forms, err);
  if (steps < 1 || steps > QK_LINK_STEPS_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "smearing \"%.80s\": %lld steps, must be 1 to %d", text,
                   (long long)steps, QK_LINK_STEPS_MAX);
  s.link_steps = (uint32_t)steps;
  *smearing = s;
  return QK_OK;
}

void qk_smearing_print(const quark_smearing_t *s, char text[QK_SMEARING_TEXT]) {
  char alpha[QK_REAL_TEXT];
  qk_real_text(s->alpha, alpha);
  if (s->steps)
    snprintf(text, QK_SMEARING_TEXT, "gauss:%s,%u", alpha, s->steps);
  else
    snprintf(text, QK_SMEARING_TEXT, "none");
}

void qk_smearing_print_links(const quark_smearing_t *s, char text[QK_SMEARING_TEXT]) {
  int i = 0, n;
  while (i < NLINKKIND && link_kinds[i].kind != s->links) i++;
  if (i == NLINKKIND) {
    snprintf(text, QK_SMEARING_TEXT, "none");
    return;
  }
  n = snprintf(text, QK_SMEARING_TEXT, "%s", link_kinds[i].name);
  for (int k = 0; k < link_kinds[i].params; k++) {
    char number[QK_REAL_TEXT];
    qk_real_text(s->link_param[k], number);
    n += snprintf(text + n, (size_t)(QK_SMEARING_TEXT - n), "%s,", number);
  }
  snprintf(text + n, (size_t)(QK_SMEARING_TEXT - n), "%u%s", s->link_steps,
           s->link_all ? ",4d" : "");
}
