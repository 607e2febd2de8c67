#include "daemon/front/service/filing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/due.h"
#include "daemon/front/service/queue.h"

typedef enum sink_state {
  SINK_NONE,
  SINK_BEGUN,  /* is being prepared */
  SINK_OPEN,   /* takes solutions */
  SINK_FAILED, /* waits for the end of what was begun */
  SINK_DONE,   /* published, or given up: the client may know */
  SINK_OVER    /* its other name is gone */
} sink_state_t;

struct qk_filing {
  qk_service_t *service;
  qk_job_t *job;
  char *source, *sink; /* paths; NULL: none */
  uint64_t source_offset, source_size, sink_offset, tag;
  qk_file_task_t *reading, *writing;
  qk_rhs_t *read, *written; /* what they are about; written NULL: the output as a whole */
  qk_shm_t *field;          /* that `reading` fills */
  sink_state_t state;
  uint32_t
      filed; /* number of right-hand sides, from 0 on, whose solutions (if any) have been written */
  qk_err_t trouble;
};

/* ---- SUBMIT -------------------------------------------------------------------------------- */

static uint64_t end_of(const qk_job_t *job, uint64_t offset) {
  return offset + job->nrhs * job->field_bytes;
}

static qk_status_t check_file(const qk_roots_t *roots, const Quark__File *file, bool wanted,
                              const char *name, const char *kind, qk_err_t *err) {
  char what[32];
  if (wanted != (file != NULL))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   wanted ? "%s is missing: %s needs it" : "%s is for %s only", name, kind);
  if (!file) return QK_OK;
  if (file->offset > QK_FILE_BYTES_MAX)
    return qk_fail(err, QK_TOO_LARGE, "%s.offset = %llu is over the limit of %llu", name,
                   (unsigned long long)file->offset, QK_FILE_BYTES_MAX);
  snprintf(what, sizeof what, "%s.path", name);
  return qk_roots_check(roots, what, file->path, err);
}

qk_status_t qk_filing_check(const qk_service_t *service, const Quark__Submit *submit,
                            uint64_t field_bytes, qk_err_t *err) {
  const Quark__File *from = submit->source_file;
  const qk_roots_t *roots = qk_file_io_roots(service->files);
  const qk_status_t status =
      check_file(roots, submit->source_file, submit->source == QUARK__SOURCE_KIND__SOURCE_FILE,
                 "source_file", "SOURCE_FILE", err);
  if (status != QK_OK) return status;
  const uint64_t needed = (from ? from->offset : 0) + submit->nrhs * field_bytes;
  if (from && from->has_size && from->size < needed)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "source_file.size = %llu: %u right-hand sides from byte %llu end at byte %llu",
                   (unsigned long long)from->size, submit->nrhs, (unsigned long long)from->offset,
                   (unsigned long long)needed);
  return check_file(roots, submit->sink_file, submit->sink == QUARK__SINK__SINK_FILE, "sink_file",
                    "SINK_FILE", err);
}

static char *copy_path(const Quark__File *file, bool *ok) {
  const size_t n = file ? strlen(file->path) + 1 : 0;
  char *path = n ? qk_malloc(n) : NULL;
  if (path) memcpy(path, file->path, n);
  *ok = *ok && (path || n == 0);
  return path;
}

static uint64_t tag_of(const uint8_t client_id[QK_CLIENT_ID], uint64_t request) {
  uint8_t identity[QK_CLIENT_ID + sizeof request];
  memcpy(identity, client_id, QK_CLIENT_ID);
  memcpy(identity + QK_CLIENT_ID, &request, sizeof request);
  return qk_checksum(identity, sizeof identity);
}

qk_status_t qk_filing_create(qk_service_t *service, qk_job_t *job, const Quark__Submit *submit,
                             qk_err_t *err) {
  const Quark__File *from = submit->source_file, *to = submit->sink_file;
  if (!from && !to) return QK_OK;
  qk_filing_t *f = qk_calloc(1, sizeof *f);
  bool ok = f != NULL;
  if (f) f->source = copy_path(from, &ok);
  if (f) f->sink = copy_path(to, &ok);
  if (!ok) {
    if (f) qk_free(f->source);
    qk_free(f);
    return qk_fail(err, QK_NO_MEMORY, "no memory for the files of a request");
  }
  f->service = service;
  f->job = job;
  if (from) {
    f->source_offset = from->offset;
    f->source_size = from->has_size ? from->size : end_of(job, from->offset);
  }
  if (to) f->sink_offset = to->offset;
  f->tag = tag_of(job->client_id, job->request);
  job->filing = f;
  return QK_OK;
}

/* ---- sources ------------------------------------------------------------------------------- */

static void read_next(qk_filing_t *f);

/* Ends all that waits for the source. */
static void fail_source(qk_filing_t *f, qk_status_t status, const char *text) {
  qk_job_t *job = f->job;
  qk_log(QK_LOG_INFO, "files", job->name, "%s", text);
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].state == QK_RHS_UPLOADING)
      qk_queue_cancel(f->service, &job->rhs[i], status, text);
}

static void on_read(void *arg, qk_status_t status, const char *text) {
  qk_filing_t *f = arg;
  qk_shm_t *field = f->field;
  f->reading = NULL;
  f->field = NULL;
  if (status == QK_OK && f->read->state == QK_RHS_UPLOADING) {
    qk_rhs_fill(f->read, field, qk_service_now(f->service));
    qk_queue_push(f->service, f->read);
  } else {
    qk_shm_destroy(field);
  }
  if (status == QK_OK)
    read_next(f);
  else
    fail_source(f, status, text);
}

static qk_rhs_t *first_unread(qk_job_t *job) {
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].state == QK_RHS_UPLOADING) return &job->rhs[i];
  return NULL;
}

static void read_next(qk_filing_t *f) {
  qk_job_t *job = f->job;
  qk_err_t err = {0};
  f->read = first_unread(job);
  if (!f->read) return;
  if (qk_shm_create_bare(job->space, job->field_bytes, &f->field, &err) == QK_OK) {
    const qk_file_order_t order = {.step = QK_FILE_READ,
                                   .path = f->source,
                                   .offset = f->source_offset + f->read->index * job->field_bytes,
                                   .size = f->source_size,
                                   .field = f->field};
    if (qk_file_io_start(f->service->files, &order, on_read, f, &f->reading, &err) == QK_OK) return;
    qk_shm_destroy(f->field);
    f->field = NULL;
  }
  fail_source(f, QK_NO_MEMORY, err.text);
}

/* ---- sinks --------------------------------------------------------------------------------- */

static void advance(qk_filing_t *f);

/* What has no solution on the disk has none. */
static void give_up(qk_filing_t *f) {
  qk_job_t *job = f->job;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    qk_outcome_t *o = &job->rhs[i].outcome;
    if (o->written) o->status = f->trouble.code;
    if (o->status == f->trouble.code && !o->text[0])
      snprintf(o->text, sizeof o->text, "%.150s", f->trouble.text);
  }
}

/* The client may be told; solutions are on the disk or of no use. */
static void settle(qk_filing_t *f) {
  qk_job_t *job = f->job;
  qk_session_t *session = job->session;
  if (f->trouble.code != QK_OK) give_up(f);
  f->state = SINK_DONE;
  qk_due_at(job, 0);
  job->used_at = qk_service_now(f->service);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    job->rhs[i].outcome.written = false;
    qk_rhs_drop_solution(&job->rhs[i]);
  }
  for (uint32_t i = 0; i < job->nrhs && session && !session->closing; i++)
    if (job->rhs[i].state == QK_RHS_ENDED)
      f->service->events->result(f->service->events->arg, session, &job->rhs[i]);
}

static void fail_sink(qk_filing_t *f, qk_status_t status, const char *text) {
  qk_job_t *job = f->job;
  qk_log(QK_LOG_WARN, "files", job->name, "%s", text);
  qk_fail(&f->trouble, status, "%s", text);
  f->state = SINK_FAILED;
  for (uint32_t i = 0; i < job->nrhs; i++) qk_queue_cancel(f->service, &job->rhs[i], status, text);
}

static void on_prepared(void *arg, qk_status_t status, const char *text) {
  qk_filing_t *f = arg;
  f->writing = NULL;
  f->state = SINK_OPEN;
  if (status != QK_OK) fail_sink(f, status, text);
  advance(f);
}

static void on_written(void *arg, qk_status_t status, const char *text) {
  qk_filing_t *f = arg;
  f->writing = NULL;
  if (status != QK_OK) fail_sink(f, status, text);
  advance(f);
}

static void on_published(void *arg, qk_status_t status, const char *text) {
  qk_filing_t *f = arg;
  f->writing = NULL;
  if (status == QK_OK)
    qk_log(QK_LOG_INFO, "files", f->job->name, "the solutions are written to their file");
  else
    fail_sink(f, status, text);
  settle(f);
}

static void on_discarded(void *arg, qk_status_t status, const char *text) {
  qk_filing_t *f = arg;
  (void)status, (void)text;
  f->writing = NULL;
  f->state = SINK_OVER;
}

static void step(qk_filing_t *f, qk_file_step_t what, const qk_rhs_t *rhs) {
  static qk_filed_fn *const done[] = {[QK_FILE_PREPARE] = on_prepared,
                                      [QK_FILE_WRITE] = on_written,
                                      [QK_FILE_PUBLISH] = on_published,
                                      [QK_FILE_DISCARD] = on_discarded};
  const qk_job_t *job = f->job;
  const qk_file_order_t order = {.step = what,
                                 .path = f->sink,
                                 .tag = f->tag,
                                 .offset =
                                     f->sink_offset + (rhs ? rhs->index * job->field_bytes : 0),
                                 .size = end_of(job, f->sink_offset),
                                 .field = rhs ? rhs->solution : NULL};
  qk_err_t err = {0};
  if (qk_file_io_start(f->service->files, &order, done[what], f, &f->writing, &err) != QK_OK)
    done[what](f, err.code, err.text);
}

/* The next that has ended with a solution, in any order would do. NULL: none, for now. */
static qk_rhs_t *next_to_write(qk_filing_t *f) {
  for (; f->filed < f->job->nrhs; f->filed++) {
    qk_rhs_t *rhs = &f->job->rhs[f->filed];
    if (rhs->state < QK_RHS_ENDED) return NULL;
    if (rhs->outcome.written && rhs->solution) return rhs;
  }
  return NULL;
}

static bool has_solution(const qk_job_t *job) {
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].outcome.written) return true;
  return false;
}

/* One step at a time: the next solution, or the end. Nothing is written once the request is
 * released. */
static void advance(qk_filing_t *f) {
  const qk_job_t *job = f->job;
  if (!job->session || f->writing || f->state < SINK_OPEN || f->state > SINK_FAILED) return;
  const qk_rhs_t *rhs = f->state == SINK_OPEN ? next_to_write(f) : NULL;
  if (rhs) {
    f->filed++;
    step(f, QK_FILE_WRITE, rhs);
  } else if (job->ended == job->nrhs) {
    if (f->state == SINK_OPEN && has_solution(job))
      step(f, QK_FILE_PUBLISH, NULL);
    else
      settle(f);
  }
}

/* ---- the job ------------------------------------------------------------------------------- */

void qk_filing_begin(qk_job_t *job) {
  qk_filing_t *f = job->filing;
  if (!f || job->forgotten) return;
  if (f->source) read_next(f);
  if (!f->sink) return;
  f->state = SINK_BEGUN;
  if (job->ended == job->nrhs && !has_solution(job))
    f->state = SINK_DONE; /* the front before has told */
  else
    step(f, QK_FILE_PREPARE, NULL);
}

void qk_filing_ended(qk_job_t *job) {
  if (job->filing && job->filing->sink) advance(job->filing);
}

/* The other name goes when the journal knows that the output has its own. */
bool qk_filing_tick(qk_job_t *job) {
  qk_filing_t *f = job->filing;
  if (f && f->state == SINK_DONE && !f->writing && !qk_marks_lack_job(job))
    step(f, QK_FILE_DISCARD, NULL);
  return f && f->state == SINK_DONE;
}

bool qk_filing_told(const qk_job_t *job) {
  return !job->filing || !job->filing->sink || job->filing->state >= SINK_DONE;
}

bool qk_filing_busy(const qk_job_t *job) {
  const qk_filing_t *f = job->filing;
  return f && (f->reading || f->writing || (job->ended == job->nrhs && !qk_filing_told(job)));
}

/* ---- outputs that nobody wants any more ------------------------------------------------------ */

/* An output without its final name, whose request is being removed or is gone. Its row is deleted
 * before the file: a note in the journal names the file until it is gone, too. */
typedef struct unwanted {
  qk_service_t *service;
  uint64_t tag;
} unwanted_t;

/* path NULL: the note goes. Without one the file goes, too, unless quarkd is killed before. */
static void note_output(qk_service_t *service, uint64_t tag, const char *path) {
  char key[QK_OUTPUT_KEY];
  snprintf(key, sizeof key, QK_OUTPUT_NOTE "%016llx", (unsigned long long)tag);
  qk_journal_note_soon(service->journal, key, path);
}

static void on_unwanted_gone(void *arg, qk_status_t status, const char *text) {
  unwanted_t *u = arg;
  (void)status, (void)text;
  note_output(u->service, u->tag, NULL);
  qk_free(u);
}

/* writing: what is under way for it; NULL: nothing. */
static void discard_unwanted(qk_service_t *service, uint64_t tag, const char *path,
                             qk_file_task_t *writing) {
  const qk_file_order_t order = {.step = QK_FILE_DISCARD, .path = path, .tag = tag};
  unwanted_t *u = qk_calloc(1, sizeof *u);
  qk_filed_fn *done = u ? on_unwanted_gone : NULL;
  if (u) *u = (unwanted_t){service, tag};
  if (writing)
    qk_file_io_abandon(writing, true, done, u);
  else if (qk_file_io_start(service->files, &order, done, u, NULL, NULL) != QK_OK)
    qk_free(u);
}

/* The roots may be others than when the path was written down. */
static void discard_noted(qk_service_t *service, uint64_t tag, const char *path) {
  qk_err_t err = {0};
  if (qk_roots_check(qk_file_io_roots(service->files), "sink_file.path", path, &err) == QK_OK) {
    discard_unwanted(service, tag, path, NULL);
    return;
  }
  qk_warn("files", "an output that nobody wants is not removed: %s", err.text);
  note_output(service, tag, NULL);
}

void qk_filing_discard(qk_service_t *service, const uint8_t client_id[QK_CLIENT_ID],
                       const Quark__Submit *submit) {
  if (!submit->sink_file) return;
  const uint64_t tag = tag_of(client_id, submit->request);
  note_output(service, tag, submit->sink_file->path);
  discard_noted(service, tag, submit->sink_file->path);
}

static void look_for_owner(qk_job_t *job, void *arg) {
  unwanted_t *u = arg;
  if (job->filing && job->filing->sink && job->filing->tag == u->tag) u->service = NULL;
}

/* If the request still exists, its row was not deleted, and it handles its output itself. */
static bool on_note(void *arg, const char *key, const char *value, qk_err_t *why) {
  qk_service_t *service = arg;
  unwanted_t u = {service, strtoull(key + strlen(QK_OUTPUT_NOTE), NULL, 16)};
  (void)why;
  qk_session_each_job(&service->sessions, &service->orphans, look_for_owner, &u);
  if (u.service) discard_noted(service, u.tag, value);
  return true;
}

qk_status_t qk_filing_resume(qk_service_t *service, qk_err_t *err) {
  return qk_journal_each_note(service->journal, QK_OUTPUT_NOTE, on_note, service, err);
}

void qk_filing_destroy(qk_filing_t *f) {
  if (!f) return;
  /* the next front goes on with it, and knows by that name that the output is ours where no row
   * says so */
  const bool left = f->job->space->leave && (f->state < SINK_DONE || qk_marks_lack_job(f->job));
  const bool discard = f->sink && !left && f->state != SINK_OVER;
  if (f->reading) qk_file_io_abandon(f->reading, false, NULL, NULL);
  if (discard) {
    note_output(f->service, f->tag, f->sink);
    discard_unwanted(f->service, f->tag, f->sink, f->writing);
  } else if (f->writing) {
    qk_file_io_abandon(f->writing, false, NULL, NULL);
  }
  qk_shm_destroy(f->field);
  qk_free(f->source);
  qk_free(f->sink);
  qk_free(f);
}
