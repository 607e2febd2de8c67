#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/ctl.h"
#include "proto/limits.h"

enum { READY_SECONDS = 300, SEEK_SECONDS = 30, LOOK_MS = 200 };

static void print_sought(void *arg, const char *text) {
  (void)arg;
  ctl_complain("%s", text);
}

static int reach(const ctl_common_t *common, quark_options_t o, quark_connection_t **conn) {
  quark_error_t err;
  char server_key[QK_KEY_TEXT];
  if (common->server_key && !ctl_server_key(common->server_key, server_key)) return EXIT_CONFIG;
  o.server_key = common->server_key ? server_key : NULL;
  o.key_file = common->key;
  if (!isnan(common->timeout)) {
    o.timeout_ms = (uint32_t)fmin(common->timeout * 1000, 4e9);
    o.reconnect_ms = (uint32_t)fmin(fmax(common->timeout, SEEK_SECONDS) * 1000, 4e9);
  }
  o.program = "quarkctl";
  o.setup = common->setup;
  ctl_where_t where;
  const int unknown = ctl_where(common->endpoint, &where);
  if (unknown) return unknown;
  const quark_code_t code = quark_connect(where.endpoint, &o, conn, &err);
  if (code == QUARK_OK) return 0;
  ctl_fail(&err);
  if (code == QUARK_TIMEOUT) ctl_where_silent(&where);
  return code == QUARK_BAD_ARGUMENT || code == QUARK_DENIED ? EXIT_CONFIG : ctl_exit_code(code);
}

int ctl_connect(const ctl_common_t *common, const uint8_t *client, bool keep_session,
                quark_connection_t **conn) {
  quark_options_t o;
  quark_options_init(&o);
  o.client_id = client;
  o.keep_session = keep_session;
  o.sought = print_sought;
  return reach(common, o, conn);
}

int ctl_connect_as(const ctl_common_t *common, const char *user, quark_connection_t **conn) {
  quark_options_t o;
  quark_options_init(&o);
  o.user = user;
  return reach(common, o, conn);
}

static void print_not_ready(const quark_report_t *r) {
  if (*r->phase)
    ctl_complain("the daemon is not ready: %s (%s, %llu of %llu)", quark_state_name(r->state),
                 r->phase, (unsigned long long)r->phase_done, (unsigned long long)r->phase_total);
  else
    ctl_complain("the daemon is not ready: %s %s", quark_state_name(r->state),
                 r->engine.last_error);
}

/* A setup that could not be loaded does not become ready by waiting. */
static int explain_failed(quark_connection_t *conn, const quark_report_t *r) {
  quark_setup_t setup[QK_SETUPS_MAX];
  uint32_t count;
  quark_error_t err;
  if (quark_setup_list(conn, setup, QK_SETUPS_MAX, &count, &err) != QUARK_OK) return ctl_fail(&err);
  for (uint32_t i = 0; i < count && i < QK_SETUPS_MAX; i++) {
    const quark_setup_t *s = &setup[i];
    if (s->state != QUARK_FAILED || strcmp(s->name, r->setup.name) != 0) continue;
    ctl_complain("setup %s could not be loaded: %s (%s)", s->name, s->text,
                 quark_code_name(s->code));
    return s->code == QUARK_OK ? EXIT_DATA : ctl_exit_code(s->code);
  }
  print_not_ready(r);
  return EXIT_AGAIN;
}

/* Rewrites one line of the terminal. */
static void show_waiting(const quark_report_t *r) {
  fprintf(stderr, "\r\033[K%s", quark_state_name(r->state));
  if (*r->phase && r->phase_total > 0)
    fprintf(stderr, ": %s %.0f %%", r->phase,
            100.0 * (double)r->phase_done / (double)r->phase_total);
  fflush(stderr);
}

int ctl_report(const ctl_common_t *common, quark_connection_t *conn, bool any,
               quark_report_t *report) {
  const double patience = isnan(common->timeout) ? READY_SECONDS : common->timeout;
  const bool terminal = isatty(STDERR_FILENO) == 1;
  for (double waited = 0;; waited += LOOK_MS * 1e-3) {
    quark_error_t err;
    const quark_code_t code = quark_status(conn, report, &err);
    const bool waits = code == QUARK_OK && !any && report->state != QUARK_READY;
    if (terminal && waits) show_waiting(report);
    if (terminal && !waits && waited > 0) fputs("\r\033[K", stderr);
    if (code != QUARK_OK) return ctl_fail(&err);
    if (!waits) return 0;
    if (report->state == QUARK_FAILED) return explain_failed(conn, report);
    if (report->state == QUARK_DRAINING || waited >= patience || ctl_interrupted()) {
      print_not_ready(report);
      return EXIT_AGAIN;
    }
    const struct timespec t = {.tv_nsec = LOOK_MS * 1000000};
    nanosleep(&t, NULL);
  }
}
