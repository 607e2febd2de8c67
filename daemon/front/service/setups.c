#include "daemon/front/service/setups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/settings/load.h"
#include "proto/control.h"

/* ---- which there are ----------------------------------------------------------------------- */

static qk_mount_t *named(const qk_service_t *service, const char *name) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_mount_t *mount = service->mount[m];
    if (mount && !mount->ending && strcmp(mount->name, name) == 0) return mount;
  }
  return NULL;
}

static void list_names(const qk_service_t *service, char *list, size_t size) {
  size_t n = 0;
  list[0] = '\0';
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_mount_t *mount = service->mount[m];
    if (mount && qk_mount_serves(mount) && n < size)
      n += (size_t)snprintf(list + n, size - n, "%s%s", n ? ", " : "", mount->name);
  }
}

qk_mount_t *qk_setups_find(const qk_service_t *service, const char *name, qk_err_t *err) {
  char list[256], quoted[QK_SETUP_NAME_MAX + 1];
  if (!name || strcmp(name, "default") == 0) return service->primary;
  qk_mount_t *mount = named(service, name);
  if (mount) return mount;
  list_names(service, list, sizeof list);
  qk_err_quote(name, quoted, sizeof quoted);
  qk_fail(err, QK_NOT_FOUND, "setup = \"%s\": there is none of this name; there are %s", quoted,
          list);
  return NULL;
}

qk_status_t qk_setups_check(const qk_mount_t *mount, qk_err_t *err) {
  if (mount->failed != QK_OK)
    return qk_fail(err, QK_NOT_FOUND, "setup %s was not loaded: %.300s", mount->name, mount->text);
  if (!qk_mount_serves(mount))
    return qk_fail(err, QK_NOT_FOUND, "setup %s is being dropped", mount->name);
  if (qk_worker_state(mount->worker) != QK_WORKER_READY)
    return qk_fail(err, QK_NOT_READY,
                   mount->dims[0] > 0 ? "setup %s is loaded again, as its engine was lost"
                                      : "setup %s is not loaded yet",
                   mount->name);
  return QK_OK;
}

/* ---- the journal ----------------------------------------------------------------------------- */

void qk_setups_operator(const qk_settings_t *s, char text[QK_OPERATOR_MAX]) {
  int n = snprintf(text, QK_OPERATOR_MAX, "kappa %.17g csw %.17g boundary", s->kappa, s->csw);
  for (int i = 0; i < 8; i++)
    n += snprintf(text + n, QK_OPERATOR_MAX - (size_t)n, " %.17g", s->boundary[i]);
}

static void tell(qk_status_t status, const qk_err_t *err) {
  if (status != QK_OK) qk_error("journal", "%s", err->text);
}

void qk_setups_note(const qk_mount_t *mount) {
  qk_journal_t *journal = mount->service->journal;
  char op[QK_OPERATOR_MAX], lattice[QK_LATTICE_MAX];
  qk_err_t err = {0};
  qk_journal_lattice(mount->dims, mount->digest, lattice);
  if (mount->id > 0) {
    tell(qk_journal_note_setup(journal, mount->id, lattice, &err), &err);
    return;
  }
  qk_setups_operator(&mount->settings, op);
  tell(qk_journal_put_note(journal, "operator", op, &err), &err);
  tell(qk_journal_put_note(journal, "lattice", lattice, &err), &err);
}

static qk_status_t check_journal(const qk_mount_t *mount, qk_err_t *err) {
  const char *trouble = qk_journal_trouble(mount->service->journal);
  return trouble ? qk_fail(err, QK_BUSY, "%s", trouble) : QK_OK;
}

/* A new setup is there for the next front, too. */
static qk_status_t record(qk_mount_t *mount, qk_err_t *err) {
  if (!mount->load) return QK_OK; /* it is there always */
  if (check_journal(mount, err) != QK_OK) return err->code;
  return qk_journal_add_setup(mount->service->journal, mount->load, mount->load_bytes, &mount->id,
                              err);
}

/* It is not any more, but for what is open. */
static qk_status_t record_end(const qk_mount_t *mount, qk_err_t *err) {
  const qk_status_t status = check_journal(mount, err);
  return status == QK_OK ? qk_journal_end_setup(mount->service->journal, mount->id, err) : status;
}

/* The same where nobody is told; that it cannot be recorded is logged. */
static void drop_record(const qk_mount_t *mount) {
  qk_err_t err = {0};
  tell(qk_journal_end_setup(mount->service->journal, mount->id, &err), &err);
}

void qk_setups_forget(const qk_mount_t *mount) {
  qk_err_t err = {0};
  tell(qk_journal_drop_setup(mount->service->journal, mount->id, &err), &err);
}

static qk_status_t record_default(const qk_mount_t *mount, qk_err_t *err) {
  char id[24];
  const qk_status_t status = check_journal(mount, err);
  if (status != QK_OK) return status;
  snprintf(id, sizeof id, "%lld", (long long)mount->id);
  return qk_journal_put_note(mount->service->journal, "default", id, err);
}

/* ---- coming -------------------------------------------------------------------------------- */

static int free_lane(const qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (!service->mount[m]) return m;
  return -1;
}

qk_status_t qk_setups_place(qk_mount_t *mount, qk_err_t *err) {
  const int lane = free_lane(mount->service);
  if (lane < 0)
    return qk_fail(err, QK_BUSY, "all %d places are taken until an engine has left", QK_SETUPS_MAX);
  mount->lane = lane;
  mount->service->mount[lane] = mount;
  return QK_OK;
}

static void displace(qk_mount_t *mount) {
  mount->service->mount[mount->lane] = NULL;
  mount->lane = -1;
  qk_mount_release(mount);
}

/* That of the command line. */
static qk_status_t make_own(qk_service_t *service, qk_mount_t **mount, qk_err_t *err) {
  return qk_mount_create(service, service->settings->setup_name, service->settings,
                         qk_service_now(service), mount, err);
}

qk_status_t qk_setups_open(qk_service_t *service, qk_err_t *err) {
  qk_status_t status = make_own(service, &service->primary, err);
  return status == QK_OK ? qk_setups_place(service->primary, err) : status;
}

/* Whether it says nothing but a name. */
static bool says_nothing(const Quark__Load *l) {
  return !l->gauge && l->n_dims == 0 && !l->has_mass && !l->has_kappa && !l->has_csw &&
         !l->boundary && !l->solver && !l->precision && !l->has_slots && !l->has_ignore_checksum;
}

/* A setup as the message says, in no place and without its engine. The name of the command line's stands for that alone, as the next
 * front will have it under that name again. */
static qk_status_t make(qk_service_t *service, const Quark__Load *load, bool trusted,
                        qk_mount_t **out, qk_err_t *err) {
  char gauge[QK_PATH_MAX + 1];
  qk_settings_t settings;
  qk_mount_t *mount;
  qk_status_t status = qk_load_settings(load, service->settings, trusted, gauge, &settings, err);
  if (status != QK_OK) return status;
  if (strcmp(load->name, service->settings->setup_name) == 0) {
    if (says_nothing(load)) return make_own(service, out, err);
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "setup %s is that of the command line: it is loaded by its name alone",
                   load->name);
  }
  status = qk_mount_create(service, load->name, &settings, qk_service_now(service), &mount, err);
  if (status != QK_OK) return status;
  snprintf(mount->gauge, sizeof mount->gauge, "%s", settings.gauge);
  mount->settings.gauge = mount->gauge;
  mount->load = qk_load_pack(load, &settings, &mount->load_bytes);
  mount->settings.boundary_text = NULL; /* it is the message's */
  if (!mount->load) {
    qk_mount_release(mount);
    return qk_fail(err, QK_NO_MEMORY, "no memory for a setup");
  }
  *out = mount;
  return QK_OK;
}

qk_mount_t *qk_setups_bring_back(qk_service_t *service, const qk_setup_row_t *row, qk_err_t *err) {
  qk_mount_t *mount = NULL;
  Quark__Load *load = quark__load__unpack(NULL, row->load_bytes, row->load);
  if (!load) {
    qk_fail(err, QK_BAD_FORMAT, "it cannot be read");
    return NULL;
  }
  if (make(service, load, true, &mount, err) == QK_OK)
    mount->make_default = load->make_default && !*row->lattice;
  quark__load__free_unpacked(load, NULL);
  if (!mount) return NULL;
  mount->id = row->id;
  mount->dropping = row->dropped;
  return mount;
}

static qk_status_t start(qk_mount_t *mount, qk_err_t *err) {
  qk_service_t *service = mount->service;
  qk_worker_site_t site = service->site;
  site.setup = mount->load ? mount->name : "";
  site.number = service->mounts++;
  site.id = &mount->id;
  return qk_worker_create(&site, &mount->settings, service->engine_events, mount, &mount->worker,
                          err);
}

static qk_mount_t *with_id(const qk_service_t *service, int64_t id) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->mount[m] && service->mount[m]->id == id) return service->mount[m];
  return NULL;
}

qk_status_t qk_setups_start(qk_service_t *service, qk_err_t *err) {
  qk_legacy_t left[QK_LEGACIES_MAX];
  qk_status_t status = QK_OK;
  const int n = qk_legacy_list(service->journal, left);
  for (int m = 0; m < QK_SETUPS_MAX && status == QK_OK; m++)
    if (service->mount[m]) status = start(service->mount[m], err);
  for (int i = 0; i < n && status == QK_OK; i++) {
    const qk_mount_t *mount = with_id(service, left[i].setup);
    if (mount)
      qk_worker_take_over(mount->worker, &left[i]);
    else
      qk_legacy_end(service->journal, &left[i]);
  }
  return status;
}

/* ---- going --------------------------------------------------------------------------------- */

static void end(qk_mount_t *mount) {
  mount->ending = true;
  qk_worker_stop(mount->worker, qk_service_now(mount->service));
}

static bool keeps_something(const qk_mount_t *mount) {
  const qk_sessions_t *sessions = &mount->service->sessions;
  for (int i = 0; i < sessions->count; i++) {
    const qk_link_t *jobs = &sessions->at[i]->jobs;
    for (const qk_link_t *l = jobs->next; l != jobs; l = l->next) {
      const qk_job_t *job = QK_HOLDER(l, const qk_job_t, link);
      if (job->mount == mount && qk_keep_count(job) > 0) return true;
    }
  }
  return false;
}

/* Lets the one go that was idle the longest, but not `other`; false: there is none. */
static bool evict(qk_service_t *service, const qk_mount_t *other) {
  qk_mount_t *oldest = NULL;
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_mount_t *mount = service->mount[m];
    if (!mount || mount == service->primary || mount == other || !qk_mount_serves(mount)) continue;
    if (!qk_worker_info(mount->worker)->loaded || mount->open > 0 || keeps_something(mount))
      continue;
    if (!oldest || mount->used_at < oldest->used_at) oldest = mount;
  }
  if (!oldest) return false;
  qk_info("setups", "%s makes room: idle for %.0f s", oldest->name,
          qk_service_now(service) - oldest->used_at);
  drop_record(oldest);
  end(oldest);
  return true;
}

static bool any_ending(const qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->mount[m] && service->mount[m]->ending) return true;
  return false;
}

/* One more can come. */
static qk_status_t make_place(qk_service_t *service, qk_err_t *err) {
  const int most = (int)service->settings->max_setups;
  int n = 0;
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_mount_t *mount = service->mount[m];
    n += mount && mount->failed == QK_OK && !mount->ending;
  }
  if (n >= most && !evict(service, NULL))
    return qk_fail(err, QK_BUSY,
                   "%d setups of %d (max-setups) are there, and none but the default is idle: drop "
                   "one",
                   n, most);
  for (int m = 0; m < QK_SETUPS_MAX && free_lane(service) < 0; m++)
    if (service->mount[m]->failed != QK_OK && !service->mount[m]->ending) end(service->mount[m]);
  return QK_OK;
}

bool qk_setups_make_room(qk_mount_t *mount, qk_status_t status) {
  if (status != QK_DEVICE_MEMORY && status != QK_NO_MEMORY) return false;
  mount->again = evict(mount->service, mount);
  return mount->again;
}

void qk_setups_fail(qk_mount_t *mount, qk_status_t status, const char *text) {
  mount->failed = status;
  snprintf(mount->text, sizeof mount->text, "%.*s", (int)sizeof mount->text - 1, text);
  qk_queue_expire_all(mount);
  drop_record(mount);
  qk_worker_stop(mount->worker, qk_service_now(mount->service));
}

void qk_setups_reap(qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_mount_t *mount = service->mount[m];
    if (!mount || !mount->ending || qk_worker_state(mount->worker) != QK_WORKER_STOPPED) continue;
    if (mount->failed == QK_OK) qk_info("setups", "%s is dropped", mount->name);
    qk_queue_expire_all(mount);
    qk_worker_destroy(mount->worker);
    mount->worker = NULL;
    displace(mount);
  }
}

void qk_setups_close(qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_mount_release(service->mount[m]);
    service->mount[m] = NULL;
  }
}

void qk_setups_stop(qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->mount[m]) qk_worker_stop(service->mount[m]->worker, qk_service_now(service));
}

bool qk_setups_stopped(const qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->mount[m] && qk_worker_state(service->mount[m]->worker) != QK_WORKER_STOPPED)
      return false;
  return true;
}

bool qk_setups_saving(const qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->mount[m] && qk_worker_saving(service->mount[m]->worker)) return true;
  return false;
}

/* ---- the default --------------------------------------------------------------------------- */

/* Once it is in the journal: the next front has the same one. */
static qk_status_t use(qk_mount_t *mount, qk_err_t *err) {
  mount->make_default = false;
  if (mount->service->primary == mount) return QK_OK;
  const qk_status_t status = record_default(mount, err);
  if (status != QK_OK) return status;
  qk_info("setups", "%s is the default now, instead of %s", mount->name,
          mount->service->primary->name);
  mount->service->primary = mount;
  return QK_OK;
}

void qk_setups_ready(qk_mount_t *mount) {
  qk_err_t err = {0};
  mount->used_at = qk_service_now(mount->service);
  if (mount->make_default && qk_mount_serves(mount) && use(mount, &err) != QK_OK)
    mount->make_default = true; /* as soon as it can be recorded */
}

void qk_setups_tick(qk_service_t *service, double now) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_mount_t *mount = service->mount[m];
    if (!mount) continue;
    if (mount->dropping && !mount->ending && mount->open == 0) end(mount);
    const bool wait = any_ending(service) && !mount->ending;
    if (!wait) mount->started = true;
    if (!wait && mount->again) {
      mount->again = false;
      qk_worker_load_again(mount->worker);
    }
    if (mount->started) qk_worker_tick(mount->worker, now);
    if (mount->make_default && qk_worker_state(mount->worker) == QK_WORKER_READY &&
        !qk_journal_trouble(service->journal))
      qk_setups_ready(mount);
  }
}

/* ---- messages ------------------------------------------------------------------------------ */

static void *refuse(const char *what, const qk_err_t *err) {
  qk_info("setups", "%s refused: %s: %s", what, qk_status_name(err->code), err->text);
  return NULL;
}

/* The same LOAD again, but for who is to be the default. */
static bool is_repeated(const qk_mount_t *mount, const Quark__Load *load) {
  char gauge[QK_PATH_MAX + 1];
  qk_settings_t settings;
  size_t bytes;
  if (!mount->load) return says_nothing(load);
  Quark__Load *before = quark__load__unpack(NULL, mount->load_bytes, mount->load), now = *load;
  if (!before) return false;
  now.has_make_default = before->has_make_default;
  now.make_default = before->make_default;
  quark__load__free_unpacked(before, NULL);
  if (qk_load_settings(&now, mount->service->settings, false, gauge, &settings, NULL) != QK_OK)
    return false;
  uint8_t *packed = qk_load_pack(&now, &settings, &bytes);
  const bool same = packed && bytes == mount->load_bytes && memcmp(packed, mount->load, bytes) == 0;
  free(packed);
  return same;
}

/* A LOAD of a setup that is there. */
static qk_status_t load_again(qk_mount_t *mount, const Quark__Load *load, qk_err_t *err) {
  if (mount->dropping)
    return qk_fail(err, QK_BUSY, "setup %s is being dropped: try again later", mount->name);
  if (!is_repeated(mount, load))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "setup %s is there already, with other parameters: drop it first", mount->name);
  if (load->make_default) mount->make_default = true;
  if (mount->make_default && qk_worker_state(mount->worker) == QK_WORKER_READY)
    return use(mount, err);
  return QK_OK;
}

static qk_status_t load_new(qk_service_t *service, const Quark__Load *load, qk_mount_t **out,
                            qk_err_t *err) {
  qk_mount_t *before = named(service, load->name), *mount;
  if (service->draining || service->stopping)
    return qk_fail(err, QK_SHUTTING_DOWN, "the daemon takes no new work");
  if (before && before->failed == QK_OK) {
    *out = before;
    return load_again(before, load, err);
  }
  /* made first: what is wrong with it must not cost another setup its place */
  qk_status_t status = make(service, load, false, &mount, err);
  if (status != QK_OK) return status;
  status = start(mount, err);
  if (status == QK_OK) status = make_place(service, err);
  if (status == QK_OK) status = record(mount, err);
  if (status == QK_OK) status = qk_setups_place(mount, err);
  if (status != QK_OK) {
    drop_record(mount);
    qk_mount_release(mount);
    return status;
  }
  if (before) end(before);
  mount->make_default = load->make_default;
  qk_info("setups", "loading %s: %s, kappa %.10g, csw %.10g", mount->name, mount->settings.gauge,
          mount->settings.kappa, mount->settings.csw);
  *out = mount;
  return QK_OK;
}

qk_mount_t *qk_setups_load(qk_service_t *service, const Quark__Load *load, qk_err_t *err) {
  qk_mount_t *loaded = NULL;
  return load_new(service, load, &loaded, err) == QK_OK ? loaded : refuse("LOAD", err);
}

qk_mount_t *qk_setups_drop(qk_service_t *service, const Quark__Drop *drop, qk_err_t *err) {
  qk_mount_t *found = qk_setups_find(service, drop->name, err);
  if (found == service->primary)
    qk_fail(err, QK_BAD_ARGUMENT, "setup %s is the default: make another one the default first",
            found->name);
  if (err->code == QK_OK) record_end(found, err);
  if (err->code != QK_OK) return refuse("DROP", err);
  qk_info("setups", "dropping %s%s: %lld right-hand sides are open", found->name,
          drop->now ? " now" : "", (long long)found->open);
  found->dropping = true;
  return found;
}

qk_mount_t *qk_setups_make_default(qk_service_t *service, const Quark__MakeDefault *message,
                                   qk_err_t *err) {
  qk_mount_t *found = qk_setups_find(service, message->name, err);
  if (found) qk_setups_check(found, err);
  if (err->code == QK_OK) use(found, err);
  return err->code == QK_OK ? found : refuse("MAKE_DEFAULT", err);
}
