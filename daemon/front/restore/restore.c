#include "daemon/front/restore/restore_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/base/log.h"
#include "daemon/base/plural.h"
#include "daemon/front/host/runtime.h"
#include "daemon/front/job/joined.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/fields.h"
#include "daemon/front/service/filing.h"
#include "daemon/front/service/job_hooks.h"
#include "daemon/front/service/limits.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/service/setups.h"
#include "daemon/front/service/upload.h"
#include "daemon/front/state/journal_place.h"
#include "daemon/front/state/rows.h"
#include "daemon/front/state/spill.h"
#include "daemon/front/state/strays.h"

static const double PASSED = 1e-9; /* seconds of the loop's clock: a deadline that is over */

/* ---- requests ------------------------------------------------------------------------------ */

static bool on_note(void *unused, const char *key, const char *value, qk_err_t *why) {
  (void)unused;
  return qk_rows_check_note(key, value, why) == QK_OK;
}

/* Of that name. That of the command line is there under its name in any case. */
static qk_setup_t *find_named(const qk_setup_t *setup) {
  const qk_service_t *service = setup->service;
  if (!setup->owner[0] && strcmp(setup->name, service->settings->setup_name) == 0) return NULL;
  return qk_setups_named(service, setup->owner, setup->name);
}

/* It is only there for its requests. */
static void send_away(scene_t *scene, qk_setup_t *setup) {
  setup->next = scene->away;
  scene->away = setup;
}

/* One that this command line forbids is no damage: its operator says what is to become of it. */
static bool on_setup(void *arg, const qk_setup_row_t *row, qk_err_t *why) {
  scene_t *scene = arg;
  qk_shape_t shape = qk_shape_usual();
  uint64_t digest = 0;
  if (qk_rows_lattice(row->lattice, &shape, &digest, why) != QK_OK) return false;
  qk_setup_t *setup = qk_setups_bring_back(scene->service, row, why);
  if (!setup && (why->code == QK_BAD_FORMAT || why->code == QK_NO_MEMORY)) return false;
  if (!setup) {
    qk_err_prefix(why, "state = %s: a setup that it holds", scene->service->settings->state);
    scene->err = *why;
    *why = (qk_err_t){0};
    return true;
  }
  setup->shape = shape;
  setup->digest = digest;
  if (row->dropped) {
    send_away(scene, setup);
    return true;
  }
  qk_setup_t *named = find_named(setup);
  if (named && setup->owner[0] && named->id < setup->id) { /* it was to end with this row */
    qk_setups_supersede(named);
    send_away(scene, named);
    named = NULL;
  }
  if (named)
    qk_fail(why, QK_BAD_FORMAT, "another setup is named %s", setup->name);
  else if (qk_setups_place(setup, why) == QK_OK)
    return true;
  qk_setup_release(setup);
  return false;
}

/* Those that were dropped are only there for their requests. */
static void put_away(scene_t *scene) {
  for (qk_setup_t *setup; (setup = scene->away) != NULL;) {
    scene->away = setup->next;
    if (setup->index >= 0) continue;
    if (setup->holds == 1) qk_setups_forget(setup);
    qk_setup_release(setup);
  }
}

static void choose_default(qk_service_t *service) {
  char id[24];
  if (!qk_journal_note(service->journal, "default", id, sizeof id)) return;
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->setup[m] && service->setup[m]->id == strtoll(id, NULL, 10))
      service->primary = service->setup[m];
}

static qk_setup_t *setup_of(const scene_t *scene, int64_t id) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_setup_t *setup = scene->service->setup[m];
    if (setup && setup->id == id) return setup;
  }
  qk_setup_t *setup = scene->away;
  while (setup && setup->id != id) setup = setup->next;
  return setup;
}

static bool on_session(void *arg, const qk_session_row_t *row, qk_err_t *why) {
  scene_t *scene = arg;
  qk_session_t *session;
  if (qk_session_create(&scene->service->sessions, &scene->service->sched, row->client_id,
                        row->user, qk_service_awake(scene->service), &session, why) != QK_OK)
    return false;
  session->newest = row->newest;
  qk_limits_session(scene->service, session);
  return true;
}

/* Where the upload continues: before the first incomplete field of which either nothing or all
 * expected bytes are here; after a field that has ended during its upload. */
static void restore_upload(qk_job_t *job, uint64_t next) {
  if (job->bricks) {
    qk_joined_resume(job, next);
    return;
  }
  const uint64_t part = next % job->field_bytes;
  if (part > 0 && !job->rhs[next / job->field_bytes].source) next += job->field_bytes - part;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    const uint64_t begin = i * job->field_bytes;
    const bool passed = begin + job->field_bytes <= next;
    if (job->rhs[i].state == QK_RHS_UPLOADING && (!job->rhs[i].source || passed) && begin < next)
      next = begin;
  }
  qk_job_resume_upload(job, next);
}

/* The request that a row of a part has joined; NULL: it is over. */
static qk_job_t *whole_of(const qk_service_t *service, const qk_job_row_t *row) {
  Quark__Join *m = quark__join__unpack(NULL, row->message_bytes, row->message);
  const qk_session_t *owner = m && m->owner.len == QK_CLIENT_ID
                                  ? qk_session_by_id(&service->sessions, m->owner.data)
                                  : NULL;
  qk_job_t *whole = owner ? qk_session_job(owner, m->owner_request) : NULL;
  const bool there = whole && whole->bricks && !whole->forgotten &&
                     m->part < whole->bricks->count && (int)m->part != whole->bricks->own;
  if (m) quark__join__free_unpacked(m, NULL);
  return there ? whole : NULL;
}

static qk_status_t make_part(const scene_t *scene, const qk_job_row_t *row, const qk_terms_t *given,
                             qk_job_t **job, qk_err_t *err) {
  Quark__Join *m = quark__join__unpack(NULL, row->message_bytes, row->message);
  const qk_job_t *whole = whole_of(scene->service, row);
  qk_status_t status = QK_BAD_FORMAT;
  if (m && whole) {
    qk_terms_t terms = *given;
    terms.shape = &whole->shape;
    terms.config = whole->config;
    status = qk_job_create_part(m, whole, &terms, job, err);
  }
  if (m) quark__join__free_unpacked(m, NULL);
  return status;
}

static qk_status_t make_field(const qk_job_row_t *row, const qk_terms_t *given, qk_job_t **job,
                              qk_err_t *err) {
  Quark__FieldOpen *m = quark__field_open__unpack(NULL, row->message_bytes, row->message);
  qk_status_t status = QK_BAD_FORMAT;
  if (m && qk_job_check_field(m, err) == QK_OK) {
    const qk_shape_t shape = qk_job_field_shape(m);
    qk_terms_t terms = *given;
    terms.shape = &shape;
    status = qk_job_create_field(m, &terms, job, err);
    if (status == QK_OK && !row->token) qk_bricks_drop(*job); /* it was here already */
  }
  if (m) quark__field_open__free_unpacked(m, NULL);
  return status;
}

/* A contraction, or eigenvectors. */
static qk_status_t make_beside(const qk_job_row_t *row, const qk_terms_t *terms, qk_job_t **job,
                               qk_err_t *err) {
  Quark__Contract *c =
      row->contraction ? quark__contract__unpack(NULL, row->message_bytes, row->message) : NULL;
  Quark__Eigen *e =
      row->problem ? quark__eigen__unpack(NULL, row->message_bytes, row->message) : NULL;
  qk_status_t status = QK_BAD_FORMAT;
  if (c && qk_job_check_contract(c, terms->shape, err) == QK_OK)
    status = qk_job_create_contract(c, terms, job, err);
  if (e && qk_job_check_eigen(e, terms->shape, err) == QK_OK)
    status = qk_job_create_eigen(e, terms, job, err);
  if (c) quark__contract__free_unpacked(c, NULL);
  if (e) quark__eigen__free_unpacked(e, NULL);
  return status;
}

static qk_status_t make_submit(const scene_t *scene, const qk_job_row_t *row,
                               const qk_terms_t *terms, qk_job_t **job, qk_err_t *err) {
  Quark__Submit *m = quark__submit__unpack(NULL, row->message_bytes, row->message);
  qk_status_t status = QK_BAD_FORMAT;
  if (m && qk_job_check(m, terms->shape, err) == QK_OK &&
      qk_job_check_action(m, qk_values_action(&terms->setup->settings.op), err) == QK_OK)
    status = qk_job_create(m, terms, job, err);
  if (status == QK_OK && (status = qk_filing_create(scene->service, *job, m, err)) != QK_OK) {
    qk_job_destroy(*job);
    *job = NULL;
  }
  if (m) quark__submit__free_unpacked(m, NULL);
  return status;
}

static qk_status_t remake(const scene_t *scene, qk_session_t *session, const qk_job_row_t *row,
                          qk_job_t **job, qk_err_t *err) {
  const qk_service_t *service = scene->service;
  const qk_job_t *whole = row->joined ? whole_of(service, row) : NULL;
  qk_setup_t *setup = whole        ? whole->setup
                      : row->field ? service->depot
                                   : setup_of(scene, row->setup);
  if (!setup) return qk_fail(err, QK_NOT_FOUND, "its setup is not there");
  if (row->setup == 0 && scene->nameless && !row->field && !whole)
    return qk_fail(err, QK_NOT_FOUND, "its operator is not known");
  qk_shape_t shape = setup->shape;
  uint64_t config = setup->digest;
  if (qk_rows_lattice(row->lattice, &shape, &config, err) != QK_OK) return err->code;
  if (whole) shape = whole->shape;
  if (shape.dims[0] == 0) return qk_fail(err, QK_NOT_FOUND, "its lattice is not known");
  if (setup->shape.dims[0] == 0 && !row->field && !whole) { /* its note is lost */
    setup->shape = shape;
    setup->digest = config;
  }
  const qk_terms_t terms = {.setup = setup,
                            .setup_id = setup->id,
                            .setup_name = setup->name,
                            .shape = &shape,
                            .slices = qk_operator_slices(&setup->settings.op),
                            .config = config,
                            .kappa = qk_values_kappa(&setup->settings.op),
                            .now = row->accepted_at,
                            .budget = qk_sched_user_memory(session->user),
                            .space = (qk_shm_space_t *)&service->space,
                            .jobs = (qk_jobs_t *)&service->jobs,
                            .hooks = &QK_JOB_HOOKS,
                            .spill = service->spill,
                            .client_id = session->client_id,
                            .user = session->user,
                            .keep = service->settings->keep_time,
                            .again = true};
  qk_status_t status = whole        ? make_part(scene, row, &terms, job, err)
                       : row->field ? make_field(row, &terms, job, err)
                       : row->contraction || row->problem
                           ? make_beside(row, &terms, job, err)
                           : make_submit(scene, row, &terms, job, err);
  if (status == QK_OK) status = qk_rows_check_job(row, *job, err);
  const qk_job_t *same = status == QK_OK ? qk_session_job(session, (*job)->request) : NULL;
  if (same && !same->forgotten && !row->forgotten) /* a client may have come back under its id */
    status = qk_fail(err, QK_BAD_FORMAT, "another row has request %llu of the same client",
                     (unsigned long long)(*job)->request);
  if (status == QK_OK) return QK_OK;
  if (*job) (*job)->space->leave = true; /* what an output has so far stays */
  qk_job_destroy(*job);
  scene->service->space.leave = false;
  *job = NULL;
  return status;
}

/* All that has not ended ends with this. */
static void give_up(qk_service_t *service, qk_job_t *job, const qk_err_t *why) {
  qk_outcome_t outcome = {.status = why->code};
  snprintf(outcome.text, sizeof outcome.text, "%.150s", why->text);
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].state < QK_RHS_ENDED)
      qk_rhs_end(&job->rhs[i], &outcome, qk_service_now(service));
}

/* It is as it was: what waits is queued. */
static void enter(scene_t *scene, qk_session_t *session, qk_job_t *job) {
  qk_service_t *service = scene->service;
  qk_err_t err = {0};
  const bool other = !job->joined && qk_restore_is_of_another(job);
  qk_session_adopt(session, job);
  if (job->field && (job->rhs[0].kept || job->ended == 0)) qk_fields_enter(service, job);
  if (other)
    qk_fail(&err, QK_ENGINE_LOST, "the gauge configuration has changed");
  else if (qk_kept_bind(session, job, &err) != QK_OK || qk_eigen_bind(job, &err) != QK_OK)
    err.code = QK_NOT_FOUND; /* it was there when the job was accepted */
  else if (job->ended < job->nrhs && job->setup->index < 0 && !job->field && !job->joined)
    qk_setups_place(job->setup, &err);
  if (err.code == QK_OK && job->ended < job->nrhs && !job->joined &&
      !qk_fields_bind_again(job->setup))
    qk_fail(&err, QK_NOT_FOUND, "the links of its setup are gone: send them again");
  if (err.code != QK_OK) give_up(service, job, &err);
  qk_queue_open(job);
  qk_upload_promise(job);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    qk_rhs_t *rhs = &job->rhs[i];
    if (!qk_job_is_upload(job) && !job->joined && rhs->state == QK_RHS_QUEUED)
      qk_queue_push(service, rhs);
    if (!qk_job_is_upload(job) || job->joined) continue;
    qk_upload_push(service, rhs);
    if (rhs->state == QK_RHS_QUEUED || rhs->unsaved) qk_upload_spool(service, rhs);
  }
  qk_filing_begin(job);
  scene->jobs++;
  scene->own += job->setup->id == 0 && !job->field;
  scene->rhs += job->joined ? 0 : job->nrhs - job->ended;
  if (other && qk_kept_count(job) > 0) qk_queue_expire(service, job);
}

static void discard_output(qk_service_t *service, const qk_job_row_t *row) {
  Quark__Submit *m = row->contraction || row->problem || row->field || row->joined
                         ? NULL
                         : quark__submit__unpack(NULL, row->message_bytes, row->message);
  if (!m) return;
  qk_filing_discard(service, row->client_id, m);
  quark__submit__free_unpacked(m, NULL);
}

/* How far they were. Solutions stay until all who have joined are back. */
static void restore_parts(const qk_job_row_t *row, qk_job_t *job) {
  qk_bricks_t *b = job->bricks;
  if (!b) return;
  memcpy(b->token, row->token, sizeof b->token);
  for (uint32_t p = 0; p < b->count; p++)
    memcpy(&b->part[p].arrived, row->arrived + p * sizeof(uint32_t), sizeof(uint32_t));
  for (uint32_t i = 0; i < job->nrhs; i++) job->rhs[i].others = 1;
}

/* A solution of which its client knows, and that is made again, is another one. */
static void join_again(qk_service_t *service, const qk_job_row_t *row, qk_job_t *job) {
  qk_job_t *whole = whole_of(service, row);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    qk_rhs_t *rhs = &whole->rhs[i];
    if (job->rhs[i].attempt >= rhs->attempt && rhs->state < QK_RHS_ENDED && job->rhs[i].recorded)
      rhs->attempt = job->rhs[i].attempt + 1;
    job->rhs[i].recorded = job->rhs[i].state == QK_RHS_ACKED;
  }
  qk_queue_expire_part(whole, (uint32_t)job->part); /* the later row has it */
  qk_joined_begin(job, whole, qk_service_now(service));
  if (qk_job_is_upload(job)) qk_joined_resume(job, row->upload_next);
  for (uint32_t i = 0; i < job->nrhs; i++) /* nothing is sent before it is recorded */
    if (job->rhs[i].state == QK_RHS_ENDED) job->rhs[i].marked = true;
}

/* All who had joined are back: what is complete goes on, what nobody needs goes. */
static void go_on_with_parts(qk_service_t *service, qk_job_t *job) {
  for (uint32_t i = 0; job->bricks && i < job->nrhs; i++) {
    qk_rhs_let_go_part(&job->rhs[i]);
    if (qk_job_is_upload(job)) qk_upload_check_parts(service, &job->rhs[i]);
  }
}

static bool on_job(void *arg, const qk_job_row_t *row, qk_err_t *why) {
  scene_t *scene = arg;
  qk_service_t *service = scene->service;
  qk_session_t *session = qk_session_by_id(&service->sessions, row->client_id);
  qk_job_t *job = NULL;
  qk_err_t err = {0};
  if (!session && row->forgotten) { /* its client left while it was in a slot */
    discard_output(service, row);
    qk_marks_drop_row(qk_journal_marks(service->journal), row->id);
    return true;
  }
  if (row->joined && !whole_of(service, row)) { /* it has ended before */
    qk_marks_drop_row(qk_journal_marks(service->journal), row->id);
    return true;
  }
  if (!session) qk_fail(why, QK_BAD_FORMAT, "there is no session of its client");
  if (!session || remake(scene, session, row, &job, why) != QK_OK) return false;
  job->entry.id = row->id;
  job->entry.written = true;
  job->deadline = !row->has_deadline ? 0 : row->deadline > PASSED ? row->deadline : PASSED;
  scene->job = job;
  restore_parts(row, job);
  for (uint32_t i = 0; i < job->nrhs; i++)
    job->rhs[i].attempt = qk_journal_is_recovered(service->journal); /* until its row is read */
  const qk_status_t status =
      qk_journal_each_rhs(service->journal, row->id, job->nrhs, qk_restore_rhs, scene, &err);
  if (status == QK_NO_MEMORY || status == QK_IO_ERROR) {
    service->space.leave = true; /* and stays so: the start ends */
    qk_job_destroy(job);
    *why = err;
    return false;
  }
  if (status != QK_OK) qk_error("journal", "%s", err.text);
  if (job->joined)
    join_again(service, row, job);
  else if (qk_job_is_upload(job) && !(job->field && job->ended > 0))
    restore_upload(job, row->upload_next);
  job->entry.marks = qk_journal_marks(service->journal);
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].marked) qk_marks_rhs(&job->rhs[i]);
  job->forgotten = row->forgotten;
  enter(scene, session, job);
  return true;
}

/* Private setups without their links go. */
static void bind_setups(qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_setup_t *setup = service->setup[m];
    if (!setup || setup == service->primary || qk_fields_bind_again(setup)) continue;
    qk_warn("setups", "%s is dropped: its links (%s) are gone", setup->site_name,
            setup->settings.gauge);
    qk_setups_lose(setup);
  }
}

static bool is_over(const qk_job_t *job) {
  return job->forgotten || qk_job_is_over(job);
}

/* Requests that were forgotten, but held by others: those are there now. */
static void forget_again(qk_service_t *service) {
  for (int i = 0; i < service->sessions.count; i++) {
    qk_session_t *session = service->sessions.at[i];
    for (qk_link_t *l = session->jobs.next, *next; l != &session->jobs; l = next) {
      next = l->next;
      qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      go_on_with_parts(service, job);
      if (is_over(job)) qk_queue_forget(service, job);
    }
  }
}

/* ---- opening ------------------------------------------------------------------------------- */

/* Each front names its shared memory differently from all before it. Otherwise it would adopt
 * objects that rows, or the engine of the previous front, name for other fields. */
static qk_status_t number_fields(qk_service_t *service, qk_err_t *err) {
  char front[24];
  const bool noted = qk_journal_note(service->journal, "front", front, sizeof front);
  const uint64_t lost = qk_journal_is_new(service->journal) ? 1 : (uint64_t)time(NULL),
                 number = noted ? strtoull(front, NULL, 10) + 1 : lost;
  service->space.next = number << 32;
  snprintf(front, sizeof front, "%llu", (unsigned long long)number);
  return qk_journal_put_note(service->journal, "front", front, err);
}

static qk_status_t check_operator(const qk_service_t *service, qk_err_t *err) {
  char before[QK_OPERATOR_MAX];
  if (!qk_journal_note(service->journal, "operator", before, sizeof before) ||
      qk_setups_is_operator(service->settings, before))
    return QK_OK;
  return qk_fail(
      err, QK_BAD_ARGUMENT,
      "state = %s holds requests for another operator (%.60s...): start quarkd with that "
      "operator, or choose another folder",
      service->settings->state, before);
}

static qk_status_t restore(qk_service_t *service, qk_err_t *err) {
  scene_t scene = {.service = service, .now = qk_service_now(service)};
  char text[QK_OPERATOR_MAX];
  scene.nameless = qk_journal_doubtful(service->journal) &&
                   !qk_journal_note(service->journal, "operator", text, sizeof text);
  if (qk_journal_note(service->journal, "lattice", text, QK_LATTICE_MAX))
    qk_rows_lattice(text, &service->primary->shape, &service->primary->digest, NULL);
  qk_status_t status = qk_journal_each_setup(service->journal, on_setup, &scene, err);
  if (status == QK_OK && scene.err.code != QK_OK) {
    *err = scene.err;
    status = err->code;
  }
  if (status == QK_OK) status = qk_eigen_bring_back(service, err);
  if (status == QK_OK) choose_default(service);
  if (status == QK_OK) status = qk_journal_each_session(service->journal, on_session, &scene, err);
  if (status == QK_OK) status = qk_journal_each_job(service->journal, on_job, &scene, err);
  if (status == QK_OK && scene.own > 0) status = check_operator(service, err);
  if (status == QK_OK) status = qk_filing_resume(service, err);
  if (status == QK_OK) bind_setups(service);
  if (status == QK_OK) forget_again(service);
  if (status == QK_OK) qk_setups_bring_together(service, scene.away);
  put_away(&scene);
  if (status != QK_OK) return status;
  qk_journal_find_orphans(service->journal);
  qk_journal_set_aside(service->journal);
  if (scene.jobs > 0)
    qk_info("journal", "%lld %s back with %lld %s to solve; %lld %s computed again, %lld %s lost",
            (long long)scene.jobs, qk_plural(scene.jobs, "request is", "requests are"),
            (long long)scene.rhs, qk_plural(scene.rhs, "right-hand side", "right-hand sides"),
            (long long)scene.again, qk_plural(scene.again, "solution is", "solutions are"),
            (long long)scene.lost, qk_plural(scene.lost, "is", "are"));
  return QK_OK;
}

static qk_status_t open_spill(qk_service_t *service, qk_err_t *err) {
  const qk_spill_site_t site = {.loop = service->loop,
                                .spool = service->spool,
                                .journal = service->journal,
                                .sessions = &service->sessions,
                                .orphans = &service->orphans,
                                .budget = &service->budget,
                                .space = &service->space,
                                .limit = &service->settings->spill,
                                .events = service->events};
  return qk_spill_open(&site, &service->spill, err);
}

/* Where the journal is: in dir, or in a folder of its own. */
static qk_status_t open_journal(qk_service_t *service, const char *dir, qk_err_t *err) {
  char path[QK_PATH_MAX + 1], *apart = path;
  const char *given = service->settings->journal;
  struct stat state, journal;
  if (!given || (stat(given, &journal) == 0 && stat(dir, &state) == 0 &&
                 journal.st_dev == state.st_dev && journal.st_ino == state.st_ino))
    apart = NULL;
  qk_status_t status = QK_OK;
  if (apart) status = qk_runtime_lock("journal", given, path, &service->journal_lock, err);
  if (status == QK_OK) status = qk_journal_place(dir, apart, err);
  if (status == QK_OK)
    status = qk_journal_open(apart ? path : dir, dir, service->spool, &service->aside,
                             qk_service_now(service), &service->journal, err);
  return status;
}

qk_status_t qk_restore_open(qk_service_t *service, qk_err_t *err) {
  char dir[QK_PATH_MAX + 1];
  const char *state = service->settings->state;
  qk_status_t status = QK_OK;
  service->lock = service->journal_lock = -1;
  if (state) status = qk_runtime_lock("state", state, dir, &service->lock, err);
  qk_shm_space_init(&service->space, state && status == QK_OK ? dir : NULL);
  if (state && status == QK_OK) qk_aside_open(&service->aside, dir);
  if (state && status == QK_OK) status = qk_spool_open(service->loop, dir, &service->spool, err);
  if (state && status == QK_OK) status = open_journal(service, dir, err);
  if (state && status == QK_OK)
    status = qk_journal_each_note(service->journal, "", on_note, NULL, err);
  if (state && status == QK_OK) qk_journal_set_aside(service->journal);
  if (state && status == QK_OK) status = number_fields(service, err);
  if (state && status == QK_OK) status = open_spill(service, err);
  if (state && status == QK_OK) status = restore(service, err);
  if (status != QK_OK) {
    if (state) qk_aside_tell(&service->aside);
    service->space.leave = true;
    qk_journal_seal(service->journal);
    return status;
  }
  if (state) qk_strays_note(&service->space, dir, service->lock, service->space.next >> 32);
  qk_strays_sweep(&service->loop->uv, &service->space);
  int swept = qk_shm_sweep(&service->space);
  if (swept > 0)
    qk_warn("server", "removed %d %s of a front that has ended", swept,
            qk_plural(swept, "shared-memory object", "shared-memory objects"));
  qk_upload_sweep(service);
  if (state) qk_aside_tell(&service->aside);
  return QK_OK;
}
