#include "client/libquark/ask.h"

#include "client/libquark/connection/clock.h"
#include "client/libquark/connection/error.h"

static const char *name_of(unsigned feature) {
  switch (feature) {
  case QK_FEATURE_ACTIONS:
    return "action and parameter";
  case QK_FEATURE_EVOLVE:
    return "evolve_from";
  default:
    return "what was asked for";
  }
}

quark_code_t quark__ask_for_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                                   unsigned feature, const uint64_t *answers, const char *what,
                                   quark_error_t *err) {
  const uint64_t before = *answers, refusals = conn->refusals;
  const int64_t deadline = quark__now_ms() + conn->timeout_ms;
  uint64_t asked_in = conn->sessions - 1;
  for (;;) {
    quark_code_t code = quark__check_alive_locked(conn, err);
    if (code != QUARK_OK) return code;
    if (*answers != before) return QUARK_OK;
    if (conn->refusals != refusals) return quark__hand_on(err, &conn->last_error);
    if (conn->state == SESSION_OPEN && !quark__has_feature(conn, feature))
      return quark__fail(err, QUARK_UNSUPPORTED,
                         "the quarkd at %.120s is too old for %s of %s: it was not asked, because "
                         "it would ignore them",
                         conn->endpoint, name_of(feature), what);
    if (asked_in != conn->sessions &&
        (code = quark__post_for_locked(conn, message, feature, err)) != QUARK_OK)
      return code;
    asked_in = conn->sessions;
    if (!quark__wait_locked(conn, deadline))
      return quark__fail(err, QUARK_TIMEOUT, "no answer to %s from %s within %u ms", what,
                         conn->endpoint, conn->timeout_ms);
  }
}

quark_code_t quark__ask_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                               const uint64_t *answers, const char *what, quark_error_t *err) {
  return quark__ask_for_locked(conn, message, 0, answers, what, err);
}
