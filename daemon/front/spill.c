#include "daemon/front/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/file.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/server.h"

enum {
  INDEX =
      1 << 16, /* added to that of a right-hand side: the other files of the spool are sources */
  COPY_BYTES = 256 * 1024
};

struct qk_spill {
  qk_server_t *server;
  int64_t bytes; /* on the disk, or on their way there */
};

/* One solution on its way, out or back. A file is the field, then its checksum. */
struct qk_spill_task {
  uv_work_t work;
  qk_spill_t *spill;
  qk_rhs_t *rhs; /* NULL: abandoned */
  bool out;
  qk_shm_t *field; /* back: ours */
  char path[QK_FILE_PATH], shm[QK_SHM_NAME_MAX];
  size_t bytes;
  qk_status_t status;
  qk_err_t err;
};

/* ---- on a thread of libuv ------------------------------------------------------------------ */

static void fail(qk_spill_task_t *t, const char *what) {
  t->status = qk_fail(&t->err, QK_IO_ERROR, "%s: %s", what, strerror(errno));
}

static void write_out(qk_spill_task_t *t) {
  const int from = shm_open(t->shm, O_RDONLY | O_CLOEXEC, 0);
  void *data = from >= 0 ? mmap(NULL, t->bytes, PROT_READ, MAP_SHARED, from, 0) : MAP_FAILED;
  const int to = open(t->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (data == MAP_FAILED || to < 0) {
    fail(t, to < 0 ? t->path : t->shm);
  } else {
    const uint64_t sum = qk_checksum(data, t->bytes);
    t->status = qk_file_put(to, data, (int64_t)t->bytes, &t->err);
    if (t->status == QK_OK) t->status = qk_file_put(to, &sum, sizeof sum, &t->err);
    if (t->status == QK_OK && fsync(to) != 0) fail(t, t->path);
  }
  if (data != MAP_FAILED) munmap(data, t->bytes);
  if (from >= 0) close(from);
  if (to >= 0) close(to);
  if (t->status == QK_OK)
    qk_file_sync_folder(t->path);
  else
    unlink(t->path);
}

/* All of it; false with errno. */
static bool read_all(int fd, void *data, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    const ssize_t n = read(fd, (char *)data + at, bytes - at);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENODATA;
    if (n <= 0) return false;
    at += (size_t)n;
  }
  return true;
}

static void copy_back(qk_spill_task_t *t, int from, int to, uint8_t *buffer,
                      qk_field_hash_t *hash) {
  uint64_t sum;
  qk_field_hash_init(hash);
  for (size_t at = 0; at < t->bytes && t->status == QK_OK;) {
    const size_t n = t->bytes - at < COPY_BYTES ? t->bytes - at : COPY_BYTES;
    if (qk_fault(QK_FAULT_READ) || !read_all(from, buffer, n)) {
      fail(t, t->path);
      return;
    }
    qk_field_hash_update(hash, buffer, n);
    t->status = qk_shm_write(to, buffer, n, at, &t->err);
    at += n;
  }
  if (t->status == QK_OK &&
      (!read_all(from, &sum, sizeof sum) || sum != qk_field_hash_digest(hash)))
    t->status =
        qk_fail(&t->err, QK_BAD_CHECKSUM, "%s: its checksum is not that of its bytes", t->path);
}

static void read_back(qk_spill_task_t *t) {
  uint8_t *buffer = qk_malloc(COPY_BYTES);
  qk_field_hash_t *hash = qk_field_hash_create();
  const int from = open(t->path, O_RDONLY | O_CLOEXEC),
            to = shm_open(t->shm, O_RDWR | O_CLOEXEC, 0);
  if (!buffer || !hash || to < 0)
    t->status = qk_fail(&t->err, QK_NO_MEMORY, "no memory to read %s", t->path);
  else if (from < 0)
    fail(t, t->path);
  else
    copy_back(t, from, to, buffer, hash);
  if (from >= 0) close(from);
  if (to >= 0) close(to);
  qk_field_hash_destroy(hash);
  qk_free(buffer);
}

static void run(uv_work_t *work) {
  qk_spill_task_t *t = work->data;
  if (t->out)
    write_out(t);
  else
    read_back(t);
}

/* ---- the loop's thread --------------------------------------------------------------------- */

static void path_of(const qk_spill_t *spill, const qk_rhs_t *rhs, char path[QK_FILE_PATH]) {
  qk_spool_path(spill->server->spool, rhs->job->entry.id, INDEX + rhs->index, path);
}

static qk_session_t *session_of(const qk_rhs_t *rhs) {
  return rhs->job->session;
}

/* Whether nobody waits for its bytes: its client is away, or has not asked for so long that it might be. */
static bool is_idle(const qk_spill_t *spill, const qk_rhs_t *rhs) {
  const double now = qk_server_now(spill->server), used = rhs->job->used_at,
               last = used > rhs->ended_at ? used : rhs->ended_at;
  const qk_session_t *session = session_of(rhs);
  return session && rhs->state == QK_RHS_ENDED && rhs->solution && rhs->granted <= rhs->sent &&
         (session->away || now - last > session->lease);
}

static void on_out(qk_spill_task_t *t) {
  qk_rhs_t *rhs = t->rhs;
  const int64_t bytes = (int64_t)t->bytes;
  if (t->status != QK_OK || !rhs) t->spill->bytes -= bytes;
  if (!rhs) {
    if (t->status == QK_OK) unlink(t->path);
    return;
  }
  if (t->status != QK_OK) {
    qk_log(QK_LOG_WARN, "spill", rhs->job->name, "rhs %u stays in memory: %s", rhs->index,
           t->err.text);
    return;
  }
  rhs->spilled = true;
  qk_journal_mark_rhs(rhs);
}

/* It is in memory again, or has expired. */
static void on_back(qk_spill_task_t *t) {
  qk_rhs_t *rhs = t->rhs;
  if (!rhs || t->status != QK_OK) qk_shm_destroy(t->field);
  if (!rhs) return;
  if (t->status == QK_OK) {
    rhs->solution = t->field;
    qk_journal_mark_rhs(rhs);
    qk_data_offer(t->spill->server, rhs);
    return;
  }
  qk_log(QK_LOG_WARN, "spill", rhs->job->name, "rhs %u is lost: %s", rhs->index, t->err.text);
  qk_rhs_drop_solution(rhs);
  qk_reply_error(t->spill->server, &session_of(rhs)->control, QK_EXPIRED, t->err.text, false,
                 rhs->job->request);
}

static void after(uv_work_t *work, int cancelled) {
  qk_spill_task_t *t = work->data;
  (void)cancelled;
  if (t->rhs) t->rhs->moving = NULL;
  if (t->out)
    on_out(t);
  else
    on_back(t);
  qk_free(t);
}

/* field: of the solution, or bare to take it. Takes nothing on failure. */
static bool start(qk_spill_t *spill, qk_rhs_t *rhs, bool out, qk_shm_t *field) {
  qk_spill_task_t *t = qk_calloc(1, sizeof *t);
  if (!t) return false;
  t->spill = spill;
  t->rhs = rhs;
  t->out = out;
  t->field = out ? NULL : field;
  t->bytes = field->bytes;
  snprintf(t->shm, sizeof t->shm, "%s", field->name);
  path_of(spill, rhs, t->path);
  t->work.data = t;
  rhs->moving = t;
  uv_queue_work(&spill->server->loop.uv, &t->work, run, after);
  return true;
}

/* ---- out ----------------------------------------------------------------------------------- */

static bool is_candidate(const qk_spill_t *spill, const qk_rhs_t *rhs) {
  return rhs->job->sink == QUARK__SINK__SINK_DOWNLOAD && !rhs->job->contraction && !rhs->moving &&
         !rhs->spilled && rhs->outcome.written && is_idle(spill, rhs);
}

static bool is_better(const qk_rhs_t *a, const qk_rhs_t *b) {
  const bool away = session_of(a)->away;
  if (!b || away != session_of(b)->away) return !b || away;
  return a->ended_at < b->ended_at;
}

/* Of this user, or (NULL) of anybody; NULL: none. */
static qk_rhs_t *candidate(const qk_spill_t *spill, const qk_sched_user_t *user) {
  const qk_sessions_t *sessions = &spill->server->sessions;
  qk_rhs_t *best = NULL;
  for (int i = 0; i < sessions->count; i++) {
    const qk_link_t *jobs = &sessions->at[i]->jobs;
    for (const qk_link_t *l = jobs->next; l != jobs; l = l->next) {
      qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      for (uint32_t k = 0; k < job->nrhs && (!user || job->user == user); k++)
        if (is_candidate(spill, &job->rhs[k]) && is_better(&job->rhs[k], best)) best = &job->rhs[k];
    }
  }
  return best;
}

/* Bytes that are about to leave memory. */
static int64_t leaving(const qk_spill_t *spill, const qk_sched_user_t *user) {
  const qk_sessions_t *sessions = &spill->server->sessions;
  int64_t bytes = 0;
  for (int i = 0; i < sessions->count; i++) {
    const qk_link_t *jobs = &sessions->at[i]->jobs;
    for (const qk_link_t *l = jobs->next; l != jobs; l = l->next) {
      const qk_job_t *job = QK_HOLDER(l, const qk_job_t, link);
      for (uint32_t k = 0; k < job->nrhs && (!user || job->user == user); k++) {
        const qk_rhs_t *rhs = &job->rhs[k];
        const bool goes = rhs->moving ? rhs->moving->out : rhs->spilled;
        if (goes && is_idle(spill, rhs)) bytes += (int64_t)job->field_bytes;
      }
    }
  }
  return bytes;
}

void qk_spill_make_room(qk_spill_t *spill, const qk_session_t *session, int64_t bytes) {
  if (!spill) return;
  const qk_server_t *server = spill->server;
  const qk_budget_t *all = &server->budget, *own = qk_sched_user_memory(session->user);
  const int64_t limit = server->settings->spill, shm = qk_shm_free_bytes(&server->space);
  const bool only_own = bytes <= all->limit - all->used && bytes <= shm;
  int64_t room = only_own ? own->limit - own->used : all->limit - all->used;
  if (!only_own && shm < room) room = shm;
  const qk_sched_user_t *whose = only_own ? session->user : NULL;
  room += leaving(spill, whose);
  for (qk_rhs_t *rhs; room < bytes && (rhs = candidate(spill, whose));) {
    const int64_t field = (int64_t)rhs->job->field_bytes;
    if (spill->bytes + field > limit || field > qk_spool_free_bytes(server->spool) ||
        !start(spill, rhs, true, rhs->solution))
      return;
    spill->bytes += field;
    room += field;
  }
}

/* ---- back, and from memory ----------------------------------------------------------------- */

static bool is_wanted(const qk_rhs_t *rhs) {
  return rhs->state == QK_RHS_ENDED && rhs->spilled && !rhs->solution && !rhs->moving &&
         rhs->granted > rhs->sent;
}

/* Solutions of the session that have come back, or are coming; those that have been fetched to the end leave again. */
static int back(const qk_session_t *session) {
  int n = 0;
  for (const qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
    qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    for (uint32_t k = 0; k < job->nrhs; k++) {
      qk_rhs_t *rhs = &job->rhs[k];
      if (rhs->spilled && rhs->solution && rhs->sent == job->field_bytes) qk_rhs_unload(rhs);
      n += rhs->spilled && (rhs->solution || rhs->moving);
    }
  }
  return n;
}

static void come_back(qk_spill_t *spill, qk_rhs_t *rhs) {
  qk_job_t *job = rhs->job;
  qk_shm_t *field;
  qk_err_t err = {0};
  const int64_t bytes = (int64_t)job->field_bytes;
  if (qk_budget_check(job->budget, bytes, &err) != QK_OK && back(session_of(rhs)) > 0) return;
  err = (qk_err_t){0};
  if (qk_shm_create_bare(job->space, job->field_bytes, &field, &err) != QK_OK) return;
  if (!start(spill, rhs, false, field)) {
    qk_shm_destroy(field);
    return;
  }
  qk_budget_charge(job->budget, bytes);
  rhs->charged_solution = true;
}

void qk_spill_tick(qk_spill_t *spill) {
  if (!spill || spill->bytes == 0) return;
  const qk_sessions_t *sessions = &spill->server->sessions;
  const bool clean = qk_journal_clean(spill->server->journal);
  for (int i = 0; i < sessions->count; i++) {
    const qk_link_t *jobs = &sessions->at[i]->jobs;
    for (const qk_link_t *l = jobs->next; l != jobs; l = l->next) {
      qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      for (uint32_t k = 0; k < job->nrhs; k++) {
        qk_rhs_t *rhs = &job->rhs[k];
        if (is_wanted(rhs)) come_back(spill, rhs);
        if (clean && rhs->spilled && is_idle(spill, rhs)) qk_rhs_unload(rhs);
      }
    }
  }
}

/* ---- its end, and its return after a restart ----------------------------------------------- */

bool qk_spill_restore(qk_spill_t *spill, qk_rhs_t *rhs) {
  char path[QK_FILE_PATH];
  struct stat st;
  if (!spill) return false;
  path_of(spill, rhs, path);
  if (stat(path, &st) != 0 || (uint64_t)st.st_size != rhs->job->field_bytes + sizeof(uint64_t))
    return false;
  rhs->spilled = true;
  spill->bytes += (int64_t)rhs->job->field_bytes;
  return true;
}

void qk_spill_forget(qk_rhs_t *rhs) {
  qk_spill_t *spill = rhs->job->spill;
  if (rhs->moving) rhs->moving->rhs = NULL;
  rhs->moving = NULL;
  if (!rhs->spilled) return;
  rhs->spilled = false;
  spill->bytes -= (int64_t)rhs->job->field_bytes;
  if (!rhs->job->space->leave)
    qk_spool_remove(spill->server->spool, rhs->job->entry.id, INDEX + rhs->index);
}

int64_t qk_spill_bytes(const qk_spill_t *spill) {
  return spill ? spill->bytes : 0;
}

qk_status_t qk_spill_open(qk_server_t *server, qk_spill_t **spill, qk_err_t *err) {
  qk_spill_t *s = qk_calloc(1, sizeof *s);
  if (!s) return qk_fail(err, QK_NO_MEMORY, "no memory for a spill");
  s->server = server;
  *spill = s;
  return QK_OK;
}

void qk_spill_close(qk_spill_t *spill) {
  qk_free(spill);
}
