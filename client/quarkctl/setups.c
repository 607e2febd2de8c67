/* load, drop and default: the daemon's setups. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/operator.h"
#include "client/quarkctl/deflation.h"
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
  LOOK_MS = 200,
  CELL_MOST = 60 /* of an operator; longer ones move the rest of their line */
};

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

static int name_width(const quark_setup_t *setup, uint32_t count) {
  size_t most = 16;
  for (uint32_t i = 0; i < count; i++) {
    const size_t n = strlen(setup[i].name);
    if (n > most) most = n;
  }
  return (int)most;
}

void ctl_setups_print(const quark_setup_t *setup, uint32_t count) {
  char dims[48], op[CTL_OPERATOR_TEXT];
  const int width = cell_width(setup, count), names = name_width(setup, count);
  printf("setups\n  %-*s %-10s %-*s %8s %-14s %7s %6s  %s\n", names, "name", "state", width,
         "operator", "solver", "lattice", "busy", "queued", "gauge");
  for (uint32_t i = 0; i < count; i++) {
    const quark_setup_t *s = &setup[i];
    printf("%c %-*s %-10s %-*s %8s %-14s %3u/%-3u %6" PRIu64 "  %s\n", s->is_default ? '*' : ' ',
           names, s->name, quark_state_name(s->state), width, cell_of(s, op), s->solver,
           extents(s->dims, dims), s->slots_busy, s->slots, s->queued, s->gauge);
    if (*s->phase && s->phase_total > 0)
      printf("    %s: %" PRIu64 " of %" PRIu64 "\n", s->phase, s->phase_done, s->phase_total);
    if (s->checksum_ignored) printf("    the checksum of its gauge file is ignored\n");
    if (s->deflation.vectors > 0) {
      printf("    ");
      ctl_deflation_print(&s->deflation);
    }
    if (*s->origin) printf("    %s\n", s->origin);
    if (*s->origin_trouble) printf("    %s\n", s->origin_trouble);
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
      "s:I, s:I, s:o, s:b, s:s, s:s}",
      "name", s->name, "state", quark_state_name(s->state), "default", s->is_default, "gauge",
      s->gauge, "dims", dims, "action", *s->action ? s->action : NULL, "parameters",
      ctl_parameters_json(s->parameters), "site_reals", (json_int_t)s->site_reals, "columns",
      (json_int_t)s->columns, "kappa", ctl_kappa_json(s->kappa), "csw",
      ctl_csw_json(s->kappa, s->csw), "solver", s->solver, "digest", digest, "plaquette",
      ctl_number(s->plaquette), "slots", (json_int_t)s->slots, "slots_busy",
      (json_int_t)s->slots_busy, "queued", (json_int_t)s->queued, "open", (json_int_t)s->open,
      "restarts", (json_int_t)s->restarts, "device_bytes", (json_int_t)s->device_bytes, "idle",
      ctl_number(s->idle), "checksum_ignored", s->checksum_ignored, "origin", s->origin,
      "origin_trouble", s->origin_trouble);
  json_t *boundary = json_array();
  for (int i = 0; i < 8; i++) json_array_append_new(boundary, ctl_number(s->boundary[i]));
  json_object_set_new(object, "boundary", boundary);
  json_object_set_new(object, "owner", json_string(s->owner));
  json_object_set_new(object, "deflation", ctl_deflation_json(&s->deflation));
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

/* Several users may have setups of one name, and who operates sees them all. */
typedef enum which { LOADED_PUBLIC, LOADED_PRIVATE, DROPPED } which_t;

/* name: NAME or USER/NAME. alone: of this name; one that has failed does not drain. */
static bool is_meant(const quark_setup_t *s, const char *name, bool alone, which_t which) {
  const char *slash = strrchr(name, '/');
  if (slash && (strlen(s->owner) != (size_t)(slash - name) ||
                strncmp(s->owner, name, (size_t)(slash - name)) != 0))
    return false;
  if (strcmp(s->name, slash ? slash + 1 : name) != 0) return false;
  if (which == DROPPED) return slash || alone || s->state == QUARK_DRAINING;
  return !*s->owner == (which == LOADED_PUBLIC);
}

/* Finds the setup as it is now. *there false: there is none of that name. */
static int find(quark_connection_t *conn, const char *name, which_t which, quark_setup_t *found,
                bool *there) {
  quark_setup_t setup[QK_SETUPS_MAX];
  uint32_t count;
  quark_error_t err;
  if (quark_setup_list(conn, setup, QK_SETUPS_MAX, &count, &err) != QUARK_OK) return ctl_fail(&err);
  *there = false;
  uint32_t named = 0;
  for (uint32_t i = 0; i < count && i < QK_SETUPS_MAX; i++) named += !strcmp(setup[i].name, name);
  for (uint32_t i = 0; i < count && i < QK_SETUPS_MAX; i++) {
    if (!is_meant(&setup[i], name, named == 1, which)) continue;
    *found = setup[i];
    *there = true;
  }
  return 0;
}

/* Waits until the setup is no longer loading; or until it is gone. */
static int wait_for(const options_t *o, quark_connection_t *conn, which_t which,
                    quark_setup_t *setup) {
  const bool gone = which == DROPPED;
  bool there = true;
  ctl_catch_signals();
  for (double waited = 0;; waited += LOOK_MS * 1e-3) {
    const int code = find(conn, o->name, which, setup, &there);
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

static void take_dims(const struct argp_state *state, const char *name, char *text, void *values) {
  uint32_t *dims = ((options_t *)values)->load.dims;
  int end = -1;
  const int n = sscanf(text, "%5ux%5ux%5ux%5u%n", &dims[0], &dims[1], &dims[2], &dims[3], &end);
  if (n != 4 || end < 0 || text[end] || !dims[0])
    argp_error(state, "--%s=%s: must be XxYxZxT", name, text);
}

/* Digits alone are a number. */
static void take_deflate(const struct argp_state *state, const char *name, char *text,
                         void *values) {
  quark_load_t *load = &((options_t *)values)->load;
  const size_t digits = strspn(text, "0123456789");
  if (text[digits] && isalnum((unsigned char)text[0])) {
    load->deflate_from = text;
    return;
  }
  if (digits > 0 && digits < 10 && !text[digits]) load->deflate = atoi(text);
  if (load->deflate < 0 || load->deflate > QK_DEFLATE_MAX)
    argp_error(state, "--%s=%s: must be 0 to %d, or a name of eigenvectors", name, text,
               QK_DEFLATE_MAX);
}

static void take_operator(const struct argp_state *state, options_t *o) {
  if (!isnan(o->load.kappa)) ctl_operator_exclude(state, &o->op, "kappa");
  if (!isnan(o->load.mass)) ctl_operator_exclude(state, &o->op, "mass");
  if (!isnan(o->load.csw)) ctl_operator_exclude(state, &o->op, "csw");
  o->load.action = o->op.action;
  o->load.parameter = o->op.parameter;
  o->load.nparameter = o->op.n;
}

static void need_name(const struct argp_state *state, void *values) {
  const options_t *o = values;
  if (!o->name) argp_error(state, "the name of the setup is missing");
}

static void finish_load_options(const struct argp_state *state, void *values) {
  take_operator(state, values);
  need_name(state, values);
}

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t load_rows[] = {
    {"gauge", QK_OPTION_TEXT, AT(load.gauge), "FILE",
     .help = "gauge file on the daemon's side, below one of its gauge roots, or builtin:..."},
    {"dims", QK_OPTION_TAKEN, .form = "XxYxZxT", .take = take_dims,
     .help = "lattice extents, for files that do not state them"},
    {"kappa", QK_OPTION_REAL, AT(load.kappa), "K", .min = -1e6, .max = 1e6,
     .help = "hopping parameter"},
    {"mass", QK_OPTION_REAL, AT(load.mass), "M", .min = -1e6, .max = 1e6,
     .help = "bare mass, instead of kappa"},
    {"csw", QK_OPTION_REAL, AT(load.csw), "C", .min = -1e3, .max = 1e3,
     .help = "clover coefficient"},
    {"boundary", QK_OPTION_TEXT, AT(load.boundary), "X,Y,Z,T",
     .help = "boundary factor of each direction: 1, -1, or a phase such as 0.5pi"},
    {"solver", QK_OPTION_TEXT, AT(load.solver), "NAME", .help = QK_CHOICE_LIST(QK_SOLVERS)},
    {"precision", QK_OPTION_TEXT, AT(load.precision), "NAME",
     .help = "precision of the inner iteration: " QK_CHOICE_LIST(QK_PRECISIONS)},
    {"slots", QK_OPTION_INT, AT(load.slots), "N", .max = QK_SLOTS_MAX,
     .help = "right-hand sides that are solved together; 0: as many as fit into memory"},
    {"replicas", QK_OPTION_INT, AT(load.replicas), "N", .min = 1, .max = QK_REPLICAS_MAX,
     .help = "engines that serve the setup, on devices of their own; they share its queue"},
    {"devices", QK_OPTION_TEXT, AT(load.devices), "N[,N...]",
     .help = "numbers of the GPUs that they use, as many for each as it has ranks; one that is "
             "listed twice is shared"},
    {"deflate", QK_OPTION_TAKEN, .form = "N|NAME", .take = take_deflate,
     .help = "lowest eigenvectors of Mhat^+ Mhat that each solve of cg, bicgstab or gcr begins "
             "with: how many are made, or the name of some that a setup of these links and this "
             "operator keeps; 0: none. Of overlap fermions a name alone: those that its sign "
             "function projects"},
    {"from", QK_OPTION_TEXT, AT(load.evolve_from), "SETUP",
     .help = "start multigrid from the null vectors of this setup, of another mass or "
             "configuration, or of what is left of its checkpoint"},
    {"fix-gauge", QK_OPTION_TEXT, AT(load.fix_gauge), "GAUGE[:THETA]",
     .help = "bring the links to the gauge landau or coulomb, for wall sources, until theta is at "
             "most THETA (1e-12); none: as they are in the file"},
    {"ignore-checksum", QK_OPTION_FLAG, AT(load.ignore_checksum),
     .help = "accept a file although its links do not match its checksum; plaquette and unitarity "
             "are verified all the same"},
    {"default", QK_OPTION_FLAG, AT(load.make_default),
     .help = "make it the default setup as soon as it is ready"},
    {"no-wait", QK_OPTION_CLEAR, AT(wait), .help = "return when the daemon has begun to load"},
    {"NAME", QK_OPTION_ARGUMENT, .offset = AT(name)},
    {NULL, QK_OPTION_TABLE, AT(op), .table = &ctl_operator_table},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, common), .table = &ctl_common_table},
    {0},
};

static const qk_option_table_t load_table = {
    .row = load_rows, .group = 1, .finish = finish_load_options};

/* Waits, unless --no-wait, and prints the result. */
static int finish_load(const options_t *o, quark_connection_t *conn) {
  quark_setup_t setup;
  bool there;
  const char *gauge = o->load.gauge;
  const bool private =
      gauge && (strncmp(gauge, "field:", 6) == 0 || strncmp(gauge, "digest:", 7) == 0);
  const which_t which = private ? LOADED_PRIVATE : LOADED_PUBLIC;
  int code =
      o->wait ? wait_for(o, conn, which, &setup) : find(conn, o->name, which, &setup, &there);
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
  if (code == 0 && *setup.text) printf("%s\n", setup.text); /* what made room for it */
  if (code == 0 && *setup.origin) printf("%s\n", setup.origin);
  if (code == 0 && *setup.origin_trouble) printf("%s\n", setup.origin_trouble);
  return code;
}

int ctl_load(int argc, char **argv) {
  static const char about[] =
      "Loads a further setup, a gauge configuration with an operator, and waits until it is "
      "ready. Options that are not given have the values that the daemon was started with; "
      "with --action all parameters of the action that have no default must be given.\v"
      "Exit code 65: the daemon rejected the file for the reason that is printed; its other "
      "setups are not affected.";
  options_t o = {.wait = true};
  quark_connection_t *conn;
  quark_error_t err;
  quark_load_init(&o.load);
  ctl_common_init(&o.common);
  qk_options_parse(&load_table, "NAME", about, argc, argv, &o);
  o.load.name = o.name;
  int code = ctl_connect(&o.common, NULL, false, &conn);
  if (code) return code;
  code = quark_load(conn, &o.load, &err) == QUARK_OK ? finish_load(&o, conn) : ctl_fail(&err);
  quark_close(conn);
  return code;
}

/* ---- drop, default ---- */

static const qk_option_row_t drop_rows[] = {
    {"now", QK_OPTION_FLAG, AT(now), .help = "cancel the requests that have not ended"},
    {"no-wait", QK_OPTION_CLEAR, AT(wait),
     .help = "return at once, do not wait until the setup is gone"},
    {"NAME", QK_OPTION_ARGUMENT, .offset = AT(name)},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, common), .table = &ctl_common_table},
    {0},
};

static const qk_option_table_t drop_table = {.row = drop_rows, .group = 1, .finish = need_name};

int ctl_drop(int argc, char **argv) {
  static const char about[] =
      "Drops a setup that is not the default: it accepts no new requests, finishes those that "
      "it has, and frees its memory.";
  options_t o = {.wait = true};
  quark_connection_t *conn;
  quark_setup_t setup;
  quark_error_t err;
  ctl_common_init(&o.common);
  qk_options_parse(&drop_table, "NAME", about, argc, argv, &o);
  int code = ctl_connect(&o.common, NULL, false, &conn);
  if (code) return code;
  if (quark_drop(conn, o.name, o.now, &err) != QUARK_OK) code = ctl_fail(&err);
  if (code == 0 && o.wait) code = wait_for(&o, conn, DROPPED, &setup);
  quark_close(conn);
  if (code == 0 && o.common.json)
    return ctl_print(json_pack("{s:s, s:b}", "dropped", o.name, "now", o.now));
  return code;
}

static const qk_option_row_t default_rows[] = {
    {"NAME", QK_OPTION_ARGUMENT, .offset = AT(name)},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, common), .table = &ctl_common_table},
    {0},
};

static const qk_option_table_t default_table = {.row = default_rows, .finish = need_name};

int ctl_default(int argc, char **argv) {
  static const char about[] =
      "Makes a setup that is ready the default, for requests that name no setup.";
  options_t o = {0};
  quark_connection_t *conn;
  quark_error_t err;
  ctl_common_init(&o.common);
  qk_options_parse(&default_table, "NAME", about, argc, argv, &o);
  int code = ctl_connect(&o.common, NULL, false, &conn);
  if (code) return code;
  if (quark_make_default(conn, o.name, &err) != QUARK_OK) code = ctl_fail(&err);
  quark_close(conn);
  if (code == 0 && o.common.json) return ctl_print(json_pack("{s:s}", "default", o.name));
  return code;
}
