#include "daemon/front/net/reply.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "daemon/base/fault.h"
#include "daemon/base/version.h"
#include "daemon/front/job/bricks.h"
#include "daemon/front/net/net.h"
#include "daemon/front/service/admit.h"
#include "daemon/front/service/sessions.h"
#include "daemon/front/service/setups.h"
#include "daemon/front/view/report.h"
#include "proto/control.h"
#include "proto/eigen_check.h"

enum { RETRY_BUSY_MS = 1000, RETRY_NOT_READY_MS = 1000 };

/* The next connection that has the routing id of one that has gone may be anybody's. */
static void lose(qk_net_t *net, const qk_peer_t *peer) {
  qk_session_t *session = qk_session_by_control(&net->service->sessions, peer);
  if (session && qk_peer_same(&session->control, peer)) session->control.ended = true;
}

static qk_sent_t send_bytes(qk_net_t *net, const qk_peer_t *peer, const uint8_t *data,
                            size_t bytes) {
  if (zmq_send(net->control, peer->id, peer->bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
      zmq_send(net->control, data, bytes, ZMQ_DONTWAIT) >= 0)
    return QK_SENT;
  if (zmq_errno() == EAGAIN) return QK_SENT_FULL;
  lose(net, peer);
  return QK_SENT_GONE;
}

/* ---- what waits for the journal -------------------------------------------------------------- */

/*
 * Messages about a request (ACCEPTED, ATTACHED, CREDIT, RESULT, PROGRESS) are told when the journal
 * holds what they say. A client for which something waits, or which has changed something by its
 * last message, gets all else behind that, in order; others are answered at once. While the
 * journal cannot be written, or its disk is slow, what says nothing of a request goes on at once.
 * What a request is owed is noted in the request as long as the journal cannot be written, so that
 * it takes no memory however long that lasts; so are RESULTs, and answers to questions that a
 * client may repeat, while the disk is slow.
 */
enum { OWES_ACCEPTED = 1, OWES_ATTACHED = 2, OWES_CREDIT = 4 };

/* Whether it is to be told later: the journal cannot be written, and lacks something of the job. */
static bool is_owed(const qk_net_t *net, const qk_job_t *job) {
  return qk_journal_trouble(net->service->journal) && qk_marks_lack_job(job);
}

static bool is_slow(const qk_net_t *net) {
  return qk_journal_waits(net->service->journal, qk_service_now(net->service));
}

/* asked: by its client, perhaps again and again. */
static bool owe(qk_net_t *net, qk_job_t *job, uint8_t what, bool asked) {
  if (!is_owed(net, job) && !(asked && qk_marks_lack_job(job) && is_slow(net))) return false;
  job->owed |= what;
  net->owes = true;
  return true;
}

/* Its client asks again where there is no answer; ATTACHED is told later. What requests depend on
 * is never left out: a queue that is full ends the session. */
static bool can_be_left_out(const Quark__ServerMessage *message) {
  switch (message->body_case) {
  case QUARK__SERVER_MESSAGE__BODY_STATUS:
  case QUARK__SERVER_MESSAGE__BODY_SETUP:
  case QUARK__SERVER_MESSAGE__BODY_ATTACHED:
  case QUARK__SERVER_MESSAGE__BODY_ERROR:
  case QUARK__SERVER_MESSAGE__BODY_PONG:
  case QUARK__SERVER_MESSAGE__BODY_WELCOME:
  case QUARK__SERVER_MESSAGE__BODY_SHUTDOWN:
    return true;
  default:
    return false;
  }
}

/* An answer to who asks and does not read. */
static bool unread(qk_net_t *net, const qk_peer_t *peer, const Quark__ServerMessage *message,
                   size_t bytes) {
  if (!net->asker.peer || !qk_peer_equal(net->asker.peer, peer)) return false;
  return can_be_left_out(message) && !qk_backlog_add(&net->backlog, net->asker.fd, peer->connection,
                                                     bytes, qk_service_now(net->service));
}

/* The change that the message has to wait for; 0: none. behind: all that has changed. */
static uint64_t waits_for(const qk_net_t *net, const qk_session_t *session, const qk_job_t *about,
                          bool behind) {
  const qk_marks_t *marks = qk_journal_marks(net->service->journal);
  uint64_t change = session ? session->change : 0;
  if (!marks || qk_journal_trouble(net->service->journal)) return 0;
  if (behind || (about && qk_marks_lack_job(about))) change = qk_marks_number(marks);
  if (qk_marks_has_written(marks, change)) return 0;
  /* letters are in the order of their changes */
  return qk_marks_number(marks);
}

/* about: NULL where it says nothing of a request. */
static qk_sent_t send_about(qk_net_t *net, const qk_peer_t *peer, const qk_job_t *about,
                            Quark__ServerMessage *message) {
  if (!qk_peer_reachable(peer) || qk_fault(QK_FAULT_SEND)) return QK_SENT_GONE;
  size_t bytes;
  uint8_t *data = qk_control_pack(&message->base, &bytes);
  if (!data) return QK_SENT_FULL;
  qk_session_t *session = qk_session_by_control(&net->service->sessions, peer);
  const uint64_t change =
      waits_for(net, session, about, message->body_case == QUARK__SERVER_MESSAGE__BODY_STATUS);
  const int64_t job = about && qk_marks_lack_job(about) ? about->entry.id : 0;
  qk_sent_t sent;
  if (unread(net, peer, message, bytes))
    sent = QK_SENT_FULL;
  else if (change > 0)
    sent = qk_outbox_add(&net->outbox, peer, change, job, data, bytes) ? QK_SENT : QK_SENT_FULL;
  else
    sent = send_bytes(net, peer, data, bytes);
  if (session && change > session->change) session->change = change;
  free(data);
  return sent;
}

qk_sent_t qk_reply_send(qk_net_t *net, const qk_peer_t *peer, Quark__ServerMessage *message) {
  return send_about(net, peer, NULL, message);
}

static void deliver(void *arg, const qk_peer_t *peer, const uint8_t *data, size_t bytes) {
  qk_net_t *net = arg;
  qk_session_t *session;
  if (send_bytes(net, peer, data, bytes) == QK_SENT_FULL &&
      (session = qk_session_by_control(&net->service->sessions, peer)) != NULL)
    qk_sessions_close(net->service, session, QK_BAD_PROTOCOL,
                      "the client does not read its messages");
}

/* Well or badly: there are residuals. */
static bool is_solved(const qk_outcome_t *o) {
  return o->status == QK_OK || o->status == QK_NOT_CONVERGED || o->status == QK_BREAKDOWN;
}

static qk_sent_t send_result(qk_net_t *net, const qk_session_t *session, const qk_rhs_t *rhs);

/* False where the peer has no room for more: the rest comes later. */
static bool tell_owed(qk_net_t *net, qk_session_t *session, qk_job_t *job) {
  const uint8_t owed = job->owed;
  job->owed = 0;
  if (owed & OWES_ACCEPTED) qk_reply_accepted(net, session, job, true);
  if (owed & OWES_ATTACHED) qk_reply_attach(net, session, job);
  if (job->owed & OWES_ATTACHED) return false;
  if (owed & OWES_CREDIT) qk_reply_credit(net, session, job);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    qk_rhs_t *rhs = &job->rhs[i];
    if (!rhs->owed) continue;
    if (rhs->state == QK_RHS_ENDED && send_result(net, session, rhs) == QK_SENT_FULL) return false;
    rhs->owed = false;
  }
  return true;
}

static void tell_all_owed(qk_net_t *net) {
  bool left = false;
  for (int i = 0; i < net->service->sessions.count; i++) {
    qk_session_t *session = net->service->sessions.at[i];
    bool room = true;
    net->asker = (qk_asker_t){&session->control, session->control_fd};
    for (qk_link_t *l = session->jobs.next; l != &session->jobs && room; l = l->next)
      room = tell_owed(net, session, QK_HOLDER(l, qk_job_t, link));
    left |= !room;
  }
  net->asker.peer = NULL;
  net->owes = left;
}

/* A request that could not be recorded is rejected after all. */
static void take_back(qk_net_t *net, qk_job_t *job) {
  const qk_session_t *session = job->session;
  const uint64_t request = job->request;
  qk_err_t err = {0};
  qk_admit_take_back(net->service, job, &err);
  if (session) qk_reply_rejected(net, &session->control, request, &err);
}

void qk_reply_waiting(qk_net_t *net) {
  qk_journal_t *journal = net->service->journal;
  if (!journal) {
    if (net->owes) tell_all_owed(net);
    return;
  }
  qk_journal_step(journal, qk_service_now(net->service));
  if (!qk_journal_trouble(journal)) {
    qk_outbox_flush(&net->outbox, qk_marks_written(qk_journal_marks(journal)), deliver, net);
    if (is_slow(net))
      qk_outbox_flush_free(&net->outbox, deliver, net);
    else if (net->owes)
      tell_all_owed(net);
    return;
  }
  for (qk_job_t *job; (job = qk_marks_first_new(qk_journal_marks(journal))) != NULL;) {
    qk_outbox_drop(&net->outbox, job->entry.id);
    take_back(net, job);
  }
  qk_outbox_flush_free(&net->outbox, deliver, net);
}

void qk_reply_error(qk_net_t *net, const qk_peer_t *peer, qk_status_t status, const char *text,
                    bool fatal, uint64_t request) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Error error = QUARK__ERROR__INIT;
  error.status = (uint32_t)status;
  error.text = (char *)text;
  error.fatal = fatal;
  error.has_request = request > 0;
  error.request = request;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_ERROR;
  m.error = &error;
  qk_reply_send(net, peer, &m);
}

void qk_reply_begin(qk_net_t *net, qk_session_t *session) {
  if (qk_outbox_end_session(&net->outbox, &session->control))
    session->change = qk_marks_number(qk_journal_marks(net->service->journal));
}

void qk_reply_welcome(qk_net_t *net, const qk_session_t *session, bool resumed) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Welcome welcome = QUARK__WELCOME__INIT;
  uint32_t feature[] = {
      QK_FEATURE_FIELDS,   QK_FEATURE_JOIN,      QK_FEATURE_ZEROS,          QK_FEATURE_WORK,
      QK_FEATURE_STOPPING, QK_FEATURE_ACTIONS,   QK_FEATURE_DATA_ENDPOINTS, QK_FEATURE_BLOCK_SUMS,
      QK_FEATURE_FLAVOUR,  QK_FEATURE_EVOLVE,    QK_FEATURE_COLUMN_FLAVOUR, QK_FEATURE_SINGLE_RHS,
      QK_FEATURE_EIGEN,    QK_FEATURE_DEFLATE,   QK_FEATURE_VECTORS,        QK_FEATURE_DEFLATE_FROM,
      QK_FEATURE_PROJECT,  QK_FEATURE_FIVE,      QK_FEATURE_COMPRESSED,     QK_FEATURE_REPLICAS,
      QK_FEATURE_VALUES,   QK_FEATURE_FIX_GAUGE, QK_FEATURE_MASSES,         QK_FEATURE_SHIFT};
  uint8_t token[QK_CLIENT_ID];
  char *extra[QK_DATA_THREADS_MAX];
  char name[64] = "quarkd ";
  strncat(name, qk_version(), sizeof name - strlen(name) - 1);
  welcome.version = QK_PROTOCOL_VERSION;
  welcome.server = name;
  qk_session_token(session, token);
  welcome.token.data = token;
  welcome.token.len = sizeof token;
  welcome.data_endpoint = net->data_endpoint[0];
  /* all of them, another one first each time, so that clients spread over them */
  const int first = net->welcomes++ % net->ndata;
  for (int i = 0; i < net->ndata; i++) extra[i] = net->data_endpoint[(first + i) % net->ndata];
  welcome.n_extra_data_endpoint = net->ndata > 1 ? (size_t)net->ndata : 0;
  welcome.extra_data_endpoint = extra;
  welcome.lease_ms = (uint32_t)(session->lease * 1e3);
  welcome.max_chunk = QK_CHUNK_MAX;
  welcome.max_rhs = QK_REQUEST_RHS_MAX;
  welcome.resumed = resumed;
  welcome.local_path = (char *)net->local_path;
  welcome.n_feature = sizeof feature / sizeof *feature;
  welcome.feature = feature;
  welcome.has_journal = true;
  welcome.journal = net->service->journal != NULL;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_WELCOME;
  m.welcome = &welcome;
  qk_reply_send(net, &session->control, &m);
}

static void set_accepted(Quark__Accepted *accepted, const qk_job_t *job, bool repeated) {
  quark__accepted__init(accepted);
  accepted->request = job->request;
  accepted->field_bytes = job->part_bytes;
  accepted->upload_next = job->upload_next;
  accepted->upload_until = job->upload_until;
  accepted->repeated_submit = repeated;
  accepted->has_join = job->bricks != NULL;
  if (job->bricks) accepted->join = (ProtobufCBinaryData){QK_CLIENT_ID, job->bricks->token};
  accepted->has_nrhs = job->joined;
  accepted->nrhs = job->nrhs;
}

static bool attached_to(qk_net_t *net, qk_session_t *session, qk_job_t *job) {
  if (owe(net, job, OWES_ATTACHED, true)) return true;
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Attached attached = QUARK__ATTACHED__INIT;
  Quark__Accepted accepted;
  set_accepted(&accepted, job, true);
  attached.accepted = &accepted;
  if (job->field)
    attached.field_open = quark__field_open__unpack(NULL, job->message_bytes, job->message);
  else if (job->problem)
    attached.eigen = quark__eigen__unpack(NULL, job->message_bytes, job->message);
  else if (job->contraction)
    attached.contract = quark__contract__unpack(NULL, job->message_bytes, job->message);
  else
    attached.submit = quark__submit__unpack(NULL, job->message_bytes, job->message);
  m.body_case = QUARK__SERVER_MESSAGE__BODY_ATTACHED;
  m.attached = &attached;
  const qk_sent_t sent =
      attached.contract || attached.submit || attached.field_open || attached.eigen
          ? send_about(net, &session->control, job, &m)
          : QK_SENT_FULL;
  if (sent == QK_SENT_FULL) {
    job->owed |= OWES_ATTACHED;
    net->owes = true;
  }
  if (attached.contract) quark__contract__free_unpacked(attached.contract, NULL);
  if (attached.eigen) quark__eigen__free_unpacked(attached.eigen, NULL);
  if (attached.submit) quark__submit__free_unpacked(attached.submit, NULL);
  if (attached.field_open) quark__field_open__free_unpacked(attached.field_open, NULL);
  return sent == QK_SENT;
}

void qk_reply_attach(qk_net_t *net, qk_session_t *session, qk_job_t *job) {
  if (attached_to(net, session, job)) qk_admit_repeat_results(net->service, session, job);
}

void qk_reply_accepted(qk_net_t *net, qk_session_t *session, qk_job_t *job, bool repeated) {
  if (owe(net, job, OWES_ACCEPTED, repeated)) return;
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Accepted accepted;
  set_accepted(&accepted, job, repeated);
  m.body_case = QUARK__SERVER_MESSAGE__BODY_ACCEPTED;
  m.accepted = &accepted;
  send_about(net, &session->control, job, &m);
}

void qk_reply_rejected(qk_net_t *net, const qk_peer_t *peer, uint64_t request,
                       const qk_err_t *err) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Rejected rejected = QUARK__REJECTED__INIT;
  rejected.request = request;
  rejected.status = (uint32_t)err->code;
  rejected.text = (char *)err->text;
  rejected.has_retry_after_ms = qk_status_retryable(err->code);
  rejected.retry_after_ms = err->code == QK_NOT_READY ? RETRY_NOT_READY_MS : RETRY_BUSY_MS;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_REJECTED;
  m.rejected = &rejected;
  qk_reply_send(net, peer, &m);
}

void qk_reply_credit(qk_net_t *net, qk_session_t *session, qk_job_t *job) {
  if (owe(net, job, OWES_CREDIT, false)) return;
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Credit credit = QUARK__CREDIT__INIT;
  credit.request = job->request;
  credit.until = job->upload_until;
  credit.has_next = true;
  credit.next = job->upload_next;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_CREDIT;
  m.credit = &credit;
  send_about(net, &session->control, job, &m);
}

void qk_reply_progress(qk_net_t *net, qk_session_t *session, const qk_job_t *job) {
  if (is_owed(net, job) || is_slow(net)) return; /* the next one says more */
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Progress progress = QUARK__PROGRESS__INIT;
  Quark__RhsProgress running[QK_INFLIGHT_MAX], *list[QK_INFLIGHT_MAX];
  progress.request = job->request;
  progress.ended = job->ended;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    const qk_rhs_t *rhs = &job->rhs[i];
    progress.queued += rhs->state == QK_RHS_QUEUED;
    if (rhs->state != QK_RHS_RUNNING || progress.n_running == QK_INFLIGHT_MAX) continue;
    Quark__RhsProgress *r = &running[progress.n_running];
    quark__rhs_progress__init(r);
    r->rhs = i;
    r->iterations = rhs->iterations;
    r->residual = rhs->residual;
    list[progress.n_running++] = r;
  }
  progress.running = list;
  Quark__EigenProgress eigen = job->setup ? job->setup->replica[job->rhs[0].replica].eigen_now
                                          : (Quark__EigenProgress)QUARK__EIGEN_PROGRESS__INIT;
  if (job->problem && progress.n_running > 0) {
    progress.n_running = 0; /* it has neither iterations nor a residual */
    eigen.count = (uint32_t)qk_eigen_values(job->problem, &job->shape);
    progress.eigen = &eigen;
  }
  m.body_case = QUARK__SERVER_MESSAGE__BODY_PROGRESS;
  m.progress = &progress;
  send_about(net, &session->control, job, &m);
}

/* Its links, if they were taken. */
static void set_field(Quark__Result *result, const qk_rhs_t *rhs) {
  const Quark__FieldOpen *open = rhs->job->field;
  result->true_residual = 0;
  if (rhs->outcome.status != QK_OK) return;
  result->has_digest = true;
  result->digest = rhs->digested ? rhs->digest : open->digest;
  result->has_unitarity = rhs->digested && open->kind != QUARK__FIELD_KIND__FIELD_CLOVER;
  result->unitarity = rhs->outcome.true_residual;
}

static qk_sent_t send_result(qk_net_t *net, const qk_session_t *session, const qk_rhs_t *rhs) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Result result = QUARK__RESULT__INIT;
  const qk_outcome_t *o = &rhs->outcome;
  result.request = rhs->job->request;
  result.rhs = rhs->index;
  result.status = (uint32_t)o->status;
  result.text = o->text[0] ? (char *)o->text : NULL;
  result.true_residual = o->true_residual;
  result.iterations = o->iterations;
  result.applications = o->applications;
  result.seconds = o->seconds;
  result.bytes = qk_rhs_bytes(rhs);
  result.has_norm_b = o->norm_b > 0;
  result.norm_b = o->norm_b;
  result.has_norm_x = o->norm_x > 0;
  result.norm_x = o->norm_x;
  result.has_hq_residual = rhs->job->tol_hq > 0 && is_solved(o) && !isnan(o->hq_residual);
  result.hq_residual = o->hq_residual;
  result.has_attempt = rhs->attempt > 0;
  result.attempt = rhs->attempt;
  result.has_queue_seconds = rhs->started_at > 0;
  result.queue_seconds = rhs->started_at - rhs->queue.since;
  const qk_rhs_t *whole = qk_rhs_whole(rhs);
  if (whole && whole->job->field) set_field(&result, whole);
  m.body_case = QUARK__SERVER_MESSAGE__BODY_RESULT;
  m.result = &result;
  result.wall = qk_wall_sums_unpack(rhs->wall);
  const qk_sent_t sent = send_about(net, &session->control, rhs->job, &m);
  if (result.wall) quark__wall_sums__free_unpacked(result.wall, NULL);
  return sent;
}

void qk_reply_result(qk_net_t *net, qk_session_t *session, qk_rhs_t *rhs) {
  /* its client may ask for it again and again */
  if (is_owed(net, rhs->job) || (is_slow(net) && qk_marks_lack_job(rhs->job))) {
    rhs->owed = net->owes = true;
    return;
  }
  if (send_result(net, session, rhs) == QK_SENT_FULL)
    qk_sessions_close(net->service, session, QK_BAD_PROTOCOL,
                      "the client does not read its messages");
}

void qk_reply_shutdown(qk_net_t *net, const qk_peer_t *peer, bool now) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__ShutdownReply reply = QUARK__SHUTDOWN_REPLY__INIT;
  reply.now = now;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_SHUTDOWN;
  m.shutdown = &reply;
  qk_reply_send(net, peer, &m);
}

void qk_reply_pong(qk_net_t *net, const qk_peer_t *peer) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Pong pong = QUARK__PONG__INIT;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_PONG;
  m.pong = &pong;
  qk_reply_send(net, peer, &m);
}

/* ---- reports --------------------------------------------------------------------------------- */

void qk_reply_setup(qk_net_t *net, const qk_peer_t *peer, const qk_setup_t *setup) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__SetupReply reply = QUARK__SETUP_REPLY__INIT;
  Quark__SetupState state;
  qk_report_setup(setup, &state);
  reply.setup = &state;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_SETUP;
  m.setup = &reply;
  qk_reply_send(net, peer, &m);
}

static void skip_setups(Quark__StatusReport *status, uint32_t first) {
  const size_t n = first < status->n_setups ? first : status->n_setups;
  status->setups += n;
  status->n_setups -= n;
}

void qk_reply_status(qk_net_t *net, const qk_peer_t *peer, const qk_viewer_t *viewer,
                     const Quark__StatusRequest *request) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  qk_report_t report;
  Quark__ActivityReport *a = &report.activity;
  qk_err_t err = {0};
  const qk_setup_t *setup = qk_setups_find(net->service, viewer, request->setup, &err);
  if (!setup) {
    qk_reply_error(net, peer, err.code, err.text, false, 0);
    return;
  }
  qk_report_make(setup, viewer, request->activity, &report);
  m.body_case = QUARK__SERVER_MESSAGE__BODY_STATUS;
  m.status = &report.status;
  skip_setups(&report.status, request->first_setup);
  while (a->n_user > 0 && quark__server_message__get_packed_size(&m) > QK_CONTROL_MAX) {
    a->n_user--;
    a->users_left_out++;
  }
  while (report.status.n_setups > 0 &&
         quark__server_message__get_packed_size(&m) > QK_CONTROL_MAX) {
    report.status.n_setups--;
    report.status.has_setups_left_out = true;
    report.status.setups_left_out++;
  }
  qk_reply_send(net, peer, &m);
}
