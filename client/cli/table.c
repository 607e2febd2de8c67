#include "client/cli/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/correlator.h"
#include "client/cli/ctl.h"

/* Real parts, imaginary parts and masses of one correlator: 3 T numbers. */
typedef struct series {
  int nt;
  double *re, *im, *mass;
} series_t;

static bool series_init(series_t *s, int nt) {
  *s = (series_t){.nt = nt, .re = malloc(3 * (size_t)nt * sizeof *s->re)};
  if (!s->re) {
    ctl_complain("no memory for correlators of %d time slices", nt);
    return false;
  }
  s->im = s->re + nt;
  s->mass = s->im + nt;
  return true;
}

static qk_mass_form_t form_of(const qk_corrpiece_t *piece, int channel) {
  return qk_mass_form(piece->channel[channel], piece->meta.site_reals == QK_H5_COLOUR_SITE_REALS);
}

static void series_fill(series_t *s, const qk_corrpiece_t *piece, int channel, uint32_t momentum) {
  const double complex *c =
      piece->c + ((size_t)channel * piece->nmom + momentum) * (size_t)piece->meta.dims[3];
  for (int t = 0; t < s->nt; t++) {
    s->re[t] = creal(c[t]);
    s->im[t] = cimag(c[t]);
  }
  qk_correlator_masses(s->re, s->nt, form_of(piece, channel), s->mass);
}

static void fill_curve(ctl_curve_t *curve, const qk_corrpiece_t *piece, int channel,
                       const series_t *s) {
  *curve = (ctl_curve_t){.nt = s->nt, .c = s->re, .mass = s->mass};
  snprintf(curve->label, sizeof curve->label, "%s", piece->channel[channel]);
}

/* error: of the real parts; NULL: not known. */
static void print_one(const qk_corrpiece_t *piece, int channel, uint32_t p, const series_t *s,
                      const double complex *error) {
  const int32_t *k = piece->momentum[p];
  printf("# %s, p = (%d,%d,%d)\n# %3s  %22s  %22s", piece->channel[channel], k[0], k[1], k[2], "t",
         "Re C(t)", "Im C(t)");
  if (error) printf("  %10s", "error");
  printf("  %14s\n", qk_mass_form_name(form_of(piece, channel)));
  for (int t = 0; t < s->nt; t++) {
    printf("  %3d  %22.15e  %22.15e", t, s->re[t], s->im[t]);
    if (error) printf("  %10.3e", creal(error[t]));
    if (isfinite(s->mass[t]))
      printf("  %14.8f\n", s->mass[t]);
    else
      printf("  %14s\n", "-");
  }
}

int ctl_table_print(const qk_corrpiece_t *piece, const qk_corrpiece_t *error, bool draw) {
  const qk_corrmeta_t *m = &piece->meta;
  series_t s;
  if (!series_init(&s, m->dims[3])) return EXIT_AGAIN;
  printf("# %s/%s/%s\n# source %s, smeared %s, sink %s, links %s; t counted from t0 = %d\n",
         m->config, m->quark, m->label, m->source, m->smear, m->sink, m->links, m->origin[3]);
  if (m->site_reals == QK_H5_COLOUR_SITE_REALS)
    printf(
        "# smooth: masses of (C(t-1) + 2 C(t) + C(t+1)) / 4, in which the partner that alternates "
        "in t is\n# smaller, but not gone: fit both where it matters\n");
  for (int i = 0; i < piece->n; i++)
    for (uint32_t p = 0; p < piece->nmom; p++) {
      series_fill(&s, piece, i, p);
      print_one(piece, i, p, &s,
                error ? qk_corrpiece_find(error, piece->channel[i], piece->momentum[p]) : NULL);
      if (!draw) continue;
      ctl_curve_t curve;
      fill_curve(&curve, piece, i, &s);
      ctl_plot_terminal(stdout, &curve);
    }
  ctl_wall_print(&piece->wall);
  free(s.re);
  return 0;
}

json_t *ctl_numbers(const double *x, int n) {
  json_t *list = json_array();
  for (int i = 0; i < n; i++) json_array_append_new(list, ctl_number(x[i]));
  return list;
}

static json_t *integers(const int32_t *x, int n) {
  json_t *list = json_array();
  for (int i = 0; i < n; i++) json_array_append_new(list, json_integer(x[i]));
  return list;
}

/* null where there is none. */
static const char *said(const char *text) {
  return *text ? text : NULL;
}

json_t *ctl_table_json(const qk_corrpiece_t *piece) {
  const qk_corrmeta_t *m = &piece->meta;
  series_t s;
  if (!series_init(&s, m->dims[3])) return NULL;
  json_t *list = json_array();
  for (int i = 0; i < piece->n; i++)
    for (uint32_t p = 0; p < piece->nmom; p++) {
      series_fill(&s, piece, i, p);
      json_array_append_new(
          list, json_pack("{s:s, s:o, s:o, s:o, s:o, s:b}", "channel", piece->channel[i], "p",
                          integers(piece->momentum[p], 3), "re", ctl_numbers(s.re, s.nt), "im",
                          ctl_numbers(s.im, s.nt), "meff", ctl_numbers(s.mass, s.nt), "smooth",
                          (int)form_of(piece, i).smooth));
    }
  free(s.re);
  return json_pack(
      "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:s?, s:i, s:o, s:o, s:o, s:o, s:s, s:s, "
      "s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:s?, s:s?, s:s?, s:s?, s:o}",
      "config", m->config, "quark", m->quark, "label", m->label, "source", m->source, "smear",
      m->smear, "sink", m->sink, "links", m->links, "origin", integers(m->origin, 4), "dims",
      integers(m->dims, 4), "action", *m->action ? m->action : NULL, "site_reals",
      (int)m->site_reals, "kappa", ctl_number(m->kappa), "mass", ctl_number(m->mass), "csw",
      ctl_number(m->csw), "plaquette", ctl_number(m->plaquette), "gauge", m->gauge, "digest",
      m->digest, "tolerance", ctl_number(m->tolerance), "residual", ctl_number(m->residual),
      "iterations", (int)m->iterations, "seconds", ctl_number(m->seconds), "flavour",
      m->flavour ? json_integer(m->flavour) : json_null(), "correlators", list, "tolerance_abs",
      ctl_number(m->tolerance_abs), "tolerance_hq", ctl_number(m->tolerance_hq), "part",
      said(m->part), "ama", said(m->ama), "seed", said(m->seed), "offset", said(m->offset), "wall",
      ctl_wall_json(&piece->wall));
}

int ctl_picture(const char *path, const char *title, int n, const ctl_curve_t *curves,
                bool *drawn) {
  qk_err_t err = {0};
  const qk_status_t status = ctl_plot_png(path, title, n, curves, &err);
  if (drawn) *drawn = status == QK_OK;
  if (status == QK_NOT_FOUND)
    ctl_complain("no picture: %s", err.text);
  else if (status != QK_OK)
    return ctl_fail_file(&err);
  return 0;
}

int ctl_table_png(const char *path, const qk_corrpiece_t *piece, bool *drawn) {
  char title[3 * QK_CORR_NAME + 8];
  snprintf(title, sizeof title, "%s   %s   %s", piece->meta.config, piece->meta.quark,
           piece->meta.label);
  ctl_curve_t *curves = calloc((size_t)piece->n, sizeof *curves);
  series_t *series = calloc((size_t)piece->n, sizeof *series);
  int code = curves && series ? 0 : EXIT_AGAIN;
  for (int i = 0; i < piece->n && code == 0; i++) {
    if (!series_init(&series[i], piece->meta.dims[3])) {
      code = EXIT_AGAIN;
      break;
    }
    series_fill(&series[i], piece, i, 0);
    fill_curve(&curves[i], piece, i, &series[i]);
  }
  if (code == 0) code = ctl_picture(path, title, piece->n, curves, drawn);
  for (int i = 0; series && i < piece->n; i++) free(series[i].re);
  free(series);
  free(curves);
  return code;
}

/* ---- domain wall fermions ---- */

static json_t *totals(const qk_wall_t *wall, int kind) {
  if (!qk_wall_has(wall, kind)) return json_null();
  json_t *list = json_array();
  for (int t = 0; t < wall->nt; t++)
    json_array_append_new(list, ctl_number(qk_wall_total(wall, kind, t)));
  return list;
}

static json_t *ratios(const qk_wall_t *wall) {
  if (!qk_wall_has(wall, QK_WALL_MIDPOINT)) return json_null();
  json_t *list = json_array();
  for (int t = 0; t < wall->nt; t++)
    json_array_append_new(list, ctl_number(qk_wall_ratio(wall, t)));
  return list;
}

static json_t *plateau(const qk_wall_t *wall) {
  qk_plateau_t p;
  if (!qk_wall_has(wall, QK_WALL_MIDPOINT) || !qk_wall_plateau(wall, &p)) return json_null();
  return json_pack("{s:i, s:i, s:f, s:f, s:f}", "first", p.first, "last", p.last, "mean", p.mean,
                   "least", p.least, "most", p.most);
}

json_t *ctl_wall_json(const qk_wall_t *wall) {
  if (!qk_wall_has(wall, QK_WALL_QUARK)) return json_null();
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "t0",
                   wall->t0 < 0 ? json_null() : json_integer(wall->t0), "quark",
                   totals(wall, QK_WALL_QUARK), "midpoint", totals(wall, QK_WALL_MIDPOINT), "axial",
                   totals(wall, QK_WALL_AXIAL), "ratio", ratios(wall), "plateau", plateau(wall));
}

void ctl_wall_print(const qk_wall_t *wall) {
  qk_plateau_t p;
  if (!qk_wall_has(wall, QK_WALL_MIDPOINT)) return;
  const bool axial = qk_wall_has(wall, QK_WALL_AXIAL);
  printf("  t   R = |mid|^2 / |q|^2%s\n", axial ? "   axial current" : "");
  for (int t = 0; t < wall->nt; t++) {
    printf("%3d   %-20.8e", t, qk_wall_ratio(wall, t));
    if (axial) printf(" %15.8e", qk_wall_total(wall, QK_WALL_AXIAL, t));
    printf("\n");
  }
  if (qk_wall_plateau(wall, &p))
    printf("residual mass %.4g, the mean of R over t = %d to %d from the source (%.4g to %.4g)\n",
           p.mean, p.first, p.last, p.least, p.most);
}
