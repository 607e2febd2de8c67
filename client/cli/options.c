#include "client/cli/solving.h"

#include <string.h>

#include "client/analysis/smearing.h"

enum { DETACH_SECONDS = 86400, DETACH_SECONDS_MAX = 31536000 };

void ctl_smearing(const struct argp_state *state, const char *name, const char *text,
                  quark_smearing_t *smearing) {
  qk_err_t err = {0};
  if (qk_smearing_parse(text, smearing, &err) != QK_OK)
    argp_error(state, "--%s=%s: %s", name, text, err.text);
}

void ctl_source(const struct argp_state *state, const char *text, qk_source_t *source) {
  qk_err_t err = {0};
  if (qk_source_parse(text, source, &err) != QK_OK) argp_error(state, "--source: %s", err.text);
}

void ctl_field_format(const struct argp_state *state, const char *name, const char *text,
                      qk_field_format_t *format) {
  if (!qk_field_format_parse(text, format))
    argp_error(state, "--%s=%s: must be hdf5, scidac or usqcd", name, text);
}

void ctl_filespec(const struct argp_state *state, const char *name, const char *text, bool source,
                  qk_filespec_t *file) {
  qk_err_t err = {0};
  if (qk_filespec_parse(text, source, file, &err) != QK_OK)
    argp_error(state, "--%s=%s", name, err.text);
}

static void check_five(const struct argp_state *state, const ctl_solve_options_t *o) {
  if (!o->params.five_d) return;
  if (!o->can_five) argp_error(state, "--five-d is for propagator and solve");
  if (o->file.path[0])
    argp_error(state, "--five-d needs --out: --sink=file is for fields of four dimensions");
  if ((o->has_format ? o->format : qk_field_format_of(o->out)) != QK_FIELD_HDF5)
    argp_error(state, "--five-d needs --format=hdf5: SciDAC files have fields of four dimensions");
}

static void check_masses(const struct argp_state *state, const ctl_solve_options_t *o) {
  if (o->params.nmass == 0) return;
  if (!o->can_masses) argp_error(state, "--masses is for propagator, solve and correlator");
  if (o->file.path[0]) argp_error(state, "--masses needs --out: there is a file for each mass");
  if (o->detach_s) argp_error(state, "--masses and --detach are both given");
  if (o->params.five_d) argp_error(state, "--masses and --five-d are both given");
  if (o->params.tol_abs > 0 || o->params.tol_hq > 0)
    argp_error(state, "--masses: with them there is --tol alone");
}

/* Sources and sinks use the same smeared links. */
static void finish(const struct argp_state *state, void *values) {
  ctl_solve_options_t *o = values;
  quark_smearing_t links = o->params.smear;
  if (!o->has_tol && (o->params.tol_abs > 0 || o->params.tol_hq > 0)) o->params.tol = 0;
  if (o->file.path[0] && !o->can_file)
    argp_error(state, "--sink is for propagator, sequential, solve and apply");
  if (o->has_format && !o->can_file)
    argp_error(state, "--format is for propagator, sequential, solve and apply");
  if (o->has_format && o->file.path[0]) argp_error(state, "--format is for --out, not for --sink");
  if (o->file.path[0] && o->out) argp_error(state, "--out and --sink are both given");
  if (o->file.path[0] && o->detach_s) argp_error(state, "--detach needs --out");
  if (!o->out && !o->out_optional && !o->file.path[0]) argp_error(state, "--out is required");
  if (o->detach_s && !o->can_detach)
    argp_error(state, "--detach is for propagator and solve only: other commands need results of "
                      "the daemon in between");
  if (links.links && !o->params.smear.steps && !o->sink.steps)
    argp_error(state, "--smear-links needs --smear: nothing is smeared");
  check_five(state, o);
  check_masses(state, o);
  links.alpha = o->sink.alpha;
  links.steps = o->sink.steps;
  o->sink = links;
}

static void take_tol(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_solve_options_t *o = values;
  o->params.tol = qk_option_real(state, name, text, 1e-16, 0.999);
  o->has_tol = true;
}

static void take_tol_abs(const struct argp_state *state, const char *name, char *text,
                         void *values) {
  ctl_solve_options_t *o = values;
  o->params.tol_abs = qk_option_real(state, name, text, 1e-300, 1e300);
}

static void take_tol_hq(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  ctl_solve_options_t *o = values;
  o->params.tol_hq = qk_option_real(state, name, text, 1e-16, 1e3);
}

static void take_deadline(const struct argp_state *state, const char *name, char *text,
                          void *values) {
  ctl_solve_options_t *o = values;
  o->params.deadline_ms = (uint64_t)(1000 * qk_option_real(state, name, text, 1e-3, 3e7));
}

static void take_dtype(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_solve_options_t *o = values;
  o->params.dtype = ctl_either(state, name, text, "f32", "f64") ? QUARK_F64 : QUARK_F32;
  o->has_dtype = true;
}

static void take_basis(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_solve_options_t *o = values;
  if (!quark_basis_parse(text, &o->params.basis))
    argp_error(state, "--%s=%s: must be degrand-rossi, ukqcd, dirac-pauli or openqcd", name, text);
  o->has_basis = true;
}

static const char *const normalisations[] = {
    [QUARK_MASS] = "mass", [QUARK_KAPPA] = "kappa", [QUARK_TWICE] = "twice"};

const char *ctl_normalisation(quark_normalisation_t normalisation) {
  return normalisations[normalisation];
}

static void take_normalisation(const struct argp_state *state, const char *name, char *text,
                               void *values) {
  ctl_solve_options_t *o = values;
  int i = QUARK_TWICE;
  while (i >= 0 && strcmp(text, normalisations[i]) != 0) i--;
  if (i < 0) argp_error(state, "--%s=%s: must be mass, kappa or twice", name, text);
  o->params.normalisation = (quark_normalisation_t)i;
}

void ctl_flavour(const struct argp_state *state, const char *name, const char *text,
                 int32_t *flavour) {
  if (!qk_flavour_parse(text, flavour)) argp_error(state, "--%s=%s: must be +1 or -1", name, text);
}

static void take_flavour(const struct argp_state *state, const char *name, char *text,
                         void *values) {
  ctl_solve_options_t *o = values;
  ctl_flavour(state, name, text, &o->params.flavour);
}

static void take_smear(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_solve_options_t *o = values;
  ctl_smearing(state, name, text, &o->params.smear);
}

static void take_links(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_solve_options_t *o = values;
  qk_err_t err = {0};
  if (qk_smearing_parse_links(text, &o->params.smear, &err) != QK_OK)
    argp_error(state, "--%s=%s: %s", name, text, err.text);
}

static void take_client(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  ctl_solve_options_t *o = values;
  (void)name;
  ctl_client(state, text, o->client);
  o->has_client = true;
}

static void take_masses(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  ctl_solve_options_t *o = values;
  uint32_t n = 0;
  const char *at = text;
  bool good = true;
  while (good && *at) {
    good = n < QK_MASSES_MAX && qk_real_scan(&at, &o->mass[n]) && (!*at || (*at == ',' && at[1]));
    for (uint32_t i = 0; i < n && good; i++) good = o->mass[i] != o->mass[n];
    n++;
    if (good && *at) at++;
  }
  if (!good || n == 0)
    argp_error(state, "--%s=%s: must be 1 to %d different numbers with commas between them", name,
               text, QK_MASSES_MAX);
  o->params.mass = o->mass;
  o->params.nmass = n;
}

static void take_format(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  ctl_solve_options_t *o = values;
  ctl_field_format(state, name, text, &o->format);
  o->has_format = true;
}

static void take_sink(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_solve_options_t *o = values;
  ctl_filespec(state, name, text, false, &o->file);
}

static void take_detach(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  ctl_solve_options_t *o = values;
  o->detach_s = text ? qk_option_integer(state, name, text, 1, DETACH_SECONDS_MAX) : DETACH_SECONDS;
}

#define AT(member) offsetof(ctl_solve_options_t, member)
static const qk_option_row_t few_rows[] = {
    {"out", QK_OPTION_TEXT, AT(out), "FILE", .help = "file for the solutions (required)"},
    {"tol", QK_OPTION_TAKEN, .form = "TOL", .take = take_tol,
     .help = "relative residual |b - M x| / |b| to reach (1e-10; none with --tol-abs or --tol-hq)"},
    {"tol-abs", QK_OPTION_TAKEN, .form = "TOL", .take = take_tol_abs,
     .help = "residual |b - M x| to reach, beside --tol if that is given"},
    {"tol-hq", QK_OPTION_TAKEN, .form = "TOL", .take = take_tol_hq,
     .help =
         "heavy-quark residual to reach, likewise: the root of the mean over sites of |b - M x|^2 "
         "/ |x|^2"},
    {"max-iter", QK_OPTION_UINT64, AT(params.max_iter), "N", .min = 1, .max = 1e9,
     .help = "limit of iterations of a right-hand side (10000)"},
    {"deadline", QK_OPTION_TAKEN, .form = "SECONDS", .take = take_deadline,
     .help = "time limit of a right-hand side"},
    {"priority", QK_OPTION_INT, AT(params.priority), "N", .max = 9,
     .help = "0 to 9; of one user's requests those with the higher number go first (4)"},
    {"dtype", QK_OPTION_TAKEN, .form = "f32|f64", .take = take_dtype,
     .help = "precision of the file and on the wire (f64; solve: that of the input)"},
    {"basis", QK_OPTION_TAKEN, .form = "NAME", .take = take_basis,
     .help = "degrand-rossi (default), ukqcd, dirac-pauli or openqcd"},
    {"normalisation", QK_OPTION_TAKEN, .form = "mass|kappa|twice", .take = take_normalisation,
     .help = "solve M x = b (mass, default) or 2 kappa M x = b; of staggered fermions (2m + D) x = "
             "b (twice)"},
    {"flavour", QK_OPTION_TAKEN, .form = "+1|-1", .take = take_flavour,
     .help = "of the two operators of a setup whose action has flavours (twisted mass) the one to "
             "solve with (+1)"},
    {"progress", QK_OPTION_FLAG, AT(progress),
     .help = "show progress even if stderr is not a terminal"},
    {"client", QK_OPTION_TAKEN, .form = "ID", .take = take_client,
     .help = "client id, 32 hexadecimal digits, for quarkctl cancel (random)"},
    {NULL, QK_OPTION_TABLE, AT(common), .table = &ctl_common_table},
    {0},
};

const qk_option_table_t ctl_solve_few_table = {.row = few_rows, .group = 10, .finish = finish};

static const qk_option_row_t rows[] = {
    {"format", QK_OPTION_TAKEN, .form = "hdf5|scidac|usqcd", .take = take_format,
     .help = "propagator, sequential, solve, apply: format of --out: scidac as Chroma, usqcd as "
             "MILC has "
             "propagators (scidac for names that end in .lime or .scidac, else hdf5)"},
    {"sink", QK_OPTION_TAKEN, .form = "FILE", .take = take_sink,
     .help =
         "propagator, sequential, solve, apply: file:PATH[,offset=N] instead of --out; the daemon "
         "writes the fields to this file, in the format of the data channel"},
    {"masses", QK_OPTION_TAKEN, .form = "M1,M2,...", .take = take_masses,
     .help = "propagator, solve, correlator: of staggered and overlap fermions up to 16 masses in "
             "place of that of the setup, from one Krylov space; a file each, OUT with _mM1, _mM2, "
             "... before its ending"},
    {"five-d", QK_OPTION_FLAG, AT(params.five_d),
     .help = "propagator, solve: of domain wall fermions the solution of M x = b on all slices of "
             "the fifth dimension, and --in of such fields; HDF5 only"},
    {"smear", QK_OPTION_TAKEN, .form = "SMEARING", .take = take_smear,
     .help = "Gaussian smearing of the sources: gauss:ALPHA,STEPS or gauss:width=W,steps=N"},
    {"smear-links", QK_OPTION_TAKEN, .form = "SMEARING", .take = take_links,
     .help = "smearing of the links that --smear uses: ape:ALPHA,STEPS[,4d], stout:RHO,STEPS[,4d] "
             "or hyp:A1,A2,A3[,STEPS]"},
    {"detach", QK_OPTION_TAKEN, .form = "SECONDS", .take = take_detach,
     .flags = OPTION_ARG_OPTIONAL,
     .help = "propagator, solve: return once the daemon has all data; quarkctl fetch OUT.ticket "
             "gets the solutions later, within SECONDS after the last one has ended (86400)"},
    {NULL, QK_OPTION_TABLE, 0, .table = &ctl_solve_few_table},
    {0},
};

const qk_option_table_t ctl_solve_table = {.row = rows, .group = 10};

void ctl_solve_options_init(ctl_solve_options_t *o) {
  *o = (ctl_solve_options_t){0};
  ctl_common_init(&o->common);
  quark_params_init(&o->params);
}
