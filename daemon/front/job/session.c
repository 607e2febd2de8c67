#include "daemon/front/job/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/due.h"

bool qk_peer_equal(const qk_peer_t *a, const qk_peer_t *b) {
  return a->bytes > 0 && a->bytes == b->bytes && a->thread == b->thread &&
         memcmp(a->id, b->id, a->bytes) == 0;
}

bool qk_peer_reachable(const qk_peer_t *peer) {
  return peer->bytes > 0 && !peer->ended;
}

bool qk_peer_same(const qk_peer_t *a, const qk_peer_t *b) {
  return qk_peer_equal(a, b) && a->connection == b->connection;
}

/* What --max-sessions says in its help, with what a user takes (sched.c). */
_Static_assert(sizeof(qk_session_t) + 2 * sizeof(qk_session_t *) <= QK_SESSION_BYTES / 3, "");

/* ---- the table ----------------------------------------------------------------------------- */

static uint32_t bucket_of(const qk_sessions_t *sessions, const void *key, size_t bytes) {
  return (uint32_t)(XXH3_64bits_withSeed(key, bytes, sessions->seed) % QK_SESSION_BUCKETS);
}

static void take_out(qk_sessions_t *sessions, qk_session_t *session, qk_session_key_t by) {
  qk_session_t **at = &sessions->bucket[by][session->bucket[by]];
  while (*at && *at != session) at = &(*at)->next[by];
  if (*at) *at = session->next[by];
}

static void put_in(qk_sessions_t *sessions, qk_session_t *session, qk_session_key_t by,
                   const void *key, size_t bytes) {
  take_out(sessions, session, by);
  session->bucket[by] = bucket_of(sessions, key, bytes);
  qk_session_t **head = &sessions->bucket[by][session->bucket[by]];
  session->next[by] = *head;
  *head = session;
}

/* Room for one more, and the seed. */
static qk_status_t make_table(qk_sessions_t *sessions, qk_err_t *err) {
  if (sessions->seed == 0) {
    if (getrandom(&sessions->seed, sizeof sessions->seed, 0) != (ssize_t)sizeof sessions->seed)
      return qk_fail(err, QK_INTERNAL, "getrandom: %s", strerror(errno));
    sessions->seed |= 1;
  }
  qk_session_t **at =
      qk_grow(sessions->at, &sessions->room, sessions->count + 1, sizeof(qk_session_t *));
  if (!at) return qk_fail(err, QK_NO_MEMORY, "no memory for a session");
  sessions->at = at;
  return QK_OK;
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Of that user, which the caller holds and the session takes. */
static qk_status_t make(qk_sessions_t *sessions, qk_sched_user_t *user, const uint8_t *client_id,
                        double now, qk_session_t **out, qk_err_t *err) {
  qk_status_t status = make_table(sessions, err);
  if (status != QK_OK) return status;
  qk_session_t *s = qk_calloc(1, sizeof *s);
  if (!s) return qk_fail(err, QK_NO_MEMORY, "no memory for a session");
  if (getrandom(s->token, sizeof s->token, 0) != (ssize_t)sizeof s->token) {
    qk_free(s);
    return qk_fail(err, QK_INTERNAL, "getrandom: %s", strerror(errno));
  }
  s->user = user;
  ++*qk_sched_user_sessions(user);
  memcpy(s->client_id, client_id, sizeof s->client_id);
  snprintf(s->name, sizeof s->name, "%02x%02x%02x%02x", client_id[0], client_id[1], client_id[2],
           client_id[3]);
  qk_link_init(&s->jobs);
  s->seen = now;
  sessions->at[sessions->count++] = s;
  put_in(sessions, s, QK_BY_ID, client_id, QK_CLIENT_ID);
  *out = s;
  return QK_OK;
}

qk_status_t qk_session_create(qk_sessions_t *sessions, qk_sched_t *sched, const uint8_t *client_id,
                              const char *name, double now, qk_session_t **out, qk_err_t *err) {
  qk_sched_user_t *user;
  qk_status_t status = qk_sched_user_hold(sched, name, &user);
  if (status != QK_OK) return qk_fail(err, status, "no memory for a session");
  status = make(sessions, user, client_id, now, out, err);
  if (status != QK_OK) qk_sched_user_release(user);
  return status;
}

int qk_session_share(int most) {
  return most / 4 > QK_SESSIONS_SHARE ? most / 4 : QK_SESSIONS_SHARE;
}

/* Whether a can give way before b, which may be NULL: first the one of who has more sessions, then
 * the one that was silent longer. */
static bool goes_before(const qk_session_t *a, const qk_session_t *b) {
  if (!b) return true;
  const int of_a = *qk_sched_user_sessions(a->user), of_b = *qk_sched_user_sessions(b->user);
  return of_a != of_b ? of_a > of_b : a->seen < b->seen;
}

/* NULL: there is none. own: of that user's sessions alone. */
static qk_session_t *find_idle(const qk_sessions_t *sessions, qk_sched_user_t *user, bool own) {
  const int least = *qk_sched_user_sessions(user);
  qk_session_t *found = NULL;
  for (int i = 0; i < sessions->count; i++) {
    qk_session_t *s = sessions->at[i];
    if (s->closing || !qk_link_alone(&s->jobs)) continue;
    if (own ? s->user != user : *qk_sched_user_sessions(s->user) < least) continue;
    if (goes_before(s, found)) found = s;
  }
  return found;
}

static qk_status_t make_room(const qk_sessions_t *sessions, qk_sched_user_t *user, int most,
                             qk_session_t **gone, qk_err_t *err) {
  const int share = qk_session_share(most), its = *qk_sched_user_sessions(user);
  *gone = NULL;
  if (its < share && sessions->count < most) return QK_OK;
  *gone = find_idle(sessions, user, its >= share);
  if (*gone) return QK_OK;
  if (its >= share)
    return qk_fail(
        err, QK_BUSY,
        "all %d sessions of this user have requests: one user may have a quarter of %d sessions "
        "(max-sessions, and what descriptors allow), at least %d",
        its, most, QK_SESSIONS_SHARE);
  return qk_fail(err, QK_BUSY,
                 "all %d sessions (max-sessions, and what descriptors allow) are in use, and all "
                 "those of users with as many as this one have requests",
                 most);
}

qk_status_t qk_session_open(qk_sessions_t *sessions, qk_sched_t *sched, const uint8_t *client_id,
                            const char *name, double now, int most, qk_session_t **out,
                            qk_session_t **gone, qk_err_t *err) {
  qk_sched_user_t *user;
  qk_status_t status = qk_sched_user_hold(sched, name, &user);
  if (status != QK_OK) return qk_fail(err, status, "no memory for a session");
  status = make_room(sessions, user, most, gone, err);
  if (status == QK_OK) status = make(sessions, user, client_id, now, out, err);
  if (status == QK_OK) return QK_OK;
  *gone = NULL;
  qk_sched_user_release(user);
  return status;
}

/* ---- tokens -------------------------------------------------------------------------------- */

enum { FIXED = QK_CLIENT_ID - sizeof(uint32_t) }; /* bytes that all tokens of a session share */

void qk_session_greet(qk_session_t *session) {
  if (session->greeted) session->hellos++;
  session->greeted = true;
}

void qk_session_token(const qk_session_t *session, uint8_t token[QK_CLIENT_ID]) {
  memcpy(token, session->token, QK_CLIENT_ID);
  for (size_t i = 0; i < sizeof session->hellos; i++)
    token[FIXED + i] ^= (uint8_t)(session->hellos >> 8 * i);
}

/* Number of the HELLO that made it. */
static uint32_t hello_of(const qk_session_t *session, const uint8_t *token) {
  uint32_t number = 0;
  for (size_t i = 0; i < sizeof number; i++)
    number |= (uint32_t)(token[FIXED + i] ^ session->token[FIXED + i]) << 8 * i;
  return number;
}

bool qk_session_has_token(const qk_session_t *session, const uint8_t *token) {
  return memcmp(session->token, token, FIXED) == 0 && hello_of(session, token) <= session->hellos;
}

bool qk_session_bind(qk_session_t *session, const uint8_t *token) {
  const uint32_t number = hello_of(session, token);
  if (number < session->bound) return false;
  session->bound = number;
  return true;
}

void qk_session_destroy(qk_sessions_t *sessions, qk_session_t *session) {
  QK_ASSERT(qk_link_alone(&session->jobs));
  for (int k = 0; k < QK_SESSION_KEYS; k++) take_out(sessions, session, (qk_session_key_t)k);
  for (int i = 0; i < sessions->count; i++) {
    if (sessions->at[i] != session) continue;
    sessions->at[i] = sessions->at[--sessions->count];
    break;
  }
  if (sessions->count == 0) {
    qk_free(sessions->at);
    sessions->at = NULL;
    sessions->room = 0;
  }
  --*qk_sched_user_sessions(session->user);
  qk_sched_user_release(session->user);
  qk_free(session);
}

void qk_session_set_control(qk_sessions_t *sessions, qk_session_t *session, const qk_peer_t *peer) {
  session->control = *peer;
  put_in(sessions, session, QK_BY_CONTROL, peer->id, peer->bytes);
}

void qk_session_set_data(qk_sessions_t *sessions, qk_session_t *session, const qk_peer_t *peer) {
  session->data = *peer;
  put_in(sessions, session, QK_BY_DATA, peer->id, peer->bytes);
}

/* ---- finding ------------------------------------------------------------------------------- */

bool qk_session_is_of(const qk_session_t *session, const char *user) {
  return !user || strcmp(qk_sched_user_name(session->user), user) == 0;
}

qk_session_t *qk_session_by_id(const qk_sessions_t *sessions, const uint8_t *client_id) {
  const uint32_t k = bucket_of(sessions, client_id, QK_CLIENT_ID);
  for (qk_session_t *s = sessions->bucket[QK_BY_ID][k]; s; s = s->next[QK_BY_ID])
    if (!s->closing && memcmp(s->client_id, client_id, QK_CLIENT_ID) == 0) return s;
  return NULL;
}

/* key: QK_BY_CONTROL or QK_BY_DATA. */
static qk_session_t *by_peer(const qk_sessions_t *sessions, int key, const qk_peer_t *peer) {
  const uint32_t k = bucket_of(sessions, peer->id, peer->bytes);
  for (qk_session_t *s = sessions->bucket[key][k]; s; s = s->next[key])
    if (!s->closing && qk_peer_equal(key == QK_BY_CONTROL ? &s->control : &s->data, peer)) return s;
  return NULL;
}

qk_session_t *qk_session_by_control(const qk_sessions_t *sessions, const qk_peer_t *peer) {
  return by_peer(sessions, QK_BY_CONTROL, peer);
}

qk_session_t *qk_session_by_data(const qk_sessions_t *sessions, const qk_peer_t *peer) {
  return by_peer(sessions, QK_BY_DATA, peer);
}

qk_job_t *qk_session_job(const qk_session_t *session, uint64_t request) {
  for (qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
    qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    if (job->request == request) return job;
  }
  return NULL;
}

void qk_session_adopt(qk_session_t *session, qk_job_t *job) {
  if (job->request > session->newest) session->newest = job->request;
  session->njobs++;
  job->session = session;
  qk_job_join(job);
  qk_list_append(&session->jobs, &job->link);
  snprintf(job->name, sizeof job->name, "%s/%llu", session->name, (unsigned long long)job->request);
}

static void each_of(const qk_link_t *jobs, qk_session_job_fn *each, void *arg) {
  for (const qk_link_t *l = jobs->next; l != jobs; l = l->next)
    each(QK_HOLDER(l, qk_job_t, link), arg);
}

void qk_session_each_job(const qk_sessions_t *sessions, const qk_link_t *orphans,
                         qk_session_job_fn *each, void *arg) {
  for (int i = 0; i < sessions->count; i++) each_of(&sessions->at[i]->jobs, each, arg);
  if (orphans) each_of(orphans, each, arg);
}
