#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/front/engines/eigen_path.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/fields.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/service/setups/setups_impl.h"
#include "daemon/front/settings/operator.h"
#include "daemon/front/settings/setup_request.h"
#include "proto/control.h"

/* ---- coming -------------------------------------------------------------------------------- */

void qk_setups_displace(qk_setup_t *setup) {
  qk_eigen_forget(setup);
  qk_setups_deflate_forget(setup);
  setup->service->setup[setup->index] = NULL;
  setup->index = -1;
  qk_fields_let_go(setup);
  qk_setup_release(setup);
}

/* That of the command line. */
static qk_status_t make_own(qk_service_t *service, qk_setup_t **setup, qk_err_t *err) {
  qk_setup_t *own;
  qk_status_t status = qk_setup_create(service, service->settings->setup_name, service->settings,
                                       qk_service_now(service), &own, err);
  if (status != QK_OK) return status;
  status = qk_setups_evolve_of_settings(own, err);
  if (status == QK_OK)
    *setup = own;
  else
    qk_setup_release(own);
  return status;
}

static qk_status_t set_origin(qk_setup_t *setup, const Quark__Load *load, bool trusted,
                              qk_err_t *err) {
  if (!load->evolve_from) return QK_OK;
  if (!trusted) {
    qk_err_t why = {0};
    const qk_viewer_t viewer = {.user = setup->owner[0] ? setup->owner : NULL};
    qk_setup_t *source = qk_setups_find(setup->service, &viewer, load->evolve_from, &why);
    return qk_setups_evolve_begin(setup, load->evolve_from, source, why.text, err);
  }
  qk_setups_evolve_bring_back(setup, load->evolve_from);
  return QK_OK;
}

qk_status_t qk_setups_open(qk_service_t *service, qk_err_t *err) {
  qk_status_t status = qk_fields_open(service, err);
  if (status == QK_OK) status = make_own(service, &service->primary, err);
  return status == QK_OK ? qk_setups_place(service->primary, err) : status;
}

/* Whether it says nothing but a name. */
static bool says_nothing(const Quark__Load *l) {
  return !l->gauge && l->n_dims == 0 && !l->has_mass && !l->has_kappa && !l->has_csw &&
         !l->action && l->n_parameter == 0 && !l->boundary && !l->solver && !l->precision &&
         !l->has_slots && !l->has_ignore_checksum && !l->evolve_from && !l->has_deflate &&
         !l->deflate_from && !l->has_replicas && !l->devices && !l->fix_gauge;
}

/* Makes a setup from the message, without a table entry and without its engine. The name of the
 * command line's setup is reserved for that one, because the next front will use it again. */
static qk_status_t make(qk_service_t *service, const Quark__Load *load, bool trusted,
                        qk_setup_t **out, qk_err_t *err) {
  char gauge[QK_PATH_MAX + 1];
  qk_settings_t settings;
  qk_setup_t *setup;
  qk_status_t status =
      qk_setup_request_settings(load, service->settings, trusted, gauge, &settings, err);
  if (status != QK_OK) return status;
  if (!load->owner && strcmp(load->name, service->settings->setup_name) == 0) {
    if (says_nothing(load)) return make_own(service, out, err);
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "setup %s is the one of the command line: load it by its name alone",
                   load->name);
  }
  status = qk_setup_create(service, load->name, &settings, qk_service_now(service), &setup, err);
  if (status != QK_OK) return status;
  qk_setup_set_owner(setup, load->owner);
  setup->has_wanted = load->has_digest;
  setup->wanted = load->digest;
  snprintf(setup->gauge, sizeof setup->gauge, "%s", settings.gauge);
  setup->settings.gauge = setup->gauge;
  if (settings.deflate_from) {
    snprintf(setup->deflate_from, sizeof setup->deflate_from, "%s", settings.deflate_from);
    setup->settings.deflate_from = setup->deflate_from;
  }
  status = set_origin(setup, load, trusted, err);
  if (status != QK_OK) {
    qk_setup_release(setup);
    return status;
  }
  setup->load = qk_setup_request_pack(load, &settings, &setup->load_bytes);
  setup->settings.boundary_text = setup->settings.devices_text = NULL; /* they are the message's */
  if (!setup->load) {
    qk_setup_release(setup);
    return qk_fail(err, QK_NO_MEMORY, "no memory for a setup");
  }
  *out = setup;
  return QK_OK;
}

qk_setup_t *qk_setups_bring_back(qk_service_t *service, const qk_setup_row_t *row, qk_err_t *err) {
  qk_setup_t *setup = NULL;
  Quark__Load *load = quark__load__unpack(NULL, row->load_bytes, row->load);
  if (!load) {
    qk_fail(err, QK_BAD_FORMAT, "it cannot be read");
    return NULL;
  }
  if (make(service, load, true, &setup, err) == QK_OK)
    setup->make_default = load->make_default && !*row->lattice;
  quark__load__free_unpacked(load, NULL);
  if (!setup) return NULL;
  setup->id = row->id;
  setup->dropping = row->dropped;
  return setup;
}

qk_status_t qk_setups_equip(qk_setup_t *setup, qk_err_t *err) {
  qk_service_t *service = setup->service;
  qk_supervisor_site_t site = service->site;
  site.setup = setup->load ? setup->site_name : "";
  site.id = &setup->id;
  site.start = &setup->start;
  if (setup->settings.deflate > 0 && !setup->settings.deflate_from) {
    const qk_status_t status = qk_eigen_folder_make(&setup->settings, err);
    if (status != QK_OK) return status;
    qk_eigen_path(&setup->settings, setup->site_name, NULL, setup->vectors);
  }
  site.replicas = setup->replicas;
  QK_EACH_REPLICA(r, setup) {
    site.replica = r->number;
    site.number = service->setups++;
    const qk_status_t status = qk_supervisor_create(&site, &setup->settings, service->engine_events,
                                                    r, &r->supervisor, err);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

/* One of the front before. */
static qk_status_t equip_again(qk_setup_t *setup, qk_err_t *err) {
  const qk_status_t status = qk_setups_deflate_bring_back(setup, err);
  return status == QK_OK ? qk_setups_equip(setup, err) : status;
}

static qk_setup_t *with_id(const qk_service_t *service, int64_t id) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->setup[m] && service->setup[m]->id == id) return service->setup[m];
  return NULL;
}

static void take_over(qk_replica_t *replica, const qk_adopted_t *left) {
  replica->begun = true;
  qk_supervisor_take_over(replica->supervisor, left);
}

qk_status_t qk_setups_start(qk_service_t *service, qk_err_t *err) {
  qk_adopted_t left[QK_ADOPTED_MAX];
  qk_status_t status = QK_OK;
  const int n = qk_adopt_list(service->journal, left);
  for (int m = 0; m < QK_SETUPS_MAX && status == QK_OK; m++) {
    qk_setup_t *setup = service->setup[m];
    if (setup) status = equip_again(setup, err);
    if (setup && setup->successor && status == QK_OK) status = equip_again(setup->successor, err);
  }
  if (status == QK_OK) qk_setups_deflate_sweep(service);
  for (int i = 0; i < n && status == QK_OK; i++) {
    const qk_setup_t *setup = with_id(service, left[i].setup);
    if (setup && left[i].replica < setup->replicas)
      take_over(&setup->replica[left[i].replica], &left[i]);
    else
      qk_adopt_end_engine(service->journal, &left[i]);
  }
  return status;
}

/* ---- going --------------------------------------------------------------------------------- */

static bool any_ending(const qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->setup[m] && service->setup[m]->ending) return true;
  return false;
}

void qk_setups_fail(qk_setup_t *setup, qk_status_t status, const char *text) {
  setup->failed = status;
  snprintf(setup->text, sizeof setup->text, "%.*s", (int)sizeof setup->text - 1, text);
  qk_queue_expire_all(setup);
  qk_eigen_forget(setup);
  qk_setups_deflate_forget(setup);
  qk_setups_drop_record(setup);
  qk_fields_let_go(setup);
  qk_setup_stop(setup, qk_service_now(setup->service));
}

void qk_setups_lose(qk_setup_t *setup) {
  qk_setups_drop_record(setup);
  qk_setups_displace(setup);
}

void qk_setups_collect(qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_setup_t *setup = service->setup[m];
    if (setup && setup->successor) qk_setups_try_to_succeed(setup);
    setup = service->setup[m];
    if (!setup || !setup->ending || !qk_setup_stopped(setup)) continue;
    if (setup->failed == QK_OK) qk_info("setups", "%s is dropped", setup->name);
    qk_queue_expire_all(setup);
    QK_EACH_REPLICA(r, setup) {
      qk_supervisor_destroy(r->supervisor);
      r->supervisor = NULL;
    }
    qk_setups_displace(setup);
  }
}

void qk_setups_close(qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_setup_t *setup = service->setup[m], *successor = setup ? setup->successor : NULL;
    if (setup) qk_eigen_free(setup);
    if (setup) qk_fields_let_go(setup);
    if (successor) qk_fields_let_go(successor);
    qk_setup_release(successor);
    qk_setup_release(setup);
    service->setup[m] = NULL;
  }
  qk_fields_close(service);
}

void qk_setups_stop(qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->setup[m]) qk_setup_stop(service->setup[m], qk_service_now(service));
}

bool qk_setups_stopped(const qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->setup[m] && !qk_setup_stopped(service->setup[m])) return false;
  return true;
}

bool qk_setups_saving(const qk_service_t *service) {
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->setup[m] && qk_setup_saving(service->setup[m])) return true;
  return false;
}

/* ---- the default --------------------------------------------------------------------------- */

/* Once it is in the journal: the next front has the same one. */
static qk_status_t use(qk_setup_t *setup, qk_err_t *err) {
  setup->make_default = false;
  if (setup->service->primary == setup) return QK_OK;
  const qk_status_t status = qk_setups_record_default(setup, err);
  if (status != QK_OK) return status;
  qk_info("setups", "%s is the default now, instead of %s", setup->name,
          setup->service->primary->name);
  setup->service->primary = setup;
  return QK_OK;
}

void qk_setups_ready(qk_setup_t *setup) {
  qk_err_t err = {0};
  setup->used_at = qk_service_now(setup->service);
  if (setup->make_default && qk_setup_serves(setup) && use(setup, &err) != QK_OK)
    setup->make_default = true; /* as soon as it can be recorded */
}

void qk_setups_tick(qk_service_t *service, double now) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_setup_t *setup = service->setup[m];
    if (!setup) continue;
    if (setup->dropping && !setup->ending && !setup->successor && setup->open == 0)
      qk_setups_end(setup);
    const bool awaits = qk_setups_evolve_waits(setup) || any_ending(service);
    const bool wait = awaits && !setup->ending;
    if (!wait) setup->started = true;
    if (!wait && setup->again) {
      setup->again = false;
      QK_EACH_REPLICA(r, setup) qk_supervisor_load_again(r->supervisor);
    }
    if (setup->started) qk_setups_tick_replicas(setup, now);
    if (setup->make_default && qk_setup_state(setup) == QK_SUPERVISOR_READY &&
        !qk_journal_trouble(service->journal))
      qk_setups_ready(setup);
  }
}

/* ---- messages ------------------------------------------------------------------------------ */

static void *refuse(const char *what, const qk_err_t *err) {
  qk_info("setups", "%s rejected: %s: %s", what, qk_status_name(err->code), err->text);
  return NULL;
}

/* The same LOAD again, but for who is to be the default. */
static bool is_repeated(const qk_setup_t *setup, const Quark__Load *load) {
  char gauge[QK_PATH_MAX + 1];
  qk_settings_t settings;
  size_t bytes;
  if (!setup->load) return says_nothing(load);
  Quark__Load *before = quark__load__unpack(NULL, setup->load_bytes, setup->load), now = *load;
  if (!before) return false;
  now.has_make_default = before->has_make_default;
  now.make_default = before->make_default;
  quark__load__free_unpacked(before, NULL);
  if (qk_setup_request_settings(&now, setup->service->settings, false, gauge, &settings, NULL) !=
      QK_OK)
    return false;
  uint8_t *packed = qk_setup_request_pack(&now, &settings, &bytes);
  const bool same = packed && bytes == setup->load_bytes && memcmp(packed, setup->load, bytes) == 0;
  free(packed);
  return same;
}

/* Of a private setup. */
static bool is_there(const qk_setup_t *setup, const Quark__Load *load) {
  const qk_setup_t *current = qk_setup_current(setup);
  return !current->dropping && is_repeated(current, load);
}

/* A LOAD of a public setup that is there. */
static qk_status_t load_again(qk_setup_t *setup, const Quark__Load *load, qk_err_t *err) {
  if (setup->dropping)
    return qk_fail(err, QK_BUSY, "setup %s is being dropped: try again later", setup->name);
  if (!is_repeated(setup, load))
    return qk_fail(err, QK_BAD_ARGUMENT, "setup %s exists with other parameters: drop it first",
                   setup->name);
  if (load->make_default) setup->make_default = true;
  if (setup->make_default && qk_setup_state(setup) == QK_SUPERVISOR_READY) return use(setup, err);
  return QK_OK;
}

/* The LOAD with its links found, and its owner where it is private. */
static qk_status_t find_links(qk_service_t *service, const qk_viewer_t *viewer,
                              const Quark__Load *load, Quark__Load *whole, qk_links_t *links,
                              uint32_t dims[4], qk_err_t *err) {
  *whole = *load;
  *links = (qk_links_t){NULL};
  whole->owner = NULL;
  whole->has_digest = false;
  if (!qk_fields_is_reference(load->gauge)) {
    if (viewer->operates)
      return qk_fields_resolve_term(service, viewer->session, viewer->user, whole, links, err);
    return qk_fail(err, QK_DENIED,
                   "load needs the role operate, but for links of your own: gauge field:REQUEST or "
                   "digest:HEX16");
  }
  if (!viewer->user || !*viewer->user)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "gauge = %.30s: a setup of one's own links needs a user's name: send HELLO with "
                   "one",
                   load->gauge);
  if (load->make_default)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "make_default: setup %.64s is for its user alone, it cannot be the default",
                   load->name);
  qk_status_t status =
      qk_fields_resolve(service, viewer->session, viewer->user, load->gauge, links, err);
  if (status != QK_OK) return status;
  whole->owner = (char *)viewer->user;
  whole->has_digest = links->like != NULL; /* links of a field have been checked */
  whole->digest = links->digest;
  whole->gauge = (char *)links->gauge;
  status = qk_fields_resolve_term(service, viewer->session, viewer->user, whole, links, err);
  if (status != QK_OK || !links->like) return status;
  whole->has_ignore_checksum = whole->ignore_checksum = links->like->settings.ignore_checksum;
  for (int mu = 0; mu < 4; mu++) dims[mu] = (uint32_t)links->like->settings.dims[mu];
  whole->n_dims = dims[0] > 0 ? 4 : 0;
  whole->dims = dims;
  return QK_OK;
}

static void tell_loading(const qk_setup_t *setup, const char *how) {
  char op[QK_OPERATOR_TEXT];
  qk_values_text(&setup->settings.op, QK_TEXT_GIVEN, op);
  qk_info("setups", "loading %s%s: %s, %.400s", setup->site_name, how, setup->settings.gauge, op);
}

/* before: what is there of that name, of a private setup; NULL: nothing, or what has failed. *at:
 * the one of the table that stands for it. */
static qk_status_t load_new(qk_service_t *service, const Quark__Load *load, const qk_links_t *links,
                            qk_setup_t *before, qk_setup_t **at, qk_err_t *err) {
  qk_setup_t *setup;
  /* made first: what is wrong with it must not cost another setup its place */
  qk_status_t status = make(service, load, false, &setup, err);
  if (status != QK_OK) return status;
  qk_fields_bind(setup, links);
  status = qk_setups_equip(setup, err);
  if (status == QK_OK) status = qk_setups_deflate_begin(setup, err);
  if (status == QK_OK)
    status = before ? qk_setups_succeed(before, setup, err) : qk_setups_find_place(setup, at, err);
  if (status != QK_OK) {
    qk_setups_drop_record(setup);
    qk_setups_deflate_forget(setup);
    qk_fields_let_go(setup);
    qk_setup_release(setup);
    return status;
  }
  qk_setups_deflate_recorded(setup);
  if (before) *at = before;
  setup->make_default = load->make_default;
  tell_loading(setup, *at == setup ? "" : " in place");
  return QK_OK;
}

static qk_status_t load_or_find(qk_service_t *service, const Quark__Load *load,
                                const qk_links_t *links, qk_setup_t **at, qk_err_t *err) {
  qk_setup_t *before = qk_setups_named(service, load->owner, load->name);
  if (service->draining || service->stopping)
    return qk_fail(err, QK_SHUTTING_DOWN, "the daemon accepts no new work");
  const bool there = before && (before->failed == QK_OK || before->successor);
  if (there && (!load->owner || is_there(before, load))) {
    *at = before;
    return load->owner ? QK_OK : load_again(before, load, err);
  }
  const qk_status_t status = load_new(service, load, links, there ? before : NULL, at, err);
  if (status == QK_OK && before && !there) qk_setups_end(before);
  return status;
}

qk_setup_t *qk_setups_load(qk_service_t *service, const qk_viewer_t *viewer,
                           const Quark__Load *load, qk_err_t *err) {
  qk_setup_t *loaded = NULL;
  Quark__Load whole;
  qk_links_t links;
  uint32_t dims[4];
  qk_status_t status = find_links(service, viewer, load, &whole, &links, dims, err);
  if (status == QK_OK) status = load_or_find(service, &whole, &links, &loaded, err);
  return status == QK_OK ? loaded : refuse("LOAD", err);
}

/* A DROP that comes twice must not end the setup that another user has of the same name. */
static void check_whose(const qk_viewer_t *viewer, const qk_setup_t *setup, const char *name,
                        qk_err_t *err) {
  const bool own = viewer->user && strcmp(viewer->user, setup->owner) == 0;
  if (!setup->owner[0] || own || strchr(name, '/')) return;
  qk_fail(err, QK_NOT_FOUND,
          "setup = \"%s\": you have none of this name; to drop that of %s say %s/%s", setup->name,
          setup->owner_shown, setup->owner_shown, setup->name);
}

qk_setup_t *qk_setups_drop(qk_service_t *service, const qk_viewer_t *viewer,
                           const Quark__Drop *drop, qk_err_t *err) {
  qk_setup_t *found = qk_setups_find(service, viewer, drop->name, err);
  if (!viewer->operates && (!found || !found->owner[0])) {
    *err = (qk_err_t){0};
    qk_fail(err, QK_DENIED, "drop needs the role operate, but for setups of your own links");
    return refuse("DROP", err);
  }
  if (found) check_whose(viewer, found, drop->name, err);
  if (found == service->primary)
    qk_fail(err, QK_BAD_ARGUMENT, "setup %s is the default: make another one the default first",
            found->name);
  if (err->code == QK_OK) qk_setups_record_end(qk_setup_current(found), err);
  if (err->code != QK_OK) return refuse("DROP", err);
  qk_info("setups", "dropping %s%s: %lld right-hand sides are open", found->site_name,
          drop->now ? " now" : "", (long long)found->open);
  qk_setups_forget_successor(found);
  found->dropping = true;
  return found;
}

qk_setup_t *qk_setups_make_default(qk_service_t *service, const qk_viewer_t *viewer,
                                   const Quark__MakeDefault *message, qk_err_t *err) {
  qk_setup_t *found = qk_setups_find(service, viewer, message->name, err);
  if (found) qk_setups_check(found, err);
  if (err->code == QK_OK && found->owner[0])
    qk_fail(err, QK_BAD_ARGUMENT, "setup %s is for its user alone, it cannot be the default",
            found->name);
  if (err->code == QK_OK) use(found, err);
  return err->code == QK_OK ? found : refuse("MAKE_DEFAULT", err);
}
