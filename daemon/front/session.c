#include "daemon/front/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"

bool qk_peer_equal(const qk_peer_t *a, const qk_peer_t *b) {
  return a->bytes > 0 && a->bytes == b->bytes && memcmp(a->id, b->id, a->bytes) == 0;
}

qk_status_t qk_session_create(qk_sessions_t *sessions, qk_sched_t *sched, const uint8_t *client_id,
                              const char *user, double now, qk_session_t **out, qk_err_t *err) {
  if (sessions->count == QK_SESSIONS_MAX)
    return qk_fail(err, QK_BUSY, "all %d sessions are taken", QK_SESSIONS_MAX);
  qk_session_t *s = qk_calloc(1, sizeof *s);
  if (!s) return qk_fail(err, QK_NO_MEMORY, "no memory for a session");
  if (getrandom(s->token, sizeof s->token, 0) != (ssize_t)sizeof s->token) {
    qk_free(s);
    return qk_fail(err, QK_INTERNAL, "getrandom: %s", strerror(errno));
  }
  qk_status_t status = qk_sched_user_hold(sched, user, &s->user);
  if (status != QK_OK) {
    qk_free(s);
    return qk_fail(err, status, "no memory for a session");
  }
  memcpy(s->client_id, client_id, sizeof s->client_id);
  snprintf(s->name, sizeof s->name, "%02x%02x%02x%02x", client_id[0], client_id[1], client_id[2],
           client_id[3]);
  qk_link_init(&s->jobs);
  s->seen = now;
  sessions->at[sessions->count++] = s;
  *out = s;
  return QK_OK;
}

void qk_session_destroy(qk_sessions_t *sessions, qk_session_t *session) {
  QK_ASSERT(qk_link_alone(&session->jobs));
  for (int i = 0; i < sessions->count; i++) {
    if (sessions->at[i] != session) continue;
    sessions->at[i] = sessions->at[--sessions->count];
    break;
  }
  qk_sched_user_release(session->user);
  qk_free(session);
}

bool qk_session_is_of(const qk_session_t *session, const char *user) {
  return !user || strcmp(qk_sched_user_name(session->user), user) == 0;
}

qk_session_t *qk_session_by_id(const qk_sessions_t *sessions, const uint8_t *client_id) {
  for (int i = 0; i < sessions->count; i++) {
    qk_session_t *s = sessions->at[i];
    if (!s->doomed && memcmp(s->client_id, client_id, QK_CLIENT_ID) == 0) return s;
  }
  return NULL;
}

qk_session_t *qk_session_by_control(const qk_sessions_t *sessions, const qk_peer_t *peer) {
  for (int i = 0; i < sessions->count; i++) {
    qk_session_t *s = sessions->at[i];
    if (!s->doomed && qk_peer_equal(&s->control, peer)) return s;
  }
  return NULL;
}

qk_session_t *qk_session_by_data(const qk_sessions_t *sessions, const qk_peer_t *peer) {
  for (int i = 0; i < sessions->count; i++) {
    qk_session_t *s = sessions->at[i];
    if (!s->doomed && qk_peer_equal(&s->data, peer)) return s;
  }
  return NULL;
}

qk_job_t *qk_session_job(const qk_session_t *session, uint64_t request) {
  for (qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
    qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    if (job->request == request) return job;
  }
  return NULL;
}
