#include "daemon/front/restore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/front/filing.h"
#include "daemon/front/setups.h"

enum { OPERATOR_MAX = 400 };

static const double PASSED = 1e-9; /* seconds of the loop's clock: a deadline that is over */

/* ---- what requests were made for ----------------------------------------------------------- */

static void describe_operator(const qk_settings_t *s, char text[OPERATOR_MAX]) {
  int n = snprintf(text, OPERATOR_MAX, "kappa %.17g csw %.17g boundary", s->kappa, s->csw);
  for (int i = 0; i < 8; i++)
    n += snprintf(text + n, OPERATOR_MAX - (size_t)n, " %.17g", s->boundary[i]);
}

static void tell(qk_status_t status, const qk_err_t *err) {
  if (status != QK_OK) qk_error("journal", "%s", err->text);
}

void qk_restore_note_setup(const qk_mount_t *mount) {
  qk_journal_t *journal = mount->server->journal;
  char op[OPERATOR_MAX], lattice[QK_LATTICE_MAX];
  qk_err_t err = {0};
  qk_journal_lattice(mount->dims, mount->digest, lattice);
  if (mount->id > 0) {
    tell(qk_journal_note_setup(journal, mount->id, lattice, &err), &err);
    return;
  }
  describe_operator(&mount->settings, op);
  tell(qk_journal_put_note(journal, "operator", op, &err), &err);
  tell(qk_journal_put_note(journal, "lattice", lattice, &err), &err);
}

qk_status_t qk_restore_add_setup(qk_mount_t *mount, qk_err_t *err) {
  if (!mount->load) return QK_OK; /* it is there always */
  return qk_journal_add_setup(mount->server->journal, mount->load, mount->load_bytes, &mount->id,
                              err);
}

void qk_restore_drop_setup(const qk_mount_t *mount) {
  qk_err_t err = {0};
  tell(qk_journal_end_setup(mount->server->journal, mount->id, &err), &err);
}

void qk_restore_note_default(const qk_mount_t *mount) {
  char id[24];
  qk_err_t err = {0};
  snprintf(id, sizeof id, "%lld", (long long)mount->id);
  tell(qk_journal_put_note(mount->server->journal, "default", id, &err), &err);
}

/* Nothing changes where it is empty. */
static void read_lattice(const char *text, uint32_t dims[4], uint64_t *digest) {
  uint32_t d[4];
  unsigned long long n;
  if (sscanf(text, "%u %u %u %u %llx", &d[0], &d[1], &d[2], &d[3], &n) != 5) return;
  memcpy(dims, d, sizeof d);
  *digest = n;
}

/* ---- requests ------------------------------------------------------------------------------ */

static const qk_outcome_t GONE = {.status = QK_EXPIRED,
                                  .text = "its solution went with the machine"};

typedef struct scene {
  qk_server_t *server;
  double now;
  qk_mount_t *away;                    /* setups that were dropped */
  qk_err_t err;                        /* a setup that cannot be made */
  qk_job_t *job;                       /* whose rows are read */
  int64_t jobs, own, rhs, again, lost; /* own: jobs for the setup of the command line */
} scene_t;

static void on_setup(void *arg, const qk_setup_row_t *row) {
  scene_t *scene = arg;
  qk_err_t err = {0};
  qk_mount_t *mount = qk_setups_bring_back(scene->server, row, &err);
  if (mount) read_lattice(row->lattice, mount->dims, &mount->digest);
  if (mount && row->dropped) {
    mount->next = scene->away;
    scene->away = mount;
  } else if (!mount || qk_setups_place(mount, &err) != QK_OK) {
    qk_err_prefix(&err, "state = %s: a setup that it holds", scene->server->settings->state);
    scene->err = err;
    qk_mount_release(mount);
  }
}

/* Those that were dropped are only there for their requests. */
static void put_away(scene_t *scene) {
  for (qk_mount_t *mount; (mount = scene->away) != NULL;) {
    qk_err_t err = {0};
    scene->away = mount->next;
    if (mount->lane >= 0) continue;
    if (mount->holds == 1)
      tell(qk_journal_drop_setup(scene->server->journal, mount->id, &err), &err);
    qk_mount_release(mount);
  }
}

static void choose_default(qk_server_t *server) {
  char id[24];
  if (!qk_journal_note(server->journal, "default", id, sizeof id)) return;
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (server->mount[m] && server->mount[m]->id == strtoll(id, NULL, 10))
      server->primary = server->mount[m];
}

static qk_mount_t *mount_of(const scene_t *scene, int64_t id) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_mount_t *mount = scene->server->mount[m];
    if (mount && mount->id == id) return mount;
  }
  qk_mount_t *mount = scene->away;
  while (mount && mount->id != id) mount = mount->next;
  return mount;
}

static void on_session(void *arg, const qk_session_row_t *row) {
  scene_t *scene = arg;
  qk_session_t *session;
  qk_err_t err = {0};
  if (qk_session_create(&scene->server->sessions, &scene->server->sched, row->client_id, row->user,
                        scene->now, &session, &err) != QK_OK) {
    qk_warn("journal", "a session is lost: %s", err.text);
    return;
  }
  session->newest = row->newest;
  qk_limits_session(scene->server, session);
}

static bool is_upload(const qk_job_t *job) {
  return !job->contraction && job->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD;
}

static bool is_file(const qk_job_t *job) {
  return !job->contraction && job->source == QUARK__SOURCE_KIND__SOURCE_FILE;
}

/* The uploaded field from shared memory, or else from the spool. */
static bool find_source(const scene_t *scene, qk_rhs_t *rhs, const char *name) {
  const qk_job_t *job = rhs->job;
  qk_err_t absent = {0}, err = {0};
  if (qk_shm_adopt(job->space, name, job->field_bytes, &rhs->source, &absent) == QK_OK) return true;
  if (!rhs->spooled || qk_shm_create(job->space, job->field_bytes, &rhs->source, &err) != QK_OK)
    return false;
  if (qk_spool_read(scene->server->spool, job->entry.id, rhs->index, rhs->checksum,
                    rhs->source->data, job->field_bytes, &err) == QK_OK)
    return true;
  qk_warn("journal", "request %llu, rhs %u: %s", (unsigned long long)job->request, rhs->index,
          err.text);
  qk_shm_destroy(rhs->source);
  rhs->source = NULL;
  rhs->spooled = false;
  rhs->job->entry.spooled--;
  return false;
}

/* Has not ended: an upload without its bytes goes back to uploading, a file is read again. */
static void restore_open(const scene_t *scene, qk_rhs_t *rhs, qk_rhs_state_t state,
                         const char *source) {
  if (!is_upload(rhs->job) && !is_file(rhs->job)) return;
  const bool found = find_source(scene, rhs, source);
  if (state != QK_RHS_UPLOADING && found) rhs->state = QK_RHS_QUEUED;
}

/* Whether it was accepted on another gauge configuration than the setup had last: nothing of it may be solved. */
static bool is_of_another(const qk_job_t *job) {
  const qk_mount_t *mount = job->mount;
  return job->config != mount->digest || memcmp(job->dims, mount->dims, sizeof job->dims) != 0;
}

/* Its solution went with the machine. True where it will be made again. */
static bool make_again(scene_t *scene, qk_rhs_t *rhs, qk_rhs_state_t state, const char *source) {
  if (state == QK_RHS_ACKED || is_of_another(rhs->job)) return false;
  const bool found = !(is_upload(rhs->job) || is_file(rhs->job)) || find_source(scene, rhs, source);
  if (!found && is_upload(rhs->job)) return false;
  rhs->state = found ? QK_RHS_QUEUED : QK_RHS_UPLOADING;
  rhs->attempt++;
  scene->again++;
  return true;
}

static void on_rhs(void *arg, const qk_rhs_t *row, const char *source, const char *solution) {
  scene_t *scene = arg;
  qk_job_t *job = scene->job;
  if (row->index >= job->nrhs) return;
  qk_rhs_t *rhs = &job->rhs[row->index];
  qk_outcome_t outcome = row->outcome;
  qk_err_t err = {0};
  rhs->losses = row->losses;
  rhs->attempt = row->attempt;
  rhs->checksum = row->checksum;
  rhs->spooled = row->spooled;
  job->entry.spooled += row->spooled;
  if (row->state < QK_RHS_ENDED) {
    restore_open(scene, rhs, row->state, source);
    return;
  }
  const bool spilled = outcome.written && row->spilled && qk_spill_restore(job->spill, rhs);
  const bool had = outcome.written && (solution[0] || row->spilled);
  if (had && qk_shm_adopt(job->space, solution, job->field_bytes, &rhs->solution, &err) != QK_OK &&
      !spilled) {
    if (make_again(scene, rhs, row->state, source)) return;
    scene->lost++;
    outcome.written = false;
    if (row->state == QK_RHS_ENDED) outcome = GONE;
  }
  qk_rhs_end(rhs, &outcome, scene->now);
  if (spilled && !rhs->solution) qk_rhs_unload(rhs);
  if (!spilled && !rhs->solution) qk_rhs_drop_solution(rhs); /* as it was */
  if (row->state == QK_RHS_ACKED) qk_rhs_ack(rhs);
  rhs->marked = had && !outcome.written; /* lost, and stays so, whatever the next front finds */
}

/* Where the upload goes on: before the first field of which nothing is here; behind one that has ended while it came. */
static void restore_upload(qk_job_t *job, uint64_t next) {
  const uint64_t part = next % job->field_bytes;
  if (part > 0 && !job->rhs[next / job->field_bytes].source) next += job->field_bytes - part;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    const uint64_t begin = i * job->field_bytes;
    if (job->rhs[i].state == QK_RHS_UPLOADING && !job->rhs[i].source && begin < next) next = begin;
  }
  qk_job_resume_upload(job, next);
}

static qk_status_t remake(const scene_t *scene, qk_session_t *session, const qk_job_row_t *row,
                          qk_job_t **job, qk_err_t *err) {
  const qk_server_t *server = scene->server;
  qk_mount_t *mount = mount_of(scene, row->setup);
  if (!mount || mount->dims[0] == 0)
    return qk_fail(err, QK_NOT_FOUND, "its setup is not there any more");
  uint32_t dims[4];
  uint64_t config = mount->digest;
  memcpy(dims, mount->dims, sizeof dims);
  read_lattice(row->lattice, dims, &config);
  const qk_terms_t terms = {.mount = mount,
                            .dims = dims,
                            .config = config,
                            .kappa = mount->settings.kappa,
                            .now = row->accepted_at,
                            .budget = qk_sched_user_memory(session->user),
                            .space = (qk_shm_space_t *)&server->space,
                            .ties = &QK_SERVER_TIES,
                            .spill = server->spill,
                            .client_id = session->client_id,
                            .user = session->user,
                            .keep = server->settings->keep_time,
                            .again = true};
  qk_status_t status = QK_BAD_FORMAT;
  if (row->contraction) {
    Quark__Contract *m = quark__contract__unpack(NULL, row->message_bytes, row->message);
    if (m && qk_job_check_contract(m, dims, err) == QK_OK)
      status = qk_job_create_contract(m, &terms, job, err);
    if (m) quark__contract__free_unpacked(m, NULL);
  } else {
    Quark__Submit *m = quark__submit__unpack(NULL, row->message_bytes, row->message);
    if (m && qk_job_check(m, dims, err) == QK_OK) status = qk_job_create(m, &terms, job, err);
    if (status == QK_OK && (status = qk_filing_create(scene->server, *job, m, err)) != QK_OK)
      qk_job_destroy(*job);
    if (m) quark__submit__free_unpacked(m, NULL);
  }
  return status;
}

/* All that has not ended ends with this. */
static void give_up(qk_server_t *server, qk_job_t *job, const qk_err_t *why) {
  qk_outcome_t outcome = {.status = why->code};
  snprintf(outcome.text, sizeof outcome.text, "%.150s", why->text);
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].state < QK_RHS_ENDED) qk_rhs_end(&job->rhs[i], &outcome, qk_server_now(server));
}

/* It is as it was: what waits is queued. */
static void enter(scene_t *scene, qk_session_t *session, qk_job_t *job) {
  qk_server_t *server = scene->server;
  qk_err_t err = {0};
  const bool other = is_of_another(job);
  qk_server_adopt(session, job);
  if (other)
    qk_fail(&err, QK_ENGINE_LOST, "the gauge configuration has changed");
  else if (qk_keep_bind(session, job, &err) != QK_OK)
    err.code = QK_NOT_FOUND; /* it was there when the job was accepted */
  else if (job->ended < job->nrhs && job->mount->lane < 0)
    qk_setups_place(job->mount, &err);
  if (err.code != QK_OK) give_up(server, job, &err);
  qk_dispatch_open(job);
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].state == QK_RHS_QUEUED) qk_dispatch_queue(server, &job->rhs[i]);
  qk_filing_begin(job);
  scene->jobs++;
  scene->own += job->mount->id == 0;
  scene->rhs += job->nrhs - job->ended;
  if (other && qk_keep_count(job) > 0) qk_dispatch_expire(server, job);
}

static void on_job(void *arg, const qk_job_row_t *row) {
  scene_t *scene = arg;
  qk_server_t *server = scene->server;
  qk_session_t *session = qk_session_by_id(&server->sessions, row->client_id);
  qk_job_t *job = NULL;
  qk_err_t err = {0};
  if (!session) { /* its client left while it was in a slot */
    qk_journal_drop_row(server->journal, row->id);
    return;
  }
  if (remake(scene, session, row, &job, &err) != QK_OK) {
    qk_warn("journal", "request %lld is lost: %s", (long long)row->id,
            err.text[0] ? err.text : "it cannot be read");
    return;
  }
  job->entry.id = row->id;
  job->entry.written = true;
  if (job->deadline > 0) job->deadline = row->deadline > PASSED ? row->deadline : PASSED;
  scene->job = job;
  if (qk_journal_each_rhs(server->journal, row->id, on_rhs, scene, &err) != QK_OK)
    qk_warn("journal", "%s", err.text);
  if (is_upload(job)) restore_upload(job, row->upload_next);
  job->entry.journal = server->journal;
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].marked) qk_journal_mark_rhs(&job->rhs[i]);
  job->forgotten = row->forgotten;
  enter(scene, session, job);
}

static bool is_over(const qk_job_t *job) {
  return job->forgotten || (job->acked == job->nrhs && qk_keep_count(job) == 0);
}

/* Requests that were forgotten, but held by others: those are there now. */
static void forget_again(qk_server_t *server) {
  for (int i = 0; i < server->sessions.count; i++) {
    qk_session_t *session = server->sessions.at[i];
    for (qk_link_t *l = session->jobs.next, *next; l != &session->jobs; l = next) {
      next = l->next;
      qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      if (is_over(job)) qk_dispatch_forget(server, job);
    }
  }
}

static bool is_known(void *arg, int64_t id) {
  const qk_server_t *server = arg;
  for (int i = 0; i < server->sessions.count; i++) {
    const qk_link_t *jobs = &server->sessions.at[i]->jobs;
    for (const qk_link_t *l = jobs->next; l != jobs; l = l->next)
      if (QK_HOLDER(l, const qk_job_t, link)->entry.id == id) return true;
  }
  for (const qk_link_t *l = server->orphans.next; l != &server->orphans; l = l->next)
    if (QK_HOLDER(l, const qk_job_t, link)->entry.id == id) return true;
  return false;
}

/* ---- opening ------------------------------------------------------------------------------- */

/* No front names shared memory as one before it did: rows may still name what has gone, and would adopt what is not theirs;
 * so may the engine of the front before. */
static qk_status_t number_fields(qk_server_t *server, qk_err_t *err) {
  char front[24] = "0";
  qk_journal_note(server->journal, "front", front, sizeof front);
  const uint64_t number = strtoull(front, NULL, 10) + 1;
  server->space.next = number << 32;
  snprintf(front, sizeof front, "%llu", (unsigned long long)number);
  return qk_journal_put_note(server->journal, "front", front, err);
}

static qk_status_t check_operator(const qk_server_t *server, qk_err_t *err) {
  char before[OPERATOR_MAX], now[OPERATOR_MAX];
  describe_operator(server->settings, now);
  if (!qk_journal_note(server->journal, "operator", before, sizeof before) ||
      strcmp(before, now) == 0)
    return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "state = %s holds requests for another operator (%.60s...): serve that one, or "
                 "take another folder",
                 server->settings->state, before);
}

static qk_status_t restore(qk_server_t *server, qk_err_t *err) {
  scene_t scene = {.server = server, .now = qk_server_now(server)};
  char lattice[QK_LATTICE_MAX];
  if (qk_journal_note(server->journal, "lattice", lattice, sizeof lattice))
    read_lattice(lattice, server->primary->dims, &server->primary->digest);
  qk_status_t status = qk_journal_each_setup(server->journal, on_setup, &scene, err);
  if (status == QK_OK && scene.err.code != QK_OK) {
    *err = scene.err;
    status = err->code;
  }
  if (status == QK_OK) choose_default(server);
  if (status == QK_OK) status = qk_journal_each_session(server->journal, on_session, &scene, err);
  if (status == QK_OK) status = qk_journal_each_job(server->journal, on_job, &scene, err);
  if (status == QK_OK && scene.own > 0) status = check_operator(server, err);
  if (status == QK_OK) forget_again(server);
  put_away(&scene);
  if (status != QK_OK) return status;
  if (scene.jobs > 0)
    qk_info("journal",
            "%lld requests are back with %lld right-hand sides to solve; %lld solutions are made "
            "again, %lld are lost",
            (long long)scene.jobs, (long long)scene.rhs, (long long)scene.again,
            (long long)scene.lost);
  return QK_OK;
}

qk_status_t qk_restore_open(qk_server_t *server, qk_err_t *err) {
  char dir[QK_PATH_MAX + 1];
  const char *state = server->settings->state;
  qk_status_t status = QK_OK;
  server->lock = -1;
  if (state) status = qk_runtime_lock(state, dir, &server->lock, err);
  qk_shm_space_init(&server->space, state && status == QK_OK ? dir : NULL);
  if (state && status == QK_OK) status = qk_spool_open(&server->loop, dir, &server->spool, err);
  if (state && status == QK_OK)
    status = qk_journal_open(dir, server->spool, qk_server_now(server), &server->journal, err);
  if (state && status == QK_OK) status = number_fields(server, err);
  if (state && status == QK_OK) status = qk_spill_open(server, &server->spill, err);
  if (state && status == QK_OK) status = restore(server, err);
  if (status != QK_OK) {
    server->space.leave = true;
    qk_journal_seal(server->journal);
    return status;
  }
  int swept = qk_shm_sweep(&server->space);
  if (swept > 0)
    qk_warn("server", "removed %d shared-memory objects of a front that is gone", swept);
  if (server->spool) qk_spool_sweep(server->spool, is_known, server);
  return QK_OK;
}

/* ---- spooling ------------------------------------------------------------------------------ */

static void on_spooled(void *arg, qk_status_t status, const char *text) {
  qk_rhs_t *rhs = arg;
  rhs->spooling = NULL;
  if (status != QK_OK) {
    qk_log(QK_LOG_WARN, "spool", rhs->job->name, "rhs %u would not outlive the machine: %s",
           rhs->index, text);
    return;
  }
  rhs->spooled = true;
  rhs->job->entry.spooled++;
  qk_log(QK_LOG_DEBUG, "spool", rhs->job->name, "rhs %u is on the disk", rhs->index);
  qk_journal_mark_rhs(rhs);
  qk_journal_sync(rhs->job->entry.journal);
}

void qk_restore_spool(qk_server_t *server, qk_rhs_t *rhs) {
  qk_err_t err = {0};
  if (!server->spool || rhs->spooled) return;
  if (qk_spool_write(server->spool, rhs->job->entry.id, rhs->index, rhs->source, on_spooled, rhs,
                     &rhs->spooling, &err) != QK_OK)
    on_spooled(rhs, err.code, err.text);
}

/* Bytes that accepted uploads will still take of the disk. */
static int64_t promised_bytes(const qk_server_t *server) {
  int64_t bytes = 0;
  for (int i = 0; i < server->sessions.count; i++) {
    const qk_link_t *jobs = &server->sessions.at[i]->jobs;
    for (const qk_link_t *l = jobs->next; l != jobs; l = l->next) {
      const qk_job_t *job = QK_HOLDER(l, const qk_job_t, link);
      if (is_upload(job) && job->ended < job->nrhs)
        bytes += (int64_t)((job->nrhs - job->entry.spooled) * job->field_bytes);
    }
  }
  return bytes;
}

qk_status_t qk_restore_check(const qk_server_t *server, const Quark__Submit *submit,
                             int64_t field_bytes, qk_err_t *err) {
  const char *trouble = qk_journal_trouble(server->journal);
  if (trouble) return qk_fail(err, QK_BUSY, "%s", trouble);
  if (!server->spool || !submit || submit->source != QUARK__SOURCE_KIND__SOURCE_UPLOAD)
    return QK_OK;
  const long long need = submit->nrhs * field_bytes,
                  room = qk_spool_free_bytes(server->spool) - promised_bytes(server);
  if (need <= room) return QK_OK;
  return qk_fail(err, QK_BUSY, "uploads of %lld bytes: the state folder has room for %lld", need,
                 room > 0 ? room : 0);
}

/* ---- the end ------------------------------------------------------------------------------- */

bool qk_restore_needed(const qk_server_t *server) {
  for (int i = 0; i < server->sessions.count; i++) {
    const qk_link_t *jobs = &server->sessions.at[i]->jobs;
    for (const qk_link_t *l = jobs->next; l != jobs; l = l->next) {
      const qk_job_t *job = QK_HOLDER(l, const qk_job_t, link);
      if (job->acked < job->nrhs) return true;
    }
  }
  return false;
}

void qk_restore_seal(qk_server_t *server, bool leave) {
  qk_err_t err = {0};
  if (qk_journal_commit(server->journal, qk_server_now(server), &err) != QK_OK)
    qk_error("journal", "%s", err.text);
  if (!leave) return;
  server->space.leave = true;
  qk_journal_seal(server->journal);
}

void qk_restore_close(qk_server_t *server) {
  qk_journal_close(server->journal);
  qk_spill_close(server->spill);
  qk_spool_close(server->spool);
  if (server->lock >= 0) close(server->lock);
}
