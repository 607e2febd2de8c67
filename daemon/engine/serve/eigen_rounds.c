#include "daemon/engine/serve/eigen_rounds.h"

#include "daemon/engine/serve/report.h"

static qk_status_t accept_eigen(const qk_eigen_rounds_t *r, const qk_loaded_t *setup,
                                const Quark__Engine__Eigen *message, qk_round_t *round,
                                qk_err_t *err) {
  if (setup == NULL) return qk_fail(err, QK_NOT_READY, "nothing is loaded");
  if (qk_eigen_rounds_busy(r))
    return qk_fail(err, QK_BAD_PROTOCOL, "other eigenvectors are under way");
  return qk_eigen_parse(message, setup->geom.global, setup->action, &round->eigen, err);
}

qk_status_t qk_eigen_rounds_receive(const qk_eigen_rounds_t *r, const qk_loaded_t *setup,
                                    const Quark__Engine__FrontMessage *m, qk_round_t *round) {
  qk_err_t err = {0};
  if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_EIGEN) {
    if (accept_eigen(r, setup, m->eigen, round, &err) != QK_OK)
      return qk_report_eigen_refused(r->channel, m->eigen->serial, &err);
    round->head.kind = QK_ROUND_EIGEN;
  } else if (m->body_case == QUARK__ENGINE__FRONT_MESSAGE__BODY_EIGEN_CANCEL) {
    const bool under_way =
        qk_eigen_rounds_busy(r) && qk_eigens_progress(r->eigens).serial == m->eigen_cancel->serial;
    if (under_way) round->head.kind = QK_ROUND_EIGEN_CANCEL;
  } else if (setup != NULL && qk_load_text("name", m->eigen_drop->name, round->eigen.name,
                                           sizeof round->eigen.name, &err) == QK_OK) {
    round->head.kind = QK_ROUND_EIGEN_DROP;
  }
  return QK_OK;
}

/* After each restart, and twice a second. */
static qk_status_t tell_progress(qk_eigen_rounds_t *r) {
  const qk_eigens_progress_t now = qk_eigens_progress(r->eigens);
  const double ms = qk_now_ms();
  if (now.restart == r->last_restart && ms - r->last_progress < QK_PROGRESS_MS) return QK_OK;
  r->last_restart = now.restart;
  r->last_progress = ms;
  return qk_report_eigen_progress(r->channel, &now);
}

bool qk_eigen_rounds_rests(const qk_eigen_rounds_t *r, bool others) {
  return others && qk_now_ms() < r->rest_until;
}

static qk_status_t step(qk_eigen_rounds_t *r, qk_err_t *err) {
  const double start = qk_now_ms();
  qk_eigens_done_t done;
  bool over = false;
  const qk_status_t status = qk_eigens_step(r->eigens, &over, &done, err);
  const double end = qk_now_ms();
  r->rest_until = end + (end - start);
  if (status != QK_OK) return status;
  return over ? qk_report_eigen_done(r->channel, &done) : tell_progress(r);
}

static qk_status_t begin(qk_eigen_rounds_t *r, const qk_round_t *round, qk_err_t *err) {
  qk_eigens_done_t done;
  bool over = false;
  r->last_progress = qk_now_ms();
  r->last_restart = 0;
  const qk_status_t status = qk_eigens_begin(r->eigens, &round->eigen, &over, &done, err);
  return status == QK_OK && over ? qk_report_eigen_done(r->channel, &done) : status;
}

qk_status_t qk_eigen_rounds_advance(qk_eigen_rounds_t *r, const qk_round_t *round, qk_err_t *err) {
  const qk_round_kind_t kind = round->head.kind;
  qk_status_t status = QK_OK;
  if (kind == QK_ROUND_EIGEN) status = begin(r, round, err);
  if (kind == QK_ROUND_EIGEN_CANCEL) qk_eigens_cancel(r->eigens);
  if (kind == QK_ROUND_EIGEN_DROP) qk_eigens_drop(r->eigens, round->eigen.name);
  if (status != QK_OK || !qk_eigen_rounds_busy(r) || round->head.eigen_rests) return status;
  return step(r, err);
}
