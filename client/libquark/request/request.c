#include "client/libquark/request/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/libquark/connection/error.h"
#include "client/libquark/memory/buffer.h"
#include "client/libquark/request/orders.h"
#include "proto/control.h"

/* ---- the list ---- */

requests_t *quark__requests_create(bool known_id) {
  requests_t *requests = calloc(1, sizeof *requests);
  if (!requests) return NULL;
  requests->spare.fd = -1;
  if (!known_id) return requests;
  /* Begins above every number that a process has used with this id. */
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  requests->last_number = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
  return requests;
}

void quark__request_drop_buffers(request_t *r, uint64_t end) {
  while (r->dropped < r->nrhs && (end == UINT64_MAX || (r->dropped + 1) * r->field_bytes <= end)) {
    rhs_t *rhs = &r->rhs[r->dropped++];
    if (rhs->buffer) quark__buffer_drop(rhs->buffer);
    rhs->buffer = NULL;
  }
  /* it may have been begun anew by chunks, before CREDIT for the descriptor came */
  const uint64_t least = r->dropped * r->up.field_bytes;
  if (r->up.by_put && r->up.sent < least) r->up.sent = least;
}

void quark__request_free(request_t *request) {
  if (!request) return;
  quark__request_drop_buffers(request, UINT64_MAX);
  quark__upload_fini(&request->up);
  free(request->submit);
  for (uint32_t i = 0; i < request->nrhs && request->rhs; i++) {
    free(request->rhs[i].history);
    if (request->rhs[i].wall) quark__wall_sums__free_unpacked(request->rhs[i].wall, NULL);
  }
  free(request->rhs);
  free(request->attached);
  free(request->column);
  free(request->mass);
  free(request->vectors);
  free(request->project);
  free(request->paths[0]);
  free(request->paths[1]);
  free(request);
}

void quark__requests_destroy(requests_t *requests) {
  if (!requests) return;
  while (requests->first) {
    request_t *next = requests->first->next;
    quark__request_free(requests->first);
    requests->first = next;
  }
  quark__spare_drop(&requests->spare);
  free(requests);
}

request_t *quark__request_find_locked(const quark_connection_t *conn, uint64_t number) {
  for (request_t *r = conn->requests->first; r; r = r->next)
    if (r->number == number) return r;
  return NULL;
}

request_t *quark__request_known_locked(const quark_connection_t *conn, uint64_t number,
                                       quark_error_t *err) {
  request_t *r = quark__request_find_locked(conn, number);
  if (r && !r->released) return r;
  quark__fail(err, QUARK_NOT_FOUND, "no request %llu", (unsigned long long)number);
  return NULL;
}

quark_code_t quark__request_add_locked(quark_connection_t *conn, request_t *r, quark_error_t *err) {
  quark_code_t code = QUARK_OK;
  if (conn->state == SESSION_OPEN && !quark__has_feature(conn, r->feature))
    code = quark__too_old(conn, r->feature, "SUBMIT", err);
  else if (conn->state == SESSION_OPEN)
    code = quark__post_bytes_locked(conn, r->submit, r->submit_bytes, r->feature, err);
  if (code != QUARK_OK) {
    quark__request_free(r);
    return code;
  }
  request_t **end = &conn->requests->first;
  while (*end) end = &(*end)->next;
  *end = r;
  if (r->number > conn->requests->last_number) conn->requests->last_number = r->number;
  return QUARK_OK;
}

void quark__request_remove_locked(quark_connection_t *conn, request_t *r) {
  request_t **link = &conn->requests->first;
  while (*link != r) link = &(*link)->next;
  *link = r->next;
  quark__download_fail(&r->downloads, QUARK_CANCELLED, "the request was released");
  quark__request_free(r);
}

void quark__request_release_locked(quark_connection_t *conn, request_t *r) {
  if (r->state == REQUEST_REJECTED || conn->state == SESSION_DEAD) {
    quark__request_remove_locked(conn, r);
    return;
  }
  if (r->keep) { /* the daemon ends it and sends no more messages about it */
    quark__post_release_locked(conn, r->number, NULL);
    quark__request_remove_locked(conn, r);
    return;
  }
  quark__download_fail(&r->downloads, QUARK_CANCELLED, "the request was released");
  r->released = r->cancel_all = true;
  for (uint32_t i = 0; i < r->nrhs; i++) r->rhs[i].acked = true;
  if (r->ended < r->nrhs) quark__post_cancel_locked(conn, r->number, QUARK_ALL, NULL);
  quark__post_ack_locked(conn, r->number, NULL, 0, NULL);
  if (r->ended == r->nrhs) quark__request_remove_locked(conn, r);
}

/* ---- how right-hand sides end ---- */

/* JOIN does not know how many there are. False: no memory, or ACCEPTED makes no sense. */
static bool learn_nrhs(request_t *r, uint32_t nrhs) {
  if (nrhs < 1 || nrhs > QK_REQUEST_RHS_MAX) return false;
  rhs_t *rhs = calloc(nrhs, sizeof *rhs);
  if (!rhs) return false;
  free(r->rhs);
  r->rhs = rhs;
  r->nrhs = nrhs;
  return true;
}

static void end_rhs(request_t *request, uint32_t rhs) {
  request->rhs[rhs].ended = true;
  request->ended++;
  request->unreported++;
}

void quark__request_fail_locked(request_t *request, quark_code_t code, const char *text) {
  for (uint32_t i = 0; i < request->nrhs; i++) {
    if (request->rhs[i].ended) {
      request->rhs[i].result.bytes = 0; /* solutions are gone with the session */
      continue;
    }
    quark_result_t *result = &request->rhs[i].result;
    *result = (quark_result_t){.request = request->number,
                               .rhs = i,
                               .status = code,
                               .true_residual = NAN,
                               .hq_residual = NAN};
    result->norm_b = result->norm_x = result->queue_seconds = result->unitarity = NAN;
    snprintf(result->text, sizeof result->text, "%.255s", text);
    end_rhs(request, i);
  }
  if (request->state == REQUEST_SUBMITTED) {
    request->state = REQUEST_REJECTED;
    quark__fail(&request->error, code, "%s", text);
  }
  quark__download_fail(&request->downloads, code, text);
  quark__request_drop_buffers(request, UINT64_MAX);
  quark__upload_fini(&request->up);
}

void quark__request_resume_locked(quark_connection_t *conn, request_t *request) {
  if (request->state == REQUEST_REJECTED) return;
  request->up.until = 0; /* nothing is sent before ACCEPTED says where to go on */
  quark__download_hold(request->downloads);
  bool open =
      request->state == REQUEST_SUBMITTED || request->ended < request->nrhs || request->downloads;
  for (uint32_t i = 0; i < request->nrhs; i++)
    open |= request->rhs[i].result.bytes > 0 && !request->rhs[i].acked;
  if (!open) return;
  if (!quark__has_feature(conn, request->feature)) {
    quark_error_t old;
    quark__request_fail_locked(request, quark__too_old(conn, request->feature, "SUBMIT", &old),
                               old.text);
    return;
  }
  request->attaching = request->attached != NULL;
  quark__post_bytes_locked(conn, request->submit, request->submit_bytes, request->feature, NULL);
}

/* Whether what the upload lacks from that byte on is still there. */
static bool can_go_on(const request_t *r, uint64_t next) {
  const upload_t *up = &r->up;
  if (!up->by_put) return quark__upload_has(up, next);
  return next <= up->written && next >= r->dropped * up->field_bytes;
}

static bool takes_zeros(const quark_connection_t *conn) {
  return quark__has_feature(conn, QK_FEATURE_ZEROS) &&
         quark__has_feature(conn, QK_FEATURE_BLOCK_SUMS);
}

/* Whether the daemon takes the checksums, and the runs, that the upload has begun with. */
static bool has_features(const quark_connection_t *conn, const request_t *r) {
  bool sparse = r->up.zeros;
  for (uint32_t i = r->dropped; i < r->nrhs && r->up.by_put; i++) sparse |= r->rhs[i].sparse;
  return (!r->up.by_blocks || quark__has_feature(conn, QK_FEATURE_BLOCK_SUMS)) &&
         (!sparse || takes_zeros(conn));
}

/* ---- messages of the daemon ---- */

void quark__request_accepted_locked(quark_connection_t *conn, const Quark__Accepted *m) {
  request_t *r = quark__request_find_locked(conn, m->request);
  if (!r || r->state == REQUEST_REJECTED) return;
  const bool first = r->state == REQUEST_SUBMITTED;
  const bool uploads = m->upload_until > 0 && !r->attached;
  r->state = REQUEST_ACCEPTED;
  r->field_bytes = m->field_bytes;
  r->has_token = m->has_join && m->join.len == sizeof r->token;
  if (r->has_token) memcpy(r->token, m->join.data, sizeof r->token);
  if (first && r->joined && !learn_nrhs(r, m->nrhs)) {
    quark__request_fail_locked(r, QUARK_NO_MEMORY, "no memory for a part of a request");
    return;
  }
  if (r->ended == r->nrhs) return;
  spare_t *spare = conn->local >= 0 ? &conn->requests->spare : NULL;
  if (first && uploads &&
      !quark__upload_init(&r->up, r->nrhs, m->field_bytes, spare,
                          quark__has_feature(conn, QK_FEATURE_BLOCK_SUMS), takes_zeros(conn))) {
    quark__request_fail_locked(r, QUARK_NO_MEMORY, "no memory for the upload");
    quark__post_cancel_locked(conn, r->number, QUARK_ALL, NULL);
    return;
  }
  if (first && r->joined && r->up.capacity > 0) quark__upload_begin_at(&r->up, m->upload_next);
  if (first) r->begun = m->upload_next;
  if (r->up.capacity > 0) {
    if (!can_go_on(r, m->upload_next)) {
      quark__request_fail_locked(r, QUARK_ENGINE_LOST,
                                 "a part of the upload was lost with the connection: submit again");
      quark__post_cancel_locked(conn, r->number, QUARK_ALL, NULL);
      return;
    }
    if (!has_features(conn, r)) {
      quark__request_fail_locked(r, QUARK_ENGINE_LOST,
                                 "the daemon that has come back is an older one, which cannot go "
                                 "on with this upload: submit again");
      quark__post_cancel_locked(conn, r->number, QUARK_ALL, NULL);
      return;
    }
    r->up.sent = r->up.taken = m->upload_next;
    quark__request_drop_buffers(r, r->up.taken);
    r->up.until = m->upload_until;
  }
  if (r->cancel_all) quark__post_cancel_locked(conn, r->number, QUARK_ALL, NULL);
}

void quark__request_rejected_locked(quark_connection_t *conn, const Quark__Rejected *m) {
  request_t *r = quark__request_find_locked(conn, m->request);
  if (!r) return;
  if (r->released)
    quark__request_remove_locked(conn, r);
  else if (r->state == REQUEST_SUBMITTED) {
    r->state = REQUEST_REJECTED;
    quark__fail(&r->error, (quark_code_t)m->status, "%s", m->text);
    r->error.retry_after_ms = m->retry_after_ms;
  } else
    quark__request_fail_locked(r, (quark_code_t)m->status, m->text);
}

/* Every second one goes. */
static void thin(history_t *h) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < h->n; i += 2, kept++) {
    h->iteration[kept] = h->iteration[i];
    h->residual[kept] = h->residual[i];
  }
  h->n = kept;
}

/* Fewer iterations than before: the solve has begun anew, and so has this. Without memory it stays
 * away. */
static void remember(rhs_t *rhs, uint64_t iteration, double residual) {
  if (!rhs->history) rhs->history = calloc(1, sizeof *rhs->history);
  history_t *h = rhs->history;
  if (!h) return;
  const uint64_t last = h->n > 0 ? h->iteration[h->n - 1] : 0;
  if (h->n > 0 && iteration == last) return;
  if (iteration < last) h->n = 0;
  if (h->n == QUARK_HISTORY) thin(h);
  h->iteration[h->n] = iteration;
  h->residual[h->n++] = residual;
}

void quark__request_progress_locked(quark_connection_t *conn, const Quark__Progress *m) {
  request_t *r = quark__request_find_locked(conn, m->request);
  if (!r) return;
  r->queued = m->queued;
  r->running = (uint32_t)m->n_running;
  r->iterations = 0;
  r->residual = NAN;
  for (size_t i = 0; i < m->n_running; i++) {
    const Quark__RhsProgress *one = m->running[i];
    r->residual = fmax(r->residual, one->residual);
    if (one->iterations > r->iterations) r->iterations = one->iterations;
    if (one->rhs < r->nrhs) remember(&r->rhs[one->rhs], one->iterations, one->residual);
  }
  if (m->eigen)
    r->eigen = (quark_eigen_progress_t){m->eigen->restart, m->eigen->converged, m->eigen->count,
                                        m->eigen->seconds};
  r->progress_new = true;
}

static void store_wall(rhs_t *rhs, const Quark__WallSums *wall) {
  if (rhs->wall) quark__wall_sums__free_unpacked(rhs->wall, NULL);
  rhs->wall = wall ? (Quark__WallSums *)qk_control_copy(&wall->base) : NULL;
}

static void store_result(request_t *r, const Quark__Result *m) {
  const bool solved = m->status == QUARK_OK || m->iterations > 0 || m->bytes > 0;
  quark_result_t *result = &r->rhs[m->rhs].result;
  *result = (quark_result_t){.request = m->request,
                             .rhs = m->rhs,
                             .status = (quark_code_t)m->status,
                             .true_residual = solved ? m->true_residual : NAN,
                             .hq_residual = m->has_hq_residual ? m->hq_residual : NAN,
                             .iterations = m->iterations,
                             .applications = m->applications,
                             .seconds = m->seconds,
                             .bytes = m->bytes,
                             .norm_b = m->has_norm_b ? m->norm_b : NAN,
                             .norm_x = m->has_norm_x ? m->norm_x : NAN,
                             .queue_seconds = m->has_queue_seconds ? m->queue_seconds : NAN,
                             .digest = m->digest,
                             .unitarity = m->has_unitarity ? m->unitarity : NAN};
  snprintf(result->text, sizeof result->text, "%.255s", m->text ? m->text : "");
  store_wall(&r->rhs[m->rhs], m->wall);
  r->rhs[m->rhs].attempt = m->attempt;
}

void quark__request_result_locked(quark_connection_t *conn, const Quark__Result *m) {
  request_t *r = quark__request_find_locked(conn, m->request);
  if (!r || m->rhs >= r->nrhs) return;
  rhs_t *rhs = &r->rhs[m->rhs];
  if (!rhs->ended) {
    store_result(r, m);
    end_rhs(r, m->rhs);
  } else { /* the daemon may have lost the solution, and may have computed it again */
    const bool another = m->attempt > rhs->attempt, gone = rhs->result.bytes > 0 && m->bytes == 0;
    if (another || gone) store_result(r, m);
    quark__download_result_locked(conn, &r->downloads, &rhs->result, another);
  }
  if (r->released) rhs->acked = true;
  uint32_t index = m->rhs;
  if (rhs->acked)
    quark__post_ack_locked(conn, r->number, &index, 1, NULL); /* an earlier ACK may be lost */
  if (r->ended < r->nrhs) return;
  quark__request_drop_buffers(r, UINT64_MAX);
  quark__upload_finish(&r->up, &conn->requests->spare);
  if (r->released) quark__request_remove_locked(conn, r);
}

void quark__request_credit_locked(quark_connection_t *conn, const Quark__Credit *m) {
  request_t *r = quark__request_find_locked(conn, m->request);
  if (!r) return;
  if (m->until > r->up.until) r->up.until = m->until;
  if (m->next > r->up.taken) r->up.taken = m->next;
  quark__request_drop_buffers(r, r->up.taken);
}

/* The daemon answers an ATTACH that fails with an ERROR. */
static void refuse(quark_connection_t *conn, request_t *r, quark_code_t code, const char *text) {
  const bool gone = code == QUARK_NOT_FOUND || code == QUARK_DENIED;
  if (r->joined && r->state == REQUEST_SUBMITTED) r->attaching = true; /* another has the part */
  if (!r->attaching || (r->state != REQUEST_SUBMITTED && !gone)) return;
  r->attaching = false;
  if (r->released) {
    quark__request_remove_locked(conn, r);
  } else if (r->state == REQUEST_SUBMITTED) {
    r->state = REQUEST_REJECTED;
    quark__fail(&r->error, code, "%s", text);
  } else {
    quark__request_fail_locked(r, code, text);
  }
}

void quark__request_error_locked(quark_connection_t *conn, const Quark__Error *m) {
  request_t *r = quark__request_find_locked(conn, m->request);
  if (!r) return;
  quark__download_fail(&r->downloads, (quark_code_t)m->status, m->text);
  refuse(conn, r, (quark_code_t)m->status, m->text);
}
