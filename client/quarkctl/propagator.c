#include <stdlib.h>
#include <string.h>

#include "client/quarkctl/solving.h"

enum { COMPONENTS = 12, MOST_COUNT = 1 << 20, OPT_SOURCE = 0x200, OPT_COUNT };

typedef struct options {
  ctl_solve_options_t solve;
  const char *source;
  quark_source_t kind;
  quark_column_t place; /* of the source; spin and colour are filled in for each column */
  uint64_t count;       /* of noise sources; 0: not given */
} options_t;

static const struct argp_option argp_options[] = {
    {"source", OPT_SOURCE, "SOURCE", 0,
     "point:X,Y,Z,T   wall:T   z2:SEED[:T]   z4:SEED[:T] (required)", 1},
    {"count", OPT_COUNT, "N", 0, "noise sources with seeds SEED, SEED + 1, ... (1)", 1},
    {0},
};

static bool parse_uint(const char **text, uint64_t *value) {
  char *end;
  if (**text < '0' || **text > '9') return false;
  *value = strtoull(*text, &end, 10);
  *text = end;
  return true;
}

static bool parse_coordinate(const char **text, int32_t *value) {
  uint64_t x;
  if (!parse_uint(text, &x) || x >= QK_H5FILE_MAX_EXTENT) return false;
  *value = (int32_t)x;
  return true;
}

static bool skip(const char **text, char c) {
  if (**text != c) return false;
  (*text)++;
  return true;
}

static bool parse_point(const char *s, quark_column_t *place) {
  return parse_coordinate(&s, &place->x) && skip(&s, ',') && parse_coordinate(&s, &place->y) &&
         skip(&s, ',') && parse_coordinate(&s, &place->z) && skip(&s, ',') &&
         parse_coordinate(&s, &place->t) && !*s;
}

static bool parse_noise(const char *s, quark_column_t *place) {
  place->t = place->spin = place->colour = -1;
  return parse_uint(&s, &place->seed) && (!skip(&s, ':') || parse_coordinate(&s, &place->t)) && !*s;
}

static bool parse_source(const char *text, options_t *o) {
  const char *args = strchr(text, ':');
  if (!args) return false;
  const size_t n = (size_t)(args++ - text);
  o->place = (quark_column_t){0};
  if (n == 5 && memcmp(text, "point", n) == 0) {
    o->kind = QUARK_POINT;
    return parse_point(args, &o->place);
  }
  if (n == 4 && memcmp(text, "wall", n) == 0) {
    o->kind = QUARK_WALL;
    return parse_coordinate(&args, &o->place.t) && !*args;
  }
  o->kind = n == 2 && text[1] == '2' ? QUARK_Z2 : QUARK_Z4;
  return n == 2 && text[0] == 'z' && (text[1] == '2' || text[1] == '4') &&
         parse_noise(args, &o->place);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &o->solve;
    return 0;
  case OPT_SOURCE:
    if (!parse_source(arg, o))
      argp_error(state, "--source=%s: must be point:X,Y,Z,T, wall:T, z2:SEED[:T] or z4:SEED[:T]",
                 arg);
    o->source = arg;
    return 0;
  case OPT_COUNT:
    o->count = ctl_integer(state, "count", arg, 1, MOST_COUNT);
    return 0;
  case ARGP_KEY_ARG:
    argp_usage(state);
    return 0;
  case ARGP_KEY_END:
    if (!o->source) argp_error(state, "--source is required");
    if (o->count && o->kind != QUARK_Z2 && o->kind != QUARK_Z4)
      argp_error(state, "--count is for noise sources");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static int check_place(const options_t *o, const quark_report_t *report) {
  const int32_t x[4] = {o->place.x, o->place.y, o->place.z, o->place.t};
  for (int mu = 0; mu < 4; mu++) {
    if (x[mu] < (int32_t)report->setup.dims[mu]) continue;
    ctl_complain("--source=%s: %c = %d is outside the lattice, which has %u", o->source, "xyzt"[mu],
                 x[mu], report -> setup.dims[mu]);
    return EXIT_USAGE;
  }
  return 0;
}

/* Columns in the order of the file: colour fastest, then spin; noise by seed. Caller frees. */
static quark_column_t *make_columns(const options_t *o, int64_t *n) {
  const bool noise = o->kind == QUARK_Z2 || o->kind == QUARK_Z4;
  *n = noise ? (int64_t)(o->count ? o->count : 1) : COMPONENTS;
  quark_column_t *column = calloc((size_t)*n, sizeof *column);
  for (int64_t i = 0; column && i < *n; i++) {
    column[i] = o->place;
    if (noise) {
      column[i].seed += (uint64_t)i;
    } else {
      column[i].spin = (int32_t)i / 3;
      column[i].colour = (int32_t)i % 3;
    }
  }
  return column;
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
  ctl_parse(&argp, argc, argv, &o);
  ctl_work_t work;
  quark_column_t *column = NULL;
  int code = ctl_work_begin(&work, &o.solve);
  if (code == 0) code = check_place(&o, &work.report);
  if (code) goto out;
  work.column = column = make_columns(&o, &work.nrhs);
  if (!column) {
    ctl_complain("no memory for %lld columns", (long long)work.nrhs);
    code = EXIT_AGAIN;
    goto out;
  }
  work.kind = "propagator";
  work.source = o.source;
  work.params.source = o.kind;
  code = ctl_work_run(&work);
out:
  ctl_work_end(&work);
  free(column);
  return code;
}
