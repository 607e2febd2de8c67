#include "daemon/front/job/marks.h"

#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/snapshot.h"

void qk_marks_init(qk_marks_t *m) {
  *m = (qk_marks_t){0};
  qk_link_init(&m->changed);
}

/* ---- what has changed ---------------------------------------------------------------------- */

static void mark(qk_job_t *job) {
  qk_marks_t *m = job->entry.marks;
  if (!m || m->sealed) return;
  m->number++;
  if (!qk_link_alone(&job->entry.marked)) return;
  job->entry.number = m->number;
  qk_list_append(&m->changed, &job->entry.marked);
}

void qk_marks_job(qk_job_t *job) {
  job->entry.changed = true;
  mark(job);
}

void qk_marks_rhs(qk_rhs_t *rhs) {
  rhs->marked = true;
  mark(rhs->job);
}

void qk_marks_enter(qk_marks_t *m, qk_job_t *job) {
  if (!m) return;
  job->entry.marks = m;
  job->entry.id = ++m->last_id;
  qk_marks_job(job);
}

void qk_marks_sync(qk_marks_t *m, bool now) {
  if (!m) return;
  m->sync = true;
  m->sync_now |= now;
}

uint64_t qk_marks_number(const qk_marks_t *m) {
  return m ? m->number : 0;
}

uint64_t qk_marks_written(const qk_marks_t *m) {
  return m->sealed ? UINT64_MAX : m->written;
}

bool qk_marks_has_written(const qk_marks_t *m, uint64_t number) {
  return !m || m->sealed || number <= m->written;
}

bool qk_marks_has_synced(const qk_marks_t *m, uint64_t number) {
  return !m || number <= m->synced;
}

bool qk_marks_clean(const qk_marks_t *m) {
  return !m || m->sealed || (qk_link_alone(&m->changed) && !m->gone && !m->taken);
}

void qk_marks_catch_up(qk_marks_t *m) {
  if (!m->sealed && qk_marks_clean(m)) m->written = m->number;
}

qk_job_t *qk_marks_first_new(const qk_marks_t *m) {
  for (qk_link_t *l = m->changed.next; l != &m->changed; l = l->next) {
    qk_job_t *job = QK_HOLDER(l, qk_job_t, entry.marked);
    if (!job->entry.written) return job;
  }
  return NULL;
}

bool qk_marks_lack_job(const qk_job_t *job) {
  return !qk_link_alone(&job->entry.marked) || job->entry.taken;
}

bool qk_marks_lack_rhs(const qk_rhs_t *rhs) {
  const qk_marks_t *m = rhs->job->entry.marks;
  return m && !m->sealed && !rhs->recorded;
}

/* ---- what goes ----------------------------------------------------------------------------- */

static void add_gone(qk_marks_t *m, const qk_gone_t *what) {
  qk_gone_t *g = qk_malloc(sizeof *g);
  m->number++;
  if (!g) { /* it comes back after a restart, and expires */
    qk_warn("journal", "no memory: a row stays");
    return;
  }
  *g = *what;
  if (!m->gone) m->gone_since = m->number;
  g->next = m->gone;
  m->gone = g;
}

static void remove_rows(const qk_job_t *job) {
  const uint32_t spooled = qk_job_is_upload(job) ? job->nrhs : 0;
  add_gone(job->entry.marks, &(qk_gone_t){.job = job->entry.id, .nrhs = spooled});
}

void qk_marks_drop_job(qk_job_t *job) {
  const qk_entry_t *e = &job->entry;
  const bool has_rows = e->written || e->taken;
  qk_link_remove(&job->entry.marked);
  qk_snapshot_part(job);
  if (e->marks && !e->marks->sealed && has_rows) remove_rows(job);
}

void qk_marks_withdraw(qk_job_t *job) {
  QK_ASSERT(!job->entry.taken);
  qk_link_remove(&job->entry.marked);
  remove_rows(job);
  job->entry.marks = NULL;
}

void qk_marks_drop_row(qk_marks_t *m, int64_t id) {
  add_gone(m, &(qk_gone_t){.job = id}); /* files of the spool are swept */
}

void qk_marks_drop_session(qk_marks_t *m, const uint8_t client_id[QK_CLIENT_ID]) {
  if (!m || m->sealed) return;
  qk_gone_t g = {.what = QK_GONE_SESSION};
  memcpy(g.client_id, client_id, sizeof g.client_id);
  add_gone(m, &g);
}

void qk_marks_release(const qk_job_t *job, qk_shm_t *field) {
  qk_marks_t *m = job->entry.marks;
  if (!field || !m || m->sealed || !field->stays) {
    qk_shm_destroy(field);
    return;
  }
  field->after = m->released;
  m->released = field;
  m->released_bytes += (int64_t)field->bytes;
}

void qk_marks_release_file(const qk_job_t *job, qk_spool_t *spool, uint32_t index) {
  qk_marks_t *m = job->entry.marks;
  if (m && !m->sealed)
    add_gone(m, &(qk_gone_t){.what = QK_GONE_FILE, .job = job->entry.id, .index = index});
  else
    qk_spool_remove(spool, job->entry.id, index);
}

int64_t qk_marks_released_bytes(const qk_marks_t *m) {
  return m ? m->released_bytes : 0;
}

void qk_gone_remove(const qk_gone_t *gone, const qk_spool_t *spool) {
  for (const qk_gone_t *g = gone; g; g = g->next) {
    if (g->what == QK_GONE_FILE) qk_spool_remove(spool, g->job, g->index);
    for (uint32_t i = 0; i < g->nrhs; i++) qk_spool_remove(spool, g->job, i);
  }
}

void qk_gone_free(qk_gone_t **gone) {
  for (qk_gone_t *g; (g = *gone) != NULL;) {
    *gone = g->next;
    qk_free(g);
  }
}

/* ---- the end ------------------------------------------------------------------------------- */

void qk_marks_seal(qk_marks_t *m) {
  if (!m) return;
  m->sealed = true;
  qk_marks_destroy(m, &m->released); /* those that a row may need stay: their space leaves them */
}

void qk_marks_fini(qk_marks_t *m) {
  qk_gone_free(&m->gone);
  qk_marks_destroy(m, &m->released);
}
