#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/ctl.h"

typedef struct options {
  ctl_common_t common;
  uint8_t client[QUARK_CLIENT_ID_BYTES];
  bool has_client, now, wait;
  uint64_t request; /* 0: all */
  int32_t rhs;
} options_t;

enum { LOOKS = 1200, LOOK_US = 50000 }; /* a minute */

static void take_client(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  options_t *o = values;
  (void)name;
  ctl_client(state, text, o->client);
  o->has_client = true;
}

static void take_rhs(const struct argp_state *state, const char *name, char *text, void *values) {
  options_t *o = values;
  o->rhs = (int32_t)qk_option_integer(state, name, text, 0, 1u << 30);
}

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t cancel_rows[] = {
    {"client", QK_OPTION_TAKEN, .form = "ID", .take = take_client,
     .help = "client id of the requests, as propagator and solve show it (required)"},
    {"request", QK_OPTION_UINT64, AT(request), "NUMBER", .min = 1, .max = 0x1p64,
     .help =
         "only this request; default: end the client's session with all its requests. A "
         "command that has not sent all of its right-hand sides opens another one and sends them"},
    {"rhs", QK_OPTION_TAKEN, .form = "INDEX", .take = take_rhs,
     .help = "only this right-hand side of the request"},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, common), .table = &ctl_common_table},
    {0},
};

static const qk_option_table_t cancel_table = {.row = cancel_rows, .group = 1};

static int cancel(const options_t *o, quark_connection_t *conn) {
  quark_error_t err;
  if (!quark_resumed(conn)) {
    ctl_complain("the daemon has no session of this client");
    return EXIT_DATA;
  }
  if (o->request && quark_cancel(conn, o->request, o->rhs, &err) != QUARK_OK) return ctl_fail(&err);
  return 0;
}

int ctl_cancel(int argc, char **argv) {
  static const char about[] =
      "Ends requests of another process with CANCELLED.\vThe solutions of right-hand sides "
      "that ended before "
      "stay. Exit code 65: there is no such client or request.";
  options_t o = {.rhs = QUARK_ALL};
  ctl_common_init(&o.common);
  qk_options_parse(&cancel_table, NULL, about, argc, argv, &o);
  if (!o.has_client || (o.rhs != QUARK_ALL && !o.request)) {
    ctl_complain(o.has_client ? "--rhs needs --request" : "cancel needs --client");
    return EXIT_USAGE;
  }
  quark_connection_t *conn;
  int code = ctl_connect(&o.common, o.client, o.request != 0, &conn);
  if (code) return code;
  code = cancel(&o, conn);
  quark_close(conn);
  if (code == 0 && o.common.json) return ctl_print(json_pack("{s:b}", "cancelled", true));
  return code;
}

static const qk_option_row_t shutdown_rows[] = {
    {"now", QK_OPTION_FLAG, AT(now), .help = "do not finish accepted work"},
    {"wait", QK_OPTION_FLAG, AT(wait), .help = "return when the daemon has ended"},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, common), .table = &ctl_common_table},
    {0},
};

static const qk_option_table_t shutdown_table = {.row = shutdown_rows, .group = 1};

/* Waits until the daemon ends the connection, and then until its port is closed, which it does
 * last. */
static int wait_for_end(quark_connection_t *conn, const ctl_where_t *where) {
  quark_event_t event = {.kind = QUARK_EVENT_NONE};
  quark_error_t err;
  ctl_catch_signals();
  while (event.kind != QUARK_EVENT_DEAD && !ctl_interrupted())
    if (quark_event_next(conn, 200, &event, &err) != QUARK_OK) return ctl_fail(&err);
  for (int i = 0; i < LOOKS && !ctl_interrupted(); i++) {
    if (!ctl_where_listens(where)) return 0;
    usleep(LOOK_US);
  }
  if (!ctl_interrupted()) ctl_complain("%s: a process still listens there", where->endpoint);
  return EXIT_AGAIN;
}

int ctl_shutdown(int argc, char **argv) {
  static const char about[] =
      "Ends the daemon: it rejects new work, finishes accepted work, and exits.";
  options_t o = {0};
  ctl_common_init(&o.common);
  qk_options_parse(&shutdown_table, NULL, about, argc, argv, &o);
  quark_connection_t *conn;
  quark_error_t err;
  ctl_where_t where;
  int code = ctl_where(o.common.endpoint, &where); /* while its file is there */
  if (code == 0) code = ctl_connect(&o.common, NULL, false, &conn);
  if (code) return code;
  if (quark_shutdown(conn, o.now, &err) != QUARK_OK) code = ctl_fail(&err);
  if (code == 0 && o.wait) code = wait_for_end(conn, &where);
  quark_close(conn);
  if (code == 0 && o.common.json)
    return ctl_print(json_pack("{s:b, s:b}", "shutdown", true, "now", o.now));
  return code;
}
