#include "client/libquark/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

request_t *quark__request_find_locked(quark_connection_t *conn, uint64_t number) {
  for (request_t *r = conn->requests; r; r = r->next)
    if (r->number == number) return r;
  return NULL;
}

/* A request that the user still knows. */
static request_t *find(quark_connection_t *conn, uint64_t number, quark_error_t *err) {
  request_t *r = quark__request_find_locked(conn, number);
  if (r && !r->released) return r;
  quark__fail(err, QUARK_NOT_FOUND, "no request %llu", (unsigned long long)number);
  return NULL;
}

quark_code_t quark__check_alive_locked(const quark_connection_t *conn, quark_error_t *err) {
  return conn->state == SESSION_DEAD ? quark__hand_on(err, &conn->death) : QUARK_OK;
}

void quark__request_free(request_t *request) {
  if (!request) return;
  quark__upload_fini(&request->up);
  free(request->submit);
  free(request->rhs);
  free(request->attached);
  free(request->column);
  free(request->paths[0]);
  free(request->paths[1]);
  free(request);
}

static void remove_request(quark_connection_t *conn, request_t *request) {
  request_t **link = &conn->requests;
  while (*link != request) link = &(*link)->next;
  *link = request->next;
  quark__download_fail_locked(request, QUARK_CANCELLED, "the request was released");
  quark__request_free(request);
}

/* ---- messages about requests ---- */

static quark_code_t post_ack(quark_connection_t *conn, uint64_t number, uint32_t *rhs, size_t n,
                             quark_error_t *err) {
  Quark__Ack ack = QUARK__ACK__INIT;
  ack.request = number;
  ack.rhs = rhs;
  ack.n_rhs = n;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_ACK;
  message.ack = &ack;
  return quark__post_locked(conn, &message, err);
}

static quark_code_t post_cancel(quark_connection_t *conn, uint64_t number, int32_t rhs,
                                quark_error_t *err) {
  uint32_t one = (uint32_t)rhs;
  Quark__Cancel cancel = QUARK__CANCEL__INIT;
  cancel.request = number;
  cancel.rhs = &one;
  cancel.n_rhs = rhs == QUARK_ALL ? 0 : 1;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_CANCEL;
  message.cancel = &cancel;
  return quark__post_locked(conn, &message, err);
}

static quark_code_t post_release(quark_connection_t *conn, uint64_t number, quark_error_t *err) {
  Quark__Release release = QUARK__RELEASE__INIT;
  release.request = number;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_RELEASE;
  message.release = &release;
  return quark__post_locked(conn, &message, err);
}

static quark_code_t post_ping(quark_connection_t *conn, quark_error_t *err) {
  Quark__Ping ping = QUARK__PING__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_PING;
  message.ping = &ping;
  return quark__post_locked(conn, &message, err);
}

static void end_rhs(request_t *request, uint32_t rhs) {
  request->rhs[rhs].ended = true;
  request->ended++;
  request->unreported++;
}

void quark__request_fail_locked(request_t *request, quark_code_t code, const char *text) {
  for (uint32_t i = 0; i < request->nrhs; i++) {
    if (request->rhs[i].ended) {
      request->rhs[i].result.bytes = 0; /* what was not downloaded is gone with the session */
      continue;
    }
    quark_result_t *result = &request->rhs[i].result;
    *result = (quark_result_t){
        .request = request->number, .rhs = i, .status = code, .true_residual = NAN};
    result->norm_b = result->norm_x = result->queue_seconds = NAN;
    snprintf(result->text, sizeof result->text, "%.255s", text);
    end_rhs(request, i);
  }
  if (request->state == REQUEST_SUBMITTED) {
    request->state = REQUEST_REJECTED;
    quark__fail(&request->error, code, "%s", text);
  }
  quark__download_fail_locked(request, code, text);
  quark__upload_fini(&request->up);
}

void quark__request_accepted_locked(quark_connection_t *conn, const Quark__Accepted *m) {
  request_t *r = quark__request_find_locked(conn, m->request);
  if (!r || r->state == REQUEST_REJECTED) return;
  const bool first = r->state == REQUEST_SUBMITTED;
  const bool uploads = m->upload_until > 0 && !r->attached;
  r->state = REQUEST_ACCEPTED;
  r->field_bytes = m->field_bytes;
  if (r->ended == r->nrhs) return;
  if (first && uploads && !quark__upload_init_locked(conn, &r->up, r->nrhs, m->field_bytes)) {
    quark__request_fail_locked(r, QUARK_NO_MEMORY, "no memory for the upload");
    post_cancel(conn, r->number, QUARK_ALL, NULL);
    return;
  }
  if (r->up.capacity > 0) {
    if (m->upload_next > r->up.written || r->up.written - m->upload_next > r->up.capacity) {
      quark__request_fail_locked(r, QUARK_ENGINE_LOST,
                                 "a part of the upload was lost with the connection: submit again");
      post_cancel(conn, r->number, QUARK_ALL, NULL);
      return;
    }
    r->up.sent = r->up.taken = m->upload_next;
    r->up.until = m->upload_until;
  }
  if (r->cancel_all) post_cancel(conn, r->number, QUARK_ALL, NULL);
}

void quark__request_rejected_locked(quark_connection_t *conn, const Quark__Rejected *m) {
  request_t *r = quark__request_find_locked(conn, m->request);
  if (!r) return;
  if (r->released)
    remove_request(conn, r);
  else if (r->state == REQUEST_SUBMITTED) {
    r->state = REQUEST_REJECTED;
    quark__fail(&r->error, (quark_code_t)m->status, "%s", m->text);
    r->error.retry_after_ms = m->retry_after_ms;
  } else
    quark__request_fail_locked(r, (quark_code_t)m->status, m->text);
}

void quark__request_progress_locked(quark_connection_t *conn, const Quark__Progress *m) {
  request_t *r = quark__request_find_locked(conn, m->request);
  if (!r) return;
  r->queued = m->queued;
  r->running = (uint32_t)m->n_running;
  r->iterations = 0;
  r->residual = NAN;
  for (size_t i = 0; i < m->n_running; i++) {
    r->residual = fmax(r->residual, m->running[i]->residual);
    if (m->running[i]->iterations > r->iterations) r->iterations = m->running[i]->iterations;
  }
  r->progress_new = true;
}

static void store_result(request_t *r, const Quark__Result *m) {
  const bool solved = m->status == QUARK_OK || m->iterations > 0 || m->bytes > 0;
  quark_result_t *result = &r->rhs[m->rhs].result;
  *result = (quark_result_t){.request = m->request,
                             .rhs = m->rhs,
                             .status = (quark_code_t)m->status,
                             .true_residual = solved ? m->true_residual : NAN,
                             .iterations = m->iterations,
                             .applications = m->applications,
                             .seconds = m->seconds,
                             .bytes = m->bytes,
                             .norm_b = m->has_norm_b ? m->norm_b : NAN,
                             .norm_x = m->has_norm_x ? m->norm_x : NAN,
                             .queue_seconds = m->has_queue_seconds ? m->queue_seconds : NAN};
  snprintf(result->text, sizeof result->text, "%.255s", m->text ? m->text : "");
  r->rhs[m->rhs].attempt = m->attempt;
}

void quark__request_result_locked(quark_connection_t *conn, const Quark__Result *m) {
  request_t *r = quark__request_find_locked(conn, m->request);
  if (!r || m->rhs >= r->nrhs) return;
  rhs_t *rhs = &r->rhs[m->rhs];
  if (!rhs->ended) {
    store_result(r, m);
    end_rhs(r, m->rhs);
  } else { /* the daemon may have lost the solution, and may have made another */
    const bool another = m->attempt > rhs->attempt, gone = rhs->result.bytes > 0 && m->bytes == 0;
    if (another || gone) store_result(r, m);
    quark__download_result_locked(conn, r, m->rhs, another);
  }
  if (r->released) rhs->acked = true;
  uint32_t index = m->rhs;
  if (rhs->acked) post_ack(conn, r->number, &index, 1, NULL); /* the first one may have been lost */
  if (r->ended < r->nrhs) return;
  quark__local_spare_locked(conn, &r->up);
  quark__upload_fini(&r->up);
  if (r->released) remove_request(conn, r);
}

void quark__request_resume_locked(quark_connection_t *conn, request_t *request) {
  if (request->state == REQUEST_REJECTED) return;
  request->up.until = 0; /* nothing is sent before ACCEPTED says where to go on */
  quark__download_hold_locked(request);
  bool open =
      request->state == REQUEST_SUBMITTED || request->ended < request->nrhs || request->downloads;
  for (uint32_t i = 0; i < request->nrhs; i++)
    open |= request->rhs[i].result.bytes > 0 && !request->rhs[i].acked;
  if (!open) return;
  request->attaching = request->attached != NULL;
  quark__post_bytes_locked(conn, request->submit, request->submit_bytes, NULL);
}

/* ---- submit ---- */

void quark_params_init(quark_params_t *params) {
  *params = (quark_params_t){.nrhs = 1,
                             .dtype = QUARK_F64,
                             .tol = 1e-10,
                             .max_iter = 10000,
                             .priority = QK_PRIORITY_DEFAULT,
                             .source = QUARK_UPLOAD};
}

void quark_contraction_init(quark_contraction_t *contraction) {
  *contraction = (quark_contraction_t){.priority = QK_PRIORITY_DEFAULT};
}

static quark_code_t check_params(const quark_connection_t *conn, const quark_params_t *p,
                                 quark_error_t *err) {
  if (p->nrhs < 1 || p->nrhs > conn->max_rhs)
    return quark__fail(err, p->nrhs ? QUARK_TOO_LARGE : QUARK_BAD_ARGUMENT,
                       "nrhs = %u: a request has 1 to %u right-hand sides", p->nrhs, conn->max_rhs);
  if (p->source == QUARK_FILE && !p->source_file.path)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "source_file.path = NULL: QUARK_FILE needs one");
  if (p->sink_file.path && (p->keep || p->discard))
    return quark__fail(err, QUARK_BAD_ARGUMENT,
                       "sink_file: solutions that go to a file cannot be kept or discarded");
  if (p->source != QUARK_UPLOAD && p->source != QUARK_FILE && !p->column)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "column = NULL: a generated source needs %u",
                       p->nrhs);
  if (p->keep && p->discard)
    return quark__fail(err, QUARK_BAD_ARGUMENT,
                       "keep and discard: solutions can be kept or discarded, not both");
  return QUARK_OK;
}

static quark_code_t check_contraction(const quark_contraction_t *c, quark_error_t *err) {
  if (c->nchannel < 1 || c->nchannel > QK_CHANNELS_MAX)
    return quark__fail(err, c->nchannel ? QUARK_TOO_LARGE : QUARK_BAD_ARGUMENT,
                       "nchannel = %u: a contraction has 1 to %d channels", c->nchannel,
                       QK_CHANNELS_MAX);
  if (!c->channel)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "channel = NULL: %u are needed", c->nchannel);
  if (c->nmomentum > QK_MOMENTA_MAX)
    return quark__fail(err, QUARK_TOO_LARGE, "nmomentum = %u: a contraction has at most %d",
                       c->nmomentum, QK_MOMENTA_MAX);
  if (c->nmomentum > 0 && !c->momentum)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "momentum = NULL: %u are needed", c->nmomentum);
  return QUARK_OK;
}

/* A request with the next number, in no list yet; its message is to be packed. NULL without memory. */
static request_t *new_request(const quark_connection_t *conn, uint32_t nrhs) {
  request_t *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->number = conn->last_request + 1;
  r->nrhs = nrhs;
  r->residual = NAN;
  r->rhs = calloc(nrhs, sizeof *r->rhs);
  if (r->rhs) return r;
  free(r);
  return NULL;
}

/* Takes r to the end of the list and on its way to the daemon; frees it on error. */
static quark_code_t add_request(quark_connection_t *conn, request_t *r, quark_error_t *err) {
  quark_code_t code = QUARK_OK;
  if (conn->state == SESSION_OPEN)
    code = quark__post_bytes_locked(conn, r->submit, r->submit_bytes, err);
  if (code != QUARK_OK) {
    quark__request_free(r);
    return code;
  }
  request_t **end = &conn->requests;
  while (*end) end = &(*end)->next;
  *end = r;
  if (r->number > conn->last_request) conn->last_request = r->number;
  return QUARK_OK;
}

static void release(quark_connection_t *conn, request_t *r) {
  if (r->state == REQUEST_REJECTED || conn->state == SESSION_DEAD) {
    remove_request(conn, r);
    return;
  }
  if (r->keep) { /* the daemon ends what has not ended and says no more of it */
    post_release(conn, r->number, NULL);
    remove_request(conn, r);
    return;
  }
  quark__download_fail_locked(r, QUARK_CANCELLED, "the request was released");
  r->released = r->cancel_all = true;
  for (uint32_t i = 0; i < r->nrhs; i++) r->rhs[i].acked = true;
  if (r->ended < r->nrhs) post_cancel(conn, r->number, QUARK_ALL, NULL);
  post_ack(conn, r->number, NULL, 0, NULL);
  if (r->ended == r->nrhs) remove_request(conn, r);
}

quark_code_t quark__request_ask_locked(quark_connection_t *conn, request_t *r, const char *what,
                                       uint64_t *request, uint64_t *bytes, quark_error_t *err) {
  if (!r || !r->submit) {
    quark__request_free(r);
    return quark__fail(err, QUARK_NO_MEMORY, "no memory for a %s", what);
  }
  const uint64_t number = r->number;
  int64_t deadline = quark__now_ms() + conn->timeout_ms;
  quark_code_t code = add_request(conn, r, err);
  if (code != QUARK_OK) return code;
  bool in_time = true;
  while (r && r->state == REQUEST_SUBMITTED && in_time) {
    in_time = quark__wait_on_locked(conn, &deadline);
    r = quark__request_find_locked(conn, number);
  }
  if (r && r->state == REQUEST_ACCEPTED) {
    *request = number;
    if (bytes) *bytes = r->field_bytes;
  } else if (r && r->state == REQUEST_REJECTED)
    code = quark__hand_on(err, &r->error);
  else
    code = quark__fail(err, QUARK_TIMEOUT, "no answer to %s from %s within %u ms", what,
                       conn->endpoint, conn->timeout_ms);
  if (code != QUARK_OK && r) release(conn, r);
  return code;
}

quark_code_t quark_submit(quark_connection_t *conn, const quark_params_t *params, uint64_t *request,
                          uint64_t *field_bytes, quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = quark__check_alive_locked(conn, err);
  if (code == QUARK_OK) code = check_params(conn, params, err);
  if (code == QUARK_OK) {
    request_t *r = new_request(conn, params->nrhs);
    if (r) {
      r->keep = params->keep;
      r->submit = quark__pack_submit(r->number, params, conn->setup, &r->submit_bytes);
    }
    code = quark__request_ask_locked(conn, r, "SUBMIT", request, field_bytes, err);
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}

quark_code_t quark_contract(quark_connection_t *conn, const quark_contraction_t *contraction,
                            uint64_t *request, uint64_t *bytes, quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = quark__check_alive_locked(conn, err);
  if (code == QUARK_OK) code = check_contraction(contraction, err);
  if (code == QUARK_OK) {
    request_t *r = new_request(conn, 1);
    if (r) r->submit = quark__pack_contract(r->number, contraction, &r->submit_bytes);
    code = quark__request_ask_locked(conn, r, "CONTRACT", request, bytes, err);
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}

/* ---- what the user asks about requests ---- */

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
    const request_t *r = find(conn, request, err);
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

void quark__request_refused_locked(quark_connection_t *conn, request_t *r, quark_code_t code,
                                   const char *text) {
  const bool gone = code == QUARK_NOT_FOUND || code == QUARK_DENIED;
  if (!r->attaching || (r->state != REQUEST_SUBMITTED && !gone)) return;
  r->attaching = false;
  if (r->released) {
    remove_request(conn, r);
  } else if (r->state == REQUEST_SUBMITTED) {
    r->state = REQUEST_REJECTED;
    quark__fail(&r->error, code, "%s", text);
  } else {
    quark__request_fail_locked(r, code, text);
  }
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
  return n ? post_ack(conn, r->number, list, n, err) : QUARK_OK;
}

quark_code_t quark_ack(quark_connection_t *conn, uint64_t request, int32_t rhs,
                       quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = quark__check_alive_locked(conn, err);
  request_t *r = code == QUARK_OK ? find(conn, request, err) : NULL;
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
  const quark_code_t code =
      o->forget ? post_release(conn, o->request, err) : post_cancel(conn, o->request, o->rhs, err);
  return code == QUARK_OK ? post_ping(conn, err) : code;
}

/* Then PING: its answer shows that the order has been taken. Both are lost with a connection that
 * breaks. */
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
  request_t *r = find(conn, request, err);
  if (r) release(conn, r);
  pthread_mutex_unlock(&conn->lock);
  return r ? QUARK_OK : QUARK_NOT_FOUND;
}

quark_code_t quark_forget(quark_connection_t *conn, uint64_t request, quark_error_t *err) {
  const order_t order = {.name = "RELEASE", .forget = true, .request = request};
  pthread_mutex_lock(&conn->lock);
  request_t *r = quark__request_find_locked(conn, request);
  if (r) remove_request(conn, r);
  const quark_code_t code = carry_out(conn, &order, err);
  pthread_mutex_unlock(&conn->lock);
  return code;
}
