#include <string.h>

#include "client/cli/operator.h"
#include "client/cli/solving.h"

typedef struct options {
  ctl_solve_options_t solve;
  const char *in, *dataset, *text;
  qk_filespec_t source; /* path "": from `in` */
} options_t;

static void take_source(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  options_t *o = values;
  ctl_filespec(state, name, text, true, &o->source);
  o->text = text;
}

static void finish(const struct argp_state *state, void *values) {
  const options_t *o = values;
  if (!o->in == !o->text) argp_error(state, "--in or --source is required");
  if (o->text && o->dataset) argp_error(state, "--dataset is for --in");
}

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t rows[] = {
    {"in", QK_OPTION_TEXT, AT(in), "FILE",
     .help = "HDF5 file with right-hand sides (this or --source)"},
    {"source", QK_OPTION_TAKEN, .form = "FILE", .take = take_source,
     .help = "file:PATH[,offset=N][,size=N][,nrhs=N]: the daemon reads the fields from this file, "
             "as on the wire"},
    {"dataset", QK_OPTION_TEXT, AT(dataset), "NAME",
     .help = "where they are in it (field, or the only one of that shape)"},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, solve), .table = &ctl_solve_table},
    {0},
};

static const qk_option_table_t table = {.row = rows, .group = 1, .finish = finish};

/* Takes precision and basis from the file if the user gives none. They must not disagree. */
static int settle(const options_t *o, const qk_h5file_t *in, quark_params_t *params) {
  const qk_h5meta_t *meta = qk_h5file_meta(in);
  if (!o->solve.has_dtype) params->dtype = qk_h5file_bits(in) == 32 ? QUARK_F32 : QUARK_F64;
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

static int check_site_reals(const options_t *o, const qk_h5file_t *in,
                            const quark_report_t *report) {
  const qk_shape_t shape = ctl_operator_shape(report);
  const int32_t found = qk_h5file_meta(in)->site_reals;
  if ((uint32_t)found == shape.site_reals) return 0;
  ctl_complain(
      "%s: fields of %d real numbers at a site, but those of setup %s, %s, have %u: a file "
      "for it has the %s",
      o->in, found, report->setup.name, report->setup.action, shape.site_reals,
      qk_h5file_axes((int32_t)shape.site_reals));
  return EXIT_DATA;
}

static int check_dims(const options_t *o, const qk_h5file_t *in, const quark_report_t *report) {
  const int32_t *found = qk_h5file_meta(in)->dims;
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

static void take_input(const options_t *o, ctl_work_t *work) {
  const qk_filespec_t *file = &o->source;
  work->kind = "solution";
  work->source = o->in ? o->in : o->text;
  work->params.source = QUARK_UPLOAD;
  work->nrhs = file->nrhs ? file->nrhs : 1;
  if (o->in) {
    work->nrhs = qk_h5file_nrhs(work->in);
    return;
  }
  work->params.source = QUARK_FILE;
  work->params.source_file =
      (quark_file_t){.path = file->path, .offset = file->offset, .size = file->size};
  work->whole = true;
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
  o.solve.can_detach = o.solve.can_file = true;
  qk_options_parse(&table, NULL, about, argc, argv, &o);
  qk_h5file_t *in = NULL;
  qk_err_t err = {0};
  if (o.in && qk_h5file_open(o.in, o.dataset, &in, &err) != QK_OK) return ctl_fail_file(&err);
  int code = in ? settle(&o, in, &o.solve.params) : 0;
  if (code) {
    qk_h5file_close(in);
    return code;
  }
  ctl_work_t work;
  code = ctl_work_begin(&work, &o.solve);
  work.in = in;
  if (code == 0 && in) code = check_site_reals(&o, in, &work.report);
  if (code == 0 && in) code = check_dims(&o, in, &work.report);
  if (code == 0) {
    take_input(&o, &work);
    code = o.solve.detach_s ? ctl_detach(&work) : ctl_work_run(&work);
  }
  ctl_work_end(&work);
  return code;
}
