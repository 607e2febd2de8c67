#include "client/libquark/request/submit.h"

#include <math.h>
#include <stdlib.h>

#include "client/libquark/connection/clock.h"
#include "client/libquark/connection/error.h"
#include "client/libquark/request/pack.h"

void quark_params_init(quark_params_t *params) {
  *params = (quark_params_t){.nrhs = 1,
                             .dtype = QUARK_F64,
                             .tol = 1e-10,
                             .max_iter = 10000,
                             .flavour = 1,
                             .part = -1,
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
  if (p->nmass > 0 && (!p->mass || p->nmass > QK_MASSES_MAX || p->nrhs % p->nmass != 0))
    return quark__fail(err, QUARK_BAD_ARGUMENT,
                       "nmass = %u: 1 to %d masses, and nrhs = %u is a multiple of that", p->nmass,
                       QK_MASSES_MAX, p->nrhs);
  if (p->source == QUARK_VECTOR && !p->vectors)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "vectors = NULL: QUARK_VECTOR needs a name");
  if (p->sink_file.path && quark__has_grid(p->grid))
    return quark__fail(err, QUARK_BAD_ARGUMENT,
                       "grid and sink_file: solutions that go to a file go whole");
  if (p->project && (p->sink_file.path || p->keep || p->discard))
    return quark__fail(err, QUARK_BAD_ARGUMENT,
                       "project: what is projected cannot be kept, discarded or go to a file");
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

request_t *quark__request_new(const quark_connection_t *conn, uint32_t nrhs) {
  request_t *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->number = conn->requests->last_number + 1;
  r->nrhs = nrhs;
  r->residual = NAN;
  r->rhs = calloc(nrhs, sizeof *r->rhs);
  if (r->rhs) return r;
  free(r);
  return NULL;
}

quark_code_t quark__submit_locked(quark_connection_t *conn, request_t *r, const char *what,
                                  uint64_t *request, uint64_t *bytes, quark_error_t *err) {
  if (!r || !r->submit) {
    quark__request_free(r);
    return quark__fail(err, QUARK_NO_MEMORY, "no memory for a %s", what);
  }
  const uint64_t number = r->number;
  int64_t deadline = quark__now_ms() + conn->timeout_ms;
  quark_code_t code = quark__request_add_locked(conn, r, err);
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
  if (code != QUARK_OK && r) quark__request_release_locked(conn, r);
  return code;
}

/* What a daemon must know to carry out the request as it is meant. One that knows a feature knows
 * those behind it here, too. */
static unsigned feature_of(const quark_params_t *params) {
  if (params->smear.shift > 0) return QK_FEATURE_SHIFT;
  if (params->nmass > 0) return QK_FEATURE_MASSES;
  if (params->five_d) return QK_FEATURE_FIVE;
  if (params->project) return QK_FEATURE_PROJECT;
  if (params->source == QUARK_VECTOR) return QK_FEATURE_EIGEN;
  if (quark__has_grid(params->grid)) return QK_FEATURE_JOIN;
  if (params->batch_only) return QK_FEATURE_SINGLE_RHS;
  if (params->tol_abs != 0 || params->tol_hq != 0) return QK_FEATURE_STOPPING;
  if (params->work != QUARK_WORK_SOLVE || params->dagger || params->parity != QUARK_PARITY_ALL ||
      params->schur != QUARK_SCHUR_NONE)
    return QK_FEATURE_WORK;
  const bool columns = params->source != QUARK_UPLOAD && params->source != QUARK_FILE;
  for (uint32_t i = 0; columns && i < params->nrhs; i++) /* no masses */
    if (params->column[i].flavour != 0 && params->column[i].flavour != 1)
      return QK_FEATURE_COLUMN_FLAVOUR;
  return params->flavour != 0 && params->flavour != 1 ? QK_FEATURE_FLAVOUR : 0;
}

quark_code_t quark_submit(quark_connection_t *conn, const quark_params_t *params, uint64_t *request,
                          uint64_t *field_bytes, quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = quark__check_alive_locked(conn, err);
  if (code == QUARK_OK) code = check_params(conn, params, err);
  if (code == QUARK_OK) {
    request_t *r = quark__request_new(conn, params->nrhs);
    if (r) {
      r->keep = params->keep;
      r->feature = feature_of(params);
      r->submit = quark__pack_submit(r->number, params, conn->setup, &r->submit_bytes);
    }
    code = quark__submit_locked(conn, r, "SUBMIT", request, field_bytes, err);
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
    request_t *r = quark__request_new(conn, 1);
    if (r) r->submit = quark__pack_contract(r->number, contraction, &r->submit_bytes);
    code = quark__submit_locked(conn, r, "CONTRACT", request, bytes, err);
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}
