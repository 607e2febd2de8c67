#include "client/quarkctl/ama.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/operator.h"

typedef struct run {
  quark_connection_t *conn;
  const quark_report_t *report;
  const ctl_measurement_t *what;
  const ctl_ama_t *ama;
  qk_corrmeta_t names; /* of all pieces, but for label and part */
  int32_t (*site)[4];
  qk_corrwriter_t *writer;
  qk_ama_sum_t sloppy, correction;
  ctl_progress_t progress;
  double begun;
} run_t;

/* ---- places ---------------------------------------------------------------------------------- */

static bool has_baryons(const qk_channels_t *channels) {
  for (uint32_t i = 0; i < channels->nraw; i++)
    if (channels->raw[i].kind != QUARK_MESON) return true;
  return false;
}

/* Three quarks that cross an edge in space take the cube of its phase, which the sums over x do not
 * undo: a baryon then depends on where in space its source is. */
static bool is_free(const run_t *r, const char *action, int mu) {
  const double *phase = r->report->setup.boundary + 2 * mu;
  if (mu == 3) return strstr(action, ";open=") == NULL;
  if (r->what->source.kind != QUARK_POINT) return false;
  return !has_baryons(r->what->channels) || hypot(phase[0] - 1, phase[1]) < 1e-12;
}

static int place(run_t *r) {
  const quark_column_t *at = &r->what->source.place;
  qk_ama_grid_t grid = {.first = {at->x, at->y, at->z, at->t},
                        .seed = r->ama->has_seed ? r->ama->seed : r->report->setup.digest};
  char action[QK_OPERATOR_TEXT];
  int32_t offset[4], n = r->ama->sloppy.n;
  qk_err_t err = {0};
  ctl_operator_canonical(r->report, action);
  for (int mu = 0; mu < 4; mu++) {
    grid.dims[mu] = (int32_t)r->report->setup.dims[mu];
    grid.is_free[mu] = is_free(r, action, mu);
  }
  quark_column_t *columns; /* of what is written: a coordinate outside is no place */
  int64_t all;
  const int code = ctl_columns(&r->what->source, r->what->text, r->report, &all, &columns);
  if (code) return code;
  free(columns);
  r->site = calloc((size_t)n, sizeof *r->site);
  if (!r->site) {
    ctl_complain("no memory for %d sources", n);
    return EXIT_AGAIN;
  }
  if (qk_ama_place(&grid, n, offset, r->site, &err) != QK_OK) {
    ctl_complain("--ama: %s", err.text);
    return EXIT_USAGE;
  }
  snprintf(r->names.seed, sizeof r->names.seed, "%" PRIu64, grid.seed);
  snprintf(r->names.offset, sizeof r->names.offset, "%d,%d,%d,%d", offset[0], offset[1], offset[2],
           offset[3]);
  snprintf(r->names.ama, sizeof r->names.ama, "%d:%.10g exact %d:%.10g", n, r->ama->sloppy.tol,
           r->ama->exact.n, r->ama->exact.tol);
  return 0;
}

/* As --source would have it. */
static void print_source(const qk_source_t *source, char text[QK_CORR_NAME]) {
  const quark_column_t *at = &source->place;
  if (source->kind == QUARK_POINT)
    snprintf(text, QK_CORR_NAME, "point:%d,%d,%d,%d", at->x, at->y, at->z, at->t);
  else if (at->px || at->py || at->pz)
    snprintf(text, QK_CORR_NAME, "wall:%d,p=%d:%d:%d", at->t, at->px, at->py, at->pz);
  else
    snprintf(text, QK_CORR_NAME, "wall:%d", at->t);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void label(qk_corrmeta_t *meta, const char *part, const char *source) {
  snprintf(meta->part, sizeof meta->part, "%s", part);
  snprintf(meta->label, sizeof meta->label, "ama.%s%s%.100s", part, *source ? "." : "", source);
}

static int add(run_t *r, const qk_corrpiece_t *piece) {
  qk_err_t err = {0};
  return qk_corrwriter_add(r->writer, piece, &err) == QK_OK ? 0 : ctl_fail_file(&err);
}

/* Source k, to a tolerance. */
static int measure(run_t *r, int32_t k, const char *part, double tol, qk_corrpiece_t *piece) {
  ctl_measurement_t what = *r->what;
  qk_corrmeta_t names = r->names;
  char text[QK_CORR_NAME];
  what.source.place.t = r->site[k][3];
  if (what.source.kind == QUARK_POINT) {
    what.source.place.x = r->site[k][0];
    what.source.place.y = r->site[k][1];
    what.source.place.z = r->site[k][2];
  }
  what.params.tol = tol;
  what.params.batch_only = true; /* sloppily the same, whatever else is solved */
  print_source(&what.source, text);
  what.text = text;
  label(&names, part, text);
  int code = ctl_measure(r->conn, r->report, &what, &names, &r->progress, piece);
  if (code == 0 && (code = add(r, piece))) qk_corrpiece_fini(piece);
  return code;
}

/* The numbers are not those of a solve. */
static void forget_solves(qk_corrpiece_t *piece) {
  piece->meta.tolerance = piece->meta.residual = NAN;
  piece->meta.iterations = 0;
  qk_wall_fini(&piece->wall);
}

/* sloppy becomes what is left of it. */
static int correct(run_t *r, int32_t k, qk_corrpiece_t *sloppy) {
  qk_corrpiece_t exact;
  int code = measure(r, k, "exact", r->ama->exact.tol, &exact);
  if (code) return code;
  qk_ama_sum_add(&r->correction, exact.c, sloppy->c);
  for (size_t i = 0; i < r->correction.size; i++) sloppy->c[i] = exact.c[i] - sloppy->c[i];
  qk_corrpiece_fini(&exact);
  forget_solves(sloppy);
  label(&sloppy->meta, "correction", sloppy->meta.source);
  return add(r, sloppy);
}

/* The mean and its error, in the room of a piece. */
static int combine(run_t *r, qk_corrpiece_t *piece) {
  double complex *error = malloc(r->sloppy.size * sizeof *error);
  if (!error) {
    ctl_complain("no memory for errors");
    return EXIT_AGAIN;
  }
  qk_ama_combine(&r->sloppy, &r->correction, piece->c, error);
  forget_solves(piece);
  print_source(&r->what->source, piece->meta.source);
  memcpy(piece->meta.origin, r->site[0], sizeof piece->meta.origin);
  piece->meta.seconds = ctl_seconds() - r->begun;
  label(&piece->meta, "mean", "");
  int code = add(r, piece);
  memcpy(piece->c, error, r->sloppy.size * sizeof *error);
  free(error);
  label(&piece->meta, "error", "");
  return code ? code : add(r, piece);
}

/* Source k: its pieces, and its share of the means. The last one leaves the combination. */
static int take_source(run_t *r, int32_t k) {
  const int32_t n = r->ama->sloppy.n;
  qk_corrpiece_t piece;
  qk_err_t err = {0};
  int code = measure(r, k, "sloppy", r->ama->sloppy.tol, &piece);
  if (code) return code;
  if (k == 0 && (qk_ama_sum_init(&r->sloppy, &piece, &err) != QK_OK ||
                 qk_ama_sum_init(&r->correction, &piece, &err) != QK_OK))
    code = ctl_fail_file(&err);
  if (code == 0) qk_ama_sum_add(&r->sloppy, piece.c, NULL);
  if (code == 0 && qk_ama_is_exact(k, n, r->ama->exact.n)) code = correct(r, k, &piece);
  if (code == 0 && k == n - 1) code = combine(r, &piece);
  qk_corrpiece_fini(&piece);
  return code;
}

int ctl_ama_run(quark_connection_t *conn, const quark_report_t *report,
                const ctl_measurement_t *what, const ctl_ama_t *ama, const char *out,
                bool progress) {
  run_t r = {.conn = conn, .report = report, .what = what, .ama = ama, .begun = ctl_seconds()};
  qk_err_t err = {0};
  qk_corrmeta_init(&r.names);
  ctl_name_piece(report, report->setup.gauge, "", what->params.flavour, &r.names);
  int code = place(&r);
  if (code == 0 && qk_corrwriter_create(out, &r.writer, &err) != QK_OK) code = ctl_fail_file(&err);
  if (code) goto out;
  ctl_progress_begin(&r.progress, (int64_t)report->setup.columns * (ama->sloppy.n + ama->exact.n),
                     progress);
  for (int32_t k = 0; k < ama->sloppy.n && code == 0; k++) code = take_source(&r, k);
  ctl_progress_end(&r.progress);
  if (code == 0) {
    if (qk_corrwriter_commit(r.writer, &err) != QK_OK) code = ctl_fail_file(&err);
    r.writer = NULL;
  }
out:
  qk_corrwriter_destroy(r.writer);
  qk_ama_sum_fini(&r.sloppy);
  qk_ama_sum_fini(&r.correction);
  free(r.site);
  return code;
}
