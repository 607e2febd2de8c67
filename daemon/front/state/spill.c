#include "daemon/front/state/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/file.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/plural.h"
#include "daemon/front/host/worker.h"
#include "daemon/front/job/bricks.h"

enum {
  INDEX =
      1 << 16, /* added to that of a right-hand side: the other files of the spool are sources */
  COPY_BYTES = 256 * 1024,
  READ_TRIES = 5, /* of a disk that may be well again */
  THREADS = 2     /* of their own: a disk that stalls holds nothing else */
};

static const double REMIND = 60; /* seconds */

struct qk_spill {
  qk_spill_site_t site;
  qk_worker_t *movers; /* NULL: nothing was moved yet, or they have ended */
  int64_t bytes;       /* on the disk, or on their way there */
  double remind_at;    /* not before is it logged again that one waits for memory */
};

/* One solution on its way, out or back. A file is the field, then its checksum. */
struct qk_spill_task {
  qk_work_t work;
  qk_spill_t *spill;
  qk_rhs_t *rhs; /* NULL: abandoned */
  bool out;
  qk_shm_t *field; /* back: ours */
  const qk_spool_t *spool;
  char name[QK_SPOOL_NAME], path[QK_FILE_PATH], shm[QK_SHM_NAME_MAX];
  size_t bytes;
  bool digested;    /* back: what its checksum was is known */
  uint64_t digest;  /* that, or of what was written */
  bool may_recover; /* back: what failed says nothing of the file */
  qk_status_t status;
  qk_err_t err;
};

/* ---- on a thread ---------------------------------------------------------------------------- */

static void fail(qk_spill_task_t *t, const char *what) {
  t->status = qk_fail(&t->err, QK_IO_ERROR, "%s: %s", what, strerror(errno));
}

static void write_out(qk_spill_task_t *t) {
  const int from = shm_open(t->shm, O_RDONLY | O_CLOEXEC, 0);
  void *data = from >= 0 ? mmap(NULL, t->bytes, PROT_READ, MAP_SHARED, from, 0) : MAP_FAILED;
  const int to = qk_spool_make(t->spool, t->name);
  if (data == MAP_FAILED || to < 0) {
    fail(t, to < 0 ? t->path : t->shm);
  } else {
    t->digest = qk_checksum(data, t->bytes);
    t->status = qk_file_put(to, data, (int64_t)t->bytes, &t->err);
    if (t->status == QK_OK) t->status = qk_file_put(to, &t->digest, sizeof t->digest, &t->err);
    if (t->status == QK_OK && fsync(to) != 0) fail(t, t->path);
  }
  if (data != MAP_FAILED) munmap(data, t->bytes);
  if (from >= 0) close(from);
  if (to >= 0) close(to);
  if (t->status == QK_OK) t->status = qk_spool_sync(t->spool, &t->err);
  if (t->status != QK_OK) qk_spool_unlink(t->spool, t->name);
}

/* The same, of a file whose disk or server may be well again. */
static void fail_to_read(qk_spill_task_t *t) {
  t->may_recover = errno == EIO || errno == ESTALE || errno == ETIMEDOUT;
  fail(t, t->path);
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
  qk_field_hash_init(hash, false);
  for (size_t at = 0; at < t->bytes && t->status == QK_OK;) {
    const size_t n = t->bytes - at < COPY_BYTES ? t->bytes - at : COPY_BYTES;
    const bool broken = qk_fault(QK_FAULT_READ);
    if (broken) errno = EIO;
    if (broken || !read_all(from, buffer, n)) {
      fail_to_read(t);
      return;
    }
    qk_field_hash_update(hash, buffer, n);
    t->status = qk_shm_write(to, buffer, n, at, &t->err);
    at += n;
  }
  if (t->status != QK_OK) return;
  if (!read_all(from, &sum, sizeof sum))
    fail_to_read(t);
  else if (sum != qk_field_hash_digest(hash))
    t->status =
        qk_fail(&t->err, QK_BAD_CHECKSUM, "%s: its checksum does not match its bytes", t->path);
  if (t->status == QK_OK && t->digested && sum != t->digest)
    t->status =
        qk_fail(&t->err, QK_BAD_CHECKSUM,
                "%s: its checksum is not the one of the solution: it is another file", t->path);
}

/* It says nothing of the file. */
static bool is_shortage(int e) {
  return e == EMFILE || e == ENFILE || e == ENOMEM;
}

/* QK_NO_MEMORY: later, all of it may be well. */
static void read_back(qk_spill_task_t *t) {
  uint8_t *buffer = qk_malloc(COPY_BYTES);
  qk_field_hash_t *hash = qk_field_hash_create();
  const int to = shm_open(t->shm, O_RDWR | O_CLOEXEC, 0), from = qk_spool_find(t->spool, t->name);
  if (!buffer || !hash || to < 0 || (from < 0 && is_shortage(errno)))
    t->status = qk_fail(&t->err, QK_NO_MEMORY, "no memory or descriptor to read %s", t->path);
  else if (from < 0)
    fail_to_read(t);
  else
    copy_back(t, from, to, buffer, hash);
  if (from >= 0) close(from);
  if (to >= 0) close(to);
  qk_field_hash_destroy(hash);
  qk_free(buffer);
}

static void run(qk_work_t *work) {
  qk_spill_task_t *t = QK_HOLDER(work, qk_spill_task_t, work);
  if (t->out)
    write_out(t);
  else
    read_back(t);
}

/* ---- the loop's thread --------------------------------------------------------------------- */

static void find_file(qk_spill_task_t *t) {
  t->spool = t->spill->site.spool;
  qk_spool_name(t->rhs->job->entry.id, INDEX + t->rhs->index, t->name);
  qk_spool_path(t->spool, t->name, t->path);
}

static qk_session_t *session_of(const qk_rhs_t *rhs) {
  return rhs->job->session;
}

/* True if nobody waits for its bytes: its client is away, or has not asked for longer than the
 * lease. */
static bool is_idle(const qk_spill_t *spill, const qk_rhs_t *rhs) {
  const double now = qk_loop_seconds(spill->site.loop), used = rhs->job->used_at,
               last = used > rhs->ended_at ? used : rhs->ended_at;
  const qk_session_t *session = session_of(rhs);
  if (rhs->job->sink == QUARK__SINK__SINK_KEEP || rhs->job->bricks)
    return false; /* others may use it */
  return session && rhs->state == QK_RHS_ENDED && rhs->solution && rhs->granted <= rhs->sent &&
         !qk_rhs_is_leaving(rhs) && (session->away || now - last > session->lease);
}

/* What it is known by goes into the journal, too. */
static void on_disk(qk_rhs_t *rhs, const qk_spill_task_t *t) {
  rhs->spilled = rhs->digested = true;
  rhs->digest = t->digest;
  qk_marks_rhs(rhs);
}

static void on_out(qk_spill_task_t *t) {
  qk_rhs_t *rhs = t->rhs;
  const int64_t bytes = (int64_t)t->bytes;
  qk_spool_going(t->spill->site.spool, -bytes);
  if (t->status != QK_OK || !rhs) t->spill->bytes -= bytes;
  if (!rhs) {
    if (t->status == QK_OK) qk_spool_unlink(t->spool, t->name);
    return;
  }
  if (t->status != QK_OK) {
    qk_log(QK_LOG_WARN, "spill", rhs->job->name, "rhs %u stays in memory: %s", rhs->index,
           t->err.text);
    return;
  }
  on_disk(rhs, t);
}

/* It stays where it is. */
static void stay(qk_spill_task_t *t) {
  qk_rhs_t *rhs = t->rhs;
  if (rhs->charged_solution) qk_budget_refund(rhs->job->budget, (int64_t)t->bytes);
  rhs->charged_solution = false;
}

/* It cannot be read for now: again after 1, 2, 4, ... seconds. */
static void wait_for_disk(qk_spill_task_t *t) {
  qk_rhs_t *rhs = t->rhs;
  const double pause = 1 << rhs->unread++;
  stay(t);
  rhs->read_at = qk_loop_seconds(t->spill->site.loop) + pause;
  qk_log(QK_LOG_WARN, "spill", rhs->job->name,
         "rhs %u cannot be read back: %s: tried again in %g s, %d more %s", rhs->index, t->err.text,
         pause, READ_TRIES - rhs->unread, qk_plural(READ_TRIES - rhs->unread, "time", "times"));
}

/* There was no memory for it, until the next tick finds some. */
static void wait_for_memory(qk_spill_task_t *t) {
  qk_spill_t *spill = t->spill;
  qk_rhs_t *rhs = t->rhs;
  const double now = qk_loop_seconds(spill->site.loop);
  stay(t);
  if (now < spill->remind_at) return;
  spill->remind_at = now + REMIND;
  qk_log(QK_LOG_WARN, "spill", rhs->job->name, "rhs %u stays on the disk for now: %s", rhs->index,
         t->err.text);
}

/* It can be sent to its client, and to who has joined. */
static void tell_sendable(const qk_spill_t *spill, qk_rhs_t *rhs) {
  const qk_job_events_t *events = spill->site.events;
  const qk_bricks_t *b = rhs->job->bricks;
  events->sendable(events->arg, rhs);
  for (uint32_t p = 0; b && p < b->count; p++)
    if (b->part[p].job) events->sendable(events->arg, &b->part[p].job->rhs[rhs->index]);
}

/* It is in memory again, waits, or has expired. */
static void on_back(qk_spill_task_t *t) {
  qk_rhs_t *rhs = t->rhs;
  if (!rhs || t->status != QK_OK) qk_shm_destroy(t->field);
  if (!rhs) return;
  if (t->status == QK_OK) {
    rhs->solution = t->field;
    rhs->unread = 0;
    qk_marks_rhs(rhs);
    rhs->asked = false;
    tell_sendable(t->spill, rhs);
    return;
  }
  if (t->status == QK_NO_MEMORY) {
    wait_for_memory(t);
    return;
  }
  if (t->may_recover && rhs->unread < READ_TRIES - 1) {
    wait_for_disk(t);
    return;
  }
  qk_log(QK_LOG_WARN, "spill", rhs->job->name, "rhs %u is lost: %s", rhs->index, t->err.text);
  qk_rhs_drop_solution(rhs);
  const qk_session_t *session = session_of(rhs);
  if (session) /* its client may have gone meanwhile */
    t->spill->site.events->error(t->spill->site.events->arg, session, QK_EXPIRED, t->err.text,
                                 false, rhs->job->request);
}

static void after(qk_work_t *work) {
  qk_spill_task_t *t = QK_HOLDER(work, qk_spill_task_t, work);
  if (t->rhs) t->rhs->moving = NULL;
  if (t->out)
    on_out(t);
  else
    on_back(t);
  qk_free(t);
}

static bool has_movers(qk_spill_t *spill) {
  qk_err_t err = {0};
  if (spill->movers ||
      qk_worker_open(spill->site.loop, "spill", THREADS, &spill->movers, &err) == QK_OK)
    return true;
  qk_warn("spill", "%s", err.text);
  return false;
}

/* field: of the solution, or bare to take it. Takes nothing on failure. */
static bool start(qk_spill_t *spill, qk_rhs_t *rhs, bool out, qk_shm_t *field) {
  qk_spill_task_t *t = has_movers(spill) ? qk_calloc(1, sizeof *t) : NULL;
  if (!t) return false;
  t->spill = spill;
  t->rhs = rhs;
  t->out = out;
  t->field = out ? NULL : field;
  t->bytes = field->bytes;
  t->digested = rhs->digested;
  t->digest = rhs->digest;
  snprintf(t->shm, sizeof t->shm, "%s", field->name);
  find_file(t);
  t->work.run = run;
  t->work.done = after;
  rhs->moving = t;
  qk_worker_give(spill->movers, &t->work);
  return true;
}

/* ---- out ----------------------------------------------------------------------------------- */

/* A file of that name may be about to be removed, where it has been on the disk before. */
static bool may_be_removed(const qk_spill_t *spill, const qk_rhs_t *rhs) {
  return rhs->attempt > 0 && qk_journal_cleans(spill->site.journal);
}

static bool is_candidate(const qk_spill_t *spill, const qk_rhs_t *rhs) {
  return !may_be_removed(spill, rhs) && rhs->job->sink == QUARK__SINK__SINK_DOWNLOAD &&
         !qk_job_is_beside(rhs->job) && !rhs->moving && !rhs->spilled && rhs->outcome.written &&
         is_idle(spill, rhs);
}

static bool is_better(const qk_rhs_t *a, const qk_rhs_t *b) {
  const bool away = session_of(a)->away;
  if (!b || away != session_of(b)->away) return !b || away;
  return a->ended_at < b->ended_at;
}

/* A walk over the right-hand sides of this user, or (NULL) of anybody. */
typedef struct search {
  const qk_spill_t *spill;
  const qk_sched_user_t *user;
  qk_rhs_t *best;  /* to leave memory; NULL: none */
  int64_t leaving; /* bytes that are about to leave memory */
} search_t;

static void look_for_candidate(qk_job_t *job, void *arg) {
  search_t *s = arg;
  for (uint32_t k = 0; k < job->nrhs && (!s->user || job->user == s->user); k++)
    if (is_candidate(s->spill, &job->rhs[k]) && is_better(&job->rhs[k], s->best))
      s->best = &job->rhs[k];
}

/* NULL: none. */
static qk_rhs_t *candidate(const qk_spill_t *spill, const qk_sched_user_t *user) {
  search_t s = {.spill = spill, .user = user};
  qk_session_each_job(spill->site.sessions, NULL, look_for_candidate, &s);
  return s.best;
}

static void add_leaving(qk_job_t *job, void *arg) {
  search_t *s = arg;
  for (uint32_t k = 0; k < job->nrhs && (!s->user || job->user == s->user); k++) {
    const qk_rhs_t *rhs = &job->rhs[k];
    const bool goes = rhs->moving ? rhs->moving->out : rhs->spilled;
    if (goes && is_idle(s->spill, rhs)) s->leaving += (int64_t)job->field_bytes;
  }
}

static int64_t leaving(const qk_spill_t *spill, const qk_sched_user_t *user) {
  search_t s = {.spill = spill, .user = user};
  qk_session_each_job(spill->site.sessions, NULL, add_leaving, &s);
  return s.leaving;
}

void qk_spill_make_room(qk_spill_t *spill, const qk_session_t *session, int64_t bytes) {
  if (!spill) return;
  const qk_spill_site_t *site = &spill->site;
  const qk_budget_t *all = site->budget, *own = qk_sched_user_memory(session->user);
  const int64_t limit = *site->limit, shm = qk_shm_free_bytes(site->space);
  const bool only_own = bytes <= all->limit - all->used && bytes <= shm;
  int64_t room = only_own ? own->limit - own->used : all->limit - all->used;
  if (!only_own && shm < room) room = shm;
  const qk_sched_user_t *whose = only_own ? session->user : NULL;
  room += leaving(spill, whose);
  for (qk_rhs_t *rhs; room < bytes && (rhs = candidate(spill, whose));) {
    const int64_t field = (int64_t)rhs->job->field_bytes;
    if (spill->bytes + field > limit || field > qk_spool_room(site->spool) ||
        !start(spill, rhs, true, rhs->solution))
      return;
    qk_spool_going(site->spool, field);
    spill->bytes += field;
    room += field;
  }
}

/* ---- back, and from memory ----------------------------------------------------------------- */

static bool is_wanted(const qk_rhs_t *rhs, double now) {
  const bool own = rhs->state == QK_RHS_ENDED && rhs->granted > rhs->sent;
  return now >= rhs->read_at && rhs->state >= QK_RHS_ENDED && rhs->spilled && !rhs->solution &&
         !rhs->moving && (own || rhs->asked);
}

/* Number of the session's solutions that are read back or being read; fully fetched ones are
 * evicted again. */
static int back(const qk_session_t *session) {
  int n = 0;
  for (const qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
    qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    for (uint32_t k = 0; k < job->nrhs; k++) {
      qk_rhs_t *rhs = &job->rhs[k];
      if (job->sink == QUARK__SINK__SINK_KEEP || job->bricks) continue;
      if (rhs->spilled && rhs->solution && rhs->sent == job->field_bytes && !qk_rhs_is_leaving(rhs))
        qk_rhs_unload(rhs);
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
  if (bytes > qk_shm_free_bytes(job->space) ||
      qk_shm_create_bare(job->space, job->field_bytes, &field, &err) != QK_OK)
    return;
  if (!start(spill, rhs, false, field)) {
    qk_shm_destroy(field);
    return;
  }
  qk_budget_charge(job->budget, bytes);
  rhs->charged_solution = true;
}

typedef struct tick {
  qk_spill_t *spill;
  double now;
} tick_t;

static void tick_job(qk_job_t *job, void *arg) {
  const tick_t *tick = arg;
  for (uint32_t k = 0; k < job->nrhs; k++) {
    qk_rhs_t *rhs = &job->rhs[k];
    if (is_wanted(rhs, tick->now)) come_back(tick->spill, rhs);
    if (rhs->spilled && rhs->solution && !qk_marks_lack_job(job) && is_idle(tick->spill, rhs))
      qk_rhs_unload(rhs);
  }
}

void qk_spill_tick(qk_spill_t *spill) {
  if (!spill || spill->bytes == 0) return;
  tick_t tick = {.spill = spill, .now = qk_loop_seconds(spill->site.loop)};
  qk_session_each_job(spill->site.sessions, NULL, tick_job, &tick);
}

/* ---- its end, and its return after a restart ----------------------------------------------- */

bool qk_spill_restore(qk_spill_t *spill, qk_rhs_t *rhs, const qk_rhs_t *row) {
  char name[QK_SPOOL_NAME];
  if (!spill) return false;
  qk_spool_name(rhs->job->entry.id, INDEX + rhs->index, name);
  if (qk_spool_size(spill->site.spool, name) != (int64_t)(rhs->job->field_bytes + sizeof(uint64_t)))
    return false;
  rhs->spilled = true;
  rhs->digested = row->digested;
  rhs->digest = row->digest;
  spill->bytes += (int64_t)rhs->job->field_bytes;
  return true;
}

qk_status_t qk_spill_load(qk_spill_t *spill, qk_rhs_t *rhs, qk_err_t *err) {
  qk_spill_task_t task = {.spill = spill,
                          .rhs = rhs,
                          .bytes = rhs->job->field_bytes,
                          .digested = rhs->digested,
                          .digest = rhs->digest};
  find_file(&task);
  task.status = qk_shm_create_bare(rhs->job->space, task.bytes, &task.field, &task.err);
  if (task.status == QK_OK) {
    snprintf(task.shm, sizeof task.shm, "%s", task.field->name);
    read_back(&task);
  }
  if (task.status == QK_OK) {
    rhs->solution = task.field;
    return QK_OK;
  }
  qk_shm_destroy(task.field);
  if (task.status == QK_NO_MEMORY) return qk_fail(err, task.status, "%s", task.err.text);
  qk_warn("spill", "a kept solution: %s", task.err.text);
  qk_spill_forget(rhs);
  return QK_NOT_FOUND;
}

/* ---- the end of the front ------------------------------------------------------------------ */

/* Solutions on their way to the disk. */
typedef struct leaving {
  qk_spill_t *spill;
  bool (*can_make)(const qk_rhs_t *rhs);
  bool only; /* those that cannot be made again, or the others */
  uint64_t until;
  int n; /* that are there now */
} leaving_t;

static bool should_stay(const qk_rhs_t *rhs) {
  return rhs->state >= QK_RHS_ENDED && rhs->outcome.written && rhs->solution && !rhs->moving &&
         !rhs->spilled && rhs->job->sink != QUARK__SINK__SINK_FILE && !rhs->job->field;
}

/* False: there is no room for it, or it could not be written. */
static bool leave_one(qk_spill_t *spill, qk_rhs_t *rhs) {
  const int64_t bytes = (int64_t)rhs->job->field_bytes;
  qk_spill_task_t task = {.spill = spill, .rhs = rhs, .bytes = rhs->job->field_bytes};
  int64_t disk;
  qk_err_t room = {0};
  if (qk_spool_ask(spill->site.spool, &disk, &room) != QK_OK || bytes > disk) return false;
  snprintf(task.shm, sizeof task.shm, "%s", rhs->solution->name);
  find_file(&task);
  write_out(&task);
  if (task.status != QK_OK) {
    qk_log(QK_LOG_WARN, "spill", rhs->job->name, "rhs %u: %s", rhs->index, task.err.text);
    return false;
  }
  on_disk(rhs, &task);
  spill->bytes += bytes;
  return true;
}

/* Those that do not fit leave what room there is to smaller ones. */
static void leave_job(qk_job_t *job, void *arg) {
  leaving_t *leaving = arg;
  if (job->forgotten && job->holds == 0) return;
  for (uint32_t k = 0; k < job->nrhs && uv_hrtime() < leaving->until; k++) {
    qk_rhs_t *rhs = &job->rhs[k];
    if (should_stay(rhs) && leaving->can_make(rhs) != leaving->only)
      leaving->n += leave_one(leaving->spill, rhs);
  }
}

int qk_spill_leave(qk_spill_t *spill, bool (*can_make)(const qk_rhs_t *rhs)) {
  if (!spill) return 0;
  leaving_t leaving = {.spill = spill,
                       .can_make = can_make,
                       .only = true,
                       .until = uv_hrtime() + QK_SPILL_LEAVE_SECONDS * 1000000000ull};
  qk_session_each_job(spill->site.sessions, spill->site.orphans, leave_job, &leaving);
  leaving.only = false;
  qk_session_each_job(spill->site.sessions, spill->site.orphans, leave_job, &leaving);
  return leaving.n;
}

/* ---- its end ------------------------------------------------------------------------------- */

void qk_spill_forget(qk_rhs_t *rhs) {
  qk_spill_t *spill = rhs->job->spill;
  if (rhs->moving) rhs->moving->rhs = NULL;
  rhs->moving = NULL;
  if (!rhs->spilled) return;
  rhs->spilled = false;
  spill->bytes -= (int64_t)rhs->job->field_bytes;
  if (!rhs->job->space->leave)
    qk_marks_release_file(rhs->job, spill->site.spool, INDEX + rhs->index);
}

int64_t qk_spill_bytes(const qk_spill_t *spill) {
  return spill ? spill->bytes : 0;
}

qk_status_t qk_spill_open(const qk_spill_site_t *site, qk_spill_t **spill, qk_err_t *err) {
  qk_spill_t *s = qk_calloc(1, sizeof *s);
  if (!s) return qk_fail(err, QK_NO_MEMORY, "no memory for a spill");
  s->site = *site;
  *spill = s;
  return QK_OK;
}

void qk_spill_stop(qk_spill_t *spill) {
  if (!spill) return;
  qk_worker_t *movers = spill->movers;
  spill->movers = NULL;
  qk_worker_close(movers);
}

void qk_spill_close(qk_spill_t *spill) {
  qk_free(spill);
}
