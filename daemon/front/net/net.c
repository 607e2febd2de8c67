#include "daemon/front/net/net.h"

#include "daemon/front/net/data.h"
#include "daemon/front/net/local.h"
#include "daemon/front/net/reply.h"

static void accepted(void *arg, qk_session_t *session, qk_job_t *job, bool repeated) {
  qk_reply_accepted(arg, session, job, repeated);
}

static void result(void *arg, qk_session_t *session, qk_rhs_t *rhs) {
  qk_reply_result(arg, session, rhs);
}

static void credit(void *arg, qk_session_t *session, qk_job_t *job) {
  qk_reply_credit(arg, session, job);
}

static void progress(void *arg, qk_session_t *session, const qk_job_t *job) {
  qk_reply_progress(arg, session, job);
}

static void sendable(void *arg, qk_rhs_t *rhs) {
  qk_data_offer(arg, rhs);
}

static void error(void *arg, const qk_session_t *session, qk_status_t status, const char *text,
                  bool fatal, uint64_t request) {
  qk_reply_error(arg, &session->control, status, text, fatal, request);
}

static void closed(void *arg, const qk_session_t *session) {
  const qk_server_t *server = arg;
  qk_local_drop(server->local, session->client_id);
}

qk_job_events_t qk_net_events(qk_server_t *server) {
  return (qk_job_events_t){.arg = server,
                           .accepted = accepted,
                           .result = result,
                           .credit = credit,
                           .progress = progress,
                           .sendable = sendable,
                           .error = error,
                           .closed = closed};
}
