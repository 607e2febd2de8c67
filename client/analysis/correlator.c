#include "client/analysis/correlator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/channels.h"

/* log of cosh(m a) / cosh(m b), without overflow. */
static double log_quotient(double m, double a, double b) {
  const double x = m * fabs(a), y = m * fabs(b);
  return x - y + log1p(exp(-2 * x)) - log1p(exp(-2 * y));
}

double qk_correlator_cosh_mass(double c0, double c1, int t, int nt) {
  double a = t - 0.5 * nt, b = a + 1;
  double want = log(c0 / c1);
  if (fabs(a) < fabs(b)) {
    const double swap = a;
    a = b;
    b = swap;
    want = -want;
  }
  if (!(c0 / c1 > 0) || !isfinite(want) || !(want > 0) || fabs(a) == fabs(b)) return NAN;
  /* The quotient grows with m from 0, and is at least m (|a| - |b|) - log 2. */
  double low = 0, high = (want + log(2.0)) / (fabs(a) - fabs(b));
  while (high - low > 1e-15 * high) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    if (log_quotient(middle, a, b) < want)
      low = middle;
    else
      high = middle;
  }
  return 0.5 * (low + high);
}

qk_mass_form_t qk_mass_form(const char *channel, bool colour) {
  return (qk_mass_form_t){.cosh = qk_channel_is_symmetric(channel),
                          .smooth = colour && qk_channel_alternates(channel)};
}

const char *qk_mass_form_name(qk_mass_form_t form) {
  return form.smooth ? "m_eff (smooth)" : form.cosh ? "m_eff (cosh)" : "m_eff (log)";
}

/* At any t modulo nt. */
static double value_at(const double *c, int nt, int t, bool smooth) {
  const double here = c[(t + nt) % nt];
  return smooth ? (c[(t - 1 + nt) % nt] + 2 * here + c[(t + 1) % nt]) / 4 : here;
}

void qk_correlator_masses(const double *c, int nt, qk_mass_form_t form, double *mass) {
  for (int t = 0; t < nt; t++) {
    const double c0 = value_at(c, nt, t, form.smooth), c1 = value_at(c, nt, t + 1, form.smooth);
    const bool over = form.smooth && !form.cosh && (t < 1 || t > nt - 3);
    mass[t] = form.cosh              ? qk_correlator_cosh_mass(c0, c1, t, nt)
              : !over && c0 / c1 > 0 ? log(c0 / c1)
                                     : NAN;
  }
}

static bool is_noise(const char *source) {
  return strcmp(source, "z2") == 0 || strcmp(source, "z4") == 0;
}

/* Column i must be a solution, of the same source as the first column. */
static qk_status_t check_column(qk_fieldfile_t *file, int64_t i, const qk_h5column_t *first,
                                qk_h5column_t *column, qk_err_t *err) {
  const qk_status_t status = qk_fieldfile_column(file, i, column, err);
  if (status != QK_OK) return status;
  if (column->status != QK_OK)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "column %lld has status %s (residual %.3g): not a solution", (long long)i,
                   qk_status_name(column->status), column->true_residual);
  if (i > 0 && (strcmp(column->source, first->source) != 0 ||
                memcmp(column->site, first->site, sizeof column->site) != 0))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "column %lld has another source (%s, t = %d) than column 0 (%s, t = %d)",
                   (long long)i, column->source, column->site[3], first->source, first->site[3]);
  return QK_OK;
}

/* The columns must be solutions of one source on one time slice, and unless it is noise, of all its
 * components: twelve, or three of colour vectors. */
static qk_status_t check_columns(qk_fieldfile_t *file, qk_correlator_t *corr, qk_err_t *err) {
  const bool colour = qk_fieldfile_meta(file)->site_reals == QK_H5_COLOUR_SITE_REALS;
  const int64_t n = qk_fieldfile_nrhs(file), want = colour ? 3 : 12;
  qk_h5column_t first = {0}, column;
  unsigned components = 0;
  for (int64_t i = 0; i < n; i++) {
    const qk_status_t status = check_column(file, i, &first, i ? &column : &first, err);
    if (status != QK_OK) return status;
    const qk_h5column_t *c = i ? &column : &first;
    if (c->spin >= 0 && c->spin < 4 && c->colour >= 0 && c->colour < 3)
      components |= 1u << (3 * c->spin + c->colour);
  }
  corr->t0 = first.site[3];
  memcpy(corr->source, first.source, sizeof corr->source);
  if (corr->t0 < 0 || corr->t0 >= corr->nt)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "source \"%s\" is not on one time slice (t = %d, expected 0 to %d)",
                   corr->source, corr->t0, corr->nt - 1);
  if (!is_noise(corr->source) && (n != want || components != (1u << want) - 1))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%lld columns of a %s source, expected its %lld components", (long long)n,
                   corr->source, (long long)want);
  return QK_OK;
}

/* c[t] += the sum of |x|^2 over time slice t0 + t. */
static void add_norms(qk_correlator_t *corr, const double *x, int64_t reals) {
  for (int t = 0; t < corr->nt; t++) {
    const double *slice = x + reals * ((corr->t0 + t) % corr->nt);
    double sum = 0;
    for (int64_t i = 0; i < reals; i++) sum += slice[i] * slice[i];
    corr->c[t] += sum;
  }
}

qk_status_t qk_correlator_compute(qk_fieldfile_t *file, const char *channel, qk_correlator_t *corr,
                                  qk_err_t *err) {
  if (strcmp(channel, "pion") != 0)
    return qk_fail(err, QK_UNSUPPORTED, "channel \"%s\": only pion is known", channel);
  const qk_h5meta_t *meta = qk_fieldfile_meta(file);
  if (meta->site_reals == QK_H5_TWO_SITE_REALS)
    return qk_fail(
        err, QK_UNSUPPORTED,
        "fields of %d real numbers at a site: contractions are defined for %d (4 spins, 3 "
        "colours) and %d (3 colours), not for the two flavours of a doublet",
        meta->site_reals, QK_H5_SITE_REALS, QK_H5_COLOUR_SITE_REALS);
  const int64_t space = (int64_t)meta->dims[0] * meta->dims[1] * meta->dims[2],
                n = qk_fieldfile_nrhs(file);
  qk_correlator_t out = {.nt = meta->dims[3]};
  qk_status_t status = check_columns(file, &out, err);
  if (status != QK_OK) return status;
  double *x = malloc(qk_fieldfile_rhs_bytes(file, 64));
  out.c = calloc((size_t)out.nt, sizeof *out.c);
  out.meff = calloc((size_t)out.nt, sizeof *out.meff);
  out.mlog = calloc((size_t)out.nt, sizeof *out.mlog);
  if (!x || !out.c || !out.meff || !out.mlog) {
    status = qk_fail(err, QK_NO_MEMORY, "no memory for one right-hand side of %zu bytes",
                     qk_fieldfile_rhs_bytes(file, 64));
    goto fail;
  }
  for (int64_t i = 0; i < n; i++) {
    if ((status = qk_fieldfile_read(file, i, 64, x, err)) != QK_OK) goto fail;
    add_norms(&out, x, space * meta->site_reals);
  }
  if (is_noise(out.source))
    for (int t = 0; t < out.nt; t++) out.c[t] /= (double)n * (double)space;
  qk_correlator_masses(out.c, out.nt, (qk_mass_form_t){.cosh = true}, out.meff);
  qk_correlator_masses(out.c, out.nt, (qk_mass_form_t){0}, out.mlog);
  free(x);
  *corr = out;
  return QK_OK;
fail:
  free(x);
  qk_correlator_fini(&out);
  return status;
}

void qk_correlator_fini(qk_correlator_t *corr) {
  free(corr->c);
  free(corr->meff);
  free(corr->mlog);
  memset(corr, 0, sizeof *corr);
}
