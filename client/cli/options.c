#include "client/cli/solving.h"

#include <string.h>

#include "client/analysis/smearing.h"

enum {
  OPT_OUT = 0x300,
  OPT_TOL,
  OPT_MAX_ITER,
  OPT_DEADLINE,
  OPT_PRIORITY,
  OPT_DTYPE,
  OPT_BASIS,
  OPT_NORMALISATION,
  OPT_SMEAR,
  OPT_LINKS,
  OPT_PROGRESS,
  OPT_CLIENT,
  OPT_DETACH,
  OPT_SINK
};

enum { DETACH_SECONDS = 86400, DETACH_SECONDS_MAX = 31536000 };

static const struct argp_option options[] = {
    {"out", OPT_OUT, "FILE", 0, "HDF5 file for the solutions (required)", 10},
    {"sink", OPT_SINK, "FILE", 0,
     "propagator, sequential, solve: file:PATH[,offset=N] instead of --out; the daemon writes the "
     "fields to this file, in the format of the data channel",
     10},
    {"tol", OPT_TOL, "TOL", 0, "relative residual |b - M x| / |b| to reach (1e-10)", 10},
    {"max-iter", OPT_MAX_ITER, "N", 0, "limit of iterations of a right-hand side (10000)", 10},
    {"deadline", OPT_DEADLINE, "SECONDS", 0, "time limit of a right-hand side", 10},
    {"priority", OPT_PRIORITY, "N", 0,
     "0 to 9; of one user's requests those with the higher number go first (4)", 10},
    {"dtype", OPT_DTYPE, "f32|f64", 0,
     "precision of the file and on the wire (f64; solve: that of the input)", 10},
    {"basis", OPT_BASIS, "NAME", 0, "degrand-rossi (default), ukqcd, dirac-pauli or openqcd", 10},
    {"normalisation", OPT_NORMALISATION, "mass|kappa", 0,
     "solve M x = b (mass, default) or 2 kappa M x = b", 10},
    {"smear", OPT_SMEAR, "SMEARING", 0,
     "Gaussian smearing of the sources: gauss:ALPHA,STEPS or gauss:width=W,steps=N", 10},
    {"smear-links", OPT_LINKS, "SMEARING", 0,
     "smearing of the links that --smear uses: ape:ALPHA,STEPS[,4d], stout:RHO,STEPS[,4d] or "
     "hyp:A1,A2,A3[,STEPS]",
     10},
    {"progress", OPT_PROGRESS, 0, 0, "show progress even if stderr is not a terminal", 10},
    {"client", OPT_CLIENT, "ID", 0,
     "client id, 32 hexadecimal digits, for quarkctl cancel (random)", 10},
    {"detach", OPT_DETACH, "SECONDS", OPTION_ARG_OPTIONAL,
     "propagator, solve: return once the daemon has all data; quarkctl fetch OUT.ticket gets the "
     "solutions later, within SECONDS after the last one has ended (86400)",
     10},
    {0},
};

static void parse_words(int key, const char *arg, ctl_solve_options_t *o,
                        const struct argp_state *state) {
  quark_params_t *p = &o->params;
  if (key == OPT_DTYPE) {
    if (strcmp(arg, "f32") != 0 && strcmp(arg, "f64") != 0)
      argp_error(state, "--dtype=%s: must be f32 or f64", arg);
    p->dtype = strcmp(arg, "f32") == 0 ? QUARK_F32 : QUARK_F64;
    o->has_dtype = true;
  } else if (key == OPT_BASIS) {
    if (!quark_basis_parse(arg, &p->basis))
      argp_error(state, "--basis=%s: must be degrand-rossi, ukqcd, dirac-pauli or openqcd", arg);
    o->has_basis = true;
  } else {
    if (strcmp(arg, "mass") != 0 && strcmp(arg, "kappa") != 0)
      argp_error(state, "--normalisation=%s: must be mass or kappa", arg);
    p->normalisation = strcmp(arg, "kappa") == 0 ? QUARK_KAPPA : QUARK_MASS;
  }
}

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

static void parse_links(const struct argp_state *state, const char *text,
                        quark_smearing_t *smearing) {
  qk_err_t err = {0};
  if (qk_smearing_parse_links(text, smearing, &err) != QK_OK)
    argp_error(state, "--smear-links=%s: %s", text, err.text);
}

void ctl_filespec(const struct argp_state *state, const char *name, const char *text, bool source,
                  qk_filespec_t *file) {
  qk_err_t err = {0};
  if (qk_filespec_parse(text, source, file, &err) != QK_OK)
    argp_error(state, "--%s=%s", name, err.text);
}

/* Sources and sinks use the same smeared links. */
static void finish_options(ctl_solve_options_t *o, const struct argp_state *state) {
  quark_smearing_t links = o->params.smear;
  if (o->file.path[0] && !o->can_file)
    argp_error(state, "--sink is for propagator, sequential and solve");
  if (o->file.path[0] && o->out) argp_error(state, "--out and --sink are both given");
  if (o->file.path[0] && o->detach_s) argp_error(state, "--detach needs --out");
  if (!o->out && !o->out_optional && !o->file.path[0]) argp_error(state, "--out is required");
  if (o->detach_s && !o->can_detach)
    argp_error(state, "--detach is for propagator and solve only: other commands need results of "
                      "the daemon in between");
  if (links.links && !o->params.smear.steps && !o->sink.steps)
    argp_error(state, "--smear-links needs --smear: nothing is smeared");
  links.alpha = o->sink.alpha;
  links.steps = o->sink.steps;
  o->sink = links;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  ctl_solve_options_t *o = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &o->common;
    return 0;
  case OPT_OUT:
    o->out = arg;
    return 0;
  case OPT_TOL:
    o->params.tol = ctl_real(state, "tol", arg, 1e-16, 0.999);
    return 0;
  case OPT_MAX_ITER:
    o->params.max_iter = ctl_integer(state, "max-iter", arg, 1, 1000000000);
    return 0;
  case OPT_DEADLINE:
    o->params.deadline_ms = (uint64_t)(1000 * ctl_real(state, "deadline", arg, 1e-3, 3e7));
    return 0;
  case OPT_PRIORITY:
    o->params.priority = (int)ctl_integer(state, "priority", arg, 0, 9);
    return 0;
  case OPT_DTYPE:
  case OPT_BASIS:
  case OPT_NORMALISATION:
    parse_words(key, arg, o, state);
    return 0;
  case OPT_SMEAR:
    ctl_smearing(state, "smear", arg, &o->params.smear);
    return 0;
  case OPT_LINKS:
    parse_links(state, arg, &o->params.smear);
    return 0;
  case OPT_PROGRESS:
    o->progress = true;
    return 0;
  case OPT_CLIENT:
    ctl_client(state, arg, o->client);
    o->has_client = true;
    return 0;
  case OPT_SINK:
    ctl_filespec(state, "sink", arg, false, &o->file);
    return 0;
  case OPT_DETACH:
    o->detach_s = arg ? ctl_integer(state, "detach", arg, 1, DETACH_SECONDS_MAX) : DETACH_SECONDS;
    return 0;
  case ARGP_KEY_END:
    finish_options(o, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_child children[] = {{&ctl_common_argp, 0, NULL, 0}, {0}};
const struct argp ctl_solve_argp = {.options = options, .parser = parse, .children = children};

void ctl_solve_options_init(ctl_solve_options_t *o) {
  *o = (ctl_solve_options_t){0};
  ctl_common_init(&o->common);
  quark_params_init(&o->params);
}
