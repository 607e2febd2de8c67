/*
 * ctl.h: what the commands of quarkctl share.
 *
 * Exit codes   0; 64: usage; 65: bad data, or right-hand sides that did not reach their tolerance;
 * 69: no daemon is there; 75: try again later; 78: the endpoint or a key is wrong.
 * Output       Results go to stdout, as text or as one JSON object (--json). All else goes to
 *              stderr.
 * Errors       Functions that return an exit code have printed the reason.
 */
#ifndef QUARKCTL_CTL_H
#define QUARKCTL_CTL_H

#include <jansson.h>
#include <stdbool.h>

#include "client/files/fieldfile.h"
#include "client/quark.h"
#include "daemon/base/config/options.h"
#include "proto/key.h"

enum { EXIT_USAGE = 64, EXIT_DATA = 65, EXIT_UNAVAILABLE = 69, EXIT_AGAIN = 75, EXIT_CONFIG = 78 };

/* ---- options of every command ---- */

typedef struct ctl_common {
  const char *endpoint;
  bool has_endpoint;      /* given on the command line */
  const char *server_key; /* CURVE: public key of the daemon, or its file; NULL: none */
  const char *key;        /* CURVE: own key file; NULL: none */
  double timeout;    /* seconds until the daemon must have answered and be ready; NaN: not given */
  const char *setup; /* NULL: the daemon's default */
  bool json;
} ctl_common_t;

/* A table for the options of a command: its values are a ctl_common_t. */
extern const qk_option_table_t ctl_common_table;
void ctl_common_init(ctl_common_t *common);

/* 32 hexadecimal digits; else exits with a usage error. */
void ctl_client(const struct argp_state *state, const char *text,
                uint8_t id[QUARK_CLIENT_ID_BYTES]);
/* The second of two words, or the first; else exits with a usage error. */
bool ctl_either(const struct argp_state *state, const char *name, const char *text,
                const char *first, const char *second);

/* ---- the daemon ---- */

/* What is known of the place of a daemon. */
typedef struct ctl_where {
  const char *path;   /* its endpoint file; NULL: none was named */
  char endpoint[256]; /* for libquark */
  char who[256];      /* the daemon that is or was there; "": not known */
} ctl_where_t;

/* given: an endpoint, the path of an endpoint file, or the contents of such a file. Returns an exit
 * code. */
int ctl_where(const char *given, ctl_where_t *where);
/* The form for a ticket, which is valid in every folder. The caller frees it; NULL: no memory. */
char *ctl_where_lasting(const char *given);
/* True if a process accepts connections there. */
bool ctl_where_listens(const ctl_where_t *where);
/* Prints why nobody answers there: whose endpoint it was, and whether that daemon is alive. */
void ctl_where_silent(const ctl_where_t *where);

/* The public key of the daemon: text itself, or from a file that keygen has made. False: it has
 * printed the reason. */
bool ctl_server_key(const char *text, char key[QK_KEY_TEXT]);
/* client: the 16 bytes of an id, or NULL. Returns an exit code. */
int ctl_connect(const ctl_common_t *common, const uint8_t *client, bool keep_session,
                quark_connection_t **conn);
/* The same for the queue of a user; NULL: the user of this process. */
int ctl_connect_as(const ctl_common_t *common, const char *user, quark_connection_t **conn);
/* Waits until the daemon is ready and fetches its report. any: does not wait. Returns an exit code.
 */
int ctl_report(const ctl_common_t *common, quark_connection_t *conn, bool any,
               quark_report_t *report);

/* The use of slots while right-hand sides waited: as the share that was solving (NaN: none waited),
 * as a JSON object, and as a printed line. */
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
/* Says how it ended, with its residual if there was a solve. Returns out. */
const char *ctl_result_text(const quark_result_t *result, char out[CTL_RESULT_MAX]);

/* A JSON number; null if x is not finite. */
json_t *ctl_number(double x);
/* A tolerance as files and JSON have it: NaN for one that is not asked for. */
double ctl_asked(double tol);
/* A table of setups, and the same as a list. */
void ctl_setups_print(const quark_setup_t *setup, uint32_t count);
json_t *ctl_setups_json(const quark_setup_t *setup, uint32_t count);
/* The object that `quarkctl status --json` prints. */
json_t *ctl_status_json(const quark_report_t *report);
/* Prints object to stdout and releases it. Returns an exit code. */
int ctl_print(json_t *object);

/* ctl_interrupted: true once SIGINT or SIGTERM has come after ctl_catch_signals. */
void ctl_catch_signals(void);
bool ctl_interrupted(void);

/* ---- commands: argv[0] is the command's name ---- */

typedef int ctl_command_fn(int argc, char **argv);
ctl_command_fn ctl_status, ctl_propagator, ctl_sequential, ctl_solve, ctl_apply, ctl_correlator,
    ctl_fetch, ctl_cancel, ctl_shutdown, ctl_load, ctl_drop, ctl_default, ctl_workflow, ctl_top,
    ctl_bench, ctl_keygen, ctl_actions, ctl_selftest, ctl_eigen, ctl_perambulator;

#endif
