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

enum { OPT_CLIENT = 0x200, OPT_REQUEST, OPT_RHS, OPT_NOW, OPT_WAIT };

static const struct argp_child children[] = {{&ctl_common_argp, 0, NULL, 0}, {0}};

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &o->common;
    return 0;
  case OPT_CLIENT:
    ctl_client(state, arg, o->client);
    o->has_client = true;
    return 0;
  case OPT_REQUEST:
    o->request = ctl_integer(state, "request", arg, 1, UINT64_MAX);
    return 0;
  case OPT_RHS:
    o->rhs = (int32_t)ctl_integer(state, "rhs", arg, 0, 1u << 30);
    return 0;
  case OPT_NOW:
    o->now = true;
    return 0;
  case OPT_WAIT:
    o->wait = true;
    return 0;
  case ARGP_KEY_ARG:
    argp_usage(state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option cancel_options[] = {
    {"client", OPT_CLIENT, "ID", 0,
     "client id of the requests, as propagator and solve show it (required)", 1},
    {"request", OPT_REQUEST, "NUMBER", 0,
     "only this request; default: end the client's session with all its requests", 1},
    {"rhs", OPT_RHS, "INDEX", 0, "only this right-hand side of the request", 1},
    {0},
};

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
  static const struct argp argp = {
      .options = cancel_options,
      .parser = parse,
      .doc = "Ends requests of another process with CANCELLED.\vThe solutions of right-hand sides "
             "that ended before "
             "stay. Exit code 65: there is no such client or request.",
      .children = children,
  };
  options_t o = {.rhs = QUARK_ALL};
  ctl_common_init(&o.common);
  ctl_parse(&argp, argc, argv, &o);
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

static const struct argp_option shutdown_options[] = {
    {"now", OPT_NOW, 0, 0, "do not finish accepted work", 1},
    {"wait", OPT_WAIT, 0, 0, "return when the daemon has ended", 1},
    {0},
};

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
  static const struct argp argp = {
      .options = shutdown_options,
      .parser = parse,
      .doc = "Ends the daemon: it rejects new work, finishes accepted work, and exits.",
      .children = children,
  };
  options_t o = {0};
  ctl_common_init(&o.common);
  ctl_parse(&argp, argc, argv, &o);
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
