#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/quarkctl/ctl.h"

enum { REACH_SECONDS = 10, READY_SECONDS = 300, LOOK_MS = 200 };

/* ---- options ---- */

enum { OPT_ENDPOINT = 0x100, OPT_TIMEOUT, OPT_JSON, OPT_SERVER_KEY, OPT_KEY, OPT_SETUP };

static const struct argp_option options[] = {
    {"endpoint", OPT_ENDPOINT, "ENDPOINT", 0,
     "of the daemon (QUARKD_ENDPOINT, or tcp://127.0.0.1:5555)", 90},
    {"server-key", OPT_SERVER_KEY, "KEY", 0,
     "public key of a daemon that has one, or the file of it (QUARKD_SERVER_KEY)", 90},
    {"key", OPT_KEY, "FILE", 0, "own secret key, made by keygen (QUARKD_KEY)", 90},
    {"timeout", OPT_TIMEOUT, "SECONDS", 0,
     "patience with a daemon that is absent (default 10), not ready or full (default 300)", 90},
    {"setup", OPT_SETUP, "NAME", 0, "which of the daemon's setups (its default)", 90},
    {"json", OPT_JSON, 0, 0, "print one JSON object", 90},
    {0},
};

static error_t parse_common(int key, char *arg, struct argp_state *state) {
  ctl_common_t *common = state->input;
  switch (key) {
  case OPT_ENDPOINT:
    common->endpoint = arg;
    common->has_endpoint = true;
    return 0;
  case OPT_SERVER_KEY:
    common->server_key = arg;
    return 0;
  case OPT_KEY:
    common->key = arg;
    return 0;
  case OPT_TIMEOUT:
    common->timeout = ctl_real(state, "timeout", arg, 0, 1e6);
    return 0;
  case OPT_SETUP:
    common->setup = arg;
    return 0;
  case OPT_JSON:
    common->json = true;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp ctl_common_argp = {.options = options, .parser = parse_common};

/* NULL where it is not set, or empty. */
static const char *environment(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

void ctl_common_init(ctl_common_t *common) {
  const char *endpoint = environment("QUARKD_ENDPOINT");
  *common = (ctl_common_t){.endpoint = endpoint ? endpoint : "tcp://127.0.0.1:5555",
                           .server_key = environment("QUARKD_SERVER_KEY"),
                           .key = environment("QUARKD_KEY"),
                           .timeout = NAN};
}

void ctl_parse(const struct argp *argp, int argc, char **argv, void *input) {
  argp_err_exit_status = EXIT_USAGE;
  const error_t failed = argp_parse(argp, argc, argv, 0, NULL, input);
  if (failed) {
    ctl_complain("%s", strerror(failed));
    exit(EXIT_USAGE);
  }
}

double ctl_real(const struct argp_state *state, const char *name, const char *text, double min,
                double max) {
  char *end;
  const double x = strtod(text, &end);
  if (end == text || *end || !(x >= min && x <= max))
    argp_error(state, "--%s=%s: must be a number from %g to %g", name, text, min, max);
  return x;
}

uint64_t ctl_integer(const struct argp_state *state, const char *name, const char *text,
                     uint64_t min, uint64_t max) {
  char *end;
  errno = 0;
  const unsigned long long x = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || errno || x < min || x > max)
    argp_error(state, "--%s=%s: must be an integer from %llu to %llu", name, text,
               (unsigned long long)min, (unsigned long long)max);
  return x;
}

void ctl_client(const struct argp_state *state, const char *text,
                uint8_t id[QUARK_CLIENT_ID_BYTES]) {
  const size_t digits = 2 * QUARK_CLIENT_ID_BYTES;
  if (strlen(text) != digits || strspn(text, "0123456789abcdefABCDEF") != digits)
    argp_error(state, "--client=%s: must be %zu hexadecimal digits", text, digits);
  for (int i = 0; i < QUARK_CLIENT_ID_BYTES; i++) {
    const char pair[3] = {text[2 * i], text[2 * i + 1], 0};
    id[i] = (uint8_t)strtoul(pair, NULL, 16);
  }
}

/* ---- errors and output ---- */

void ctl_complain(const char *fmt, ...) {
  va_list ap;
  fputs("quarkctl: ", stderr);
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
}

int ctl_exit_code(quark_code_t code) {
  if (code == QUARK_OK) return 0;
  if (code == QUARK_TIMEOUT) return EXIT_UNAVAILABLE;
  return quark_code_retryable(code) ? EXIT_AGAIN : EXIT_DATA;
}

int ctl_fail(const quark_error_t *err) {
  ctl_complain("%s (%s)", err->text, quark_code_name(err->code));
  return ctl_exit_code(err->code);
}

int ctl_fail_file(const qk_err_t *err) {
  ctl_complain("%s (%s)", err->text, qk_status_name(err->code));
  return ctl_exit_code((quark_code_t)err->code);
}

json_t *ctl_number(double x) {
  return isfinite(x) ? json_real(x) : json_null();
}

int ctl_print(json_t *object) {
  const int failed = json_dumpf(object, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) ||
                     putchar('\n') == EOF || fflush(stdout) != 0;
  json_decref(object);
  if (!failed) return 0;
  ctl_complain("cannot write to stdout: %s", strerror(errno));
  return EXIT_DATA;
}

static volatile sig_atomic_t interrupted;

static void note_signal(int number) {
  (void)number;
  interrupted = 1;
}

void ctl_catch_signals(void) {
  struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

bool ctl_interrupted(void) {
  return interrupted != 0;
}

/* ---- the daemon ---- */

static int reach(const ctl_common_t *common, quark_options_t o, quark_connection_t **conn) {
  quark_error_t err;
  char server_key[QK_KEY_TEXT];
  if (common->server_key && !ctl_server_key(common->server_key, server_key)) return EXIT_CONFIG;
  o.server_key = common->server_key ? server_key : NULL;
  o.key_file = common->key;
  if (!isnan(common->timeout)) o.timeout_ms = (uint32_t)fmin(common->timeout * 1000, 4e9);
  o.program = "quarkctl";
  o.setup = common->setup;
  const quark_code_t code = quark_connect(common->endpoint, &o, conn, &err);
  if (code == QUARK_OK) return 0;
  ctl_fail(&err);
  return code == QUARK_BAD_ARGUMENT || code == QUARK_DENIED ? EXIT_CONFIG : ctl_exit_code(code);
}

int ctl_connect(const ctl_common_t *common, const uint8_t *client, bool keep_session,
                quark_connection_t **conn) {
  quark_options_t o;
  quark_options_init(&o);
  o.client_id = client;
  o.keep_session = keep_session;
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

/* One line that is written over, for who waits at a terminal. */
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
    if (report->state == QUARK_DRAINING || waited >= patience || ctl_interrupted()) {
      print_not_ready(report);
      return EXIT_AGAIN;
    }
    const struct timespec t = {.tv_nsec = LOOK_MS * 1000000};
    nanosleep(&t, NULL);
  }
}
