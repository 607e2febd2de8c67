#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/ctl.h"

/* ---- options ---- */

static void take_endpoint(const struct argp_state *state, const char *name, char *text,
                          void *values) {
  ctl_common_t *common = values;
  (void)state, (void)name;
  common->endpoint = text;
  common->has_endpoint = true;
}

#define AT(member) offsetof(ctl_common_t, member)
static const qk_option_row_t rows[] = {
    {"endpoint", QK_OPTION_TAKEN, .form = "ENDPOINT", .take = take_endpoint,
     .help = "address of the daemon, or path of its endpoint file (QUARKD_ENDPOINT, or "
             "tcp://127.0.0.1:5555)"},
    {"server-key", QK_OPTION_TEXT, AT(server_key), "KEY",
     .help = "public key of the daemon, or its file, if the daemon uses keys (QUARKD_SERVER_KEY)"},
    {"key", QK_OPTION_TEXT, AT(key), "FILE",
     .help = "your own secret key, made by keygen (QUARKD_KEY)"},
    {"timeout", QK_OPTION_REAL, AT(timeout), "SECONDS", .max = 1e6,
     .help = "how long to wait for a daemon that does not answer (default 10), is not ready or is "
             "full (default 300); and to reconnect when it vanishes, at least 30 s (default 900 if "
             "it keeps a journal, else 30)"},
    {"setup", QK_OPTION_TEXT, AT(setup), "NAME",
     .help = "setup of the daemon to use (its default)"},
    {"json", QK_OPTION_FLAG, AT(json), .help = "print one JSON object"},
    {0},
};

const qk_option_table_t ctl_common_table = {.row = rows, .group = 90};

/* NULL: it is not set, or empty. */
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

bool ctl_either(const struct argp_state *state, const char *name, const char *text,
                const char *first, const char *second) {
  if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
    argp_error(state, "--%s=%s: must be %s or %s", name, text, first, second);
  return strcmp(text, second) == 0;
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

const char *ctl_result_text(const quark_result_t *r, char out[CTL_RESULT_MAX]) {
  int n = snprintf(out, CTL_RESULT_MAX, "%s", quark_code_name(r->status));
  if (!isnan(r->true_residual))
    n += snprintf(out + n, CTL_RESULT_MAX - (size_t)n, ", residual %.3g", r->true_residual);
  if (!isnan(r->hq_residual))
    n += snprintf(out + n, CTL_RESULT_MAX - (size_t)n, ", heavy-quark residual %.3g",
                  r->hq_residual);
  if (!isnan(r->true_residual))
    n += snprintf(out + n, CTL_RESULT_MAX - (size_t)n, " after %llu iterations",
                  (unsigned long long)r->iterations);
  snprintf(out + n, CTL_RESULT_MAX - (size_t)n, "%s%s", *r->text ? ": " : "", r->text);
  return out;
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

double ctl_asked(double tol) {
  return tol > 0 ? tol : NAN;
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
