/* An operator among the actions of quarkd. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "operator.h"

static const char TWISTED[] = "twisted-clover";

static double tolerance(void) {
  return qk_quda_number_setting("MATCH", 0, 1e-3, 1e-14);
}

/* "1,1,1,-1" */
static bool numbers(const char *text, int n, double *value) {
  for (int k = 0; k < n; k++) {
    char *end;
    value[k] = strtod(text, &end);
    if (end == text || *end != (k < n - 1 ? ',' : '\0')) return false;
    text = end + 1;
  }
  return true;
}

/* What a setup's operator is; false: one that callers of QUDA do not have. */
typedef struct theirs {
  double mass, csw, mu, hop[4], plane[6], xi0, nu, c_r, c_t;
  char term[32]; /* digest:HEX16 of foreign-clover */
} theirs_t;

static bool read_parameter(theirs_t *o, const char *key, const char *value) {
  if (strcmp(key, "kappa") == 0) {
    double kappa = 0;
    const bool good = numbers(value, 1, &kappa) && kappa > 0;
    o->mass = 1 / (2 * kappa) - 4;
    return good;
  }
  if (strcmp(key, "mass") == 0) return numbers(value, 1, &o->mass);
  if (strcmp(key, "csw") == 0) return numbers(value, 1, &o->csw);
  if (strcmp(key, "mu") == 0) return numbers(value, 1, &o->mu);
  if (strcmp(key, "hop") == 0) return numbers(value, 4, o->hop);
  if (strcmp(key, "clover-plane") == 0) return numbers(value, 6, o->plane);
  if (strcmp(key, "clover") == 0) return snprintf(o->term, sizeof o->term, "%s", value) > 0;
  if (strcmp(key, "links") == 0) return strcmp(value, "thin") == 0;
  if (strcmp(key, "open") == 0) return strtod(value, NULL) == 0;
  if (strcmp(key, "xi0") == 0) return numbers(value, 1, &o->xi0);
  if (strcmp(key, "nu") == 0) return numbers(value, 1, &o->nu);
  if (strcmp(key, "c-r") == 0) return numbers(value, 1, &o->c_r);
  if (strcmp(key, "c-t") == 0) return numbers(value, 1, &o->c_t);
  return false;
}

static bool read_operator(const char *action, const char *parameters, theirs_t *o) {
  char text[QUARK_PARAMETER_TEXT];
  quark_parameter_t p[16];
  *o = (theirs_t){.mass = NAN, .hop = {1, 1, 1, 1}, .plane = {1, 1, 1, 1, 1, 1}, .xi0 = 1, .nu = 1};
  const bool anisotropic = strcmp(action, "anisotropic-clover") == 0;
  if (!anisotropic && strcmp(action, "wilson") != 0 && strcmp(action, "wilson-clover") != 0 &&
      strcmp(action, "foreign-clover") != 0 && strcmp(action, TWISTED) != 0)
    return false;
  snprintf(text, sizeof text, "%s", parameters);
  const uint32_t n = quark_parameters_split(text, 16, p);
  if (n > 16) return false;
  for (uint32_t k = 0; k < n; k++)
    if (!read_parameter(o, p[k].key, p[k].value)) return false;
  if (strcmp(action, "wilson") == 0) o->csw = 0;
  for (int k = 0; anisotropic && k < 6; k++) {
    o->csw = 1;
    if (k < 3) o->hop[k] = o->nu / o->xi0;
    o->plane[k] = k < 3 ? o->c_r / o->xi0 : o->c_t;
  }
  return true;
}

static double sum4(const double *h) {
  return h[0] + h[1] + h[2] + h[3];
}

void qk_quda_operator_compare(const qk_quda_operator_t *op, const quark_report_t *report,
                              char why[256]) {
  const double most = tolerance(), *hop = op->links->hop;
  theirs_t o;
  why[0] = '\0';
  if (!read_operator(report->setup.action, report->setup.parameters, &o)) {
    snprintf(why, 256, "its action is %s;%.150s", report->setup.action, report->setup.parameters);
    return;
  }
  const double sum = op->mass + sum4(hop), sums = o.mass + sum4(o.hop);
  char term[32] = "";
  if (op->term) snprintf(term, sizeof term, "digest:%016llx", (unsigned long long)op->term_digest);
  if (op->mu != 0 && strcmp(report->setup.action, TWISTED) != 0)
    snprintf(why, 256, "its action is %s, not %s", report->setup.action, TWISTED);
  else if (!(fabs(fabs(op->mu) - o.mu) <= most * fabs(sum)))
    snprintf(why, 256, "its mu is %.17g, not %.17g", o.mu, fabs(op->mu));
  else if (strcmp(term, o.term) != 0)
    snprintf(why, 256, "its clover term is %s, not %s", o.term[0] ? o.term : "of its links",
             term[0] ? term : "of the links");
  else if (!op->term && !(fabs(sum - sums) <= most * fabs(sum)))
    snprintf(why, 256, "its mass is %.17g, not %.17g", o.mass, op->mass);
  for (int mu = 0; mu < 4 && !why[0]; mu++) {
    const double complex z =
        report->setup.boundary[2 * mu] + I * report->setup.boundary[2 * mu + 1];
    if (!(fabs(hop[mu] - o.hop[mu]) <= most * hop[mu]))
      snprintf(why, 256, "its hop weight in direction %d is %.17g, not %.17g", mu, o.hop[mu],
               hop[mu]);
    else if (!(cabs(z - op->links->boundary[mu]) <= 1e-12))
      snprintf(why, 256, "its boundary phase in direction %d is %.6g%+.6gi, not %.6g%+.6gi", mu,
               creal(z), cimag(z), creal(op->links->boundary[mu]), cimag(op->links->boundary[mu]));
  }
  for (int k = 0; k < 6 && !why[0]; k++) {
    const double ours = op->csw * op->plane[k], its = o.csw * o.plane[k];
    if (!(fabs(ours - its) <= most * fmax(1, fabs(ours))))
      snprintf(why, 256, "its clover coefficient in plane %d is %.17g, not %.17g", k, its, ours);
  }
}

static void write_phase(double complex z, char text[32]) {
  if (z == 1 || z == -1)
    snprintf(text, 32, "%d", z == 1 ? 1 : -1);
  else
    snprintf(text, 32, "%.17gpi", carg(z) / acos(-1));
}

void qk_quda_operator_write(const qk_quda_operator_t *op, uint64_t term, qk_quda_wording_t *w) {
  const double *h = op->links->hop, *c = op->plane;
  bool weights = false, planes = false;
  for (int mu = 0; mu < 4; mu++) weights = weights || h[mu] != 1;
  for (int k = 0; k < 6; k++) planes = planes || c[k] != 1;
  char phase[4][32];
  for (int mu = 0; mu < 4; mu++) write_phase(op->links->boundary[mu], phase[mu]);
  snprintf(w->boundary, sizeof w->boundary, "%s,%s,%s,%s", phase[0], phase[1], phase[2], phase[3]);
  w->action = op->mu != 0    ? TWISTED
              : op->term     ? "foreign-clover"
              : op->csw != 0 ? "wilson-clover"
                             : "wilson";
  snprintf(w->mass, sizeof w->mass, "%.17g", op->mass);
  snprintf(w->mu, sizeof w->mu, "%.17g", fabs(op->mu));
  snprintf(w->csw, sizeof w->csw, "%.17g", op->csw);
  snprintf(w->hop, sizeof w->hop, "%.17g,%.17g,%.17g,%.17g", h[0], h[1], h[2], h[3]);
  snprintf(w->plane, sizeof w->plane, "%.17g,%.17g,%.17g,%.17g,%.17g,%.17g", c[0], c[1], c[2], c[3],
           c[4], c[5]);
  snprintf(w->term, sizeof w->term, "field:%llu", (unsigned long long)term);
  w->n = 0;
  w->p[w->n++] =
      op->term ? (quark_parameter_t){"clover", w->term} : (quark_parameter_t){"mass", w->mass};
  if (op->mu != 0) w->p[w->n++] = (quark_parameter_t){"mu", w->mu};
  if (op->csw != 0) w->p[w->n++] = (quark_parameter_t){"csw", w->csw};
  if (weights) w->p[w->n++] = (quark_parameter_t){"hop", w->hop};
  if (planes && op->csw != 0) w->p[w->n++] = (quark_parameter_t){"clover-plane", w->plane};
}
