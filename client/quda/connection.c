/* The connection to the daemon. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/grid.h"
#include "base/say.h"
#include "connection.h"

enum { ENDPOINT = 512, KEY = 40 };

void qk_quda_nap(double seconds) {
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
  qk_quda_nap(pause < 0.05 ? 0.05 : pause > 10 ? 10 : pause);
}

static const char *environment(const char *name) {
  const char *value = getenv(name);
  return value && value[0] ? value : NULL;
}

/* An endpoint, or the file that quarkd wrote it to. */
static const char *endpoint(char text[ENDPOINT]) {
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

void qk_quda_program(char name[24]) {
  FILE *f = fopen("/proc/self/comm", "r");
  if (!f || fscanf(f, "%16[A-Za-z0-9_.+]", name) != 1) snprintf(name, 24, "program");
  if (f) fclose(f);
}

/* The daemon's public key, or what stands as "key" in the file that keygen wrote. NULL: not set. */
static const char *server_key(char key[KEY + 1]) {
  const char *given = environment("QUARKD_SERVER_KEY");
  if (!given || strlen(given) == KEY) return given;
  FILE *f = fopen(given, "r");
  char line[256];
  key[0] = '\0';
  while (f && !key[0] && fgets(line, sizeof line, f))
    if (sscanf(line, " key = %40s", key) != 1) key[0] = '\0';
  if (f) fclose(f);
  if (strlen(key) != KEY)
    qk_quda_refuse("QUARKD_SERVER_KEY = %.200s: neither %d characters nor a file NAME.pub of "
                   "quarkctl keygen",
                   given, KEY);
  return key;
}

static void describe(quark_options_t *options, char line[64], const char *setup) {
  static char key[KEY + 1];
  char name[24];
  qk_quda_program(name);
  snprintf(line, 64, "libquda/%s", name);
  quark_options_init(options);
  options->program = line;
  options->server_key = server_key(key);
  options->key_file = environment("QUARKD_KEY");
  options->setup = setup;
  const double patience = qk_quda_number_setting("WAIT", 0, 1e9, 600);
  if (patience < 10) options->timeout_ms = (uint32_t)(1e3 * fmax(patience, 0.1));
}

quark_connection_t *qk_quda_connect(const char *setup) {
  quark_options_t options;
  quark_connection_t *conn;
  quark_error_t err;
  char line[64], text[ENDPOINT];
  describe(&options, line, setup);
  for (double begun = qk_quda_now();;) {
    if (quark_connect(endpoint(text), &options, &conn, &err) == QUARK_OK) return conn;
    if (err.code == QUARK_TIMEOUT) qk_quda_fail("no daemon (QUARKD_ENDPOINT)", &err);
    qk_quda_again("connecting to the daemon", &err, begun);
  }
}

static quark_connection_t *own;

quark_connection_t *qk_quda_daemon(void) {
  if (!own) {
    own = qk_quda_connect(NULL);
    qk_quda_at_end(qk_quda_disconnect);
  }
  return own;
}

/* ---- ranks that have a connection each ---- */

enum { CONNECTIONS = 256 };
static enum { NOT_ASKED, GATHER, JOIN } bricks;

/* False: this rank does not reach rank 0's daemon. */
static bool connect_there(const char *where, quark_error_t *err) {
  quark_options_t options;
  char line[64];
  describe(&options, line, NULL);
  const double begun = qk_quda_now(), most = 1e-3 * options.timeout_ms;
  while (quark_connect(where, &options, &own, err) != QUARK_OK) {
    if (!err->retryable || err->code == QUARK_TIMEOUT || qk_quda_now() - begun > most) return false;
    qk_quda_nap(0.1);
  }
  qk_quda_at_end(qk_quda_disconnect);
  return true;
}

/* Whether all ranks have connections. */
static bool connect_all(void) {
  char where[ENDPOINT] = "";
  quark_error_t err;
  if (qk_quda_rank() == 0) {
    char text[ENDPOINT];
    snprintf(where, sizeof where, "%s", endpoint(text));
    qk_quda_daemon();
  }
  qk_quda_broadcast(where, sizeof where);
  double missing = 0; /* the last rank without one */
  if (qk_quda_rank() != 0 && !connect_there(where, &err)) missing = qk_quda_rank();
  qk_quda_max(&missing, 1);
  if (missing > 0)
    qk_quda_note("rank %d has no connection to %s; bricks go through rank 0", (int)missing, where);
  return missing == 0;
}

bool qk_quda_joins(void) {
  if (bricks == NOT_ASKED) {
    const bool wanted = qk_quda_number_setting("RANKS", 0, 1, 1) != 0;
    const int ranks = qk_quda_ranks();
    bricks = wanted && ranks > 1 && ranks <= CONNECTIONS && connect_all() ? JOIN : GATHER;
    if (ranks > 1)
      qk_quda_log("bricks go %s", bricks == JOIN ? "from each rank" : "through rank 0");
  }
  return bricks == JOIN;
}

void qk_quda_joins_not(void) {
  if (bricks == JOIN) qk_quda_note("the daemon is too old for parts: bricks go through rank 0");
  bricks = GATHER;
}

void qk_quda_disconnect(void) {
  quark_close(own);
  own = NULL;
  bricks = NOT_ASKED;
}
