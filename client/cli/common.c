#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/ctl.h"

/* ---- options ---- */

enum { OPT_ENDPOINT = 0x100, OPT_TIMEOUT, OPT_JSON, OPT_SERVER_KEY, OPT_KEY, OPT_SETUP };

static const struct argp_option options[] = {
    {"endpoint", OPT_ENDPOINT, "ENDPOINT", 0,
     "address of the daemon, or path of its endpoint file (QUARKD_ENDPOINT, or "
     "tcp://127.0.0.1:5555)",
     90},
    {"server-key", OPT_SERVER_KEY, "KEY", 0,
     "public key of the daemon, or its file, if the daemon uses keys (QUARKD_SERVER_KEY)", 90},
    {"key", OPT_KEY, "FILE", 0, "your own secret key, made by keygen (QUARKD_KEY)", 90},
    {"timeout", OPT_TIMEOUT, "SECONDS", 0,
     "how long to wait for a daemon that does not answer (default 10), is not ready or is full "
     "(default 300); and to reconnect when it vanishes, at least 30 s (default 900 if it keeps a "
     "journal, else 30)",
     90},
    {"setup", OPT_SETUP, "NAME", 0, "setup of the daemon to use (its default)", 90},
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

void ctl_parse(const struct argp *argp, int argc, char **argv, void *input) {
  argp_err_exit_status = EXIT_USAGE;
  const error_t failed = argp_parse(argp, argc, argv, 0, NULL, input);
  if (failed) {
    ctl_complain("%s", strerror(failed));
    exit(EXIT_USAGE);
  }
}

/* Points at blanks, which are easily overlooked. */
static const char *hint(const char *text) {
  return strpbrk(text, " \t\r\n") ? ", without blanks" : "";
}

double ctl_real(const struct argp_state *state, const char *name, const char *text, double min,
                double max) {
  char *end;
  const double x = strtod(text, &end);
  if (end == text || *end || !(x >= min && x <= max))
    argp_error(state, "--%s=%s: must be a number from %g to %g%s", name, text, min, max,
               hint(text));
  return x;
}

uint64_t ctl_integer(const struct argp_state *state, const char *name, const char *text,
                     uint64_t min, uint64_t max) {
  char *end;
  errno = 0;
  const unsigned long long x = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || errno || x < min || x > max)
    argp_error(state, "--%s=%s: must be an integer from %llu to %llu%s", name, text,
               (unsigned long long)min, (unsigned long long)max, hint(text));
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

const char *ctl_result_text(const quark_result_t *r, char out[CTL_RESULT_MAX]) {
  int n = snprintf(out, CTL_RESULT_MAX, "%s", quark_code_name(r->status));
  if (!isnan(r->true_residual))
    n += snprintf(out + n, CTL_RESULT_MAX - (size_t)n, ", residual %.3g after %llu iterations",
                  r->true_residual, (unsigned long long)r->iterations);
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
