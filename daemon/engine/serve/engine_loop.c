#include "daemon/engine/serve/engine_loop.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/engine/placement/placement.h"
#include "daemon/engine/serve/correlate.h"
#include "daemon/engine/serve/eigen_rounds.h"
#include "daemon/engine/serve/entries.h"
#include "daemon/engine/serve/inflight.h"
#include "daemon/engine/serve/report.h"
#include "daemon/engine/serve/round.h"
#include "daemon/engine/serve/works.h"
#include "daemon/engine/setup/loaded.h"
#include "daemon/engine/setup/mg_refresh.h"
#include "proto/limits.h"

enum { BACKLOG_MS = 20, TRANSFER_MS = 1, REST_STEPS = 50, BLOCK_MS = 100 };

typedef struct worker {
  qk_comm_t *comm;
  qk_channel_t *channel; /* NULL on all ranks but rank 0 */
  qk_loaded_t *setup;    /* NULL before LOAD */
  qk_field_io_t *port;
  qk_inflight_t *inflight;
  qk_correlator_t *correlator;
  qk_eigen_rounds_t eigen;
  uint64_t contract_serial;
  uint64_t keep_until, smear_until; /* steps of the solver: see rest() */
  double contract_since;
  qk_round_t round;
  qk_status_t stop; /* why a round of kind STOP stops */
  uint64_t nonce;   /* rank 0: of ADOPT */
  double seconds;   /* that the setup took */
  double last_heartbeat;
  double last_progress[QK_INFLIGHT_MAX], last_news;
  uint32_t backlog;         /* rank 0: as the last FILL stated it ... */
  double backlog_until;     /* ... which is waited for until then */
  double block_until;       /* rank 0: until then blocks of masses wait for what they lack */
  int freed;                /* rank 0: entries that the last round has freed */
  qk_refresher_t refresher; /* rank 0 */
  qk_fill_t waiting[QK_INFLIGHT_MAX];
  int nwaiting;
  qk_err_t *err;
} worker_t;

static bool running(const worker_t *w) {
  return w->setup != NULL &&
         (qk_inflight_running(w->inflight) > 0 || qk_correlator_busy(w->correlator));
}

static bool computing(const worker_t *w) {
  return running(w) || qk_eigen_rounds_busy(&w->eigen);
}

static bool solving(const worker_t *w) {
  return w->setup != NULL && qk_inflight_solving(w->inflight);
}

/* A checkpoint is being written, which rounds look after. */
static bool saving(const worker_t *w) {
  return w->setup != NULL && w->setup->mg != NULL && w->setup->mg->save != NULL;
}

/* ---- rank 0: what the front asks for --------------------------------------------------------- */

static bool entry_is_taken(const worker_t *w, int entry) {
  if (qk_inflight_busy(w->inflight, entry)) return true;
  for (int i = 0; i < w->nwaiting; i++)
    if (w->waiting[i].entry == entry) return true;
  for (int i = 0; i < w->round.head.nfill; i++)
    if (w->round.fill[i].entry == entry) return true;
  return false;
}

static qk_status_t accept_fill(const worker_t *w, const Quark__Engine__Fill *message,
                               qk_fill_t *fill, qk_err_t *err) {
  if (w->setup == NULL) return qk_fail(err, QK_NOT_READY, "nothing is loaded");
  qk_status_t status =
      qk_fill_parse(message, qk_inflight_count(w->inflight), w->setup->action, fill, err);
  if (status != QK_OK) return status;
  if (fill->five && w->setup->op->outer == NULL)
    return qk_fail(err, QK_UNSUPPORTED, "five_d: the action has no fifth dimension");
  status = qk_works_by_adjoint(w->setup->op, fill, err);
  if (status != QK_OK) return status;
  if (entry_is_taken(w, fill->entry))
    return qk_fail(err, QK_BAD_PROTOCOL, "entry %d is not free", fill->entry);
  return QK_OK;
}

static qk_status_t receive_fill(worker_t *w, const Quark__Engine__Fill *message) {
  qk_err_t err = {0};
  qk_fill_t fill = {0};
  if (accept_fill(w, message, &fill, &err) != QK_OK)
    return qk_report_fill_refused(w->channel, message->entry, message->serial, &err);
  if (fill.has_mass) w->block_until = qk_now_ms() + BLOCK_MS;
  w->backlog = fill.hint.backlog;
  w->backlog_until = qk_now_ms() + BACKLOG_MS;
  if (qk_refresh_is_wanted(&w->refresher))
    w->waiting[w->nwaiting++] = fill;
  else
    w->round.fill[w->round.head.nfill++] = fill;
  return QK_OK;
}

/* True if the fill had waited: it never gets a slot. */
static bool forget_waiting(worker_t *w, int entry, uint64_t serial) {
  for (int i = 0; i < w->nwaiting; i++) {
    if (w->waiting[i].entry != entry || w->waiting[i].serial != serial) continue;
    w->waiting[i] = w->waiting[--w->nwaiting];
    return true;
  }
  return false;
}

/* A serial may have ended already, or stand in a fill of this very round. */
static qk_status_t receive_cancel(worker_t *w, const Quark__Engine__CancelFill *message) {
  if (w->setup == NULL || message->entry >= (uint32_t)qk_inflight_count(w->inflight)) return QK_OK;
  int entry = (int)message->entry;
  if (forget_waiting(w, entry, message->serial)) {
    qk_err_t err = {.code = QK_CANCELLED};
    return qk_report_fill_refused(w->channel, message->entry, message->serial, &err);
  }
  bool found = qk_inflight_busy(w->inflight, entry) &&
               qk_inflight_serial(w->inflight, entry) == message->serial;
  for (int i = 0; i < w->round.head.nfill; i++)
    found |= w->round.fill[i].entry == entry && w->round.fill[i].serial == message->serial;
  for (int i = 0; i < w->round.head.ncancel; i++) found &= w->round.cancel[i] != entry;
  if (found) w->round.cancel[w->round.head.ncancel++] = entry;
  return QK_OK;
}

static qk_status_t accept_load(worker_t *w, const Quark__Engine__Load *message, qk_err_t *err) {
  if (running(w) || w->nwaiting > 0 || w->round.head.nfill > 0)
    return qk_fail(err, QK_BAD_PROTOCOL, "LOAD while right-hand sides are in flight");
  return qk_load_parse(message, &w->round.load, err);
}

static qk_status_t receive_load(worker_t *w, const Quark__Engine__Load *message) {
  qk_err_t err = {0};
  if (accept_load(w, message, &err) != QK_OK) return qk_report_load_failed(w->channel, &err);
  w->round.head.kind = QK_ROUND_LOAD;
  return QK_OK;
}

static qk_status_t accept_contract(worker_t *w, const Quark__Engine__Contract *message,
                                   qk_err_t *err) {
  if (w->setup == NULL) return qk_fail(err, QK_NOT_READY, "nothing is loaded");
  if (qk_correlator_busy(w->correlator))
    return qk_fail(err, QK_BAD_PROTOCOL, "another contraction is under way");
  uint32_t dims[4];
  if (w->setup->vectors > 1)
    return qk_fail(err, QK_UNSUPPORTED, "contractions are not defined for doublets");
  for (int mu = 0; mu < 4; mu++) dims[mu] = (uint32_t)w->setup->geom.global[mu];
  return qk_correlate_parse(message, dims, w->setup->action, &w->round.correlate, err);
}

static qk_status_t receive_contract(worker_t *w, const Quark__Engine__Contract *message) {
  qk_err_t err = {0};
  if (accept_contract(w, message, &err) != QK_OK)
    return qk_report_contracted(w->channel, message->serial, &err, 0);
  w->round.head.kind = QK_ROUND_CONTRACT;
  return QK_OK;
}

/* What the front before has said in this very round is forgotten, too. */
static void receive_adopt(worker_t *w, const Quark__Engine__Adopt *message) {
  w->nonce = message->nonce;
  w->nwaiting = w->freed = 0;
  w->backlog = 0;
  w->round.head = (qk_round_head_t){.kind = QK_ROUND_ADOPT};
}

static qk_status_t receive(worker_t *w, const Quark__Engine__FrontMessage *message) {
  switch (message->body_case) {
  case QUARK__ENGINE__FRONT_MESSAGE__BODY_LOAD:
    return receive_load(w, message->load);
  case QUARK__ENGINE__FRONT_MESSAGE__BODY_FILL:
    return receive_fill(w, message->fill);
  case QUARK__ENGINE__FRONT_MESSAGE__BODY_CONTRACT:
    return receive_contract(w, message->contract);
  case QUARK__ENGINE__FRONT_MESSAGE__BODY_CANCEL:
    return receive_cancel(w, message->cancel);
  case QUARK__ENGINE__FRONT_MESSAGE__BODY_EIGEN:
  case QUARK__ENGINE__FRONT_MESSAGE__BODY_EIGEN_CANCEL:
  case QUARK__ENGINE__FRONT_MESSAGE__BODY_EIGEN_DROP:
    return qk_eigen_rounds_receive(&w->eigen, w->setup, message, &w->round);
  case QUARK__ENGINE__FRONT_MESSAGE__BODY_ADOPT:
    receive_adopt(w, message->adopt);
    return QK_OK;
  case QUARK__ENGINE__FRONT_MESSAGE__BODY_REFRESH:
    qk_refresh_receive(&w->refresher, w->setup, message->refresh, qk_now_ms());
    return QK_OK;
  case QUARK__ENGINE__FRONT_MESSAGE__BODY_STOP:
    w->round.head.kind = QK_ROUND_STOP;
    return QK_OK;
  default:
    return QK_OK; /* a ping has done its work by being heard */
  }
}

/* Takes what has arrived until it makes a round of another kind than work, or nothing is left. */
static qk_status_t receive_all(worker_t *w) {
  Quark__Engine__FrontMessage *message;
  qk_status_t status = QK_OK;
  while (status == QK_OK && w->round.head.kind == QK_ROUND_WORK &&
         (message = qk_channel_receive(w->channel)) != NULL) {
    status = receive(w, message);
    quark__engine__front_message__free_unpacked(message, NULL);
  }
  if (w->round.head.kind == QK_ROUND_WORK && qk_channel_is_silent(w->channel)) {
    qk_error("worker", "the front has been silent for too long: leaving");
    w->stop = QK_TIMEOUT;
    w->round.head.kind = QK_ROUND_STOP;
  }
  if (qk_channel_terminated(w->channel)) w->round.head.kind = QK_ROUND_STOP;
  return status;
}

static qk_status_t beat(worker_t *w) {
  double now = qk_now_ms();
  if (now - w->last_heartbeat < QK_HEARTBEAT_MS) return QK_OK;
  w->last_heartbeat = now;
  return qk_report_heartbeat(w->channel, w->inflight != NULL ? qk_inflight_steps(w->inflight) : 0,
                             w->setup != NULL ? w->setup->device_bytes : 0,
                             w->setup != NULL ? w->setup->host_bytes : qk_mem_bytes());
}

/* Fills wait for the slots that run, so that multigrid can be refreshed. */
static void settle_refresh(worker_t *w) {
  qk_mg_order_t *order = &w->round.head.order;
  if (!qk_refresh_settle(&w->refresher, w->setup, running(w), qk_now_ms(), order)) return;
  if (w->round.head.order.refresh != QK_MG_REFRESH_NONE) w->round.head.kind = QK_ROUND_REFRESH;
  for (int i = 0; i < w->nwaiting; i++) w->round.fill[w->round.head.nfill++] = w->waiting[i];
  w->nwaiting = 0;
}

/* Whether the next round waits for FILLs. A backlog that does not come in time is forgotten. */
static bool awaits_fills(worker_t *w) {
  if (w->setup == NULL || qk_refresh_is_wanted(&w->refresher)) return false;
  const qk_arrivals_t arrivals = {.idle = !running(w),
                                  .fills = w->round.head.nfill,
                                  .hungry = qk_inflight_hungry(w->inflight),
                                  .freed = w->freed,
                                  .backlog = w->backlog};
  if (qk_place_awaited(&arrivals) == 0) return false;
  if (qk_now_ms() < w->backlog_until) return true;
  w->backlog = 0;
  return false;
}

/* Milliseconds that rank 0 may wait for messages before the next round. */
static double patience(const worker_t *w, bool awaiting) {
  if (awaiting) return w->backlog_until - qk_now_ms();
  if (qk_eigen_rounds_busy(&w->eigen)) return 0;
  if (running(w)) return solving(w) ? 0 : TRANSFER_MS;
  return w->last_heartbeat + QK_HEARTBEAT_MS - qk_now_ms();
}

/* Fills w->round; waits as long as there is nothing to do. */
static qk_status_t next_round(worker_t *w) {
  memset(&w->round.head, 0, sizeof w->round.head);
  settle_refresh(w);
  if (w->round.head.kind == QK_ROUND_REFRESH) return QK_OK;
  bool awaiting = awaits_fills(w);
  for (;;) {
    const double wait = patience(w, awaiting);
    if (wait > 0) qk_channel_wait(w->channel, (int)ceil(wait));
    qk_status_t status = receive_all(w);
    if (status == QK_OK) status = beat(w);
    if (status != QK_OK) return qk_fail(w->err, status, "the front takes no messages");
    if (w->round.head.kind != QK_ROUND_WORK) return QK_OK;
    awaiting = awaits_fills(w);
    if (!awaiting && (computing(w) || saving(w) || w->round.head.nfill > 0)) return QK_OK;
  }
}

/* ---- all ranks: carrying it out -------------------------------------------------------------- */

static void tell_progress(void *arg, const char *phase, int64_t done, int64_t total) {
  qk_report_load_progress(arg, phase, done, total);
}

/* What is not the setup's own goes; the setup is the caller's. */
static qk_loaded_t *unload(worker_t *w) {
  qk_loaded_t *setup = w->setup;
  qk_correlator_destroy(w->correlator);
  qk_inflight_destroy(w->inflight);
  qk_eigens_destroy(w->eigen.eigens);
  qk_field_io_destroy(w->port);
  w->eigen.eigens = NULL;
  w->correlator = NULL;
  w->inflight = NULL;
  w->port = NULL;
  w->setup = NULL;
  w->refresher.wanted.refresh = QK_MG_REFRESH_NONE;
  w->keep_until = w->smear_until = 0; /* steps are counted anew */
  w->backlog = 0;
  w->freed = 0;
  return setup;
}

static qk_status_t build(worker_t *w, qk_loaded_t *before, qk_loaded_t **setup, qk_err_t *err) {
  qk_status_t status =
      qk_loaded_create(w->comm, &w->round.load, before, tell_progress, w->channel, setup, err);
  if (status != QK_OK) return status;
  qk_clocks_enter(&(*setup)->clocks, "buffers");
  status = qk_field_io_create(qk_loaded_fields(*setup), (*setup)->pinned, &w->port, err);
  if (status != QK_OK) return status;
  status = qk_eigens_create(*setup, w->port->wire, &w->eigen.eigens, err);
  if (status != QK_OK) return status;
  (*setup)->eigens = w->eigen.eigens;
  status = qk_inflight_create(*setup, w->port, &w->inflight, err);
  if (status != QK_OK) return status;
  return qk_correlator_create(*setup, w->port, qk_inflight_stage(w->inflight), &w->correlator, err);
}

static qk_status_t load(worker_t *w) {
  double start = qk_now_ms();
  qk_err_t err = {0};
  qk_loaded_t *setup = NULL;
  qk_loaded_t *before = unload(w);
  qk_info("worker", "loading %s%s", w->round.load.gauge, before != NULL ? " in place" : "");
  qk_status_t status = build(w, before, &setup, &err);
  if (status == QK_OK) {
    w->setup = setup;
    status = qk_loaded_count_memory(setup);
    if (status != QK_OK) return qk_fail(w->err, status, "the ranks could not count memory");
    w->seconds = 1e-3 * (qk_now_ms() - start);
    char clocks[512];
    qk_clocks_enter(&setup->clocks, NULL);
    qk_clocks_text(&setup->clocks, clocks, sizeof clocks);
    const char *code = setup->device.code;
    qk_info("worker", "ready on %s%s%s after %.2f s: %s", setup->device.name,
            *code != 0 ? ", kernels for compute capability " : "", code, w->seconds, clocks);
    return qk_report_ready(w->channel, setup, w->seconds);
  }
  unload(w);
  qk_loaded_destroy(setup);
  if (status == QK_DEVICE_ERROR || status == QK_COMM_ERROR) {
    *w->err = err;
    return status;
  }
  qk_warn("worker", "load failed: %s: %s", qk_status_name(status), err.text);
  return qk_report_load_failed(w->channel, &err);
}

/* Contractions keep their memory for the next one while slots are solved: not for long, and not
 * if smearing may need it. */
static qk_status_t rest(worker_t *w) {
  const uint64_t now = qk_inflight_steps(w->inflight);
  if (qk_correlator_busy(w->correlator)) return QK_OK;
  if (solving(w) && now < w->keep_until && now >= w->smear_until) return QK_OK;
  return qk_correlator_rest(w->correlator) ? qk_loaded_count_memory(w->setup) : QK_OK;
}

static qk_status_t fill(worker_t *w) {
  for (int i = 0; i < w->round.head.nfill; i++) {
    w->last_progress[w->round.fill[i].entry] = qk_now_ms();
    if (qk_smearing_any(&w->round.fill[i].smear))
      w->smear_until = qk_inflight_steps(w->inflight) + REST_STEPS;
  }
  qk_status_t status = rest(w);
  if (status != QK_OK) return status;
  qk_inflight_blocks_go(w->inflight, w->round.head.blocks_go);
  return qk_inflight_fill(w->inflight, w->round.head.nfill, w->round.fill, w->err);
}

static qk_status_t tell_progress_of_all(worker_t *w) {
  double now = qk_now_ms();
  qk_status_t status = QK_OK;
  for (int i = 0; i < qk_inflight_count(w->inflight) && status == QK_OK; i++) {
    const qk_slot_t *state = qk_inflight_state(w->inflight, i);
    if (state == NULL || now - w->last_progress[i] < QK_PROGRESS_MS) continue;
    w->last_progress[i] = now;
    status = qk_report_fill_progress(w->channel, i, qk_inflight_serial(w->inflight, i), state);
  }
  return status;
}

static qk_status_t tell_result(worker_t *w, const qk_result_t *r) {
  return r->refused ? qk_report_fill_refused(w->channel, (uint32_t)r->entry, r->serial, &r->err)
                    : qk_report_fill_done(w->channel, r);
}

static void watch(worker_t *w, const qk_result_t *result) {
  if (w->channel == NULL || result->refused || result->worked) return;
  /* iterations that brought other residuals down say nothing of the rate of this one */
  const qk_refresh_solve_t solve = {
      .status = result->err.code,
      .iterations = result->iterations,
      .tol = qk_stopping_asks_more(&result->stopping) ? 0 : result->stopping.tol,
      .residual = result->true_residual,
      .now = qk_now_ms()};
  if (qk_refresh_watch(&w->refresher, w->setup, &solve)) w->last_news = 0;
}

/* The figures of solves change with each of them: sent when the last one has ended, and once a
 * second. */
static qk_status_t tell_multigrid(worker_t *w) {
  double now = qk_now_ms();
  if (w->setup->mg == NULL || (running(w) && now - w->last_news < QK_HEARTBEAT_MS)) return QK_OK;
  w->last_news = now;
  return qk_report_multigrid(w->channel, w->setup->mg);
}

static qk_status_t refresh(worker_t *w) {
  qk_status_t status =
      qk_loaded_refresh(w->setup, w->round.head.order, tell_progress, w->channel, w->err);
  return status == QK_OK ? qk_report_multigrid(w->channel, w->setup->mg) : status;
}

static qk_status_t look_after_checkpoint(worker_t *w) {
  bool news = false;
  if (w->setup->mg == NULL) return QK_OK;
  qk_status_t status = qk_mg_service_poll(w->setup->mg, &news);
  if (status != QK_OK) return qk_fail(w->err, status, "the checkpoint of multigrid");
  return news ? qk_report_multigrid(w->channel, w->setup->mg) : QK_OK;
}

/* Before the results that it belongs to. */
static qk_status_t tell_memory(worker_t *w) {
  qk_status_t status = qk_loaded_count_memory(w->setup);
  w->last_heartbeat = 0;
  return status == QK_OK ? beat(w) : status;
}

/* The front has been told of n entries that are free. */
static void expect_fills(worker_t *w, int n) {
  w->freed = n;
  w->backlog_until = qk_now_ms() + BACKLOG_MS;
}

static void keep_beating(void *arg) {
  worker_t *w = arg;
  if (w->channel != NULL) beat(w);
}

static qk_status_t tell_contracted(worker_t *w, const qk_err_t *verdict) {
  w->keep_until = qk_inflight_steps(w->inflight) + REST_STEPS;
  qk_status_t status = qk_loaded_count_memory(w->setup);
  if (status != QK_OK) return status;
  return qk_report_contracted(w->channel, w->contract_serial, verdict,
                              1e-3 * (qk_now_ms() - w->contract_since));
}

static qk_status_t contract(worker_t *w) {
  const qk_correlate_t *what = &w->round.correlate;
  qk_err_t verdict = {0};
  w->contract_serial = what->serial;
  w->contract_since = qk_now_ms();
  qk_status_t status = qk_correlator_begin(w->correlator, what, &verdict, w->err);
  if (status != QK_OK || qk_correlator_busy(w->correlator)) return status;
  return tell_contracted(w, &verdict);
}

static qk_status_t contract_on(worker_t *w) {
  qk_err_t verdict = {0};
  bool over;
  qk_status_t status = qk_correlator_step(w->correlator, qk_inflight_lacking(w->inflight),
                                          keep_beating, w, &over, &verdict, w->err);
  return status == QK_OK && over ? tell_contracted(w, &verdict) : status;
}

/* One step of what is in flight; the n that have ended with it. */
static qk_status_t step(worker_t *w, qk_result_t result[], int *n) {
  qk_status_t status = running(w) ? qk_inflight_step(w->inflight, w->err) : QK_OK;
  return status == QK_OK ? qk_inflight_retire(w->inflight, result, n, w->err) : status;
}

/* What the round asks for, and a step of everything. */
static qk_status_t advance(worker_t *w, qk_result_t result[], int *n) {
  qk_inflight_leave_buffers(w->inflight, qk_correlator_wants(w->correlator));
  qk_status_t status = fill(w);
  if (status != QK_OK) return status;
  for (int i = 0; i < w->round.head.ncancel; i++)
    qk_inflight_cancel(w->inflight, w->round.cancel[i]);
  status = step(w, result, n);
  if (status != QK_OK) return status;
  if (qk_correlator_busy(w->correlator)) status = contract_on(w);
  return status == QK_OK ? rest(w) : status;
}

static qk_status_t tell_results(worker_t *w, const qk_result_t result[], int n) {
  qk_status_t status = n > 0 && !running(w) ? tell_memory(w) : QK_OK;
  for (int i = 0; i < n && status == QK_OK; i++) {
    status = tell_result(w, &result[i]);
    watch(w, &result[i]);
  }
  if (status != QK_OK) return status;
  expect_fills(w, n);
  return n > 0 ? tell_multigrid(w) : QK_OK;
}

static qk_status_t work(worker_t *w) {
  qk_result_t result[QK_INFLIGHT_MAX];
  int n = 0;
  qk_status_t status = advance(w, result, &n);
  if (status != QK_OK) return status;
  status = tell_results(w, result, n);
  if (status != QK_OK) return status;
  if (w->setup != NULL) status = qk_eigen_rounds_advance(&w->eigen, &w->round, w->err);
  if (status != QK_OK) return status;
  status = look_after_checkpoint(w);
  return status == QK_OK ? tell_progress_of_all(w) : status;
}

/* Ends all RHS in flight and a contraction without a message: objects of the previous front are not
 * written to any more. */
static qk_status_t end_all(worker_t *w) {
  qk_result_t result[QK_INFLIGHT_MAX];
  const struct timespec pause = {.tv_nsec = TRANSFER_MS * 1000000};
  int n;
  qk_status_t status = QK_OK;
  if (w->correlator != NULL) qk_correlator_drop(w->correlator);
  if (w->eigen.eigens != NULL) qk_eigens_abandon(w->eigen.eigens);
  for (int i = 0; running(w) && i < qk_inflight_count(w->inflight); i++)
    if (qk_inflight_busy(w->inflight, i)) qk_inflight_cancel(w->inflight, i);
  while (status == QK_OK && running(w)) {
    if (!solving(w)) nanosleep(&pause, NULL);
    status = step(w, result, &n);
  }
  return status;
}

static qk_status_t adopt(worker_t *w) {
  const bool loaded = w->setup != NULL;
  qk_status_t status = end_all(w);
  if (status == QK_OK)
    status = qk_report_hello(w->channel, qk_comm_size(w->comm), &w->nonce, loaded);
  if (status != QK_OK || !loaded) return status;
  return qk_report_ready(w->channel, w->setup, w->seconds);
}

static qk_status_t carry_out(worker_t *w) {
  if (w->round.head.kind == QK_ROUND_LOAD) return load(w);
  if (w->round.head.kind == QK_ROUND_ADOPT) return adopt(w);
  qk_status_t status = QK_OK;
  if (w->setup != NULL && qk_entries_rest(w->inflight, &w->round))
    status = qk_loaded_count_memory(w->setup);
  if (status != QK_OK) return qk_fail(w->err, status, "the ranks could not count memory");
  if (w->round.head.kind == QK_ROUND_CONTRACT) status = contract(w);
  if (w->round.head.kind == QK_ROUND_REFRESH) status = refresh(w);
  return status == QK_OK ? work(w) : status;
}

/* The next round, on all ranks. */
static qk_status_t begin_round(worker_t *w) {
  const bool idle = !computing(w);
  qk_status_t status = w->channel != NULL ? next_round(w) : QK_OK;
  w->round.head.blocks_go = qk_now_ms() >= w->block_until;
  w->round.head.eigen_rests = qk_eigen_rounds_rests(&w->eigen, running(w));
  return status == QK_OK ? qk_round_share(w->comm, &w->round, idle) : status;
}

static qk_status_t run(worker_t *w) {
  qk_status_t status = qk_report_hello(w->channel, qk_comm_size(w->comm), NULL, false);
  while (status == QK_OK) {
    status = begin_round(w);
    if (status != QK_OK) break;
    if (w->round.head.kind == QK_ROUND_STOP) return w->stop;
    status = carry_out(w);
  }
  return qk_fail(w->err, status, "%s", qk_status_text(status));
}

qk_status_t qk_engine_loop_run(qk_comm_t *comm, qk_channel_t *channel, qk_err_t *err) {
  worker_t *w = qk_calloc(1, sizeof *w);
  qk_status_t status = w != NULL ? QK_OK : qk_fail(err, QK_NO_MEMORY, "no memory for the worker");
  status = qk_comm_agree(comm, status, err);
  if (status == QK_OK) {
    w->comm = comm;
    w->channel = w->eigen.channel = channel;
    w->err = err;
    w->last_heartbeat = qk_now_ms();
    status = run(w);
    /* The ranks stop together, but not after an error: what is given back collectively would wait
     * for a rank that has ended, or hangs. The process ends. */
    if (status != w->stop && qk_comm_size(comm) > 1) return status;
    if (status != w->stop && w->setup != NULL) qk_mg_service_abandon(w->setup->mg);
    qk_correlator_destroy(w->correlator);
    qk_inflight_destroy(w->inflight);
    qk_eigens_destroy(w->eigen.eigens);
    qk_field_io_destroy(w->port);
    qk_loaded_destroy(w->setup);
  }
  qk_free(w);
  return status;
}
