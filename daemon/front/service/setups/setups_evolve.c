/* setups_evolve.c: setups whose multigrid starts from the null vectors of another one. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/engines/checkpoint_path.h"
#include "daemon/front/host/runtime.h"
#include "daemon/front/service/setups.h"
#include "daemon/front/settings/names.h"
#include "proto/choices.h"

static bool has_multigrid(const char *solver) {
  return strcmp(solver, "mg") == 0 || strcmp(solver, "auto") == 0;
}

/* The checkpoint of the setup of this name and owner, as far as these tell; "": they do not. */
static void find_by_name(const qk_service_t *service, const char *name, const char *owner,
                         char path[QK_PATH_MAX + 1]) {
  char site[QK_SETUP_NAME_MAX + 12];
  const bool own = !*owner && strcmp(name, service->settings->setup_name) == 0;
  qk_err_t err = {0};
  qk_setup_site_name(name, owner, site);
  if (qk_checkpoint_path(service->settings, own ? "" : site, path, &err) != QK_OK ||
      qk_checkpoint_is_folder(path))
    path[0] = '\0';
}

/* That of a setup that is there: its engine knows the file in a folder. */
static void find_file(qk_setup_t *setup, const qk_setup_t *source) {
  const qk_engine_info_t *e = qk_setup_info(source);
  if (e->loaded && e->multigrid && e->multigrid->checkpoint)
    snprintf(setup->evolve_path, sizeof setup->evolve_path, "%s", e->multigrid->checkpoint);
}

static qk_status_t check_source(const qk_setup_t *setup, const qk_setup_t *source, qk_err_t *err) {
  const int *dims = setup->settings.dims;
  const uint32_t *theirs = source->shape.dims;
  const char *solver = qk_setup_solver(source);
  if (!has_multigrid(solver))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "evolve_from = %s: it has no null vectors, as its solver is %s", source->name,
                   solver);
  if (dims[0] == 0 || theirs[0] == 0) return QK_OK;
  for (int mu = 0; mu < 4; mu++)
    if ((uint32_t)dims[mu] != theirs[mu])
      return qk_fail(err, QK_BAD_ARGUMENT,
                     "evolve_from = %s: its lattice is %ux%ux%ux%u, not %dx%dx%dx%d", source->name,
                     theirs[0], theirs[1], theirs[2], theirs[3], dims[0], dims[1], dims[2],
                     dims[3]);
  return QK_OK;
}

static qk_status_t check_settings(const qk_setup_t *setup, const char *from, qk_err_t *err) {
  const qk_settings_t *s = &setup->settings;
  if (!has_multigrid(qk_settings_solver(s)))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "evolve_from = %s: null vectors are for multigrid, but solver = %s", from,
                   qk_settings_solver(s));
  if (strcmp(s->mg_checkpoint, "off") == 0)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "evolve_from = %s: setups of this daemon write no checkpoint "
                   "(mg-checkpoint = off)",
                   from);
  return QK_OK;
}

qk_status_t qk_setups_evolve_begin(qk_setup_t *setup, const char *from, qk_setup_t *source,
                                   const char *why, qk_err_t *err) {
  qk_status_t status =
      strcmp(from, "default") == 0 ? QK_OK : qk_names_check("evolve_from", from, err);
  if (status == QK_OK) status = check_settings(setup, from, err);
  if (status != QK_OK) return status;
  if (source && source->failed == QK_OK) {
    status = check_source(setup, source, err);
    if (status != QK_OK) return status;
    snprintf(setup->evolve_from, sizeof setup->evolve_from, "%s", source->name);
    find_by_name(setup->service, source->name, source->owner, setup->evolve_path);
    find_file(setup, source);
    setup->source = qk_setup_hold(source);
    return QK_OK;
  }
  qk_setups_evolve_bring_back(setup, from);
  if (setup->evolve_path[0] && access(setup->evolve_path, F_OK) == 0) return QK_OK;
  return qk_fail(err, QK_NOT_FOUND, "evolve_from: no checkpoint is left of it, and %s",
                 source ? source->text : why);
}

void qk_setups_evolve_bring_back(qk_setup_t *setup, const char *from) {
  const qk_service_t *service = setup->service;
  if (strcmp(from, "default") == 0 && service->primary) from = service->primary->name;
  snprintf(setup->evolve_from, sizeof setup->evolve_from, "%s", from);
  find_by_name(service, from, setup->owner, setup->evolve_path);
  if (!setup->owner[0] || (setup->evolve_path[0] && access(setup->evolve_path, F_OK) == 0)) return;
  find_by_name(service, from, "", setup->evolve_path);
}

qk_status_t qk_setups_evolve_of_settings(qk_setup_t *setup, qk_err_t *err) {
  const char *given = setup->settings.mg_from;
  if (!given || strcmp(given, "off") == 0) return QK_OK;
  const char *last = strrchr(given, '/');
  snprintf(setup->evolve_from, sizeof setup->evolve_from, "%s", last ? last + 1 : given);
  return qk_runtime_path("mg-from", given, setup->evolve_path, err);
}

/* False: the source has a checkpoint now, or will have none. */
static bool is_awaited(qk_setup_t *setup, const qk_setup_t *source) {
  if (source->index < 0 || source->failed != QK_OK || !source->replica->supervisor) return false;
  const qk_supervisor_state_t state = qk_setup_state(source);
  if (state == QK_SUPERVISOR_STOPPED) return false;
  if (state == QK_SUPERVISOR_REFUSED && !source->again) return false;
  if (state == QK_SUPERVISOR_READY) find_file(setup, source);
  return state != QK_SUPERVISOR_READY || qk_setup_saving(source);
}

bool qk_setups_evolve_waits(qk_setup_t *setup) {
  if (!setup->source) return false;
  if (is_awaited(setup, setup->source)) return true;
  qk_setup_release(setup->source);
  setup->source = NULL;
  return false;
}
