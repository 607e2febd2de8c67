/*
 * ctl.h: what the commands of quarkctl share.
 *
 * Exit codes   0; 64 usage; 65 bad data, or right-hand sides that did not reach their tolerance; 69 the
 *              daemon is not there; 75 try again later; 78 the endpoint is no endpoint, or keys are wrong.
 * Output       Results on stdout, as text or (--json) one object; everything else on stderr.
 * Errors       Commands return exit codes and have printed the reason.
 */
#ifndef QUARKCTL_CTL_H
#define QUARKCTL_CTL_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

#include "client/analysis/h5file.h"
#include "client/quark.h"
#include "proto/key.h"

enum { EXIT_USAGE = 64, EXIT_DATA = 65, EXIT_UNAVAILABLE = 69, EXIT_AGAIN = 75, EXIT_CONFIG = 78 };

/* ---- options of every command ---- */

typedef struct ctl_common {
  const char *endpoint;
  bool has_endpoint; /* given on the command line */
  const char *server_key,
      *key; /* CURVE: public key of the daemon or its file, own key file; NULL: none */
  double
      timeout; /* seconds that are spent on reaching the daemon and on its becoming ready; NaN: not given */
  const char *setup; /* NULL: the daemon's default */
  bool json;
} ctl_common_t;

/* A child for the argp of a command; its input is a ctl_common_t. */
extern const struct argp ctl_common_argp;
/* Parses the arguments of a command: exits for --help, --usage and bad usage. input is the command's own
 * struct, common a member of it. */
void ctl_parse(const struct argp *argp, int argc, char **argv, void *input);
void ctl_common_init(ctl_common_t *common);

/* A number in [min, max], or usage error. */
double ctl_real(const struct argp_state *state, const char *name, const char *text, double min,
                double max);
uint64_t ctl_integer(const struct argp_state *state, const char *name, const char *text,
                     uint64_t min, uint64_t max);
/* 32 hexadecimal digits, or usage error. */
void ctl_client(const struct argp_state *state, const char *text,
                uint8_t id[QUARK_CLIENT_ID_BYTES]);

/* ---- the daemon ---- */

/* What is known of where the daemon is. */
typedef struct ctl_where {
  const char *path;   /* NULL: no file of it was named */
  char endpoint[256]; /* of libquark */
  char who[256];      /* which daemon that is or was; "": not known */
} ctl_where_t;

/* given: an endpoint, the path of a daemon's endpoint file (with a slash in it), or what such a
 * file says. An exit code: the reason is printed. */
int ctl_where(const char *given, ctl_where_t *where);
/* What a ticket keeps of it: where the daemon will be found from any folder. Caller frees; NULL: no
 * memory. */
char *ctl_where_lasting(const char *given);
/* Whether somebody takes connections there. */
bool ctl_where_listens(const ctl_where_t *where);
/* Nobody answers there: prints whose endpoint it was, and whether that daemon lives. */
void ctl_where_silent(const ctl_where_t *where);

/* The daemon's public key: text itself, or from the file of that name that keygen has made. False: the reason
 * is printed. */
bool ctl_server_key(const char *text, char key[QK_KEY_TEXT]);
/* client: NULL or 16 bytes of an id. */
int ctl_connect(const ctl_common_t *common, const uint8_t *client, bool keep_session,
                quark_connection_t **conn);
/* user: whose queue the work goes to; NULL: that of this process. */
int ctl_connect_as(const ctl_common_t *common, const char *user, quark_connection_t **conn);
/* Waits until the daemon is ready (any: does not) and says how it is. */
int ctl_report(const ctl_common_t *common, quark_connection_t *conn, bool any,
               quark_report_t *report);

/* How slots were used while right-hand sides waited: share that was solving, NaN where none waited; as an object; as a line. */
double ctl_occupancy(const quark_report_t *report);
json_t *ctl_occupancy_json(const quark_report_t *report);
void ctl_occupancy_print(const quark_report_t *report);

/* ---- errors and output ---- */

/* "quarkctl: ...\n" on stderr. */
__attribute__((format(printf, 1, 2))) void ctl_complain(const char *fmt, ...);
/* Prints err; returns the exit code for it. */
int ctl_fail(const quark_error_t *err);
int ctl_fail_file(const qk_err_t *err);
int ctl_exit_code(quark_code_t code);
enum { CTL_RESULT_MAX = 400 };
/* How it ended, with its residual if there was a solve. Returns out. */
const char *ctl_result_text(const quark_result_t *result, char out[CTL_RESULT_MAX]);

/* A JSON number, null where x is not finite. */
json_t *ctl_number(double x);
/* A table of setups, and the same as a list. */
void ctl_setups_print(const quark_setup_t *setup, uint32_t count);
json_t *ctl_setups_json(const quark_setup_t *setup, uint32_t count);
/* The object that `quarkctl status --json` prints. */
json_t *ctl_status_json(const quark_report_t *report);
/* Prints and releases object: the only thing on stdout. */
int ctl_print(json_t *object);

/* SIGINT or SIGTERM has come (after ctl_catch_signals). */
void ctl_catch_signals(void);
bool ctl_interrupted(void);

/* ---- commands: argv[0] is the command's name ---- */

typedef int ctl_command_fn(int argc, char **argv);
ctl_command_fn ctl_status, ctl_propagator, ctl_sequential, ctl_solve, ctl_correlator, ctl_fetch,
    ctl_cancel, ctl_shutdown, ctl_load, ctl_drop, ctl_default, ctl_workflow, ctl_top, ctl_bench,
    ctl_keygen;

#endif
