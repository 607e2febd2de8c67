/* The daemon, and a setup of it for an operator: one that is there, or a private one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/say.h"
#include "connection.h"
#include "fields.h"
#include "links.h"
#include "operator.h"
#include "setups.h"

enum { KNOWN = 8, NAME = 72 };

/* Which setup an operator has, as far as this process knows. */
typedef struct known {
  char name[NAME]; /* "": not known, or lost */
  bool loaded;     /* by this process */
  bool lost;       /* what was found is not for this user, or is gone: it is to be loaded */
  double mass, csw, mu, plane[6], hop[4];
  double complex boundary[4];
  uint64_t digest, term, used; /* term: digest of a clover term; 0: none */
} known_t;

static struct {
  known_t known[KNOWN];
  uint64_t uses;
} state;

void qk_quda_setups_forget(void) {
  memset(&state, 0, sizeof state);
}

/* ---- what the daemon has ---- */

/* What a setup is, asked through a connection of its own, as reports go by that. */
static bool look_at(const char *name, const qk_quda_operator_t *op, char why[256]) {
  quark_report_t *report = qk_quda_alloc(sizeof *report);
  quark_error_t err;
  quark_connection_t *conn = qk_quda_connect(name);
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
  qk_quda_program(who);
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
  for (double begun = qk_quda_now(), told = begun;;
       qk_quda_nap(qk_quda_now() - begun < 5 ? 0.05 : 0.5)) {
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

static void load(const qk_quda_operator_t *op, const char *name) {
  char gauge[48];
  qk_quda_wording_t words;
  quark_load_t load;
  quark_error_t err;
  const uint64_t field = qk_quda_field_send(op, QUARK_FIELD_GAUGE),
                 term = op->term ? qk_quda_field_send(op, QUARK_FIELD_CLOVER) : 0;
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
  return k->mass == op->mass && k->csw == op->csw && k->mu == fabs(op->mu) &&
         !k->term == !op->term && memcmp(k->plane, op->plane, sizeof k->plane) == 0 &&
         memcmp(k->hop, op->links->hop, sizeof k->hop) == 0 &&
         memcmp(k->boundary, op->links->boundary, sizeof k->boundary) == 0;
}

/* The entry of this operator; else a new one, in place of the one unused for longest. */
static known_t *entry(const qk_quda_operator_t *op) {
  known_t *oldest = &state.known[0];
  for (int k = 0; k < KNOWN; k++) {
    known_t *e = &state.known[k];
    if (e->used && same_but_links(e, op)) return e;
    if (e->used < oldest->used) oldest = e;
  }
  *oldest = (known_t){
      .mass = op->mass, .csw = op->csw, .mu = fabs(op->mu), .term = op->term ? op->term_digest : 0};
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
  e->used = ++state.uses;
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
