#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/ensemble.h"
#include "client/cli/ctl.h"
#include "client/cli/table.h"
#include "client/workflow/workflow.h"

/* One line of the report: pieces with the quark and source of `first`, a channel and a momentum. */
typedef struct group {
  const qk_corrpiece_t *first;
  const char *channel;
  const int32_t *momentum;
  qk_ensemble_t mean;
} group_t;

static qk_mass_form_t form_of(const group_t *g) {
  return qk_mass_form(g->channel, g->first->meta.site_reals == QK_H5_COLOUR_SITE_REALS);
}

/* Called for each group; returns an exit code. */
typedef int group_fn(const group_t *group, void *arg);

static bool same_group(const qk_corrpiece_t *a, const qk_corrpiece_t *b) {
  return strcmp(a->meta.quark, b->meta.quark) == 0 && strcmp(a->meta.name, b->meta.name) == 0 &&
         a->meta.dims[3] == b->meta.dims[3];
}

/* Index of the first piece of the group of piece i; config: of the same configuration as well. */
static int first_like(const ctl_pieces_t *p, int i, bool config) {
  int j = 0;
  while (j < i && (!same_group(&p->piece[j], &p->piece[i]) ||
                   (config && strcmp(p->piece[j].meta.config, p->piece[i].meta.config) != 0)))
    j++;
  return j;
}

/* Adds the real parts of all pieces of the configuration of piece i. Returns their number. */
static int add_config(const ctl_pieces_t *p, int i, const group_t *g, double *sum) {
  int n = 0;
  for (int j = i; j < p->n; j++) {
    const qk_corrpiece_t *piece = &p->piece[j];
    const double complex *c;
    if (!same_group(piece, &p->piece[i]) ||
        strcmp(piece->meta.config, p->piece[i].meta.config) != 0 ||
        !(c = qk_corrpiece_find(piece, g->channel, g->momentum)))
      continue;
    for (int t = 0; t < piece->meta.dims[3]; t++) sum[t] += creal(c[t]);
    n++;
  }
  return n;
}

/* One sample for each configuration, then the means. first: index of g->first. */
static int compute(const ctl_pieces_t *p, int first, group_t *g) {
  const int nt = g->first->meta.dims[3];
  qk_err_t err = {0};
  int n = 0;
  double *sample = calloc((size_t)p->n * (size_t)nt, sizeof *sample);
  for (int i = first; i < p->n && sample; i++) {
    if (!same_group(&p->piece[i], g->first) || first_like(p, i, true) != i) continue;
    double *sum = sample + (size_t)n * (size_t)nt;
    const int count = add_config(p, i, g, sum);
    for (int t = 0; t < nt; t++) sum[t] /= count ? count : 1;
    n += count > 0;
  }
  qk_status_t status =
      sample ? QK_OK : qk_fail(&err, QK_NO_MEMORY, "no memory for %d pieces", p->n);
  if (status == QK_OK) status = qk_ensemble_compute(n, nt, sample, form_of(g), &g->mean, &err);
  free(sample);
  if (status == QK_OK) return 0;
  ctl_fail_file(&err);
  return EXIT_AGAIN;
}

static int for_each(const ctl_pieces_t *p, bool first_momentum_only, group_fn *visit, void *arg) {
  int code = 0;
  for (int i = 0; i < p->n && code == 0; i++) {
    const qk_corrpiece_t *piece = &p->piece[i];
    if (first_like(p, i, false) != i) continue;
    const int momenta = first_momentum_only ? 1 : (int)piece->nmom;
    for (int k = 0; k < piece->n * momenta && code == 0; k++) {
      group_t g = {.first = piece,
                   .channel = piece->channel[k / momenta],
                   .momentum = piece->momentum[k % momenta]};
      if ((code = compute(p, i, &g))) break;
      code = visit(&g, arg);
      qk_ensemble_fini(&g.mean);
    }
  }
  return code;
}

/* ---- tables ---- */

static void print_pair(double x, double dx, const char *format, int width) {
  char value[40] = "-", error[40] = "";
  if (isfinite(x)) snprintf(value, sizeof value, format, x);
  if (isfinite(x) && isfinite(dx)) snprintf(error, sizeof error, "+- %.2g", dx);
  printf("  %*s %-11s", width, value, error);
}

static int print_group(const group_t *g, void *arg) {
  (void)arg;
  const qk_ensemble_t *e = &g->mean;
  printf("# %s, p = (%d,%d,%d), %s, %s: %d configuration%s\n# %3s  %20s  %33s\n", g->channel,
         g->momentum[0], g->momentum[1], g->momentum[2], g->first->meta.quark, g->first->meta.name,
         e->n, e->n == 1 ? "" : "s", "t", "C(t)", qk_mass_form_name(form_of(g)));
  for (int t = 0; t < e->nt; t++) {
    printf("  %3d", t);
    print_pair(e->c[t], e->dc[t], "%.8e", 16);
    print_pair(e->mass[t], e->dmass[t], "%.6f", 12);
    putchar('\n');
  }
  return 0;
}

int ctl_workreport_print(const ctl_pieces_t *pieces) {
  return for_each(pieces, false, print_group, NULL);
}

/* ---- JSON ---- */

static int add_group(const group_t *g, void *arg) {
  const qk_ensemble_t *e = &g->mean;
  json_t *one =
      json_pack("{s:s, s:s, s:s, s:[i,i,i], s:i, s:o, s:o, s:o, s:o}", "quark",
                g->first->meta.quark, "name", g->first->meta.name, "channel", g->channel, "p",
                (int)g->momentum[0], (int)g->momentum[1], (int)g->momentum[2], "n", e->n, "C",
                ctl_numbers(e->c, e->nt), "dC", ctl_numbers(e->dc, e->nt), "meff",
                ctl_numbers(e->mass, e->nt), "dmeff", ctl_numbers(e->dmass, e->nt));
  if (json_array_append_new(arg, one) == 0) return 0;
  ctl_complain("no memory for the report");
  return EXIT_AGAIN;
}

int ctl_workreport_json(const ctl_pieces_t *pieces, json_t **list) {
  *list = json_array();
  const int code = for_each(pieces, false, add_group, *list);
  if (code) json_decref(*list);
  return code;
}

/* ---- pictures ---- */

typedef struct curves {
  int n;
  ctl_curve_t *curve;
  double **room;
} curves_t;

/* Adds a copy of the means of a group. */
static int add_curve(const group_t *g, void *arg) {
  curves_t *all = arg;
  const qk_ensemble_t *e = &g->mean;
  const size_t nt = (size_t)e->nt, n = (size_t)all->n + 1;
  double *copy = malloc(4 * nt * sizeof *copy);
  ctl_curve_t *curve = realloc(all->curve, n * sizeof *curve);
  if (curve) all->curve = curve;
  double **room = realloc(all->room, n * sizeof *room);
  if (room) all->room = room;
  if (!copy || !curve || !room) {
    free(copy);
    ctl_complain("no memory for a picture");
    return EXIT_AGAIN;
  }
  memcpy(copy, e->c, 4 * nt * sizeof *copy);
  const bool errors = e->n > 1;
  curve[all->n] = (ctl_curve_t){.nt = e->nt,
                                .c = copy,
                                .mass = copy + 2 * nt,
                                .dc = errors ? copy + nt : NULL,
                                .dmass = errors ? copy + 3 * nt : NULL};
  snprintf(curve[all->n].label, sizeof curve->label, "%s %.50s %.40s", g->channel,
           g->first->meta.quark, g->first->meta.name);
  room[all->n++] = copy;
  return 0;
}

int ctl_workreport_png(const ctl_pieces_t *pieces, const char *png, bool *drawn) {
  curves_t all = {0};
  int code = for_each(pieces, true, add_curve, &all);
  *drawn = false;
  if (code == 0 && all.n > 0) code = ctl_picture(png, pieces->out, all.n, all.curve, drawn);
  for (int i = 0; i < all.n; i++) free(all.room[i]);
  free(all.room);
  free(all.curve);
  return code;
}
