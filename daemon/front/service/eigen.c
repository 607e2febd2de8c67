#include "daemon/front/service/eigen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/assert.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/utf8.h"
#include "daemon/front/engines/eigen_path.h"
#include "daemon/front/service/fields.h"
#include "daemon/front/service/queue.h"
#include "proto/control.h"
#include "proto/eigen_check.h"

static const double LOOK_AGAIN = 0.25; /* seconds, for vectors that are on their way */

#define EACH_OF(set, list)                                                                         \
  for (const qk_link_t *l_ = (list)->next, *next_ = l_->next; l_ != (list);                        \
       l_ = next_, next_ = l_->next)                                                               \
    for (qk_eigen_set_t *set = QK_HOLDER(l_, qk_eigen_set_t, link); set; set = NULL)
#define EACH(set, setup) EACH_OF(set, &(setup)->eigen)

/* ---- sets ------------------------------------------------------------------------------------ */

qk_eigen_set_t *qk_eigen_find(const qk_setup_t *setup, const char *name) {
  EACH(set, setup) if (strcmp(set->problem->name, name) == 0) return set;
  return NULL;
}

static qk_eigen_set_t *find_away(const qk_setup_t *setup, const char *name) {
  EACH_OF(set, &setup->eigen_away) if (strcmp(set->problem->name, name) == 0) return set;
  return NULL;
}

static void free_set(qk_eigen_set_t *set) {
  qk_link_remove(&set->link);
  if (set->problem) quark__eigen_problem__free_unpacked(set->problem, NULL);
  qk_free(set);
}

static qk_eigen_set_t *add(qk_setup_t *setup, const Quark__EigenProblem *problem, const char *user,
                           Quark__EigenState state, qk_err_t *err) {
  qk_eigen_set_t *set = qk_calloc(1, sizeof *set);
  if (set) qk_link_init(&set->link);
  if (set) set->problem = (Quark__EigenProblem *)qk_control_copy(&problem->base);
  if (!set || !set->problem) {
    if (set) free_set(set);
    qk_fail(err, QK_NO_MEMORY, "no memory for eigenvectors");
    return NULL;
  }
  set->state = state;
  snprintf(set->user, sizeof set->user, "%s", user);
  snprintf(set->user_shown, sizeof set->user_shown, "%s", user);
  qk_utf8_clean(set->user_shown);
  qk_list_append(&setup->eigen, &set->link);
  return set;
}

/* ---- journal: "eigen SETUP NAME" = "USER PROBLEM", both in hexadecimal digits ---------------- */

enum { KEY_BYTES = sizeof QK_EIGEN_NOTE + 24 + QK_EIGEN_NAME_MAX };

static void write_key(const qk_setup_t *setup, const char *name, char key[KEY_BYTES]) {
  snprintf(key, KEY_BYTES, "%s%lld %s", QK_EIGEN_NOTE, (long long)setup->id, name);
}

static char *write_hex(char *to, const uint8_t *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) to += sprintf(to, "%02x", data[i]);
  return to;
}

static void note(const qk_setup_t *setup, const qk_eigen_set_t *set) {
  char key[KEY_BYTES];
  size_t bytes;
  uint8_t *packed = qk_control_pack(&set->problem->base, &bytes);
  const size_t user = strlen(set->user);
  char *value = packed ? malloc(2 * (user + bytes) + 2) : NULL;
  if (value) {
    char *at = write_hex(value, (const uint8_t *)set->user, user);
    *at++ = ' ';
    *write_hex(at, packed, bytes) = '\0';
    write_key(setup, set->problem->name, key);
    qk_journal_note_soon(setup->service->journal, key, value);
  }
  free(value);
  free(packed);
}

static void forget_note(const qk_setup_t *setup, const char *name) {
  char key[KEY_BYTES];
  write_key(setup, name, key);
  qk_journal_note_soon(setup->service->journal, key, NULL);
}

static int digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes up to the end or a blank; -1: they are none, or too many. */
static int read_hex(const char *text, uint8_t *to, int most) {
  int n = 0;
  for (; *text && *text != ' '; text += 2, n++) {
    if (n == most || digit(text[0]) < 0 || digit(text[1]) < 0) return -1;
    to[n] = (uint8_t)(digit(text[0]) * 16 + digit(text[1]));
  }
  return n;
}

/* Of a note, as it says; NULL: it does not fit. */
static Quark__EigenProblem *read_note(const char *value, char user[QK_USER_MAX + 1]) {
  uint8_t data[QK_EIGEN_PACKED_MAX];
  const char *blank = strchr(value, ' ');
  const int n = blank ? read_hex(value, (uint8_t *)user, QK_USER_MAX) : -1;
  const int bytes = n < 0 ? -1 : read_hex(blank + 1, data, sizeof data);
  if (bytes <= 0) return NULL;
  user[n] = '\0';
  return quark__eigen_problem__unpack(NULL, (size_t)bytes, data);
}

static qk_setup_t *with_id(const qk_service_t *service, int64_t id) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->setup[m] && service->setup[m]->id == id) return service->setup[m];
  return NULL;
}

/* A set of a setup that is not there any more goes. */
static bool on_note(void *arg, const char *key, const char *value, qk_err_t *why) {
  qk_service_t *service = arg;
  char user[QK_USER_MAX + 1], text[QK_WHY];
  long long id = -1;
  int end = 0;
  Quark__EigenProblem *p = read_note(value, user);
  const bool read = p && sscanf(key + strlen(QK_EIGEN_NOTE), "%lld %n", &id, &end) == 1 &&
                    end > 0 && strcmp(key + strlen(QK_EIGEN_NOTE) + end, p->name) == 0;
  qk_setup_t *setup = read ? with_id(service, id) : NULL;
  if (!read) qk_fail(why, QK_BAD_FORMAT, "value = %.80s: not of eigenvectors", value);
  if (read && !setup) qk_journal_note_soon(service->journal, key, NULL);
  if (read && qk_eigen_check_name("name", p->name, text) != QK_OK) /* it is part of a path */
    qk_fail(why, QK_BAD_FORMAT, "%s", text);
  if (setup && why->code == QK_OK) add(setup, p, user, QUARK__EIGEN_STATE__EIGEN_RETURNING, why);
  if (p) quark__eigen_problem__free_unpacked(p, NULL);
  return why->code == QK_OK;
}

qk_status_t qk_eigen_bring_back(qk_service_t *service, qk_err_t *err) {
  return qk_journal_each_note(service->journal, QK_EIGEN_NOTE, on_note, service, err);
}

/* ---- going ----------------------------------------------------------------------------------- */

static void remove_file(const qk_setup_t *setup, const char *name) {
  char path[QK_PATH_MAX + 1];
  qk_eigen_path(&setup->settings, setup->site_name, name, path);
  if (path[0]) unlink(path);
}

static bool has_file(const qk_setup_t *setup, const char *name) {
  char path[QK_PATH_MAX + 1];
  qk_eigen_path(&setup->settings, setup->site_name, name, path);
  return path[0] && access(path, F_OK) == 0;
}

/* With its file, and out of the journal. */
static void drop(qk_setup_t *setup, qk_eigen_set_t *set) {
  QK_EACH_REPLICA(r, setup) if (r->returning == set) r->returning = NULL;
  forget_note(setup, set->problem->name);
  remove_file(setup, set->problem->name);
  free_set(set);
}

void qk_eigen_forget(qk_setup_t *setup) {
  EACH(set, setup) drop(setup, set);
  EACH_OF(set, &setup->eigen_away) drop(setup, set);
}

void qk_eigen_free(qk_setup_t *setup) {
  EACH(set, setup) free_set(set);
  EACH_OF(set, &setup->eigen_away) free_set(set);
}

static bool is_read(const qk_setup_t *setup, const qk_eigen_set_t *set) {
  QK_EACH_REPLICA(r, setup) if (r->returning == set) return true;
  return false;
}

typedef struct users {
  const char *name;
  int64_t open;
} users_t;

static void count_users(qk_service_t *service, qk_job_t *job, void *arg) {
  users_t *users = arg;
  (void)service;
  if (strcmp(job->vectors, users->name) == 0 || strcmp(job->project, users->name) == 0 ||
      (job->recalls && strcmp(job->problem->name, users->name) == 0))
    users->open += job->nrhs - job->ended;
}

static qk_status_t check_drop(qk_setup_t *setup, const qk_eigen_set_t *set,
                              const qk_viewer_t *viewer, qk_err_t *err) {
  const char *name = set->problem->name;
  if (!viewer->operates && (!viewer->user || strcmp(viewer->user, set->user) != 0))
    return qk_fail(err, QK_DENIED,
                   "eigenvectors %s are those of %s: to drop them needs the role operate", name,
                   *set->user_shown ? set->user_shown : "a user without a name");
  if (set->state == QUARK__EIGEN_STATE__EIGEN_MAKING)
    return qk_fail(err, QK_BUSY, "eigenvectors %s are being made: cancel the request", name);
  if (is_read(setup, set))
    return qk_fail(err, QK_BUSY, "eigenvectors %s are being read by the engine: try again later",
                   name);
  users_t users = {.name = name};
  qk_queue_each_job(setup, count_users, &users);
  if (users.open == 0) return QK_OK;
  return qk_fail(err, QK_BUSY,
                 "eigenvectors %s: %lld right-hand sides that use them have not ended", name,
                 (long long)users.open);
}

static qk_status_t say_unknown(const qk_setup_t *setup, const char *field, const char *name,
                               qk_err_t *err) {
  char quoted[QK_EIGEN_NAME_MAX + 1], list[256] = "";
  size_t n = 0;
  EACH(set, setup) {
    if (n + strlen(set->problem->name) + 3 < sizeof list)
      n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", set->problem->name);
  }
  qk_err_quote(name, quoted, sizeof quoted);
  return qk_fail(err, QK_NOT_FOUND, "%s = \"%s\": setup %s has no eigenvectors of this name%s%s",
                 field, quoted, setup->name, n ? "; it has " : "", list);
}

static void tell_drop(const qk_setup_t *setup, const char *name) {
  QK_EACH_REPLICA(r, setup) {
    size_t bytes;
    if (!qk_replica_is_ready(r)) continue;
    uint8_t *message = qk_engine_encode_eigen_drop(name, &bytes);
    qk_supervisor_send(r->supervisor, message, bytes);
  }
}

qk_setup_t *qk_eigen_drop(qk_service_t *service, const qk_viewer_t *viewer,
                          const Quark__EigenDrop *message, qk_err_t *err) {
  qk_setup_t *setup = qk_setups_find(service, viewer, message->setup, err);
  qk_eigen_set_t *set = setup ? qk_eigen_find(setup, message->name) : NULL;
  if (!setup) return NULL;
  if (!set) set = find_away(setup, message->name);
  if (!set) say_unknown(setup, "name", message->name, err);
  if (set && check_drop(setup, set, viewer, err) == QK_OK) {
    qk_info("setups", "%s: eigenvectors %s are dropped", setup->name, message->name);
    tell_drop(setup, message->name);
    drop(setup, set);
    return setup;
  }
  return NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The vectors that a problem names, of a user who has sent them. */
static qk_job_t *find_field(const qk_setup_t *setup, const Quark__EigenProblem *problem,
                            const char *user, qk_err_t *err) {
  const uint32_t *d = setup->shape.dims;
  qk_job_t *field =
      qk_fields_named(setup->service, user, QUARK__FIELD_KIND__FIELD_VECTORS, problem->field);
  if (!field) {
    qk_fail(err, QK_NOT_FOUND, "field = %.30s: no vectors of this digest are here: send them",
            problem->field);
    return NULL;
  }
  const uint32_t *f = field->shape.dims;
  if (memcmp(d, f, sizeof field->shape.dims) != 0)
    qk_fail(err, QK_BAD_GEOMETRY,
            "field: the vectors are of %ux%ux%ux%u, and the links of setup %s of %ux%ux%ux%u", f[0],
            f[1], f[2], f[3], setup->name, d[0], d[1], d[2], d[3]);
  else if (field->field->count != problem->count)
    qk_fail(err, QK_BAD_ARGUMENT, "count = %u: the field has %u vectors of each time slice",
            problem->count, field->field->count);
  return err->code == QK_OK ? field : NULL;
}

qk_status_t qk_eigen_may_have(const qk_setup_t *setup, const Quark__EigenProblem *problem,
                              const char *user, qk_err_t *err) {
  const qk_eigen_set_t *same = qk_eigen_find(setup, problem->name);
  int n = 0, own = 0;
  if (setup->replicas > 1 && !setup->settings.state)
    return qk_fail(err, QK_UNSUPPORTED,
                   "setup %s has %d replicas, which read eigenvectors from the state folder, and "
                   "quarkd has none (--state)",
                   setup->name, setup->replicas);
  if (find_away(setup, problem->name))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "name = %s: setup %s has a file of this name, of other links or another "
                   "operator: drop it first, or choose another name",
                   problem->name, setup->name);
  if (same)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "name = %s: setup %s has eigenvectors of this name (%s): drop them first, or "
                   "choose another",
                   problem->name, setup->name,
                   same->state == QUARK__EIGEN_STATE__EIGEN_MAKING ? "being made" : "kept");
  EACH(set, setup) {
    n++;
    own += strcmp(set->user, user) == 0;
  }
  if (own >= QK_USER_EIGEN_MAX)
    return qk_fail(err, QK_BUSY,
                   "%d names of this user have eigenvectors of setup %s, the limit is %d: drop one",
                   own, setup->name, QK_USER_EIGEN_MAX);
  if (n >= QK_EIGEN_NAMES_MAX)
    return qk_fail(err, QK_BUSY,
                   "%d names have eigenvectors of setup %s, the limit is %d: drop one", n,
                   setup->name, QK_EIGEN_NAMES_MAX);
  if (problem->field) find_field(setup, problem, user, err);
  return err->code;
}

/* Coarser than this a Laplacian's vectors are in single (modes/eigens.c). */
static const double coarse = 1e-5;

/* Host memory of a set, of all replicas: as the engine says, or at most. */
static int64_t host_bytes(const qk_setup_t *setup, const Quark__EigenProblem *p, bool single) {
  int n = 0;
  const double *slices = qk_value_reals(&setup->settings.op, "Ls", &n);
  const bool floats =
      single || (p->kind == QUARK__EIGEN_KIND__EIGEN_LAPLACIAN && !p->field && p->tol >= coarse);
  return setup->replicas *
         (int64_t)qk_eigen_host_bytes(p, &setup->shape, n > 0 ? (int)slices[0] : 1, floats);
}

/* Beside it while they are computed. */
static int64_t work_bytes(const qk_setup_t *setup, const Quark__EigenProblem *p) {
  const int ranks = (int)setup->service->settings->ranks;
  return (int64_t)qk_eigen_work_bytes(p, &setup->shape, ranks);
}

static int64_t bytes_of(const qk_setup_t *setup, const qk_eigen_set_t *set) {
  if (set->measured) return setup->replicas * (int64_t)set->host_bytes;
  const bool making = set->state == QUARK__EIGEN_STATE__EIGEN_MAKING;
  return host_bytes(setup, set->problem, false) + (making ? work_bytes(setup, set->problem) : 0);
}

int64_t qk_eigen_memory(const qk_service_t *service) {
  int64_t bytes = 0;
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *setup = service->setup[m];
    if (setup) EACH(set, setup) {
        bytes += bytes_of(setup, set);
      }
  }
  return bytes;
}

/* What a problem takes, in words. */
static void say_memory(const qk_setup_t *setup, const Quark__EigenProblem *p, int64_t vectors,
                       int64_t work, char *text, size_t size) {
  const int n = snprintf(text, size, "count = %u: the vectors take up to %lld bytes of host memory",
                         p->count, (long long)vectors);
  if (work > 0 && n > 0 && (size_t)n < size)
    snprintf(text + n, size - (size_t)n, ", and %lld for matrices of space = %llu rows",
             (long long)work, (unsigned long long)qk_eigen_space(p, &setup->shape));
}

qk_status_t qk_eigen_check_room(const qk_setup_t *setup, const Quark__EigenProblem *problem,
                                const char *user, qk_err_t *err) {
  const qk_service_t *service = setup->service;
  const qk_job_t *field = problem->field ? find_field(setup, problem, user, err) : NULL;
  if (err->code != QK_OK) return err->code;
  const bool single = field && field->dtype == QUARK__DTYPE__DTYPE_F32;
  const int64_t vectors = host_bytes(setup, problem, single), work = work_bytes(setup, problem),
                limit = service->eigen_limit, used = qk_eigen_memory(service);
  char takes[160];
  say_memory(setup, problem, vectors, work, takes, sizeof takes);
  if (vectors + work > limit)
    return qk_fail(err, QK_TOO_LARGE, "%s, the limit is %lld (eigen-memory)", takes,
                   (long long)limit);
  if (vectors + work <= limit - used) return QK_OK;
  return qk_fail(err, QK_BUSY,
                 "%s: other eigenvectors have %lld, the limit is %lld (eigen-memory): drop some",
                 takes, (long long)used, (long long)limit);
}

const qk_eigen_set_t *qk_eigen_named(const qk_setup_t *setup, const char *field, const char *name,
                                     qk_err_t *err) {
  const qk_eigen_set_t *set = qk_eigen_find(setup, name);
  if (!set) say_unknown(setup, field, name, err);
  if (!set || set->state != QUARK__EIGEN_STATE__EIGEN_MAKING) return set;
  qk_fail(err, QK_BUSY, "%s = %s: they are being made: wait for their request", field, name);
  return NULL;
}

static qk_status_t bind_problem(qk_job_t *job, qk_err_t *err) {
  if (job->rhs[0].state >= QK_RHS_ENDED) return QK_OK;
  if (job->recalls) qk_eigen_named(job->setup, "name", job->problem->name, err);
  if (job->recalls) return err->code;
  const char *user = qk_sched_user_name(job->user);
  qk_status_t status = qk_eigen_may_have(job->setup, job->problem, user, err);
  if (status == QK_OK &&
      !add(job->setup, job->problem, user, QUARK__EIGEN_STATE__EIGEN_MAKING, err))
    status = err->code;
  if (status == QK_OK && job->problem->field) /* held until it ends: the engine reads it */
    qk_rhs_use(&job->rhs[0], 0, &find_field(job->setup, job->problem, user, err)->rhs[0]);
  return status;
}

static qk_status_t bind_sources(const qk_job_t *job, qk_err_t *err) {
  const qk_eigen_set_t *set = qk_eigen_named(job->setup, "vectors", job->vectors, err);
  if (!set) return err->code;
  const bool slices = set->problem->kind == QUARK__EIGEN_KIND__EIGEN_LAPLACIAN;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    const Quark__Column *c = &job->column[i];
    if (c->vector >= set->problem->count)
      return qk_fail(err, QK_BAD_ARGUMENT, "column %u: vector = %u is outside 0 .. %u of %s", i,
                     c->vector, set->problem->count - 1, job->vectors);
    if (slices ? c->slice > 0 : c->t > 0 || c->spin > 0)
      return qk_fail(err, QK_BAD_ARGUMENT, "column %u: %s: those of %s have none", i,
                     slices ? "slice" : "t and spin", job->vectors);
  }
  return QK_OK;
}

static qk_status_t bind_project(const qk_job_t *job, qk_err_t *err) {
  const qk_eigen_set_t *set = qk_eigen_named(job->setup, "project", job->project, err);
  if (!set) return err->code;
  const Quark__EigenProblem *p = set->problem;
  if (p->kind != QUARK__EIGEN_KIND__EIGEN_LAPLACIAN)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "project = %s: its eigenvectors are of kind %s; a projection is onto those of "
                   "time slices, of kind laplacian",
                   job->project, qk_eigen_kind_name((int)p->kind));
  if (job->project_count > p->count)
    return qk_fail(err, QK_BAD_ARGUMENT, "project_count = %u: %s has %u vectors of each time slice",
                   job->project_count, job->project, p->count);
  return QK_OK;
}

qk_status_t qk_eigen_bind(qk_job_t *job, qk_err_t *err) {
  if (job->problem) return bind_problem(job, err);
  if (job->joined || job->ended == job->nrhs) return QK_OK;
  const qk_status_t status = job->vectors[0] ? bind_sources(job, err) : QK_OK;
  return status == QK_OK && job->project[0] ? bind_project(job, err) : status;
}

void qk_eigen_ended(const qk_rhs_t *rhs) {
  const qk_job_t *job = rhs->job;
  qk_eigen_set_t *set = job->problem ? qk_eigen_find(job->setup, job->problem->name) : NULL;
  if (!set || job->recalls || set->state != QUARK__EIGEN_STATE__EIGEN_MAKING) return;
  if (rhs->outcome.status == QK_OK) {
    set->state = QUARK__EIGEN_STATE__EIGEN_KEPT;
    set->there = 1u << rhs->replica;
    note(job->setup, set);
  } else {
    drop(job->setup, set);
  }
}

/* ---- engines --------------------------------------------------------------------------------- */

static uint32_t bit(const qk_replica_t *replica) {
  return 1u << replica->number;
}

void qk_eigen_return(qk_replica_t *replica) {
  qk_setup_t *setup = replica->setup;
  EACH(set, setup) {
    set->there &= ~bit(replica);
    set->gone &= ~bit(replica);
    if (set->state == QUARK__EIGEN_STATE__EIGEN_KEPT && set->there == 0)
      set->state = QUARK__EIGEN_STATE__EIGEN_RETURNING;
  }
  EACH_OF(set, &setup->eigen_away) {
    set->gone = 0;
    qk_list_append(&setup->eigen, &set->link);
  }
}

/* Where it was the last that had a set, that stays where it was until the next engine is READY. */
void qk_eigen_lost(qk_replica_t *replica) {
  replica->returning = NULL;
  EACH(set, replica->setup) if (set->there & ~bit(replica)) set->there &= ~bit(replica);
}

/* Whether the replica lacks a set that is in its file. */
static bool lacks(const qk_replica_t *replica, const qk_eigen_set_t *set) {
  return set->state != QUARK__EIGEN_STATE__EIGEN_MAKING &&
         !((set->there | set->gone) & bit(replica));
}

void qk_eigen_feed(qk_replica_t *replica) {
  qk_setup_t *setup = replica->setup;
  if (replica->returning || replica->inflight[QK_EIGEN_ENTRY].rhs) return;
  EACH(set, setup) {
    char path[QK_PATH_MAX + 1];
    size_t bytes;
    if (!lacks(replica, set)) continue;
    qk_eigen_path(&setup->settings, setup->site_name, set->problem->name, path);
    uint8_t *message =
        qk_engine_encode_eigen(setup->serial + 1, set->problem, NULL, NULL, path, true, &bytes);
    if (!qk_supervisor_send(replica->supervisor, message, bytes)) return;
    replica->returning = set;
    replica->returning_serial = ++setup->serial;
    return;
  }
}

static const char *recalled(const qk_job_t *job) {
  return job->recalls ? job->problem->name : "";
}

static bool may_go(const qk_replica_t *replica, const char *name) {
  if (!name[0] || replica->setup->replicas == 1) return true;
  const qk_eigen_set_t *set = qk_eigen_find(replica->setup, name);
  return !set || set->state != QUARK__EIGEN_STATE__EIGEN_KEPT || set->there & bit(replica);
}

bool qk_eigen_may_go(const qk_replica_t *replica, const qk_rhs_t *rhs) {
  return may_go(replica, rhs->job->vectors) && may_go(replica, rhs->job->project) &&
         may_go(replica, recalled(rhs->job));
}

/* As qk_eigen_is_there, of one name. */
static bool is_there(qk_service_t *service, qk_rhs_t *rhs, const char *name) {
  if (!name[0]) return true;
  const qk_eigen_set_t *set = qk_eigen_find(rhs->job->setup, name);
  if (set && set->state == QUARK__EIGEN_STATE__EIGEN_KEPT) return true;
  if (set) {
    qk_queue_wait_until(rhs, qk_service_now(service) + LOOK_AGAIN);
    return false;
  }
  qk_queue_end(service, rhs, QK_NOT_FOUND, "its eigenvectors were lost with the engine");
  qk_queue_settle(rhs);
  return false;
}

bool qk_eigen_is_there(qk_service_t *service, qk_rhs_t *rhs) {
  const qk_job_t *job = rhs->job;
  return is_there(service, rhs, job->vectors) && is_there(service, rhs, job->project) &&
         is_there(service, rhs, recalled(job));
}

void qk_eigen_measure(qk_eigen_set_t *set, const Quark__Engine__EigenDone *done) {
  set->measured = true;
  set->lowest = done->lowest;
  set->highest = done->highest;
  set->residual = done->residual;
  set->seconds = done->seconds;
  set->device_bytes = done->device_bytes;
  set->host_bytes = done->host_bytes;
  set->zero_plus = done->has_zero_plus ? (int64_t)done->zero_plus : -1;
  set->zero_minus = done->has_zero_minus ? (int64_t)done->zero_minus : -1;
  snprintf(set->unwritten, sizeof set->unwritten, "%s", done->unwritten ? done->unwritten : "");
}

/* Whether another replica has the set, or will be asked for it. */
static bool is_elsewhere(const qk_replica_t *replica, const qk_eigen_set_t *set) {
  QK_EACH_REPLICA(r, replica->setup)
  if (r != replica && ((set->there & bit(r)) || (qk_replica_is_ready(r) && lacks(r, set))))
    return true;
  return false;
}

/* The engine could not read it. */
static void miss(qk_replica_t *replica, qk_eigen_set_t *set, const Quark__Engine__EigenDone *done) {
  qk_setup_t *setup = replica->setup;
  const char *why = done->text ? done->text : "", *name = set->problem->name;
  set->gone |= bit(replica);
  if (is_elsewhere(replica, set)) {
    qk_warn("setups", "%s: replica %d has no eigenvectors %s: %s", setup->name, replica->number,
            name, why);
    return;
  }
  if (done->status == QK_NOT_FOUND && has_file(setup, name)) {
    qk_warn("setups",
            "%s: eigenvectors %s are not of this configuration and operator: %s: their file stays, "
            "and they are back when the setup is what it was",
            setup->name, name, why);
    qk_list_append(&setup->eigen_away, &set->link);
    return;
  }
  qk_warn("setups", "%s: eigenvectors %s are gone: %s: %s", setup->name, name,
          qk_status_name((qk_status_t)done->status), why);
  drop(setup, set);
}

void qk_eigen_returned(qk_replica_t *replica, const Quark__Engine__EigenDone *done) {
  qk_eigen_set_t *set = replica->returning;
  replica->returning = NULL;
  if (done->status != QK_OK) {
    miss(replica, set, done);
    return;
  }
  const double seconds = set->seconds;
  const bool measured = set->measured;
  qk_eigen_measure(set, done);
  if (measured) set->seconds = seconds; /* that they took, not to read them */
  set->there |= bit(replica);
  set->state = QUARK__EIGEN_STATE__EIGEN_KEPT;
}
