/* The daemon, and a setup of it for an operator: one that is there, or a private one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "grid.h"
#include "links.h"
#include "operator.h"
#include "say.h"
#include "setups.h"

enum { KNOWN = 8, NAME = 72 };

/* Which setup an operator has, as far as this process knows. */
typedef struct known {
  char name[NAME]; /* "": not known, or lost */
  bool loaded;     /* by this process */
  bool lost;       /* what was found is not for this user, or is gone: it is to be loaded */
  double mass, csw, plane[6], hop[4];
  double complex boundary[4];
  uint64_t digest, term, used; /* term: digest of a clover term; 0: none */
} known_t;

static struct {
  quark_connection_t *conn;
  known_t known[KNOWN];
  uint64_t uses;
} daemon_state;

static void nap(double seconds) {
  const struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
  nanosleep(&t, NULL);
}

void qk_quda_again(const char *what, const quark_error_t *err, double begun) {
  static double told;
  const double patience = qk_quda_number_setting("WAIT", 0, 1e9, 600), now = qk_quda_now();
  if (!err->retryable || now - begun > patience) qk_quda_fail(what, err);
  if (now - told > 60 || now - begun < 1e-3) {
    qk_quda_note("%s: %s; waiting", what, err->text[0] ? err->text : quark_code_text(err->code));
    told = now;
  }
  const double pause = err->retry_after_ms ? 1e-3 * err->retry_after_ms : 0.5;
  nap(pause < 0.05 ? 0.05 : pause > 10 ? 10 : pause);
}

/* ---- the connection ---- */

static const char *environment(const char *name) {
  const char *value = getenv(name);
  return value && value[0] ? value : NULL;
}

/* An endpoint, or the file that quarkd wrote it to. */
static const char *endpoint(char text[512]) {
  const char *given = environment("QUARKD_ENDPOINT");
  if (!given) return "tcp://127.0.0.1:5555";
  if (strstr(given, "://")) return given;
  FILE *f = fopen(given, "r");
  if (!f || fscanf(f, "%511s", text) != 1)
    qk_quda_refuse("QUARKD_ENDPOINT = %.200s: neither an endpoint such as tcp://HOST:PORT nor a "
                   "file with one",
                   given);
  fclose(f);
  return text;
}

static void program(char name[24]) {
  FILE *f = fopen("/proc/self/comm", "r");
  if (!f || fscanf(f, "%16[A-Za-z0-9_.+]", name) != 1) snprintf(name, 24, "program");
  if (f) fclose(f);
}

static quark_connection_t *open_connection(const char *setup) {
  quark_options_t options;
  quark_connection_t *conn;
  quark_error_t err;
  char name[24], line[64], text[512];
  program(name);
  snprintf(line, sizeof line, "libquda/%s", name);
  quark_options_init(&options);
  options.program = line;
  options.server_key = environment("QUARKD_SERVER_KEY");
  options.key_file = environment("QUARKD_KEY");
  options.setup = setup;
  const double patience = qk_quda_number_setting("WAIT", 0, 1e9, 600);
  if (patience < 10) options.timeout_ms = (uint32_t)(1e3 * fmax(patience, 0.1));
  for (double begun = qk_quda_now();;) {
    if (quark_connect(endpoint(text), &options, &conn, &err) == QUARK_OK) return conn;
    if (err.code == QUARK_TIMEOUT) qk_quda_fail("no daemon (QUARKD_ENDPOINT)", &err);
    qk_quda_again("connecting to the daemon", &err, begun);
  }
}

quark_connection_t *qk_quda_daemon(void) {
  if (!daemon_state.conn) {
    daemon_state.conn = open_connection(NULL);
    qk_quda_at_end(qk_quda_disconnect);
  }
  return daemon_state.conn;
}

void qk_quda_disconnect(void) {
  quark_close(daemon_state.conn);
  memset(&daemon_state, 0, sizeof daemon_state);
}

/* ---- what the daemon has ---- */

/* What a setup is, asked through a connection of its own, as reports go by that. */
static bool look_at(const char *name, const qk_quda_operator_t *op, char why[256]) {
  quark_report_t *report = qk_quda_alloc(sizeof *report);
  quark_error_t err;
  quark_connection_t *conn = open_connection(name);
  const bool seen = quark_status(conn, report, &err) == QUARK_OK;
  quark_close(conn);
  if (!seen)
    snprintf(why, 256, "%.200s", err.text);
  else if (report->setup.digest != op->links->digest)
    snprintf(why, 256, "its links have the digest %016llx, not %016llx",
             (unsigned long long)report->setup.digest, (unsigned long long)op->links->digest);
  else
    qk_quda_operator_compare(op, report, why);
  free(report);
  return why[0] == '\0';
}

static uint32_t list(quark_setup_t **setups) {
  uint32_t n = 0;
  quark_error_t err;
  *setups = qk_quda_alloc(QUARK_SETUPS * sizeof **setups);
  for (double begun = qk_quda_now(); quark_setups(qk_quda_daemon(), *setups, &n, &err) != QUARK_OK;)
    qk_quda_again("asking for setups", &err, begun);
  return n;
}

/* The name of a private setup of this operator: it says which one, so that whoever loads a setup of
 * this name loads the same. */
static void name_of(const qk_quda_operator_t *op, char name[NAME]) {
  char who[24], text[1024];
  qk_quda_wording_t w;
  uint64_t hash = 0xcbf29ce484222325U; /* FNV-1a */
  qk_quda_operator_write(op, 0, &w);
  int n =
      snprintf(text, sizeof text, "%016llx %016llx %s %s", (unsigned long long)op->links->digest,
               (unsigned long long)(op->term ? op->term_digest : 0), w.action, w.boundary);
  for (uint32_t k = 0; k < w.n && n > 0 && (size_t)n < sizeof text; k++)
    n += snprintf(text + n, sizeof text - (size_t)n, " %s=%s", w.p[k].key, w.p[k].value);
  for (const char *c = text; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3U;
  program(who);
  snprintf(name, NAME, "quda-%s-%016llx", who, (unsigned long long)hash);
}

/* A setup that is ready, or will be, of this operator: a public one, or `own`, its private one. */
static bool find(const qk_quda_operator_t *op, const char *own, char name[NAME]) {
  quark_setup_t *setup;
  const uint32_t n = list(&setup);
  bool found = false;
  for (uint32_t k = 0; k < n && !found; k++) {
    char why[256] = "";
    const bool is_own = setup[k].owner[0] && strcmp(setup[k].name, own) == 0;
    if (setup[k].state == QUARK_FAILED || setup[k].state == QUARK_DRAINING) continue;
    if (setup[k].digest != op->links->digest || (setup[k].owner[0] && !is_own)) continue;
    found = is_own || look_at(setup[k].name, op, why);
    if (found)
      snprintf(name, NAME, "%s", setup[k].name);
    else
      qk_quda_log("setup %s is another: %s", setup[k].name, why);
  }
  free(setup);
  return found;
}

/* Waits until it is ready; false: it is gone, or has ended. */
static bool wait_ready(const char *name) {
  for (double begun = qk_quda_now(), told = begun;; nap(qk_quda_now() - begun < 5 ? 0.05 : 0.5)) {
    quark_setup_t *setup;
    const uint32_t n = list(&setup);
    uint32_t k = 0;
    while (k < n && strcmp(setup[k].name, name) != 0) k++;
    const bool there = k < n && setup[k].state != QUARK_DRAINING,
               ready = there && setup[k].state == QUARK_READY;
    if (there && setup[k].state == QUARK_FAILED)
      qk_quda_refuse("setup %s: %s: %s", name, quark_code_name(setup[k].code), setup[k].text);
    if (there && !ready && qk_quda_now() - told > 60) {
      qk_quda_note("setup %s: %s %s; waiting", name, quark_state_name(setup[k].state),
                   setup[k].phase);
      told = qk_quda_now();
    }
    free(setup);
    if (ready || !there) return ready;
    if (qk_quda_now() - begun > qk_quda_number_setting("WAIT", 0, 1e9, 600))
      qk_quda_refuse("setup %s is not ready after QUARK_QUDA_WAIT = %g seconds", name,
                     qk_quda_number_setting("WAIT", 0, 1e9, 600));
  }
}

/* ---- a private setup ---- */

/* A field of doubles is with the daemon, sent in single precision if that holds it; the number of
 * the request. */
static uint64_t send_field(const qk_quda_links_t *links, quark_field_kind_t kind,
                           const double *field, bool single, uint64_t digest) {
  enum { REALS = 72, STEP = 4096 }; /* a site; sites that go together */
  const char *what = kind == QUARK_FIELD_GAUGE ? "links" : "a clover term";
  quark_field_params_t params;
  quark_error_t err;
  quark_result_t result;
  uint64_t request, bytes;
  bool present;
  size_t sites = 1;
  quark_field_params_init(&params);
  for (int mu = 0; mu < 4; mu++) {
    params.dims[mu] = (uint32_t)links->dims[mu];
    sites *= params.dims[mu];
  }
  params.kind = kind;
  params.dtype = single ? QUARK_F32 : QUARK_F64;
  params.has_digest = true;
  params.digest = digest;
  for (double begun = qk_quda_now();
       quark_field_open(qk_quda_daemon(), &params, &request, &bytes, &present, &err) != QUARK_OK;)
    qk_quda_again("opening a field", &err, begun);
  quark_code_t code = QUARK_OK;
  float *room = single && !present ? qk_quda_alloc(STEP * REALS * sizeof *room) : NULL;
  for (size_t n = 0; !present && n < sites && !code; n += STEP) {
    const double *from = field + n * REALS;
    const size_t reals = (sites - n < STEP ? sites - n : STEP) * REALS;
    for (size_t k = 0; single && k < reals; k++) room[k] = (float)from[k];
    code = quark_upload(qk_quda_daemon(), request, single ? (const void *)room : from,
                        reals * (single ? sizeof *room : sizeof *from), &err);
  }
  free(room);
  if (!code) code = quark_wait(qk_quda_daemon(), request, 0, -1, &result, &err);
  if (code) qk_quda_fail("sending a field", &err);
  if (result.status != QUARK_OK)
    qk_quda_refuse("%s: %s: %s", what, quark_code_name(result.status), result.text);
  qk_quda_log("%s %016llx: %s", what, (unsigned long long)digest,
              present ? "the daemon has it" : "sent");
  return request;
}

static void load(const qk_quda_operator_t *op, const char *name) {
  const qk_quda_links_t *u = op->links;
  char gauge[48];
  qk_quda_wording_t words;
  quark_load_t load;
  quark_error_t err;
  const uint64_t field = send_field(u, QUARK_FIELD_GAUGE, u->u, u->single, u->digest),
                 term = op->term
                            ? send_field(u, QUARK_FIELD_CLOVER, op->term, false, op->term_digest)
                            : 0;
  qk_quda_operator_write(op, term, &words);
  snprintf(gauge, sizeof gauge, "field:%llu", (unsigned long long)field);
  quark_load_init(&load);
  load.name = name;
  load.gauge = gauge;
  load.boundary = words.boundary;
  load.action = words.action;
  load.parameter = words.p;
  load.nparameter = words.n;
  qk_quda_log("loading setup %s: %s", name, load.action);
  for (double begun = qk_quda_now(); quark_load(qk_quda_daemon(), &load, &err) != QUARK_OK;)
    qk_quda_again("loading a setup", &err, begun);
  if (!wait_ready(name)) qk_quda_refuse("setup %s went away while it was loaded", name);
  quark_release(qk_quda_daemon(), field, NULL); /* the setup holds both */
  if (op->term) quark_release(qk_quda_daemon(), term, NULL);
}

/* ---- which setup ---- */

static bool same_but_links(const known_t *k, const qk_quda_operator_t *op) {
  return k->mass == op->mass && k->csw == op->csw && !k->term == !op->term &&
         memcmp(k->plane, op->plane, sizeof k->plane) == 0 &&
         memcmp(k->hop, op->links->hop, sizeof k->hop) == 0 &&
         memcmp(k->boundary, op->links->boundary, sizeof k->boundary) == 0;
}

/* The entry of this operator; else a new one, in place of the one unused for longest. */
static known_t *entry(const qk_quda_operator_t *op) {
  known_t *oldest = &daemon_state.known[0];
  for (int k = 0; k < KNOWN; k++) {
    known_t *e = &daemon_state.known[k];
    if (e->used && same_but_links(e, op)) return e;
    if (e->used < oldest->used) oldest = e;
  }
  *oldest = (known_t){.mass = op->mass, .csw = op->csw, .term = op->term ? op->term_digest : 0};
  memcpy(oldest->plane, op->plane, sizeof oldest->plane);
  memcpy(oldest->hop, op->links->hop, sizeof oldest->hop);
  memcpy(oldest->boundary, op->links->boundary, sizeof oldest->boundary);
  return oldest;
}

void qk_quda_setup_lost(const qk_quda_operator_t *op) {
  known_t *e = entry(op);
  e->name[0] = '\0';
  e->loaded = false;
  e->lost = true;
}

bool qk_quda_setup_holds(const qk_quda_operator_t *op) {
  char own[NAME], why[256] = "";
  const known_t *e = entry(op);
  name_of(op, own);
  if (strcmp(e->name, own) == 0 || look_at(e->name, op, why)) return true;
  qk_quda_log("setup %s is another now: %s", e->name, why);
  return false;
}

const char *qk_quda_setup(const qk_quda_operator_t *op) {
  const char *wanted = qk_quda_setting("SETUP");
  known_t *e = entry(op);
  char why[256] = "", own[NAME];
  e->used = ++daemon_state.uses;
  const uint64_t term = op->term ? op->term_digest : 0;
  if (e->name[0] && e->digest == op->links->digest && e->term == term) return e->name;
  /* that of the last configuration makes room */
  if (e->name[0] && e->loaded) quark_drop(qk_quda_daemon(), e->name, false, NULL);
  e->digest = op->links->digest;
  e->term = term;
  e->loaded = false;
  name_of(op, own);
  if (wanted) {
    if (!look_at(wanted, op, why)) qk_quda_refuse("QUARK_QUDA_SETUP = %s: %s", wanted, why);
    snprintf(e->name, sizeof e->name, "%s", wanted);
  } else if (e->lost || !find(op, own, e->name)) {
    snprintf(e->name, sizeof e->name, "%s", own);
    load(op, e->name);
    e->loaded = true;
  }
  e->lost = false;
  if (!wait_ready(e->name)) qk_quda_refuse("setup %s went away", e->name);
  qk_quda_log("setup %s", e->name);
  return e->name;
}
