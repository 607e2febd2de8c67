#include <stdio.h>
#include <string.h>

#include "client/cli/operator.h"
#include "client/cli/solving.h"
#include "client/files/h5file.h"

typedef struct options {
  ctl_solve_options_t solve;
  const char *in, *dataset, *text;
  qk_filespec_t source; /* path "": from `in` */
  const char *work;     /* of apply; NULL: solve */
  char described[128];  /* of apply: what was applied to what */
} options_t;

static void take_source(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  options_t *o = values;
  ctl_filespec(state, name, text, true, &o->source);
  o->text = text;
}

/* What is applied; names are those of --work. */
static const struct {
  const char *name, *symbol, *adjoint;
  quark_work_t work;
} works[] = {{"m", "M", "M^+", QUARK_WORK_M},
             {"hop", "H", "H^+", QUARK_WORK_HOP},
             {"diag", "A", "A^+", QUARK_WORK_DIAG},
             {"diag-inverse", "A^-1", "A^-1^+", QUARK_WORK_DIAG_INVERSE},
             {"diag-inverse-hop", "A^-1 H", "A^-1^+ H^+", QUARK_WORK_DIAG_INVERSE_HOP},
             {"smear", "smeared", "smeared", QUARK_WORK_SMEAR}};
enum { WORKS = sizeof works / sizeof works[0] };

static void take_work(const struct argp_state *state, const char *name, char *text, void *values) {
  options_t *o = values;
  for (int i = 0; i < WORKS; i++) {
    if (strcmp(text, works[i].name) != 0) continue;
    o->work = works[i].name;
    o->solve.params.work = works[i].work;
    return;
  }
  argp_error(state, "--%s=%s: must be m, hop, diag, diag-inverse, diag-inverse-hop or smear", name,
             text);
}

static void finish(const struct argp_state *state, void *values) {
  const options_t *o = values;
  if (!o->in == !o->text) argp_error(state, "--in or --source is required");
  if (o->text && o->solve.params.nmass > 0)
    argp_error(state, "--masses needs --in: the daemon reads a file of --source once");
  if (o->text && o->dataset) argp_error(state, "--dataset is for --in");
  if (o->text && o->solve.params.five_d)
    argp_error(state, "--five-d needs --in: --source=file is for fields of four dimensions");
}

static void finish_apply(const struct argp_state *state, void *values) {
  const options_t *o = values;
  if (!o->work) argp_error(state, "--work is required");
}

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t input_rows[] = {
    {"in", QK_OPTION_TEXT, AT(in), "FILE",
     .help = "HDF5 or SciDAC file with right-hand sides (this or --source)"},
    {"source", QK_OPTION_TAKEN, .form = "FILE", .take = take_source,
     .help = "file:PATH[,offset=N][,size=N][,nrhs=N]: the daemon reads the fields from this file, "
             "as on the wire"},
    {"dataset", QK_OPTION_TEXT, AT(dataset), "NAME",
     .help = "where they are in it (field, or the only one of that shape)"},
    {"dagger", QK_OPTION_FLAG, AT(solve.params.dagger), .help = "M^+ in place of M"},
    {NULL, QK_OPTION_TABLE, AT(solve), .table = &ctl_solve_table},
    {0},
};
static const qk_option_table_t table = {.row = input_rows, .group = 1, .finish = finish};

static const qk_option_row_t apply_rows[] = {
    {"work", QK_OPTION_TAKEN, .form = "NAME", .take = take_work,
     .help = "m, hop, diag, diag-inverse, diag-inverse-hop (M, H, A, A^-1, A^-1 H of M = A - H/2), "
             "or smear: what is applied (required)"},
    {NULL, QK_OPTION_TABLE, 0, .table = &table},
    {0},
};
static const qk_option_table_t apply_table = {
    .row = apply_rows, .group = 1, .finish = finish_apply};

/* Takes precision and basis from the file if the user gives none. They must not disagree. */
static int settle(const options_t *o, const qk_fieldfile_t *in, quark_params_t *params) {
  const qk_h5meta_t *meta = qk_fieldfile_meta(in);
  if (!o->solve.has_dtype) params->dtype = qk_fieldfile_bits(in) == 32 ? QUARK_F32 : QUARK_F64;
  if (!*meta->basis) return 0;
  quark_basis_t basis;
  if (!quark_basis_parse(meta->basis, &basis)) {
    ctl_complain("%s: attribute basis = \"%s\" is not a known basis", o->in, meta->basis);
    return EXIT_DATA;
  }
  if (o->solve.has_basis && basis != params->basis) {
    ctl_complain("%s: attribute basis = \"%s\", but --basis=%s", o->in, meta->basis,
                 quark_basis_name(params->basis));
    return EXIT_DATA;
  }
  params->basis = basis;
  return 0;
}

static int check_site_reals(const options_t *o, const qk_fieldfile_t *in,
                            const quark_report_t *report) {
  const qk_shape_t shape = ctl_operator_shape(report);
  const int32_t found = qk_fieldfile_meta(in)->site_reals;
  char attribute[48];
  if ((uint32_t)found == shape.site_reals) return 0;
  snprintf(attribute, sizeof attribute, "the attribute site_reals = %u and the ", shape.site_reals);
  ctl_complain(
      "%s: fields of %d real numbers at a site, but those of setup %s, %s, have %u: a file "
      "for it has %s%s",
      o->in, found, report->setup.name, report->setup.action, shape.site_reals,
      qk_shape_is_usual(&shape) ? "the " : attribute, qk_h5file_axes((int32_t)shape.site_reals));
  return EXIT_DATA;
}

static int check_dims(const options_t *o, const qk_fieldfile_t *in, const quark_report_t *report) {
  const int32_t *found = qk_fieldfile_meta(in)->dims;
  const uint32_t *want = report->setup.dims;
  for (int mu = 0; mu < 4; mu++)
    if ((uint32_t)found[mu] != want[mu]) {
      ctl_complain(
          "%s: fields on %d x %d x %d x %d sites, but the daemon's lattice is %u x %u x %u x %u",
          o->in, found[0], found[1], found[2], found[3], want[0], want[1], want[2], want[3]);
      return EXIT_DATA;
    }
  return 0;
}

static int check_slices(const options_t *o, const qk_fieldfile_t *in,
                        const quark_report_t *report) {
  const int32_t found = qk_fieldfile_meta(in)->slices;
  if (!o->solve.params.five_d || found == ctl_operator_slices(report)) return 0;
  ctl_complain("%s: fields of %d slices in s, but setup %s, %s, has Ls = %d", o->in, found,
               report->setup.name, report->setup.action, ctl_operator_slices(report));
  return EXIT_DATA;
}

static void take_input(const options_t *o, ctl_work_t *work) {
  const qk_filespec_t *file = &o->source;
  work->kind = o->work ? "applied" : "solution";
  work->source = o->in ? o->in : o->text;
  work->params.source = QUARK_UPLOAD;
  work->nrhs = file->nrhs ? file->nrhs : 1;
  if (o->in) {
    work->nrhs = qk_fieldfile_nrhs(work->in);
    return;
  }
  work->params.source = QUARK_FILE;
  work->params.source_file =
      (quark_file_t){.path = file->path, .offset = file->offset, .size = file->size};
  work->whole = true;
}

/* "M^+ of FILE", in files of results: of what a work is, and of solutions of the adjoint. */
static void describe(options_t *o, ctl_work_t *work) {
  const bool dagger = o->solve.params.dagger;
  const char *what = dagger ? "(M^+)^-1" : NULL;
  for (int i = 0; i < WORKS && o->work; i++)
    if (strcmp(o->work, works[i].name) == 0) what = dagger ? works[i].adjoint : works[i].symbol;
  if (!what) return;
  snprintf(o->described, sizeof o->described, "%s of %s", what, work->source);
  work->described_source = o->described;
}

static int run(options_t *o) {
  qk_fieldfile_t *in = NULL;
  qk_err_t err = {0};
  if (o->in && (o->solve.params.five_d ? qk_fieldfile_open_five
                                       : qk_fieldfile_open)(o->in, o->dataset, &in, &err) != QK_OK)
    return ctl_fail_file(&err);
  int code = in ? settle(o, in, &o->solve.params) : 0;
  if (code) {
    qk_fieldfile_close(in);
    return code;
  }
  ctl_work_t work;
  code = ctl_work_begin(&work, &o->solve);
  work.in = in;
  if (code == 0 && in) code = check_site_reals(o, in, &work.report);
  if (code == 0 && in) code = check_dims(o, in, &work.report);
  if (code == 0 && in) code = check_slices(o, in, &work.report);
  if (code == 0) {
    take_input(o, &work);
    describe(o, &work);
    code = o->solve.detach_s ? ctl_detach(&work) : ctl_work_run(&work);
  }
  ctl_work_end(&work);
  return code;
}

int ctl_solve(int argc, char **argv) {
  static const char about[] =
      "Solves M x = b for every right-hand side b in a file, of this program or of the "
      "daemon.\v"
      "Exit codes: 65 a bad file, or a right-hand side did not reach the tolerance, 69 no "
      "daemon, 75 try again "
      "later.";
  options_t o = {0};
  ctl_solve_options_init(&o.solve);
  o.solve.can_detach = o.solve.can_file = o.solve.can_five = o.solve.can_masses = true;
  qk_options_parse(&table, NULL, about, argc, argv, &o);
  return run(&o);
}

int ctl_apply(int argc, char **argv) {
  static const char about[] =
      "Applies M, a part of it, or its adjoint to every field in a file, or smears it, in double. "
      "Tolerances do not count.\v"
      "Exit codes: 65 a bad file or field, 69 no daemon, 75 try again later.";
  options_t o = {0};
  ctl_solve_options_init(&o.solve);
  o.solve.can_file = true;
  qk_options_parse(&apply_table, NULL, about, argc, argv, &o);
  return run(&o);
}
