#include <string.h>

#include "client/libquark/connection/clock.h"
#include "client/libquark/connection/error.h"
#include "client/libquark/request/orders.h"
#include "client/libquark/request/request.h"

static quark_code_t check_rhs(const request_t *r, int64_t rhs, quark_error_t *err) {
  if (rhs >= 0 && rhs < r->nrhs) return QUARK_OK;
  return quark__fail(err, QUARK_BAD_ARGUMENT, "rhs = %lld: request %llu has 0 to %u",
                     (long long)rhs, (unsigned long long)r->number, r->nrhs - 1);
}

quark_code_t quark_wait(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                        int64_t timeout_ms, quark_result_t *result, quark_error_t *err) {
  const int64_t deadline = timeout_ms < 0 ? -1 : quark__now_ms() + timeout_ms;
  bool in_time = true;
  quark_code_t code;
  pthread_mutex_lock(&conn->lock);
  for (;;) {
    const request_t *r = quark__request_known_locked(conn, request, err);
    code = r ? check_rhs(r, rhs, err) : QUARK_NOT_FOUND;
    if (code != QUARK_OK) break;
    if (r->rhs[rhs].ended) {
      *result = r->rhs[rhs].result;
      break;
    }
    if (!in_time) {
      code = quark__fail(err, QUARK_TIMEOUT, "right-hand side %u of request %llu has not ended",
                         rhs, (unsigned long long)request);
      break;
    }
    in_time = quark__wait_locked(conn, deadline);
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}

quark_code_t quark_history(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                           uint64_t *iteration, double *residual, uint32_t room, uint32_t *count,
                           quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  const request_t *r = quark__request_known_locked(conn, request, err);
  const quark_code_t code = r ? check_rhs(r, rhs, err) : QUARK_NOT_FOUND;
  if (code == QUARK_OK) {
    const history_t *h = r->rhs[rhs].history;
    const uint32_t n = h ? h->n : 0, take = n < room ? n : room;
    if (take > 0) {
      memcpy(iteration, h->iteration, take * sizeof *iteration);
      memcpy(residual, h->residual, take * sizeof *residual);
    }
    *count = n;
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}

/* NULL: there are none. */
static const double *sums_of(const Quark__WallSums *wall, quark_wall_t which, size_t *n) {
  *n = 0;
  if (!wall) return NULL;
  switch (which) {
  case QUARK_WALL_QUARK:
    *n = wall->n_quark;
    return wall->quark;
  case QUARK_WALL_MIDPOINT:
    *n = wall->n_midpoint;
    return wall->midpoint;
  case QUARK_WALL_AXIAL:
    *n = wall->n_axial;
    return wall->axial;
  }
  return NULL;
}

static quark_code_t check_wall(const request_t *r, uint32_t rhs, quark_wall_t which,
                               quark_error_t *err) {
  const quark_code_t code = check_rhs(r, rhs, err);
  if (code != QUARK_OK) return code;
  if ((unsigned)which > QUARK_WALL_AXIAL)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "which = %d: 0 to %d", (int)which,
                       (int)QUARK_WALL_AXIAL);
  return QUARK_OK;
}

quark_code_t quark_wall_sums(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                             quark_wall_t which, double *sum, uint32_t room, uint32_t *count,
                             quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  const request_t *r = quark__request_known_locked(conn, request, err);
  const quark_code_t code = r ? check_wall(r, rhs, which, err) : QUARK_NOT_FOUND;
  if (code == QUARK_OK) {
    size_t n;
    const double *v = sums_of(r->rhs[rhs].wall, which, &n);
    const size_t take = n < room ? n : room;
    if (take > 0) memcpy(sum, v, take * sizeof *sum);
    *count = (uint32_t)n;
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}

static quark_code_t ack(quark_connection_t *conn, request_t *r, int32_t rhs, quark_error_t *err) {
  if (rhs != QUARK_ALL) {
    const quark_code_t code = check_rhs(r, rhs, err);
    if (code != QUARK_OK) return code;
    if (!r->rhs[rhs].ended)
      return quark__fail(err, QUARK_BAD_ARGUMENT,
                         "right-hand side %d of request %llu has not ended", rhs,
                         (unsigned long long)r->number);
  }
  uint32_t list[QK_REQUEST_RHS_MAX];
  size_t n = 0;
  for (uint32_t i = 0; i < r->nrhs; i++) {
    if ((rhs != QUARK_ALL && (uint32_t)rhs != i) || !r->rhs[i].ended || r->rhs[i].acked) continue;
    r->rhs[i].acked = true;
    list[n++] = i;
  }
  return n ? quark__post_ack_locked(conn, r->number, list, n, err) : QUARK_OK;
}

quark_code_t quark_ack(quark_connection_t *conn, uint64_t request, int32_t rhs,
                       quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = quark__check_alive_locked(conn, err);
  request_t *r = code == QUARK_OK ? quark__request_known_locked(conn, request, err) : NULL;
  if (code == QUARK_OK) code = r ? ack(conn, r, rhs, err) : QUARK_NOT_FOUND;
  pthread_mutex_unlock(&conn->lock);
  return code;
}

typedef struct order {
  const char *name;
  bool forget; /* RELEASE, else CANCEL */
  uint64_t request;
  int32_t rhs;
} order_t;

static quark_code_t post_order(quark_connection_t *conn, const order_t *o, quark_error_t *err) {
  const quark_code_t code = o->forget ? quark__post_release_locked(conn, o->request, err)
                                      : quark__post_cancel_locked(conn, o->request, o->rhs, err);
  return code == QUARK_OK ? quark__post_ping_locked(conn, err) : code;
}

/* Sends the order, then PING, whose answer shows that the daemon has taken the order. Both are sent
 * again in a new session, as they are lost if the connection breaks. */
static quark_code_t carry_out(quark_connection_t *conn, const order_t *o, quark_error_t *err) {
  const int64_t deadline = quark__now_ms() + conn->timeout_ms;
  uint64_t asked_in = conn->sessions - 1, ping = 0;
  conn->last_error_request = 0;
  for (;;) {
    quark_code_t code = quark__check_alive_locked(conn, err);
    if (code != QUARK_OK) return code;
    if (asked_in != conn->sessions) {
      asked_in = conn->sessions;
      ping = ++conn->pings;
      if ((code = post_order(conn, o, err)) != QUARK_OK) return code;
    } else if (conn->last_error_request == o->request) {
      if (o->forget && conn->last_error.code == QUARK_NOT_FOUND) return QUARK_OK;
      return quark__hand_on(err, &conn->last_error);
    } else if (conn->pongs >= ping)
      return QUARK_OK;
    if (!quark__wait_locked(conn, deadline))
      return quark__fail(err, QUARK_TIMEOUT, "no answer to %s from %s within %u ms", o->name,
                         conn->endpoint, conn->timeout_ms);
  }
}

quark_code_t quark_cancel(quark_connection_t *conn, uint64_t request, int32_t rhs,
                          quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  request_t *r = quark__request_find_locked(conn, request);
  quark_code_t code = r && rhs != QUARK_ALL ? check_rhs(r, rhs, err) : QUARK_OK;
  if (code == QUARK_OK && r && rhs == QUARK_ALL) r->cancel_all = true;
  const order_t order = {.name = "CANCEL", .request = request, .rhs = rhs};
  if (code == QUARK_OK) code = carry_out(conn, &order, err);
  pthread_mutex_unlock(&conn->lock);
  return code;
}

quark_code_t quark_release(quark_connection_t *conn, uint64_t request, quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  request_t *r = quark__request_known_locked(conn, request, err);
  if (r) quark__request_release_locked(conn, r);
  pthread_mutex_unlock(&conn->lock);
  return r ? QUARK_OK : QUARK_NOT_FOUND;
}

quark_code_t quark_forget(quark_connection_t *conn, uint64_t request, quark_error_t *err) {
  const order_t order = {.name = "RELEASE", .forget = true, .request = request};
  pthread_mutex_lock(&conn->lock);
  request_t *r = quark__request_find_locked(conn, request);
  if (r) quark__request_remove_locked(conn, r);
  const quark_code_t code = carry_out(conn, &order, err);
  pthread_mutex_unlock(&conn->lock);
  return code;
}
