#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/engine/gauge_tool/autocorr.h"
#include "daemon/engine/gauge_tool/chain.h"
#include "daemon/engine/gauge_tool/interrupt.h"
#include "daemon/engine/gauge_tool/show.h"

typedef struct options {
  qk_tool_options_t tool;
  qk_chain_params_t params;
  int64_t sweeps, thermalise; /* 0, -1: not given */
  bool has_beta, has_action, resume, force, quiet;
} options_t;

enum {
  KEY_BETA = QK_TOOL_OWN,
  KEY_ACTION,
  KEY_C1,
  KEY_SWEEPS,
  KEY_OR,
  KEY_SEED,
  KEY_START,
  KEY_EVERY,
  KEY_OUT,
  KEY_THERMALISE,
  KEY_RESUME,
  KEY_FORCE
};

static const struct argp_option rows[] = {
    {"dims", 'd', "XxYxZxT", 0, "extents; where --start is a file, they are its own", 1},
    {"beta", KEY_BETA, "BETA", 0, "coupling 6/g^2", 1},
    {"action", KEY_ACTION, "NAME", 0, "wilson (default), luescher-weisz, iwasaki or dbw2", 1},
    {"c1", KEY_C1, "X", 0, "coefficient of the rectangles, instead of --action", 1},
    {"or-per-hb", KEY_OR, "K", 0, "overrelaxations after each heatbath (4)", 1},
    {"seed", KEY_SEED, "S", 0, "of the random numbers (1)", 1},
    {"start", KEY_START, "START", 0, "cold (default), hot, or a file of links", 1},
    {"sweeps", KEY_SWEEPS, "N", 0, "sweeps in all", 2},
    {"thermalise", KEY_THERMALISE, "N", 0, "sweeps that the mean leaves out (half of them)", 2},
    {"out", KEY_OUT, "PATTERN", 0,
     "configurations, with a %d or %0Nd for the sweep, as in cfg.%05d.lime", 3},
    {"every", KEY_EVERY, "E", 0, "sweeps between two configurations (all sweeps: one at the end)",
     3},
    {"resume", KEY_RESUME, NULL, 0, "go on from where the chain in these files stands", 4},
    {"force", KEY_FORCE, NULL, 0, "replace configurations that exist, and begin anew", 4},
    QK_TOOL_ROW_FORMAT,
    QK_TOOL_ROW_BITS,
    QK_TOOL_ROW_BACKEND,
    QK_TOOL_ROW_GRID,
    QK_TOOL_ROW_JSON,
    {"quiet", 'q', NULL, 0, "print the summary only", 8},
    {0}};

static const struct {
  const char *name;
  double c1;
} actions[] = {
    {"wilson", 0}, {"luescher-weisz", -1.0 / 12}, {"iwasaki", -0.331}, {"dbw2", -1.4088}};
enum { NACTION = sizeof actions / sizeof actions[0] };

static void set_action(const struct argp_state *state, options_t *o, int key, const char *arg) {
  const char *names[NACTION];
  for (int i = 0; i < NACTION; i++) names[i] = actions[i].name;
  if (o->has_action) argp_error(state, "one of --action and --c1, and once");
  o->has_action = true;
  o->params.evolve.c1 = key == KEY_C1
                            ? qk_tool_real(state, "c1", arg, -1e6, 1e6)
                            : actions[qk_tool_word(state, "action", arg, NACTION, names)].c1;
}

static void check_params(const struct argp_state *state, const options_t *o) {
  const qk_chain_params_t *p = &o->params;
  qk_err_t err = {0};
  qk_pattern_t pattern;
  bool from_file = strcmp(p->start, "cold") != 0 && strcmp(p->start, "hot") != 0;
  if (!o->has_beta) argp_error(state, "--beta is needed");
  if (o->sweeps == 0) argp_error(state, "--sweeps is needed");
  if (p->out == NULL) argp_error(state, "--out is needed");
  if (!o->tool.has_dims && !from_file)
    argp_error(state, "--dims is needed, unless --start names a file");
  if (o->tool.has_dims && qk_evolve_check(&p->evolve, o->tool.dims, &err) != QK_OK)
    argp_error(state, "%s", err.text);
  if (qk_pattern_parse(p->out, &pattern, &err) != QK_OK) argp_error(state, "--out=%s", err.text);
  qk_tool_need_utf8(state, p->out);
  qk_tool_need_utf8(state, p->start);
  if (o->thermalise >= o->sweeps)
    argp_error(state, "--thermalise=%" PRId64 ": must be less than --sweeps=%" PRId64,
               o->thermalise, o->sweeps);
}

static void parse_end(struct argp_state *state, options_t *o) {
  check_params(state, o);
  qk_tool_need_format(state, &o->tool, o->params.out);
  o->params.format = o->tool.format;
  o->params.bits = o->tool.bits != 0 ? o->tool.bits : 64;
  if (o->params.every == 0) o->params.every = o->sweeps;
  if (o->thermalise < 0) o->thermalise = o->sweeps / 2;
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  qk_chain_params_t *p = &o->params;
  switch (key) {
  case KEY_BETA:
    p->evolve.beta = qk_tool_real(state, "beta", arg, -1e6, 1e6);
    o->has_beta = true;
    return 0;
  case KEY_ACTION:
  case KEY_C1:
    set_action(state, o, key, arg);
    return 0;
  case KEY_SWEEPS:
    o->sweeps = qk_tool_integer(state, "sweeps", arg, 1, QK_STATE_SWEEPS);
    return 0;
  case KEY_OR:
    p->evolve.or_per_hb = (int)qk_tool_integer(state, "or-per-hb", arg, INT_MIN, INT_MAX);
    return 0;
  case KEY_SEED:
    p->evolve.seed = (uint64_t)qk_tool_integer(state, "seed", arg, 0, INT64_MAX);
    return 0;
  case KEY_START:
    p->start = arg;
    return 0;
  case KEY_EVERY:
    p->every = qk_tool_integer(state, "every", arg, 1, QK_STATE_SWEEPS);
    return 0;
  case KEY_OUT:
    p->out = arg;
    return 0;
  case KEY_THERMALISE:
    o->thermalise = qk_tool_integer(state, "thermalise", arg, 0, QK_STATE_SWEEPS);
    return 0;
  case KEY_RESUME:
    o->resume = true;
    return 0;
  case KEY_FORCE:
    o->force = true;
    return 0;
  case 'q':
    o->quiet = true;
    return 0;
  case ARGP_KEY_ARG:
    argp_error(state, "one argument too many: \"%s\"", arg);
    return 0;
  case ARGP_KEY_END:
    parse_end(state, o);
    return 0;
  default:
    return qk_tool_parse_option(key, arg, state, &o->tool);
  }
}

/* ---- the run ---- */

/* --dims, or the extents of the file that the chain starts from. */
static qk_status_t find_dims(qk_tool_t *tool, options_t *o, qk_err_t *err) {
  qk_gauge_info_t info;
  if (o->tool.has_dims) {
    memcpy(o->params.dims, o->tool.dims, sizeof o->params.dims);
    return QK_OK;
  }
  qk_status_t status = qk_tool_probe(tool, o->params.start, &o->tool, &info, err);
  if (status != QK_OK) return status;
  memcpy(o->params.dims, info.dims, sizeof o->params.dims);
  return qk_evolve_check(&o->params.evolve, info.dims, err);
}

static void show_head(qk_show_t *show, const qk_tool_t *tool, const qk_chain_t *chain) {
  const qk_chain_params_t *p = &chain->params;
  const int *d = p->dims, *g = tool->geom.grid;
  qk_show_note(
      show, "%dx%dx%dx%d, beta %.10g, c1 %.10g, %d overrelaxations per heatbath, seed %" PRIu64,
      d[0], d[1], d[2], d[3], p->evolve.beta, p->evolve.c1, p->evolve.or_per_hb, p->evolve.seed);
  qk_show_note(show, "%s, ranks %dx%dx%dx%d", tool->ops->name, g[0], g[1], g[2], g[3]);
  if (chain->saved > 0) {
    qk_show_note(show, "going on from sweep %" PRId64 ", %s", chain->saved,
                 chain->state.configuration);
  } else {
    qk_show_note(show, "start %s", p->start);
  }
  qk_show_note(show, "sweep  plaquette");
}

static void show_saved(qk_show_t *show, const qk_chain_t *chain) {
  char path[QK_PATTERN_PATH];
  qk_pattern_path(&chain->pattern, chain->saved, path);
  const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
  qk_show_note(show, "%s", qk_chain_due(chain) ? name : chain->state.configuration);
}

/* Sweeps until the end or a signal, which leave the chain saved. */
static qk_status_t run_sweeps(qk_chain_t *chain, qk_show_t *show, bool *stopped, qk_err_t *err) {
  qk_status_t status = QK_OK;
  while (chain->state.sweep < chain->sweeps && !*stopped && status == QK_OK) {
    double plaquette;
    status = qk_chain_sweep(chain, &plaquette, err);
    if (status == QK_OK) status = qk_interrupt_asked(chain->tool->comm, stopped, err);
    if (status != QK_OK) break;
    int64_t sweep = chain->state.sweep;
    if (chain->tool->root) qk_show_sweep(show, sweep, plaquette);
    if (!qk_chain_due(chain) && sweep != chain->sweeps && !*stopped) continue;
    status = qk_chain_save(chain, err);
    if (status == QK_OK && chain->tool->root) show_saved(show, chain);
  }
  if (status != QK_OK && chain->saved > 0)
    qk_err_prefix(err, "after sweep %" PRId64 " (--resume goes on from sweep %" PRId64 ")",
                  chain->state.sweep, chain->saved);
  return status;
}

/* ---- the summary ---- */

typedef struct summary {
  qk_autocorr_t plaquette;
  int64_t first, last; /* sweeps of the mean */
  double rate;         /* sweeps a second, with what it took to save */
} summary_t;

static summary_t summarise(const options_t *o, const qk_chain_t *chain, const qk_show_t *show) {
  int64_t last = chain->state.sweep, skip = o->thermalise < last ? o->thermalise : last / 2;
  summary_t s = {.first = skip + 1, .last = last};
  s.plaquette = qk_autocorr_estimate(chain->state.plaquettes + skip, last - skip);
  s.rate = (double)(last - show->first) / (qk_clock_now() - show->begun);
  return s;
}

static json_t *number(double v) {
  return isfinite(v) ? json_real(v) : json_null();
}

static json_t *summary_json(const options_t *o, const qk_chain_t *chain, const summary_t *s,
                            bool stopped) {
  const qk_chain_params_t *p = &chain->params;
  const int *d = p->dims, *g = chain->tool->geom.grid;
  char digest[17];
  snprintf(digest, sizeof digest, "%016" PRIx64, chain->state.digest);
  json_t *plaquettes = json_array(), *written = json_array();
  for (int64_t i = 0; i < chain->state.sweep; i++)
    json_array_append_new(plaquettes, json_real(chain->state.plaquettes[i]));
  for (int64_t i = p->every; i <= chain->state.sweep; i += p->every) {
    char path[QK_PATTERN_PATH];
    qk_pattern_path(&chain->pattern, i, path);
    json_array_append_new(written, json_string(path));
  }
  return json_pack(
      "{s:[i,i,i,i], s:f, s:f, s:i, s:I, s:s, s:s, s:[i,i,i,i], s:I, s:I, s:b, s:o, s:o, s:s,"
      " s:I, s:o, s:o, s:o, s:o, s:o}",
      "dims", d[0], d[1], d[2], d[3], "beta", p->evolve.beta, "c1", p->evolve.c1, "or_per_hb",
      p->evolve.or_per_hb, "seed", (json_int_t)p->evolve.seed, "start", p->start, "backend",
      chain->tool->ops->name, "grid", g[0], g[1], g[2], g[3], "sweeps", (json_int_t)o->sweeps,
      "sweep", (json_int_t)chain->state.sweep, "interrupted", stopped, "plaquettes", plaquettes,
      "configurations", written, "digest", digest, "thermalise", (json_int_t)(s->first - 1),
      "plaquette", number(s->plaquette.mean), "error", number(s->plaquette.error), "tau_int",
      number(s->plaquette.tau), "tau_int_error", number(s->plaquette.tau_error),
      "sweeps_per_second", number(s->rate));
}

static void summary_text(const qk_chain_t *chain, const summary_t *s) {
  const qk_autocorr_t *p = &s->plaquette;
  double links = 4.0 * (double)chain->tool->geom.volume * (1 + chain->params.evolve.or_per_hb);
  printf("plaquette  %.8f", p->mean);
  if (isfinite(p->error)) {
    printf(" +- %.8f", p->error);
  } else {
    printf(" (too few sweeps for an error)");
  }
  printf("   sweeps %" PRId64 " to %" PRId64 "\n", s->first, s->last);
  if (isfinite(p->tau)) printf("tau_int    %.2f +- %.2f sweeps\n", p->tau, p->tau_error);
  printf("digest     %016" PRIx64 "\n", chain->state.digest);
  if (s->rate > 0)
    printf("speed      %.4g sweeps/s, %.4g link updates/s\n", s->rate, s->rate * links);
}

static qk_status_t generate(qk_tool_t *tool, options_t *o, qk_err_t *err) {
  qk_chain_t chain = {0};
  qk_show_t show = {0};
  bool stopped = false;
  qk_status_t status = find_dims(tool, o, err);
  if (status != QK_OK) return status;
  status = qk_tool_lay_out(tool, &o->tool, o->params.dims, err);
  if (status != QK_OK) return status;
  status = qk_chain_look(tool, &o->params, o->sweeps, o->resume, o->force, &chain, err);
  if (status != QK_OK) return status;
  status = qk_tool_open_device(tool, o->tool.backend != NULL ? o->tool.backend : "auto", err);
  if (status != QK_OK) goto out;
  status = qk_chain_start(&chain, err);
  if (status != QK_OK) goto out;

  qk_interrupt_catch();
  bool table = tool->root && !o->quiet && !tool->json;
  qk_show_begin(&show, table, tool->root && !o->quiet, chain.saved, o->sweeps);
  show_head(&show, tool, &chain);
  status = run_sweeps(&chain, &show, &stopped, err);
  qk_show_end(&show);
  if (status != QK_OK) goto out;
  stopped = stopped && chain.state.sweep < o->sweeps;
  if (tool->root) {
    summary_t summary = summarise(o, &chain, &show);
    if (tool->json) {
      qk_tool_print(tool, summary_json(o, &chain, &summary, stopped));
    } else {
      summary_text(&chain, &summary);
    }
  }
  tool->json = false; /* it has had its object */
  if (stopped)
    status = qk_fail(err, QK_SHUTTING_DOWN,
                     "interrupted after sweep %" PRId64 " of %" PRId64
                     ", which is saved: the same command with --resume goes on",
                     chain.state.sweep, o->sweeps);
out:
  qk_chain_end(&chain);
  return status;
}

int qk_tool_generate(int argc, char **argv) {
  static const struct argp argp = {
      .options = rows,
      .parser = parse,
      .doc = "Make gauge configurations of the quenched SU(3) theory by pseudo-heatbath and "
             "overrelaxation. The links depend on the options alone, not on backend, ranks or "
             "interruptions.\v"
             "SIGINT and SIGTERM end the chain after the sweep that is under way and save it (exit "
             "status 75); the same command with --resume goes on."};
  options_t o = {.params = {.evolve = {.or_per_hb = 4, .seed = 1}, .start = "cold"},
                 .thermalise = -1};
  qk_tool_t tool;
  qk_err_t err = {0};
  qk_tool_parse(&argp, argc, argv, &o);
  qk_status_t status = qk_tool_begin(&tool, "quark-gauge", &o.tool, argc, argv, &err);
  if (status == QK_OK) status = generate(&tool, &o, &err);
  return qk_tool_end(&tool, status, &err);
}
