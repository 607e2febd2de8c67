#include "client/libquark/request/orders.h"

quark_code_t quark__post_ack_locked(quark_connection_t *conn, uint64_t request, uint32_t *rhs,
                                    size_t n, quark_error_t *err) {
  Quark__Ack ack = QUARK__ACK__INIT;
  ack.request = request;
  ack.rhs = rhs;
  ack.n_rhs = n;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_ACK;
  message.ack = &ack;
  return quark__post_locked(conn, &message, err);
}

quark_code_t quark__post_cancel_locked(quark_connection_t *conn, uint64_t request, int32_t rhs,
                                       quark_error_t *err) {
  uint32_t one = (uint32_t)rhs;
  Quark__Cancel cancel = QUARK__CANCEL__INIT;
  cancel.request = request;
  cancel.rhs = &one;
  cancel.n_rhs = rhs == QUARK_ALL ? 0 : 1;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_CANCEL;
  message.cancel = &cancel;
  return quark__post_locked(conn, &message, err);
}

quark_code_t quark__post_release_locked(quark_connection_t *conn, uint64_t request,
                                        quark_error_t *err) {
  Quark__Release release = QUARK__RELEASE__INIT;
  release.request = request;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_RELEASE;
  message.release = &release;
  return quark__post_locked(conn, &message, err);
}

quark_code_t quark__post_ping_locked(quark_connection_t *conn, quark_error_t *err) {
  Quark__Ping ping = QUARK__PING__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_PING;
  message.ping = &ping;
  return quark__post_locked(conn, &message, err);
}
