#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/smearing.h"
#include "client/cli/operator.h"
#include "client/cli/solving.h"
#include "client/cli/table.h"

/* ---- sums of domain wall fermions ---- */

_Static_assert((int)QK_WALL_QUARK == (int)QUARK_WALL_QUARK &&
                   (int)QK_WALL_MIDPOINT == (int)QUARK_WALL_MIDPOINT &&
                   (int)QK_WALL_AXIAL == (int)QUARK_WALL_AXIAL,
               "sums as libquark has them");

int ctl_wall_time(const quark_column_t *column, int64_t n, quark_source_t source) {
  const bool has =
      source == QUARK_POINT || source == QUARK_WALL || source == QUARK_Z2 || source == QUARK_Z4;
  if (!has || !column || n < 1 || column[0].t_every) return -1;
  for (int64_t i = 1; i < n; i++)
    if (column[i].t != column[0].t || column[i].t_every) return -1;
  return column[0].t;
}

int ctl_wall_take(qk_wall_t *wall, quark_connection_t *conn, int64_t rhs,
                  const quark_result_t *result) {
  int code = 0;
  if (result->status != QUARK_OK || wall->nt == 0) return 0;
  double *sum = malloc((size_t)wall->nt * sizeof *sum);
  if (!sum) code = EXIT_AGAIN;
  for (int kind = 0; kind < QK_WALL_KINDS && code == 0; kind++) {
    quark_error_t err;
    uint32_t n = 0;
    if (quark_wall_sums(conn, result->request, result->rhs, (quark_wall_t)kind, sum,
                        (uint32_t)wall->nt, &n, &err) != QUARK_OK)
      code = ctl_fail(&err);
    else if (n == (uint32_t)wall->nt && !qk_wall_set(wall, rhs, kind, sum))
      code = EXIT_AGAIN;
  }
  free(sum);
  if (code == EXIT_AGAIN) ctl_complain("no memory for sums over %d time slices", wall->nt);
  return code;
}

/* ---- the output file ---- */

static bool solves(const ctl_work_t *work) {
  return work->params.work == QUARK_WORK_SOLVE;
}

void ctl_describe_setup(const quark_report_t *r, qk_h5meta_t *meta) {
  qk_h5meta_init(meta);
  for (int mu = 0; mu < 4; mu++) meta->dims[mu] = (int32_t)r->setup.dims[mu];
  meta->site_reals = (int32_t)r->setup.site_reals;
  snprintf(meta->gauge, sizeof meta->gauge, "%s", r->setup.gauge);
  snprintf(meta->digest, sizeof meta->digest, "%016" PRIx64, r->setup.digest);
  ctl_operator_canonical(r, meta->action);
  meta->kappa = ctl_operator_kappa(r);
  meta->mass = r->setup.mass;
  meta->csw = ctl_operator_csw(r);
  memcpy(meta->boundary, r->setup.boundary, sizeof meta->boundary);
  meta->plaquette = r->setup.plaquette;
}

static void describe(const ctl_work_t *work, qk_h5meta_t *meta) {
  const quark_report_t *r = &work->report;
  ctl_describe_setup(r, meta);
  if (!isnan(work->mass)) {
    meta->mass = work->mass;
    ctl_operator_set_mass(work->mass, meta->action);
  }
  if (work->params.five_d) meta->slices = ctl_operator_slices(r);
  snprintf(meta->kind, sizeof meta->kind, "%s", work->kind);
  snprintf(meta->basis, sizeof meta->basis, "%s", quark_basis_name(work->params.basis));
  snprintf(meta->normalisation, sizeof meta->normalisation, "%s",
           ctl_normalisation(work->params.normalisation));
  meta->flavour = ctl_operator_flavour(r, work->params.flavour);
  snprintf(meta->source, sizeof meta->source, "%.127s",
           work->described_source ? work->described_source : work->source);
  const quark_smearing_t *smear = &work->described;
  if (smear->steps) qk_smearing_print(smear, meta->smear);
  if (smear->links) qk_smearing_print_links(smear, meta->links);
  if (work->sequential) snprintf(meta->sequential, sizeof meta->sequential, "%s", work->sequential);
  meta->tolerance = solves(work) ? ctl_asked(work->params.tol) : 0;
  meta->tolerance_abs = ctl_asked(work->params.tol_abs);
  meta->tolerance_hq = ctl_asked(work->params.tol_hq);
}

/* The daemon writes the solutions. */
static bool is_filed(const ctl_work_t *work) {
  return work->params.sink_file.path != NULL;
}

static int set_column(const ctl_outcome_t *o, int64_t rhs, qk_err_t *err) {
  static const char *const kinds[] = {"upload", "point",      "wall", "z2",
                                      "z4",     "sequential", "file", "vector"};
  const ctl_work_t *work = o->work;
  const quark_result_t *result = &o->result[rhs];
  qk_h5column_t c;
  if (is_filed(work)) return 0;
  qk_h5column_init(&c);
  if (work->params.source == QUARK_FILE)
    snprintf(c.source, sizeof c.source, "%s", kinds[QUARK_FILE]);
  if (work->in && qk_fieldfile_column(work->in, rhs, &c, NULL) != QK_OK)
    snprintf(c.source, sizeof c.source, "%s", kinds[QUARK_UPLOAD]);
  if (work->column) {
    const quark_column_t *from = &work->column[rhs];
    const bool point = work->params.source == QUARK_POINT;
    const int32_t site[4] = {point ? from->x : -1, point ? from->y : -1, point ? from->z : -1,
                             from->t};
    memcpy(c.site, site, sizeof site);
    snprintf(c.source, sizeof c.source, "%s", kinds[work->params.source]);
    c.spin = from->spin;
    c.colour = from->colour;
    c.seed = from->seed;
    const int32_t momentum[3] = {from->px, from->py, from->pz};
    memcpy(c.momentum, momentum, sizeof momentum);
    c.every = (int32_t)from->t_every;
    c.flavour = from->flavour;
    if (work->params.source == QUARK_SEQUENTIAL) {
      c.spin = c.colour = -1;
      c.gamma = (int32_t)from->gamma;
    }
  }
  c.status = (qk_status_t)result->status;
  c.true_residual = result->true_residual;
  c.hq_residual = result->hq_residual;
  c.iterations = (int64_t)result->iterations;
  c.seconds = result->seconds;
  return qk_fieldfile_set_column(o->out, rhs, &c, err) == QK_OK ? 0 : ctl_fail_file(err);
}

int ctl_outcome_fits(const ctl_work_t *work) {
  qk_h5meta_t meta;
  qk_err_t err = {0};
  if (is_filed(work)) return 0;
  describe(work, &meta);
  if (qk_field_format_check(ctl_work_format(work), work->out, &meta, work->nrhs, &err) == QK_OK)
    return 0;
  ctl_complain("%s", err.text);
  return EXIT_USAGE;
}

int ctl_outcome_open(const ctl_work_t *work, bool ack, ctl_outcome_t *o) {
  *o = (ctl_outcome_t){.work = work, .ack = ack, .begun = ctl_seconds()};
  const uint32_t *dims = work->report.setup.dims;
  qk_h5meta_t meta;
  qk_err_t err = {0};
  int code = ctl_operator_check(&work->report);
  if (code == 0) code = ctl_outcome_fits(work);
  if (code) return code;
  describe(work, &meta);
  if (!is_filed(work) &&
      qk_fieldfile_create(work->out, ctl_work_format(work), &meta, ctl_work_bits(work), work->nrhs,
                          &o->out, &err) != QK_OK)
    return ctl_fail_file(&err);
  o->field_bytes = (size_t)dims[0] * dims[1] * dims[2] * dims[3] * work->report.setup.site_reals *
                   ((size_t)ctl_work_bits(work) / 8);
  if (meta.slices) o->field_bytes *= (size_t)meta.slices;
  qk_wall_init(&o->wall, work->nrhs, (int)dims[3],
               ctl_wall_time(work->column, work->nrhs, work->params.source));
  if (o->out) qk_fieldfile_set_wall(o->out, &o->wall);
  o->field = work->in ? malloc(o->field_bytes) : NULL;
  o->result = calloc((size_t)work->nrhs, sizeof *o->result);
  if ((work->in && !o->field) || !o->result) {
    ctl_complain("no memory for one field of %zu bytes", o->field_bytes);
    return EXIT_AGAIN;
  }
  return o->out ? ctl_writer_create(work->conn, o->out, o->field_bytes, ack, &o->writer) : 0;
}

static int ack(const ctl_outcome_t *o, const quark_result_t *result) {
  quark_error_t err;
  if (!o->ack || quark_ack(o->work->conn, result->request, (int32_t)result->rhs, &err) == QUARK_OK)
    return 0;
  return ctl_fail(&err);
}

int ctl_outcome_take(ctl_outcome_t *o, int64_t rhs, const quark_result_t *result) {
  qk_err_t file_err = {0};
  int code;
  o->result[rhs] = *result;
  o->ended++;
  if (o->writer && result->bytes > 0) {
    code = ctl_writer_take(o->writer, rhs, result);
    o->any_solution = true;
  } else {
    code = ack(o, result);
  }
  if (is_filed(o->work)) {
    o->any_solution |= result->status == QUARK_OK || result->status == QUARK_NOT_CONVERGED ||
                       result->status == QUARK_BREAKDOWN;
  } else if (result->bytes == 0 && result->status == QUARK_OK) {
    o->result[rhs].status = QUARK_EXPIRED;
    snprintf(o->result[rhs].text, sizeof o->result[rhs].text, "nobody fetched it in time");
  }
  if (code == 0) code = ctl_wall_take(&o->wall, o->work->conn, rhs, result);
  return code ? code : set_column(o, rhs, &file_err);
}

int ctl_outcome_check(ctl_outcome_t *o) {
  return o->writer ? ctl_writer_check(o->writer) : 0;
}

int ctl_outcome_drain(ctl_outcome_t *o) {
  return o->writer ? ctl_writer_drain(o->writer) : 0;
}

/* ---- what is told of it ---- */

static json_t *result_json(const quark_result_t *r) {
  return json_pack("{s:s, s:o, s:o, s:I, s:I, s:o, s:s}", "status", quark_code_name(r->status),
                   "true_residual", ctl_number(r->true_residual), "hq_residual",
                   ctl_number(r->hq_residual), "iterations", (json_int_t)r->iterations,
                   "applications", (json_int_t)r->applications, "seconds", ctl_number(r->seconds),
                   "text", r->text);
}

static const char *out_of(const ctl_work_t *work) {
  return is_filed(work) ? work->params.sink_file.path : work->out;
}

static json_t *clock_json(const ctl_outcome_t *o) {
  if (!o->writer) return json_null();
  return json_pack("{s:f, s:f, s:f}", "fetch", o->clock.fetch, "write", o->clock.write, "sync",
                   o->clock.sync);
}

static int print_json(const ctl_outcome_t *o, double seconds) {
  const ctl_work_t *work = o->work;
  json_t *rhs = json_array();
  for (int64_t i = 0; i < work->nrhs; i++) json_array_append_new(rhs, result_json(&o->result[i]));
  json_t *out = o->any_solution ? json_string(out_of(work)) : json_null();
  const quark_params_t *p = &work->params;
  return ctl_print(json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "out", out,
                             "mass", ctl_number(work->mass), "source", work->source, "tolerance",
                             ctl_number(ctl_asked(p->tol)), "tolerance_abs",
                             ctl_number(ctl_asked(p->tol_abs)), "tolerance_hq",
                             ctl_number(ctl_asked(p->tol_hq)), "seconds", ctl_number(seconds),
                             "clocks", clock_json(o), "rhs", rhs, "wall", ctl_wall_json(&o->wall)));
}

/* Three digits or more, of milliseconds below a second. */
static void print_seconds(double seconds) {
  if (seconds < 1)
    printf("%.3g ms", seconds * 1e3);
  else
    printf("%.*f s", seconds < 100 ? 2 : 0, seconds);
}

static void print_text(const ctl_outcome_t *o, double seconds) {
  const ctl_work_t *work = o->work;
  int64_t converged = 0, iterations = 0;
  double worst = NAN, worst_hq = NAN;
  for (int64_t i = 0; i < work->nrhs; i++) {
    const quark_result_t *r = &o->result[i];
    iterations += (int64_t)r->iterations;
    worst = fmax(worst, r->true_residual); /* which leaves out those that are not known */
    worst_hq = fmax(worst_hq, r->hq_residual);
    converged += r->status == QUARK_OK;
    if (r->status == QUARK_OK) continue;
    char why[CTL_RESULT_MAX];
    printf("right-hand side %lld: %s\n", (long long)i, ctl_result_text(r, why));
  }
  ctl_wall_print(&o->wall);
  if (!isnan(work->mass)) printf("mass %g: ", work->mass);
  printf("%lld of %lld %s, ", (long long)converged, (long long)work->nrhs,
         solves(work) ? "converged" : "done");
  if (solves(work) && !isnan(worst)) printf("largest residual %.3g, ", worst);
  if (solves(work) && !isnan(worst_hq)) printf("largest heavy-quark residual %.3g, ", worst_hq);
  if (solves(work)) printf("%lld iterations, ", (long long)iterations);
  print_seconds(seconds);
  if (o->writer && o->any_solution) {
    printf(" (fetch ");
    print_seconds(o->clock.fetch);
    printf(", write ");
    print_seconds(o->clock.write);
    printf(", sync ");
    print_seconds(o->clock.sync);
    printf(")");
  }
  printf(o->any_solution ? ", written to %s\n" : ", nothing to write\n", out_of(work));
}

/* The exit code of the worst right-hand side. Failures that a second try may avoid count only if
 * there is no other. */
static int verdict(const ctl_outcome_t *o) {
  int code = 0;
  for (int64_t i = 0; i < o->work->nrhs; i++) {
    const quark_code_t status = o->result[i].status;
    if (status == QUARK_OK) continue;
    if (!quark_code_retryable(status)) return EXIT_DATA;
    code = EXIT_AGAIN;
  }
  return code;
}

/* Why the file could not be made of them. */
static int not_committed(const ctl_outcome_t *o, const qk_err_t *err) {
  char why[CTL_RESULT_MAX];
  for (int64_t i = 0; i < o->work->nrhs; i++)
    if (o->result[i].status != QUARK_OK && err->code == QK_UNSUPPORTED)
      ctl_complain("right-hand side %lld: %s", (long long)i, ctl_result_text(&o->result[i], why));
  return ctl_fail_file(err);
}

static int commit(ctl_outcome_t *o) {
  qk_err_t err = {0};
  const int code = ctl_outcome_drain(o);
  if (code || !o->writer) return code;
  o->clock = ctl_writer_clocks(o->writer);
  const double begun = ctl_seconds();
  if (o->any_solution && qk_fieldfile_commit(o->out, &err) != QK_OK) return not_committed(o, &err);
  o->clock.sync += ctl_seconds() - begun;
  return ctl_writer_give_back(o->writer);
}

int ctl_outcome_finish(ctl_outcome_t *o, bool *written) {
  int code = commit(o);
  if (code) return code;
  *written = true;
  const double seconds = ctl_seconds() - o->begun;
  if (o->work->options->common.json) {
    code = print_json(o, seconds);
    if (code) return code;
  } else
    print_text(o, seconds);
  return verdict(o);
}

void ctl_outcome_close(ctl_outcome_t *o) {
  ctl_writer_destroy(o->writer);
  qk_fieldfile_close(o->out);
  free(o->field);
  free(o->result);
  qk_wall_fini(&o->wall);
}
