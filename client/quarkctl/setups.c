/* load, drop and default: the daemon's setups. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/operator.h"
#include "proto/choices.h"
#include "proto/limits.h"

typedef struct options {
  ctl_common_t common;
  ctl_operator_t op;
  quark_load_t load;
  const char *name;
  bool now, wait;
} options_t;

enum {
  OPT_GAUGE = 0x200,
  OPT_DIMS,
  OPT_KAPPA,
  OPT_MASS,
  OPT_CSW,
  OPT_BOUNDARY,
  OPT_SOLVER,
  OPT_PRECISION,
  OPT_SLOTS,
  OPT_DEFAULT,
  OPT_IGNORE_CHECKSUM,
  OPT_NOW,
  OPT_NO_WAIT,
  LOOK_MS = 200,
  CELL_MOST = 60 /* of an operator; longer ones move the rest of their line */
};

static const struct argp_child children[] = {{&ctl_common_argp, 0, NULL, 0}, {0}};
static const struct argp_child load_children[] = {
    {&ctl_common_argp, 0, NULL, 0}, {&ctl_operator_argp, 0, NULL, 0}, {0}};

/* ---- what there is ---- */

/* The operator as a cell of the table, and the width of its column. */
static const char *cell_of(const quark_setup_t *s, char text[CTL_OPERATOR_TEXT]) {
  return ctl_operator_text(s->action, s->parameters, s->kappa, s->csw, CTL_OPERATOR_CELL, text);
}

static int cell_width(const quark_setup_t *setup, uint32_t count) {
  char text[CTL_OPERATOR_TEXT];
  size_t most = sizeof "operator" - 1;
  for (uint32_t i = 0; i < count; i++) {
    const size_t n = strlen(cell_of(&setup[i], text));
    if (n > most) most = n;
  }
  return (int)(most < CELL_MOST ? most : CELL_MOST);
}

static const char *extents(const uint32_t dims[4], char text[48]) {
  snprintf(text, 48, "-");
  if (dims[0]) snprintf(text, 48, "%ux%ux%ux%u", dims[0], dims[1], dims[2], dims[3]);
  return text;
}

void ctl_setups_print(const quark_setup_t *setup, uint32_t count) {
  char dims[48], op[CTL_OPERATOR_TEXT];
  const int width = cell_width(setup, count);
  printf("setups\n  %-16s %-10s %-*s %8s %-14s %7s %6s  %s\n", "name", "state", width, "operator",
         "solver", "lattice", "busy", "queued", "gauge");
  for (uint32_t i = 0; i < count; i++) {
    const quark_setup_t *s = &setup[i];
    printf("%c %-16s %-10s %-*s %8s %-14s %3u/%-3u %6" PRIu64 "  %s\n", s->is_default ? '*' : ' ',
           s->name, quark_state_name(s->state), width, cell_of(s, op), s->solver,
           extents(s->dims, dims), s->slots_busy, s->slots, s->queued, s->gauge);
    if (*s->phase && s->phase_total > 0)
      printf("    %s: %" PRIu64 " of %" PRIu64 "\n", s->phase, s->phase_done, s->phase_total);
    if (s->checksum_ignored) printf("    the checksum of its gauge file is ignored\n");
    if (s->state == QUARK_FAILED) printf("    %s (%s)\n", s->text, quark_code_name(s->code));
  }
}

static json_t *setup_json(const quark_setup_t *s) {
  char digest[20];
  json_t *dims = json_array();
  snprintf(digest, sizeof digest, "%016" PRIx64, s->digest);
  for (int mu = 0; mu < 4 && s->dims[0]; mu++)
    json_array_append_new(dims, json_integer(s->dims[mu]));
  json_t *object = json_pack(
      "{s:s, s:s, s:b, s:s, s:o, s:s?, s:o, s:I, s:I, s:o, s:o, s:s, s:s, s:o, s:I, s:I, s:I, s:I, "
      "s:I, s:I, s:o, s:b}",
      "name", s->name, "state", quark_state_name(s->state), "default", s->is_default, "gauge",
      s->gauge, "dims", dims, "action", *s->action ? s->action : NULL, "parameters",
      ctl_parameters_json(s->parameters), "site_reals", (json_int_t)s->site_reals, "columns",
      (json_int_t)s->columns, "kappa", ctl_kappa_json(s->kappa), "csw",
      ctl_csw_json(s->kappa, s->csw), "solver", s->solver, "digest", digest, "plaquette",
      ctl_number(s->plaquette), "slots", (json_int_t)s->slots, "slots_busy",
      (json_int_t)s->slots_busy, "queued", (json_int_t)s->queued, "open", (json_int_t)s->open,
      "restarts", (json_int_t)s->restarts, "device_bytes", (json_int_t)s->device_bytes, "idle",
      ctl_number(s->idle), "checksum_ignored", s->checksum_ignored);
  if (s->state == QUARK_FAILED) {
    json_object_set_new(object, "error", json_string(quark_code_name(s->code)));
    json_object_set_new(object, "text", json_string(s->text));
  }
  return object;
}

json_t *ctl_setups_json(const quark_setup_t *setup, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; i++) json_array_append_new(list, setup_json(&setup[i]));
  return list;
}

/* ---- waiting ---- */

/* Rewrites one line of the terminal, if stderr is one. */
static void show(const quark_setup_t *s) {
  if (isatty(STDERR_FILENO) != 1) return;
  fprintf(stderr, "\r\033[K%s: %s", s->name, quark_state_name(s->state));
  if (*s->phase && s->phase_total > 0)
    fprintf(stderr, ": %s %.0f %%", s->phase,
            100.0 * (double)s->phase_done / (double)s->phase_total);
  if (s->open > 0) fprintf(stderr, ", %" PRIu64 " right-hand sides open", s->open);
  fflush(stderr);
}

static void clear_line(void) {
  if (isatty(STDERR_FILENO) == 1) fputs("\r\033[K", stderr);
}

/* Finds the setup as it is now. *there false: there is none of that name. */
static int find(quark_connection_t *conn, const char *name, quark_setup_t *found, bool *there) {
  quark_setup_t setup[QUARK_SETUPS];
  uint32_t count;
  quark_error_t err;
  if (quark_setups(conn, setup, &count, &err) != QUARK_OK) return ctl_fail(&err);
  *there = false;
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(setup[i].name, name) != 0) continue;
    *found = setup[i];
    *there = true;
  }
  return 0;
}

/* Waits until the setup is no longer loading; gone: until there is none of that name. */
static int wait_for(const options_t *o, quark_connection_t *conn, bool gone, quark_setup_t *setup) {
  bool there = true;
  ctl_catch_signals();
  for (double waited = 0;; waited += LOOK_MS * 1e-3) {
    const int code = find(conn, o->name, setup, &there);
    if (code) return code;
    if (!there || (!gone && (setup->state == QUARK_READY || setup->state == QUARK_FAILED))) break;
    show(setup);
    if (ctl_interrupted() || waited >= (isnan(o->common.timeout) ? INFINITY : o->common.timeout)) {
      clear_line();
      ctl_complain("%s is still %s: the daemon continues with it", o->name,
                   quark_state_name(setup->state));
      return EXIT_AGAIN;
    }
    const struct timespec t = {.tv_nsec = LOOK_MS * 1000000};
    nanosleep(&t, NULL);
  }
  clear_line();
  if (there || gone) return 0;
  ctl_complain("%s was dropped", o->name);
  return EXIT_DATA;
}

/* ---- load ---- */

static void parse_dims(const struct argp_state *state, const char *text, uint32_t dims[4]) {
  int end = -1;
  const int n = sscanf(text, "%5ux%5ux%5ux%5u%n", &dims[0], &dims[1], &dims[2], &dims[3], &end);
  if (n != 4 || end < 0 || text[end] || !dims[0])
    argp_error(state, "--dims=%s: must be XxYxZxT", text);
}

static void take_operator(options_t *o, const struct argp_state *state) {
  if (!isnan(o->load.kappa)) ctl_operator_exclude(state, &o->op, "kappa");
  if (!isnan(o->load.mass)) ctl_operator_exclude(state, &o->op, "mass");
  if (!isnan(o->load.csw)) ctl_operator_exclude(state, &o->op, "csw");
  o->load.action = o->op.action;
  o->load.parameter = o->op.parameter;
  o->load.nparameter = o->op.n;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &o->common;
    return 0;
  case OPT_GAUGE:
    o->load.gauge = arg;
    return 0;
  case OPT_DIMS:
    parse_dims(state, arg, o->load.dims);
    return 0;
  case OPT_KAPPA:
    o->load.kappa = ctl_real(state, "kappa", arg, -1e6, 1e6);
    return 0;
  case OPT_MASS:
    o->load.mass = ctl_real(state, "mass", arg, -1e6, 1e6);
    return 0;
  case OPT_CSW:
    o->load.csw = ctl_real(state, "csw", arg, -1e3, 1e3);
    return 0;
  case OPT_BOUNDARY:
    o->load.boundary = arg;
    return 0;
  case OPT_SOLVER:
    o->load.solver = arg;
    return 0;
  case OPT_PRECISION:
    o->load.precision = arg;
    return 0;
  case OPT_SLOTS:
    o->load.slots = (int)ctl_integer(state, "slots", arg, 0, QK_SLOTS_MAX);
    return 0;
  case OPT_DEFAULT:
    o->load.make_default = true;
    return 0;
  case OPT_IGNORE_CHECKSUM:
    o->load.ignore_checksum = true;
    return 0;
  case OPT_NOW:
    o->now = true;
    return 0;
  case OPT_NO_WAIT:
    o->wait = false;
    return 0;
  case ARGP_KEY_ARG:
    if (o->name) argp_error(state, "only one setup can be named: \"%s\" is one too many", arg);
    o->name = arg;
    return 0;
  case ARGP_KEY_END:
    if (!o->name) argp_error(state, "the name of the setup is missing");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* The same with the children of load. */
static error_t parse_load(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  if (key == ARGP_KEY_INIT) state->child_inputs[1] = &o->op;
  if (key == ARGP_KEY_END) take_operator(o, state);
  return parse(key, arg, state);
}

static const struct argp_option load_options[] = {
    {"gauge", OPT_GAUGE, "FILE", 0,
     "gauge file on the daemon's side, below one of its gauge roots, or builtin:...", 1},
    {"dims", OPT_DIMS, "XxYxZxT", 0, "lattice extents, for files that do not state them", 1},
    {"kappa", OPT_KAPPA, "K", 0, "hopping parameter", 1},
    {"mass", OPT_MASS, "M", 0, "bare mass, instead of kappa", 1},
    {"csw", OPT_CSW, "C", 0, "clover coefficient", 1},
    {"boundary", OPT_BOUNDARY, "X,Y,Z,T", 0,
     "boundary factor of each direction: 1, -1, or a phase such as 0.5pi", 1},
    {"solver", OPT_SOLVER, "NAME", 0, QK_CHOICE_LIST(QK_SOLVERS), 1},
    {"precision", OPT_PRECISION, "NAME", 0,
     "precision of the inner iteration: " QK_CHOICE_LIST(QK_PRECISIONS), 1},
    {"slots", OPT_SLOTS, "N", 0,
     "right-hand sides that are solved together; 0: as many as fit into memory", 1},
    {"ignore-checksum", OPT_IGNORE_CHECKSUM, 0, 0,
     "accept a file although its links do not match its checksum; plaquette and unitarity are "
     "verified all the same",
     1},
    {"default", OPT_DEFAULT, 0, 0, "make it the default setup as soon as it is ready", 1},
    {"no-wait", OPT_NO_WAIT, 0, 0, "return when the daemon has begun to load", 1},
    {0},
};

/* Waits, unless --no-wait, and prints the result. */
static int finish_load(const options_t *o, quark_connection_t *conn) {
  quark_setup_t setup;
  bool there;
  int code = o->wait ? wait_for(o, conn, false, &setup) : find(conn, o->name, &setup, &there);
  if (code) return code;
  if (o->wait && setup.state == QUARK_FAILED) {
    ctl_complain("%s: %s (%s)", o->name, setup.text, quark_code_name(setup.code));
    code = setup.code == QUARK_OK ? EXIT_DATA : ctl_exit_code(setup.code);
  }
  if (o->common.json) {
    const int failed = ctl_print(setup_json(&setup));
    return code ? code : failed;
  }
  if (code == 0)
    printf("%s: %s%s\n", o->name, quark_state_name(setup.state),
           setup.is_default ? ", the default" : "");
  return code;
}

int ctl_load(int argc, char **argv) {
  static const struct argp argp = {
      .options = load_options,
      .parser = parse_load,
      .args_doc = "NAME",
      .doc = "Loads a further setup, a gauge configuration with an operator, and waits until it is "
             "ready. Options that are not given have the values that the daemon was started with; "
             "with --action all parameters of the action that have no default must be given.\v"
             "Exit code 65: the daemon rejected the file for the reason that is printed; its other "
             "setups are not affected.",
      .children = load_children,
  };
  options_t o = {.wait = true};
  quark_connection_t *conn;
  quark_error_t err;
  quark_load_init(&o.load);
  ctl_common_init(&o.common);
  ctl_parse(&argp, argc, argv, &o);
  o.load.name = o.name;
  int code = ctl_connect(&o.common, NULL, false, &conn);
  if (code) return code;
  code = quark_load(conn, &o.load, &err) == QUARK_OK ? finish_load(&o, conn) : ctl_fail(&err);
  quark_close(conn);
  return code;
}

/* ---- drop, default ---- */

static const struct argp_option drop_options[] = {
    {"now", OPT_NOW, 0, 0, "cancel the requests that have not ended", 1},
    {"no-wait", OPT_NO_WAIT, 0, 0, "return at once, do not wait until the setup is gone", 1},
    {0},
};

int ctl_drop(int argc, char **argv) {
  static const struct argp argp = {
      .options = drop_options,
      .parser = parse,
      .args_doc = "NAME",
      .doc =
          "Drops a setup that is not the default: it accepts no new requests, finishes those that "
          "it has, and frees its memory.",
      .children = children,
  };
  options_t o = {.wait = true};
  quark_connection_t *conn;
  quark_setup_t setup;
  quark_error_t err;
  ctl_common_init(&o.common);
  ctl_parse(&argp, argc, argv, &o);
  int code = ctl_connect(&o.common, NULL, false, &conn);
  if (code) return code;
  if (quark_drop(conn, o.name, o.now, &err) != QUARK_OK) code = ctl_fail(&err);
  if (code == 0 && o.wait) code = wait_for(&o, conn, true, &setup);
  quark_close(conn);
  if (code == 0 && o.common.json)
    return ctl_print(json_pack("{s:s, s:b}", "dropped", o.name, "now", o.now));
  return code;
}

int ctl_default(int argc, char **argv) {
  static const struct argp argp = {
      .parser = parse,
      .args_doc = "NAME",
      .doc = "Makes a setup that is ready the default, for requests that name no setup.",
      .children = children,
  };
  options_t o = {0};
  quark_connection_t *conn;
  quark_error_t err;
  ctl_common_init(&o.common);
  ctl_parse(&argp, argc, argv, &o);
  int code = ctl_connect(&o.common, NULL, false, &conn);
  if (code) return code;
  if (quark_make_default(conn, o.name, &err) != QUARK_OK) code = ctl_fail(&err);
  quark_close(conn);
  if (code == 0 && o.common.json) return ctl_print(json_pack("{s:s}", "default", o.name));
  return code;
}
