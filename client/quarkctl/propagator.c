#include <stdlib.h>

#include "client/analysis/source.h"
#include "client/cli/solving.h"

typedef struct options {
  ctl_solve_options_t solve;
  const char *text;
  qk_source_t source;
  uint64_t count; /* 0: not given */
} options_t;

static void take_source(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  options_t *o = values;
  (void)name;
  ctl_source(state, text, &o->source);
  o->text = text;
}

static void finish(const struct argp_state *state, void *values) {
  options_t *o = values;
  if (!o->text) argp_error(state, "--source is required");
  if (!o->count) return;
  if (!qk_source_is_noise(&o->source)) argp_error(state, "--count is for noise sources only");
  if (o->source.count) argp_error(state, "--count: --source=%s already has a count", o->text);
  o->source.count = o->count;
}

static const qk_option_row_t rows[] = {
    {"source", QK_OPTION_TAKEN, .form = "SOURCE", .take = take_source,
     .help = "point:X,Y,Z,T   wall:T[,p=PX:PY:PZ]   z2:SEED[:T][,KEY=...]   "
             "z4:SEED[:T][,KEY=...] (required); keys: seed, t, count, every, "
             "dilute=spin+colour+time+flavour, p; of a doublet each may end in ,flavour=+1 or "
             "-1: the source in the upper or lower flavour alone"},
    {"count", QK_OPTION_UINT64, offsetof(options_t, count), "N", .min = 1,
     .max = QK_SOURCE_COUNT_MAX, .help = "noise sources with seeds SEED, SEED + 1, ... (1)"},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, solve), .table = &ctl_solve_table},
    {0},
};

static const qk_option_table_t table = {.row = rows, .group = 1, .finish = finish};

int ctl_propagator(int argc, char **argv) {
  static const char about[] =
      "Solves for the 12 spin-colour columns of a point or wall source, or for noise sources. Of a "
      "doublet a point or wall has 24, those of the upper flavour first; of staggered fermions 3, "
      "one a colour.\v"
      "Exit codes: 65 a column did not reach the tolerance, 69 no daemon, 75 try again later.";
  options_t o = {0};
  ctl_solve_options_init(&o.solve);
  o.solve.can_detach = o.solve.can_file = o.solve.can_five = o.solve.can_masses = true;
  qk_options_parse(&table, NULL, about, argc, argv, &o);
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
