#include "client/libquark/eigen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/libquark/ask.h"
#include "client/libquark/connection/error.h"
#include "client/libquark/request/attach.h"
#include "client/libquark/request/pack.h"
#include "client/libquark/request/submit.h"
#include "proto/control.h"
#include "proto/eigen_check.h"

_Static_assert((int)QUARK_EIGEN_NAMES == (int)QK_EIGEN_NAMES_MAX, "all that a setup can have");

/* ---- what the daemon says -------------------------------------------------------------------- */

static void read_one(quark_eigen_report_t *r, const Quark__EigenReport *m) {
  *r = (quark_eigen_report_t){.state = (quark_eigen_state_t)m->state,
                              .kind = (quark_eigen_kind_t)m->kind,
                              .count = m->count,
                              .tol = m->tol,
                              .lowest = m->has_lowest ? m->lowest : NAN,
                              .highest = m->has_highest ? m->highest : NAN,
                              .residual = m->has_residual ? m->residual : NAN,
                              .seconds = m->has_seconds ? m->seconds : NAN,
                              .device_bytes = m->device_bytes,
                              .host_bytes = m->host_bytes,
                              .basis = m->basis,
                              .zero_plus = m->has_zero_plus ? (int32_t)m->zero_plus : -1,
                              .zero_minus = m->has_zero_minus ? (int32_t)m->zero_minus : -1};
  r->links = quark__read_smearing(m->links);
  for (size_t mu = 0; mu < m->n_block && mu < 4; mu++) r->block[mu] = m->block[mu];
  snprintf(r->name, sizeof r->name, "%s", m->name);
  snprintf(r->user, sizeof r->user, "%s", m->user ? m->user : "");
  snprintf(r->field, sizeof r->field, "%s", m->field ? m->field : "");
  snprintf(r->unwritten, sizeof r->unwritten, "%s", m->unwritten ? m->unwritten : "");
}

void quark__eigen_read_locked(quark_connection_t *conn, const Quark__SetupReport *m) {
  answers_t *answers = conn->answers;
  answers->neigen = (uint32_t)(m->n_eigen < QUARK_EIGEN_NAMES ? m->n_eigen : QUARK_EIGEN_NAMES);
  for (uint32_t i = 0; i < answers->neigen; i++) read_one(&answers->eigen[i], m->eigen[i]);
}

/* ---- the user's side ------------------------------------------------------------------------- */

const char *quark_eigen_kind_name(quark_eigen_kind_t kind) {
  return qk_eigen_kind_name((int)kind);
}

bool quark_eigen_kind_parse(const char *name, quark_eigen_kind_t *kind) {
  const int found = qk_eigen_kind_find(name);
  if (found >= 0) *kind = (quark_eigen_kind_t)found;
  return found >= 0;
}

void quark_eigen_params_init(quark_eigen_params_t *params) {
  *params = (quark_eigen_params_t){.count = 1, .tol = 1e-8, .priority = QK_PRIORITY_DEFAULT};
}

static uint8_t *pack(uint64_t number, const quark_eigen_params_t *p, bool kept, const char *setup,
                     size_t *bytes) {
  Quark__Eigen eigen = QUARK__EIGEN__INIT;
  Quark__EigenProblem problem = QUARK__EIGEN_PROBLEM__INIT;
  Quark__Smearing links;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  problem.name = (char *)(uintptr_t)p->name;
  problem.kind = (Quark__EigenKind)p->kind;
  problem.count = p->count;
  problem.tol = p->tol;
  problem.has_space = problem.has_order = problem.has_restarts = true;
  problem.space = p->space;
  problem.order = p->order;
  problem.restarts = p->restarts;
  problem.field = (char *)(uintptr_t)p->field;
  problem.has_basis = p->basis > 0;
  problem.basis = p->basis;
  if (p->block[0]) {
    problem.n_block = 4;
    problem.block = (uint32_t *)(uintptr_t)p->block;
  }
  if (p->links.links != QUARK_LINKS_AS_THEY_ARE)
    problem.links = quark__pack_smearing(&p->links, &links);
  eigen.request = number;
  eigen.setup = (char *)(uintptr_t)(p->setup ? p->setup : setup);
  eigen.problem = &problem;
  eigen.has_deadline_ms = eigen.has_priority = true;
  eigen.deadline_ms = p->deadline_ms;
  eigen.priority = (uint32_t)p->priority;
  eigen.has_detach_ms = p->detach_ms > 0;
  eigen.detach_ms = p->detach_ms;
  eigen.has_kept = eigen.kept = kept;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_EIGEN;
  message.eigen = &eigen;
  return qk_control_pack(&message.base, bytes);
}

static unsigned feature_of(const quark_eigen_params_t *p, bool kept) {
  if (kept) return QK_FEATURE_VALUES;
  if (p->basis || p->block[0]) return QK_FEATURE_COMPRESSED;
  return p->field ? QK_FEATURE_VECTORS : QK_FEATURE_EIGEN;
}

static quark_code_t submit(quark_connection_t *conn, const quark_eigen_params_t *params, bool kept,
                           uint64_t *request, uint64_t *bytes, quark_error_t *err) {
  if (!params->name) return quark__fail(err, QUARK_BAD_ARGUMENT, "eigenvectors need a name");
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = quark__check_alive_locked(conn, err);
  if (code == QUARK_OK) {
    request_t *r = quark__request_new(conn, 1);
    if (r) r->feature = feature_of(params, kept);
    if (r) r->submit = pack(r->number, params, kept, conn->setup, &r->submit_bytes);
    code = quark__submit_locked(conn, r, "EIGEN", request, bytes, err);
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}

quark_code_t quark_eigen(quark_connection_t *conn, const quark_eigen_params_t *params,
                         uint64_t *request, uint64_t *bytes, quark_error_t *err) {
  return submit(conn, params, false, request, bytes, err);
}

/* Of the problem the daemon reads the name alone. */
quark_code_t quark_eigen_values(quark_connection_t *conn, const quark_eigen_params_t *params,
                                uint64_t *request, uint64_t *bytes, quark_error_t *err) {
  quark_eigen_params_t named;
  quark_eigen_params_init(&named);
  named.name = params->name;
  named.setup = params->setup;
  named.deadline_ms = params->deadline_ms;
  named.priority = params->priority;
  named.detach_ms = params->detach_ms;
  return submit(conn, &named, true, request, bytes, err);
}

quark_code_t quark_eigen_watch(quark_connection_t *conn, uint64_t request,
                               quark_eigen_progress_t *progress, quark_error_t *err) {
  pthread_mutex_lock(&conn->lock);
  const request_t *r = quark__request_known_locked(conn, request, err);
  if (r) *progress = r->eigen;
  pthread_mutex_unlock(&conn->lock);
  return r ? QUARK_OK : QUARK_NOT_FOUND;
}

quark_code_t quark_eigen_drop(quark_connection_t *conn, const char *setup, const char *name,
                              quark_error_t *err) {
  Quark__EigenDrop drop = QUARK__EIGEN_DROP__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  drop.name = (char *)(uintptr_t)name;
  drop.setup = setup ? (char *)(uintptr_t)setup : conn->setup;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_EIGEN_DROP;
  message.eigen_drop = &drop;
  pthread_mutex_lock(&conn->lock);
  const quark_code_t code = quark__ask_for_locked(conn, &message, QK_FEATURE_EIGEN,
                                                  &conn->answers->setup_replies, "EIGEN_DROP", err);
  pthread_mutex_unlock(&conn->lock);
  return code;
}

quark_code_t quark_eigen_list(quark_connection_t *conn, const char *setup,
                              quark_eigen_report_t report[QUARK_EIGEN_NAMES], uint32_t *count,
                              quark_error_t *err) {
  const answers_t *answers = conn->answers;
  Quark__StatusRequest request = QUARK__STATUS_REQUEST__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  request.setup = setup ? (char *)(uintptr_t)setup : conn->setup;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_STATUS;
  message.status = &request;
  pthread_mutex_lock(&conn->lock);
  const quark_code_t code =
      quark__ask_for_locked(conn, &message, QK_FEATURE_EIGEN, &answers->reports, "STATUS", err);
  if (code == QUARK_OK) {
    *count = answers->neigen;
    memcpy(report, answers->eigen, answers->neigen * sizeof *report);
  }
  pthread_mutex_unlock(&conn->lock);
  return code;
}
