/* setups_find.c: setups by name, as who asks for them sees them. */
#include <stdio.h>
#include <string.h>

#include "daemon/front/service/setups.h"

bool qk_setups_sees(const qk_viewer_t *viewer, const qk_setup_t *setup) {
  return !setup->owner[0] || viewer->operates ||
         (viewer->user && strcmp(viewer->user, setup->owner) == 0);
}

qk_setup_t *qk_setups_named(const qk_service_t *service, const char *owner, const char *name) {
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_setup_t *setup = service->setup[m];
    if (!setup || setup->ending || strcmp(setup->name, name) != 0) continue;
    if (strcmp(setup->owner, owner ? owner : "") == 0) return setup;
  }
  return NULL;
}

/* Private ones of the viewer come first, then public ones; an operator finds those of others. */
static qk_setup_t *find(const qk_service_t *service, const qk_viewer_t *viewer, const char *name) {
  qk_setup_t *found = viewer->user ? qk_setups_named(service, viewer->user, name) : NULL;
  if (!found) found = qk_setups_named(service, "", name);
  for (int m = 0; m < QK_SETUPS_MAX && !found; m++) {
    qk_setup_t *setup = service->setup[m];
    if (setup && !setup->ending && viewer->operates && strcmp(setup->name, name) == 0)
      found = setup;
  }
  return found;
}

static void list_names(const qk_service_t *service, const qk_viewer_t *viewer, char *list,
                       size_t size) {
  size_t n = 0;
  list[0] = '\0';
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *setup = service->setup[m];
    if (setup && qk_setup_serves(setup) && qk_setups_sees(viewer, setup) && n < size)
      n += (size_t)snprintf(list + n, size - n, "%s%s", n ? ", " : "", setup->name);
  }
}

qk_setup_t *qk_setups_find(const qk_service_t *service, const qk_viewer_t *viewer, const char *name,
                           qk_err_t *err) {
  char list[256], quoted[QK_SETUP_NAME_MAX + 1];
  if (!name || strcmp(name, "default") == 0) return service->primary;
  qk_setup_t *setup = find(service, viewer, name);
  if (setup) return setup;
  list_names(service, viewer, list, sizeof list);
  qk_err_quote(name, quoted, sizeof quoted);
  qk_fail(err, QK_NOT_FOUND, "setup = \"%s\": there is no setup of this name; there are %s", quoted,
          list);
  return NULL;
}

qk_status_t qk_setups_check(const qk_setup_t *setup, qk_err_t *err) {
  if (setup->failed != QK_OK)
    return qk_fail(err, QK_NOT_FOUND, "setup %s was not loaded: %.300s", setup->name, setup->text);
  if (!qk_setup_serves(setup))
    return qk_fail(err, QK_NOT_FOUND, "setup %s is being dropped", setup->name);
  if (qk_supervisor_state(setup->supervisor) != QK_SUPERVISOR_READY)
    return qk_fail(err, QK_NOT_READY,
                   setup->shape.dims[0] > 0
                       ? "setup %s is being loaded again because its engine was lost"
                       : "setup %s is not loaded yet",
                   setup->name);
  return QK_OK;
}
