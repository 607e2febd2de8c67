#include <stdlib.h>

#include "client/analysis/source.h"
#include "client/cli/solving.h"

enum { OPT_SOURCE = 0x200, OPT_COUNT };

typedef struct options {
  ctl_solve_options_t solve;
  const char *text;
  qk_source_t source;
  uint64_t count; /* 0: not given */
} options_t;

static const struct argp_option argp_options[] = {
    {"source", OPT_SOURCE, "SOURCE", 0,
     "point:X,Y,Z,T   wall:T[,p=PX:PY:PZ]   z2:SEED[:T][,KEY=...]   z4:SEED[:T][,KEY=...] "
     "(required); keys: seed, t, count, every, dilute=spin+colour+time, p",
     1},
    {"count", OPT_COUNT, "N", 0, "noise sources with seeds SEED, SEED + 1, ... (1)", 1},
    {0},
};

static void finish_options(const struct argp_state *state, options_t *o) {
  if (!o->text) argp_error(state, "--source is required");
  if (!o->count) return;
  if (!qk_source_is_noise(&o->source)) argp_error(state, "--count is for noise sources only");
  if (o->source.count) argp_error(state, "--count: --source=%s already has a count", o->text);
  o->source.count = o->count;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &o->solve;
    return 0;
  case OPT_SOURCE:
    ctl_source(state, arg, &o->source);
    o->text = arg;
    return 0;
  case OPT_COUNT:
    o->count = ctl_integer(state, "count", arg, 1, QK_SOURCE_COUNT_MAX);
    return 0;
  case ARGP_KEY_ARG:
    argp_usage(state);
    return 0;
  case ARGP_KEY_END:
    finish_options(state, o);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

int ctl_propagator(int argc, char **argv) {
  static const struct argp_child children[] = {{&ctl_solve_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = argp_options,
      .parser = parse,
      .doc =
          "Solves for the 12 spin-colour columns of a point or wall source, or for noise sources.\v"
          "Exit codes: 65 a column did not reach the tolerance, 69 no daemon, 75 try again later.",
      .children = children,
  };
  options_t o = {0};
  ctl_solve_options_init(&o.solve);
  o.solve.can_detach = o.solve.can_file = true;
  ctl_parse(&argp, argc, argv, &o);
  ctl_work_t work;
  quark_column_t *column = NULL;
  int code = ctl_work_begin(&work, &o.solve);
  if (code == 0) code = ctl_columns(&o.source, o.text, &work.report, &work.nrhs, &column);
  if (code) goto out;
  work.column = column;
  work.kind = "propagator";
  work.source = o.text;
  work.params.source = o.source.kind;
  code = o.solve.detach_s ? ctl_detach(&work) : ctl_work_run(&work);
out:
  ctl_work_end(&work);
  free(column);
  return code;
}
