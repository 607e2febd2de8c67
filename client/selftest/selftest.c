#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/ctl.h"
#include "client/cli/solving.h"
#include "client/selftest/checks.h"

typedef struct options {
  ctl_selftest_options_t test;
  bool json;
} options_t;

static const struct {
  const char *name;
  void (*look)(const ctl_selftest_options_t *, ctl_checks_t *);
} layers[] = {{"memory", ctl_check_memory},
              {"disk", ctl_check_disk},
              {"network", ctl_check_network},
              {"keys", ctl_check_keys},
              {"engine", ctl_check_engine}};
enum { LAYERS = sizeof layers / sizeof *layers };

/* Whether the list, of words between commas, has the word. */
static bool is_listed(const char *list, const char *word, size_t n) {
  for (const char *p = list; p; p = strchr(p, ',')) {
    p += *p == ',';
    if (strcspn(p, ",") == n && strncmp(p, word, n) == 0) return true;
  }
  return false;
}

static void take_only(const struct argp_state *state, const char *name, char *text, void *values) {
  options_t *o = values;
  for (const char *p = text; p; p = strchr(p, ',')) {
    p += *p == ',' && p != text;
    bool known = false;
    for (int i = 0; i < LAYERS; i++) known |= is_listed(layers[i].name, p, strcspn(p, ","));
    if (!known)
      argp_error(state, "--%s=%s: some of memory, disk, network, keys and engine, with commas",
                 name, text);
  }
  o->test.only = text;
}

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t rows[] = {
    {"quarkd", QK_OPTION_TEXT, AT(test.quarkd), "PATH",
     .help = "quarkd program (the one installed with this program)"},
    {"engine", QK_OPTION_TEXT, AT(test.engine), "PATH",
     .help = "quark-engine program (the one installed with quarkd)"},
    {"state", QK_OPTION_TEXT, AT(test.state), "DIR",
     .help = "folder on the disk that is to hold quarkd's state (that of temporary files)"},
    {"only", QK_OPTION_TAKEN, .form = "LIST", .take = take_only,
     .help = "some of memory,disk,network,keys,engine (all)"},
    {"no-ranks", QK_OPTION_FLAG, AT(test.no_ranks), .help = "do not start an engine of two ranks"},
    {"json", QK_OPTION_FLAG, AT(json), .help = "print one JSON object on stdout"},
    {0},
};

static const qk_option_table_t table = {.row = rows, .group = 1};

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at) {
  (void)st, (void)kind, (void)at;
  return remove(path);
}

/* It stays if there is a log in it that can tell why something failed. */
static void end_folder(const char *folder, bool log_tells) {
  char log[QK_PATH_MAX + 16];
  snprintf(log, sizeof log, "%s/quarkd.log", folder);
  if (log_tells && access(log, F_OK) == 0)
    ctl_complain("the log of quarkd: %s", log);
  else
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static int tell(ctl_checks_t *c, double seconds) {
  static const char *const ends[] = {"all is well", "quarkd works here; see the warnings",
                                     "quarkd does not work here until what FAILED is put right"};
  const int code = c->worst == CTL_FAILED ? EXIT_UNAVAILABLE : 0;
  if (!c->json) {
    printf("%s (%.1f s)\n", ends[c->worst], seconds);
    json_decref(c->list);
    return code;
  }
  const int printed =
      ctl_print(json_pack("{s:s, s:s, s:f, s:o}", "verdict", ctl_verdict_word(c->worst), "version",
                          quark_version(), "seconds", seconds, "checks", c->list));
  return printed ? printed : code;
}

int ctl_selftest(int argc, char **argv) {
  static const char about[] =
      "Looks whether quarkd works on this machine, layer by layer: a device that computes, its "
      "kernels against a reference, ranks, memory, shared memory, disk, network, keys. It starts a "
      "quarkd of its own, on a lattice of 8x8x8x8, and needs no other.\v"
      "Exit codes: 0 all works, perhaps with warnings; 69 something FAILED.";
  const double begun = ctl_seconds();
  const char *where = getenv("TMPDIR");
  char folder[QK_PATH_MAX];
  options_t o = {.json = false};
  qk_options_parse(&table, NULL, about, argc, argv, &o);
  ctl_checks_t checks = {.json = o.json, .list = json_array()};
  if (!where || !*where) where = "/tmp";
  const int n = snprintf(folder, sizeof folder, "%s/quark-selftest-XXXXXX", where);
  if (n >= (int)sizeof folder || !mkdtemp(folder)) {
    ctl_complain("no folder for temporary files in %s: %s", where, strerror(errno));
    json_decref(checks.list);
    return EXIT_UNAVAILABLE;
  }
  o.test.folder = folder;
  if (!o.test.state) o.test.state = where;
  ctl_catch_signals();
  setenv("OMP_WAIT_POLICY", "passive", 0); /* of the engine: the machine may be busy */
  for (int i = 0; i < LAYERS && !ctl_interrupted(); i++)
    if (!o.test.only || is_listed(o.test.only, layers[i].name, strlen(layers[i].name)))
      layers[i].look(&o.test, &checks);
  end_folder(folder, checks.log_tells);
  if (!ctl_interrupted()) return tell(&checks, ctl_seconds() - begun);
  json_decref(checks.list);
  ctl_complain("interrupted");
  return EXIT_AGAIN;
}
