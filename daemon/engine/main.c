/*
 * quark-engine: holds one gauge configuration on its devices and solves for the right-hand sides of
 * the front. quarkd starts it, directly for one rank or by mpirun for more; it knows nothing of
 * clients.
 *
 * Exit codes: 0 told to stop; 64 usage; 69 the front is gone or cannot be reached; 70 the device,
 * MPI or memory failed: only a new process helps.
 */
#include <argp.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sysexits.h>

#include "daemon/base/log.h"
#include "daemon/base/version.h"
#include "daemon/engine/launch/launch.h"
#include "daemon/engine/serve/engine_loop.h"
#include "daemon/engine/serve/report.h"
#include "proto/limits.h"

typedef struct options {
  const char *front;
  const char *comm;
  int silence_ms, grace_ms;
  qk_level_t level;
  qk_log_format_t format;
} options_t;

enum { KEY_FRONT = 256, KEY_COMM, KEY_SILENCE, KEY_GRACE, KEY_LOG_LEVEL, KEY_LOG_FORMAT };

static const struct argp_option option_table[] = {
    {"front", KEY_FRONT, "ENDPOINT", 0, "ZeroMQ endpoint of quarkd, as in ipc:///run/quarkd/engine",
     0},
    {"comm", KEY_COMM, "KIND", 0,
     "self: one rank; mpi: as many as were started; auto (default): mpi under mpirun or srun", 0},
    {"silence", KEY_SILENCE, "MS", 0, "leave when the front has been silent for so long (30000)",
     0},
    {"grace", KEY_GRACE, "MS", 0,
     "when the front has gone, wait so long for another one that takes over (0: end with it)", 0},
    {"log-level", KEY_LOG_LEVEL, "LEVEL", 0, "error, warn, info (default) or debug", 0},
    {"log-format", KEY_LOG_FORMAT, "FORMAT", 0, "text (default) or json: one object a line", 0},
    {0},
};

static int parse_ms(const char *option, const char *text, int least, struct argp_state *state) {
  char *end;
  long ms = strtol(text, &end, 10);
  if (end == text || *end != '\0' || ms < least || ms > INT_MAX)
    argp_error(state, "--%s=%s: milliseconds, at least %d", option, text, least);
  return (int)ms;
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  options_t *options = state->input;
  switch (key) {
  case KEY_FRONT:
    options->front = arg;
    return 0;
  case KEY_COMM:
    if (strcmp(arg, "self") != 0 && strcmp(arg, "mpi") != 0 && strcmp(arg, "auto") != 0)
      argp_error(state, "--comm=%s: self, mpi or auto", arg);
    options->comm = arg;
    return 0;
  case KEY_SILENCE:
    options->silence_ms = parse_ms("silence", arg, 1, state);
    return 0;
  case KEY_GRACE:
    options->grace_ms = parse_ms("grace", arg, 0, state);
    return 0;
  case KEY_LOG_LEVEL:
    if (qk_log_parse_level(arg, &options->level) != 0)
      argp_error(state, "--log-level=%s: error, warn, info or debug", arg);
    return 0;
  case KEY_LOG_FORMAT:
    if (qk_log_parse_format(arg, &options->format) != 0)
      argp_error(state, "--log-format=%s: text or json", arg);
    return 0;
  case ARGP_KEY_END:
    if (options->front == NULL) argp_error(state, "--front is missing");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static void print_version(FILE *stream, struct argp_state *state) {
  (void)state;
  fprintf(stream, "quark-engine %s\n", qk_version());
}

/* Opens the channel on rank 0 and works until the end; the exit code. */
static int serve(const options_t *options, qk_comm_t *comm) {
  qk_channel_t *channel = NULL;
  qk_err_t err = {0};
  qk_status_t status = QK_OK;
  if (qk_comm_rank(comm) == 0)
    status =
        qk_channel_open(options->front, options->silence_ms, options->grace_ms, &channel, &err);
  status = qk_comm_agree(comm, status, &err);
  if (status != QK_OK) {
    qk_error("main", "%s", err.text);
    return EX_UNAVAILABLE;
  }
  status = qk_engine_loop_run(comm, channel, &err);
  if (status != QK_OK && status != QK_TIMEOUT) {
    qk_error("main", "%s: %s", qk_status_name(status), err.text);
    qk_report_fatal(channel, &err);
  }
  qk_channel_close(channel);
  if (status == QK_OK) return EX_OK;
  return status == QK_TIMEOUT ? EX_UNAVAILABLE : EX_SOFTWARE;
}

int main(int argc, char **argv) {
  static const struct argp argp = {
      option_table, parse_option, NULL, "The solver process of quarkd, which starts it.",
      NULL,         NULL,         NULL};
  options_t options = {.comm = "auto", .silence_ms = QK_ENGINE_SILENCE_MS, .level = QK_LOG_INFO};
  qk_comm_t *comm = NULL;
  qk_err_t err = {0};

  argp_program_version_hook = print_version;
  argp_err_exit_status = EX_USAGE;
  argp_parse(&argp, argc, argv, 0, NULL, &options);
  qk_log_init("engine", -1, options.level);
  qk_log_use(options.format);
  qk_channel_block_signals();
  /* who has started a rank is mpirun, which is to outlive the front, too */
  if (options.grace_ms == 0 || qk_launch_by_mpi()) prctl(PR_SET_PDEATHSIG, SIGKILL);

  qk_status_t status = qk_launch_comm(options.comm, &argc, &argv, &comm, &err);
  if (status != QK_OK) {
    qk_error("main", "%s", err.text);
    return EX_SOFTWARE;
  }
  qk_log_init("engine", qk_comm_size(comm) > 1 ? qk_comm_rank(comm) : -1, options.level);
  qk_launch_threads(comm);
  int code = serve(&options, comm);
  if (code == EX_SOFTWARE) qk_comm_abort(comm, code);
  qk_comm_destroy(comm);
  return code;
}
