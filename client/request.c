#include "client/internal.h"

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
    result->norm_b = result->norm_x = NAN;
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
  const bool first = r->state == REQUEST_SUBMITTED, uploads = m->upload_until > 0;
  r->state = REQUEST_ACCEPTED;
  r->field_bytes = m->field_bytes;
  if (!first) quark__download_resume_locked(conn, r);
  if (r->ended == r->nrhs) return;
  if (first && uploads && !quark__upload_init(&r->up, r->nrhs, m->field_bytes)) {
    quark__request_fail_locked(r, QUARK_NO_MEMORY, "no memory for the upload");
    post_cancel(conn, r->number, QUARK_ALL, NULL);
    return;
  }
  if (r->up.ring) {
    if (m->upload_next > r->up.written || r->up.written - m->upload_next > r->up.capacity) {
      quark__request_fail_locked(r, QUARK_ENGINE_LOST,
                                 "a part of the upload was lost with the connection: submit again");
      post_cancel(conn, r->number, QUARK_ALL, NULL);
      return;
    }
    r->up.sent = m->upload_next;
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
  quark_result_t *result = &r->rhs[m->rhs].result;
  *result = (quark_result_t){.request = m->request,
                             .rhs = m->rhs,
                             .status = (quark_code_t)m->status,
                             .true_residual = m->true_residual,
                             .iterations = m->iterations,
                             .applications = m->applications,
                             .seconds = m->seconds,
                             .bytes = m->bytes,
                             .norm_b = m->has_norm_b ? m->norm_b : NAN,
                             .norm_x = m->has_norm_x ? m->norm_x : NAN};
  snprintf(result->text, sizeof result->text, "%.255s", m->text ? m->text : "");
  end_rhs(r, m->rhs);
}

void quark__request_result_locked(quark_connection_t *conn, const Quark__Result *m) {
  request_t *r = quark__request_find_locked(conn, m->request);
  if (!r || m->rhs >= r->nrhs) return;
  rhs_t *rhs = &r->rhs[m->rhs];
  if (!rhs->ended) store_result(r, m);
  if (r->released) rhs->acked = true;
  uint32_t index = m->rhs;
  if (rhs->acked) post_ack(conn, r->number, &index, 1, NULL); /* the first one may have been lost */
  if (r->ended < r->nrhs) return;
  quark__upload_fini(&r->up);
  if (r->released) remove_request(conn, r);
}

void quark__request_resume_locked(quark_connection_t *conn, request_t *request) {
  if (request->state == REQUEST_REJECTED) return;
  request->up.until = 0; /* nothing is sent before ACCEPTED says where to go on */
  bool open = request->ended < request->nrhs || request->downloads;
  for (uint32_t i = 0; i < request->nrhs; i++)
    open |= request->rhs[i].result.bytes > 0 && !request->rhs[i].acked;
  if (open) quark__post_bytes_locked(conn, request->submit, request->submit_bytes, NULL);
}

/* ---- submit ---- */

void quark_params_init(quark_params_t *params) {
  *params = (quark_params_t){
      .nrhs = 1, .dtype = QUARK_F64, .tol = 1e-10, .max_iter = 10000, .source = QUARK_UPLOAD};
}

static bool pack_submit(request_t *r, const quark_params_t *p) {
  const size_t n = p->source == QUARK_UPLOAD ? 0 : p->nrhs;
  Quark__Column *column = calloc(n ? n : 1, sizeof *column),
                **list = calloc(n ? n : 1, sizeof *list);
  Quark__Submit submit = QUARK__SUBMIT__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  if (!column || !list) goto out;
  for (size_t i = 0; i < n; i++) {
    const quark_column_t *c = &p->column[i];
    quark__column__init(&column[i]);
    column[i].x = c->x;
    column[i].y = c->y;
    column[i].z = c->z;
    column[i].t = c->t;
    column[i].spin = c->spin;
    column[i].colour = c->colour;
    column[i].seed = c->seed;
    column[i].has_x = column[i].has_y = column[i].has_z = p->source == QUARK_POINT;
    column[i].has_t = column[i].has_spin = column[i].has_colour = true;
    column[i].has_seed = p->source == QUARK_Z2 || p->source == QUARK_Z4;
    list[i] = &column[i];
  }
  submit.request = r->number;
  submit.setup = (char *)(uintptr_t)p->setup;
  submit.nrhs = p->nrhs;
  submit.dtype = (Quark__Dtype)p->dtype;
  submit.has_basis = submit.has_normalisation = submit.has_max_iter = submit.has_deadline_ms = true;
  submit.basis = (Quark__Basis)p->basis;
  submit.normalisation = (Quark__Normalisation)p->normalisation;
  submit.tol = p->tol;
  submit.max_iter = p->max_iter;
  submit.deadline_ms = p->deadline_ms;
  submit.source = (Quark__SourceKind)p->source;
  submit.column = list;
  submit.n_column = n;
  submit.sink = p->discard ? QUARK__SINK__SINK_NONE : QUARK__SINK__SINK_DOWNLOAD;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_SUBMIT;
  message.submit = &submit;
  r->submit = qk_control_pack(&message.base, &r->submit_bytes);
out:
  free(list);
  free(column);
  return r->submit != NULL;
}

static quark_code_t check_params(const quark_connection_t *conn, const quark_params_t *p,
                                 quark_error_t *err) {
  if (p->nrhs < 1 || p->nrhs > conn->max_rhs)
    return quark__fail(err, p->nrhs ? QUARK_TOO_LARGE : QUARK_BAD_ARGUMENT,
                       "nrhs = %u: a request has 1 to %u right-hand sides", p->nrhs, conn->max_rhs);
  if (p->source != QUARK_UPLOAD && !p->column)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "column = NULL: a generated source needs %u",
                       p->nrhs);
  return QUARK_OK;
}

/* A new request at the end of the list, on its way to the daemon. */
static quark_code_t add_request(quark_connection_t *conn, const quark_params_t *params,
                                uint64_t *number, quark_error_t *err) {
  quark_code_t code = check_params(conn, params, err);
  if (code != QUARK_OK) return code;
  request_t *r = calloc(1, sizeof *r);
  if (r) {
    r->number = conn->last_request + 1;
    r->nrhs = params->nrhs;
    r->residual = NAN;
    r->rhs = calloc(params->nrhs, sizeof *r->rhs);
  }
  if (!r || !r->rhs || !pack_submit(r, params)) {
    quark__request_free(r);
    return quark__fail(err, QUARK_NO_MEMORY, "no memory for a request of %u right-hand sides",
                       params->nrhs);
  }
  if (conn->state == SESSION_OPEN &&
      (code = quark__post_bytes_locked(conn, r->submit, r->submit_bytes, err)) != QUARK_OK) {
    quark__request_free(r);
    return code;
  }
  request_t **end = &conn->requests;
  while (*end) end = &(*end)->next;
  *end = r;
  *number = conn->last_request = r->number;
  return QUARK_OK;
}

static void release(quark_connection_t *conn, request_t *r) {
  if (r->state == REQUEST_REJECTED || conn->state == SESSION_DEAD) {
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

quark_code_t quark_submit(quark_connection_t *conn, const quark_params_t *params, uint64_t *request,
                          uint64_t *field_bytes, quark_error_t *err) {
  uint64_t number = 0;
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = quark__check_alive_locked(conn, err);
  if (code == QUARK_OK) code = add_request(conn, params, &number, err);
  if (code != QUARK_OK) goto out;
  const int64_t deadline = quark__now_ms() + conn->timeout_ms;
  request_t *r = quark__request_find_locked(conn, number);
  bool in_time = true;
  while (r && r->state == REQUEST_SUBMITTED && in_time) {
    in_time = quark__wait_locked(conn, deadline);
    r = quark__request_find_locked(conn, number);
  }
  if (r && r->state == REQUEST_ACCEPTED) {
    *request = number;
    if (field_bytes) *field_bytes = r->field_bytes;
  } else if (r && r->state == REQUEST_REJECTED)
    code = quark__hand_on(err, &r->error);
  else
    code = quark__fail(err, QUARK_TIMEOUT, "no answer to SUBMIT from %s within %u ms",
                       conn->endpoint, conn->timeout_ms);
  if (code != QUARK_OK && r) release(conn, r);
out:
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

/* CANCEL, then PING: its answer shows that CANCEL has been taken. */
static quark_code_t cancel(quark_connection_t *conn, uint64_t request, int32_t rhs,
                           quark_error_t *err) {
  const int64_t deadline = quark__now_ms() + conn->timeout_ms;
  uint64_t asked_in = conn->sessions - 1, ping = 0;
  conn->last_error_request = 0;
  for (;;) {
    quark_code_t code = quark__check_alive_locked(conn, err);
    if (code != QUARK_OK) return code;
    if (asked_in != conn->sessions) {
      asked_in = conn->sessions;
      ping = ++conn->pings;
      if ((code = post_cancel(conn, request, rhs, err)) != QUARK_OK) return code;
      if ((code = post_ping(conn, err)) != QUARK_OK) return code;
    } else if (conn->last_error_request == request) {
      return quark__hand_on(err, &conn->last_error);
    } else if (conn->pongs >= ping)
      return QUARK_OK;
    if (!quark__wait_locked(conn, deadline))
      return quark__fail(err, QUARK_TIMEOUT, "no answer to CANCEL from %s within %u ms",
                         conn->endpoint, conn->timeout_ms);
  }
}

quark_code_t quark_cancel(quark_connection_t *conn, uint64_t request, int32_t rhs,
                          quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  request_t *r = quark__request_find_locked(conn, request);
  quark_code_t code = r && rhs != QUARK_ALL ? check_rhs(r, rhs, err) : QUARK_OK;
  if (code == QUARK_OK && r && rhs == QUARK_ALL) r->cancel_all = true;
  if (code == QUARK_OK) code = cancel(conn, request, rhs, err);
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
