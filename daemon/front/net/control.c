#include "daemon/front/net/control.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "daemon/base/log.h"
#include "daemon/front/job/bricks.h"
#include "daemon/front/net/data.h"
#include "daemon/front/net/net.h"
#include "daemon/front/net/reply.h"
#include "daemon/front/net/router.h"
#include "daemon/front/service/admit.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/fields.h"
#include "daemon/front/service/filing.h"
#include "daemon/front/service/limits.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/service/sessions.h"
#include "daemon/front/service/setups.h"
#include "proto/control.h"

/* A message, and who sent it. */
typedef struct ask {
  qk_net_t *net;
  const qk_peer_t *peer;
  const qk_who_t *who;
  qk_session_t *session; /* NULL: it has none */
  const Quark__ClientMessage *message;
} ask_t;

/* ---- session ------------------------------------------------------------------------------- */

static qk_status_t check_hello(const Quark__Hello *hello, qk_err_t *err) {
  if (hello->version != QK_PROTOCOL_VERSION)
    return qk_fail(err, QK_UNSUPPORTED, "protocol version %u: this server speaks %u",
                   hello->version, QK_PROTOCOL_VERSION);
  if (hello->client_id.len != QK_CLIENT_ID)
    return qk_fail(err, QK_BAD_PROTOCOL, "client_id of %zu bytes: must be %d", hello->client_id.len,
                   QK_CLIENT_ID);
  if (hello->user && strlen(hello->user) > QK_USER_MAX)
    return qk_fail(err, QK_TOO_LARGE, "user of %zu bytes: the limit is %d", strlen(hello->user),
                   QK_USER_MAX);
  if (hello->program && strlen(hello->program) > QK_PROGRAM_MAX)
    return qk_fail(err, QK_TOO_LARGE, "program of %zu bytes: the limit is %d",
                   strlen(hello->program), QK_PROGRAM_MAX);
  return QK_OK;
}

static bool has_feature(const Quark__Hello *hello, uint32_t feature) {
  size_t i = 0;
  while (i < hello->n_feature && hello->feature[i] != feature) i++;
  return i < hello->n_feature;
}

/* An idle session that makes room goes without a word: its client opens another one when it
 * comes. */
static qk_session_t *open_session(qk_net_t *net, const uint8_t *client_id, const char *user,
                                  qk_err_t *err) {
  qk_session_t *session = NULL, *gone = NULL;
  const int set = (int)net->service->settings->max_sessions, fit = qk_guests_sessions(net->guests);
  if (qk_session_open(&net->service->sessions, &net->service->sched, client_id, user,
                      qk_service_awake(net->service), set < fit ? set : fit, &session, &gone,
                      err) != QK_OK)
    return NULL;
  if (gone) {
    qk_log(QK_LOG_INFO, "session", gone->name,
           "ended to make room: it has no requests and was silent for "
           "%.0f s",
           qk_service_awake(net->service) - gone->seen);
    gone->closing = true;
  }
  return session;
}

static void on_hello(const ask_t *ask) {
  qk_net_t *net = ask->net;
  const qk_session_t *mine = ask->session;
  const qk_who_t *who = ask->who;
  const Quark__Hello *hello = ask->message->hello;
  qk_err_t err = {0};
  char user[QK_USER_MAX + 1], program[QK_PROGRAM_MAX + 1];
  const char *claimed = hello->user ? hello->user : "", *name = who->user ? who->user : claimed;
  qk_session_t *session = NULL;
  bool resumed = true, fatal = true;
  if (check_hello(hello, &err) == QK_OK) {
    session = qk_session_by_id(&net->service->sessions, hello->client_id.data);
    if (mine && mine != session) {
      qk_fail(&err, QK_BAD_PROTOCOL,
              "HELLO of another client id: this connection already has a session; open another "
              "connection");
      session = NULL;
      fatal = false;
    } else if (!session) {
      resumed = false;
      session = open_session(net, hello->client_id.data, name, &err);
    } else if (!qk_session_is_of(session, who->user)) {
      qk_fail(&err, QK_DENIED, "this client id belongs to another user");
      session = NULL;
    }
  }
  if (!session) {
    net->service->count.dropped++;
    qk_reply_error(net, ask->peer, err.code, err.text, fatal, 0);
    return;
  }
  qk_limits_session(net->service, session);
  qk_session_set_control(&net->service->sessions, session, ask->peer);
  qk_session_greet(session);
  if (!mine) qk_reply_begin(net, session);
  session->by_blocks = has_feature(hello, QK_FEATURE_BLOCK_SUMS);
  session->control_fd = net->asker.fd;
  session->away = false;
  session->seen = qk_service_awake(net->service);
  qk_err_quote(name, user, sizeof user);
  qk_err_quote(hello->program, program, sizeof program);
  qk_log(QK_LOG_INFO, "session", session->name, "%s: user %s, program %s",
         resumed ? "resumed" : "opened", user, program);
  qk_reply_welcome(net, session, resumed);
}

/* ---- requests ------------------------------------------------------------------------------ */

static void complain(qk_net_t *net, const qk_session_t *session, uint64_t request,
                     const qk_err_t *err) {
  qk_reply_error(net, &session->control, err->code, err->text, false, request);
}

/* The job of a message about a request; NULL where it is over (nothing to do) or was never
 * there (told). */
static qk_job_t *find_job(qk_net_t *net, qk_session_t *session, uint64_t request) {
  qk_job_t *job = qk_session_job(session, request);
  if (!job && (request == 0 || request > session->newest)) {
    qk_err_t err = {0};
    qk_fail(&err, QK_NOT_FOUND, "request %llu was not accepted", (unsigned long long)request);
    complain(net, session, request, &err);
  }
  return job;
}

static qk_status_t check_index(const qk_job_t *job, uint32_t rhs, qk_err_t *err) {
  if (rhs < job->nrhs) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "rhs = %u: the request has %u", rhs, job->nrhs);
}

/* Likewise, of a message that names n of its right-hand sides; NULL also if these are too many or
 * not there (told). */
static qk_job_t *find_job_of(const ask_t *ask, uint64_t request, size_t n, const uint32_t *rhs) {
  qk_job_t *job = find_job(ask->net, ask->session, request);
  qk_err_t err = {0};
  if (!job) return NULL;
  if (n > QK_REQUEST_RHS_MAX)
    qk_fail(&err, QK_TOO_LARGE, "%zu right-hand sides are named: the limit is %d", n,
            QK_REQUEST_RHS_MAX);
  for (size_t i = 0; err.code == QK_OK && i < n; i++) check_index(job, rhs[i], &err);
  if (err.code == QK_OK) return job;
  complain(ask->net, ask->session, request, &err);
  return NULL;
}

static void on_grant(const ask_t *ask) {
  qk_net_t *net = ask->net;
  qk_session_t *session = ask->session;
  const Quark__Grant *grant = ask->message->grant;
  qk_err_t err = {0};
  qk_job_t *job = find_job(net, session, grant->request);
  if (!job) return;
  if (check_index(job, grant->rhs, &err) == QK_OK) {
    qk_rhs_t *rhs = &job->rhs[grant->rhs];
    qk_rhs_t *whole = qk_rhs_whole(rhs);
    if (rhs->state == QK_RHS_ACKED || !whole) return; /* of one that is about to end */
    job->used_at = whole->job->used_at = qk_service_now(net->service);
    qk_rhs_grant(rhs, grant->until, grant->has_from ? &grant->from : NULL, &err);
    if (err.code == QK_OK && rhs->state == QK_RHS_ENDED && rhs->outcome.written &&
        !(whole->solution || whole->spilled))
      qk_fail(&err, QK_EXPIRED, "rhs %u: the solution was held for %.0f s only", grant->rhs,
              whole->job->sink == QUARK__SINK__SINK_KEEP ? whole->job->keep
                                                         : net->service->settings->fetch_time);
    if (err.code == QK_OK) qk_data_offer(net, rhs);
  }
  if (err.code != QK_OK) complain(net, session, grant->request, &err);
}

static void acknowledge(qk_net_t *net, qk_rhs_t *rhs) {
  if (rhs->outcome.written && !rhs->job->field)
    qk_stats_phase(&net->service->stats, QK_PHASE_FETCH,
                   qk_service_now(net->service) - rhs->ended_at);
  qk_rhs_ack(rhs);
}

static void on_ack(const ask_t *ask) {
  qk_net_t *net = ask->net;
  const Quark__Ack *ack = ask->message->ack;
  qk_err_t err = {0};
  qk_job_t *job = find_job_of(ask, ack->request, ack->n_rhs, ack->rhs);
  if (!job) return;
  for (size_t i = 0; i < ack->n_rhs; i++) {
    qk_rhs_t *rhs = &job->rhs[ack->rhs[i]];
    if (rhs->state == QK_RHS_ENDED && qk_filing_told(job))
      acknowledge(net, rhs);
    else if (rhs->state != QK_RHS_ACKED)
      qk_fail(&err, QK_BAD_ARGUMENT, "rhs %u has not ended", ack->rhs[i]);
  }
  for (uint32_t i = 0; i < job->nrhs && ack->n_rhs == 0 && qk_filing_told(job); i++)
    if (job->rhs[i].state == QK_RHS_ENDED) acknowledge(net, &job->rhs[i]);
  if (err.code != QK_OK) complain(net, ask->session, ack->request, &err);
  if (qk_job_is_over(job)) {
    qk_log(QK_LOG_INFO, "job", job->name, "over");
    qk_queue_forget(net->service, job);
  }
}

static void on_release(const ask_t *ask) {
  qk_net_t *net = ask->net;
  qk_session_t *session = ask->session;
  const Quark__Release *release = ask->message->release;
  qk_job_t *job = find_job(net, session, release->request);
  if (!job) return;
  qk_log(QK_LOG_INFO, "job", job->name, "released");
  if (job->field && job->holds > 0)
    qk_fields_release(job);
  else
    qk_queue_forget(net->service, job);
}

static void on_attach(const ask_t *ask) {
  qk_net_t *net = ask->net;
  qk_session_t *session = ask->session;
  const Quark__Attach *attach = ask->message->attach;
  qk_job_t *job = qk_session_job(session, attach->request);
  qk_err_t err = {0};
  if (job && !job->joined) {
    qk_reply_attach(net, session, job);
    return;
  }
  if (job) {
    qk_fail(&err, QK_BAD_ARGUMENT, "request %llu is a part of another: JOIN it again",
            (unsigned long long)attach->request);
    complain(net, session, attach->request, &err);
    return;
  }
  qk_fail(&err, QK_NOT_FOUND, "request %llu does not exist: released, expired or never accepted",
          (unsigned long long)attach->request);
  complain(net, session, attach->request, &err);
}

static void on_cancel(const ask_t *ask) {
  qk_net_t *net = ask->net;
  const Quark__Cancel *cancel = ask->message->cancel;
  qk_job_t *job = find_job_of(ask, cancel->request, cancel->n_rhs, cancel->rhs);
  if (!job) return;
  if (job->joined) {
    qk_err_t err = {0};
    qk_fail(&err, QK_BAD_ARGUMENT, "request %llu is a part of another: its owner cancels it",
            (unsigned long long)cancel->request);
    complain(net, ask->session, cancel->request, &err);
    return;
  }
  qk_queue_cancel_some(net->service, job, cancel->n_rhs, cancel->rhs);
}

static void on_field_open(const ask_t *ask) {
  const Quark__FieldOpen *open = ask->message->field_open;
  qk_err_t err = {0};
  if (qk_admit_field(ask->net->service, ask->session, open, &err) != QK_OK)
    qk_reply_rejected(ask->net, &ask->session->control, open->request, &err);
}

static void on_join(const ask_t *ask) {
  const Quark__Join *join = ask->message->join;
  qk_err_t err = {0};
  if (qk_admit_join(ask->net->service, ask->session, join, &err) != QK_OK)
    qk_reply_rejected(ask->net, &ask->session->control, join->request, &err);
}

static void on_submit(const ask_t *ask) {
  const Quark__Submit *submit = ask->message->submit;
  qk_err_t err = {0};
  if (qk_admit_submit(ask->net->service, ask->session, submit, &err) != QK_OK)
    qk_reply_rejected(ask->net, &ask->session->control, submit->request, &err);
}

static void on_contract(const ask_t *ask) {
  const Quark__Contract *contract = ask->message->contract;
  qk_err_t err = {0};
  if (qk_admit_contract(ask->net->service, ask->session, contract, &err) != QK_OK)
    qk_reply_rejected(ask->net, &ask->session->control, contract->request, &err);
}

static void on_eigen(const ask_t *ask) {
  const Quark__Eigen *eigen = ask->message->eigen;
  qk_err_t err = {0};
  if (qk_admit_eigen(ask->net->service, ask->session, eigen, &err) != QK_OK)
    qk_reply_rejected(ask->net, &ask->session->control, eigen->request, &err);
}

static void on_ping(const ask_t *ask) {
  qk_reply_pong(ask->net, &ask->session->control);
}

static void on_goodbye(const ask_t *ask) {
  qk_log(QK_LOG_INFO, "session", ask->session->name, "closed by the client");
  qk_sessions_part(ask->net->service, ask->session);
}

/* ---- the daemon and its setups --------------------------------------------------------------- */

static qk_viewer_t viewer_of(const ask_t *ask) {
  const char *user = ask->session ? qk_sched_user_name(ask->session->user) : ask->who->user;
  return (qk_viewer_t){ask->session, user, ask->who->role >= QK_ROLE_OPERATE};
}

static void on_status(const ask_t *ask) {
  const qk_viewer_t viewer = viewer_of(ask);
  qk_reply_status(ask->net, ask->peer, &viewer, ask->message->status);
}

static void on_shutdown(const ask_t *ask) {
  qk_net_t *net = ask->net;
  const Quark__Shutdown *shutdown = ask->message->shutdown;
  qk_info("server", "a client asks to shut down%s", shutdown->now ? " now" : "");
  qk_reply_shutdown(net, ask->peer, shutdown->now);
  net->shutdown(net->shutdown_arg, shutdown->now);
}

/* What a change of a setup has come to: its state, or (NULL) why there is none. */
static void answer(const ask_t *ask, const qk_setup_t *setup, const qk_err_t *err) {
  ask->net->service->count.denied += !setup && err->code == QK_DENIED;
  if (setup)
    qk_reply_setup(ask->net, ask->peer, setup);
  else
    qk_reply_error(ask->net, ask->peer, err->code, err->text, false, 0);
}

static void on_load(const ask_t *ask) {
  qk_err_t err = {0};
  const qk_viewer_t viewer = viewer_of(ask);
  answer(ask, qk_setups_load(ask->net->service, &viewer, ask->message->load, &err), &err);
}

static void on_drop(const ask_t *ask) {
  const Quark__Drop *drop = ask->message->drop;
  qk_err_t err = {0};
  const qk_viewer_t viewer = viewer_of(ask);
  qk_setup_t *setup = qk_setups_drop(ask->net->service, &viewer, drop, &err);
  answer(ask, setup, &err);
  if (setup && drop->now) qk_queue_end_setup(setup, "its setup was dropped");
}

static void on_eigen_drop(const ask_t *ask) {
  qk_err_t err = {0};
  const qk_viewer_t viewer = viewer_of(ask);
  answer(ask, qk_eigen_drop(ask->net->service, &viewer, ask->message->eigen_drop, &err), &err);
}

static void on_make_default(const ask_t *ask) {
  const Quark__MakeDefault *message = ask->message->make_default;
  qk_err_t err = {0};
  const qk_viewer_t viewer = viewer_of(ask);
  answer(ask, qk_setups_make_default(ask->net->service, &viewer, message, &err), &err);
}

/* ---- which there are ------------------------------------------------------------------------- */

/* request: where the body has the number of the request that it is about; 0: it is about none. */
static const struct row {
  qk_role_t role;
  bool needs_session;
  size_t request;
  void (*handle)(const ask_t *ask);
} ROWS[] = {
#define BODY(name) QUARK__CLIENT_MESSAGE__BODY_##name
#define REQUEST(message) offsetof(Quark__##message, request)
    [BODY(HELLO)] = {QK_ROLE_READ, false, 0, on_hello},
    [BODY(STATUS)] = {QK_ROLE_READ, false, 0, on_status},
    [BODY(PING)] = {QK_ROLE_READ, true, 0, on_ping},
    [BODY(GOODBYE)] = {QK_ROLE_READ, true, 0, on_goodbye},
    [BODY(SUBMIT)] = {QK_ROLE_SUBMIT, true, REQUEST(Submit), on_submit},
    [BODY(CONTRACT)] = {QK_ROLE_SUBMIT, true, REQUEST(Contract), on_contract},
    [BODY(EIGEN)] = {QK_ROLE_SUBMIT, true, REQUEST(Eigen), on_eigen},
    [BODY(FIELD_OPEN)] = {QK_ROLE_SUBMIT, true, REQUEST(FieldOpen), on_field_open},
    [BODY(JOIN)] = {QK_ROLE_SUBMIT, true, REQUEST(Join), on_join},
    [BODY(GRANT)] = {QK_ROLE_SUBMIT, true, REQUEST(Grant), on_grant},
    [BODY(ACK)] = {QK_ROLE_SUBMIT, true, REQUEST(Ack), on_ack},
    [BODY(CANCEL)] = {QK_ROLE_SUBMIT, true, REQUEST(Cancel), on_cancel},
    [BODY(RELEASE)] = {QK_ROLE_SUBMIT, true, REQUEST(Release), on_release},
    [BODY(ATTACH)] = {QK_ROLE_SUBMIT, true, REQUEST(Attach), on_attach},
    [BODY(SHUTDOWN)] = {QK_ROLE_OPERATE, false, 0, on_shutdown},
    /* of one's own links; of others setups.c wants QK_ROLE_OPERATE */
    [BODY(LOAD)] = {QK_ROLE_SUBMIT, false, 0, on_load},
    [BODY(DROP)] = {QK_ROLE_SUBMIT, false, 0, on_drop},
    [BODY(EIGEN_DROP)] = {QK_ROLE_SUBMIT, true, 0, on_eigen_drop},
    [BODY(MAKE_DEFAULT)] = {QK_ROLE_OPERATE, false, 0, on_make_default},
#undef REQUEST
#undef BODY
};

/* The number of the request that it is about; 0: none. */
static uint64_t request_of(const Quark__ClientMessage *m) {
  const size_t at = ROWS[m->body_case].request;
  uint64_t request = 0;
  if (at > 0) memcpy(&request, (const char *)m->submit + at, sizeof request); /* any body's */
  return request;
}

/* True: the message is over the role of its sender, who has been told. */
static bool denied(const ask_t *ask) {
  const Quark__ClientMessage *m = ask->message;
  const qk_who_t *who = ask->who;
  const qk_role_t needed = ROWS[m->body_case].role;
  qk_err_t err = {0};
  if (who->role >= needed) return false;
  const ProtobufCFieldDescriptor *body =
      protobuf_c_message_descriptor_get_field(m->base.descriptor, m->body_case);
  qk_fail(&err, QK_DENIED, "%s needs the role %s: this key has the role %s", body->name,
          qk_role_name(needed), qk_role_name(who->role));
  ask->net->service->count.denied++;
  qk_info("clients", "user %s: %s", who->user ? who->user : "", err.text);
  if (m->body_case == QUARK__CLIENT_MESSAGE__BODY_SUBMIT ||
      m->body_case == QUARK__CLIENT_MESSAGE__BODY_CONTRACT ||
      m->body_case == QUARK__CLIENT_MESSAGE__BODY_EIGEN ||
      m->body_case == QUARK__CLIENT_MESSAGE__BODY_FIELD_OPEN ||
      m->body_case == QUARK__CLIENT_MESSAGE__BODY_JOIN)
    qk_reply_rejected(ask->net, ask->peer, request_of(m), &err);
  else
    qk_reply_error(ask->net, ask->peer, err.code, err.text, false, request_of(m));
  return true;
}

/* ---- socket ---------------------------------------------------------------------------------- */

/* The session has done nothing wrong: it waits for a HELLO by a key of its user. */
static void deny(qk_net_t *net, const qk_peer_t *peer, qk_session_t *session, const char *text) {
  if (session) qk_peers_forget(net, session, text);
  net->service->count.dropped++;
  qk_reply_error(net, peer, QK_DENIED, text, true, 0);
}

/* Who has a session loses it with all that it has; what a stranger has sent behind it is not looked
 * at. */
static void on_junk(qk_net_t *net, const qk_peer_t *peer, qk_session_t *session, zmq_msg_t *msg) {
  static const char text[] = "control message that cannot be read";
  if (session) {
    qk_sessions_close(net->service, session, QK_BAD_PROTOCOL, text);
    return;
  }
  net->service->count.dropped++;
  qk_reply_error(net, peer, QK_BAD_PROTOCOL, text, true, 0);
  qk_peers_cut(net, net->endpoint, msg, peer);
}

static void handle(const ask_t *ask) {
  const struct row *row = &ROWS[ask->message->body_case];
  if (denied(ask)) return;
  if (ask->session || !row->needs_session)
    row->handle(ask);
  else
    qk_reply_error(ask->net, ask->peer, QK_NOT_FOUND, "no session on this connection: send HELLO",
                   true, 0);
}

/* Whether it is about a request of a session: the work of somebody. */
static bool is_work(const qk_session_t *session, const Quark__ClientMessage *m) {
  return session && m && request_of(m) > 0;
}

/* By all messages so far. */
static uint64_t changes(const qk_net_t *net) {
  return qk_marks_number(qk_journal_marks(net->service->journal));
}

/* Whether it was work. */
static bool take(qk_net_t *net, const qk_peer_t *peer, const qk_who_t *who, zmq_msg_t *msg,
                 size_t bytes) {
  qk_session_t *session = qk_peers_control(net, peer);
  if (!who) {
    deny(net, peer, session, "this key is not authorised any more");
    return false;
  }
  if (session && !qk_session_is_of(session, who->user)) {
    deny(net, peer, session, "this key now belongs to another user");
    return false;
  }
  Quark__ClientMessage *m = qk_control_unpack_client(zmq_msg_data(msg), bytes);
  if (session) session->seen = qk_service_awake(net->service);
  const uint64_t before = changes(net);
  if (m)
    handle(&(ask_t){net, peer, who, session, m});
  else
    on_junk(net, peer, session, msg);
  session = qk_session_by_control(&net->service->sessions, peer);
  if (session && changes(net) > before) session->change = changes(net);
  const bool work = is_work(session, m);
  quark__client_message__free_unpacked(m, NULL);
  return work;
}

void qk_control_readable(void *arg) {
  qk_net_t *net = arg;
  bool work;
  do {
    qk_peer_t peer = {.thread = 0};
    zmq_msg_t msg;
    qk_who_t who;
    bool whole;
    zmq_msg_init(&msg);
    if (!qk_router_receive(net, &peer, &msg, &whole)) return;
    const bool known = qk_router_who(net, &msg, &peer, &who);
    net->asker = (qk_asker_t){&peer, zmq_msg_get(&msg, ZMQ_SRCFD)};
    qk_guests_heard(net->guests, QK_DOOR_CONTROL, net->asker.fd, &peer);
    work = !qk_peers_is_cut(net, &peer) &&
           take(net, &peer, known ? &who : NULL, &msg, whole ? zmq_msg_size(&msg) : 0);
    if (net->rest) qk_peers_cut_endless(net, net->endpoint, &msg, &peer);
    net->asker.peer = NULL;
    zmq_msg_close(&msg);
  } while (!qk_router_has_enough(net, work));
}
